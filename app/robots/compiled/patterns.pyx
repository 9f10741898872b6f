# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Patterns in order of precedence, and the first of them that a subject matches (spec D2, D3, E6).

All texts are UTF-8 here: what begins with a text, or holds it, does so by octets as by characters, since no octet that
begins a character stands within one. A *place* is the rank of a pattern, from 0, in order of precedence; an offset is
one of octets. Where a pattern has stars, the text before the first is its *head*, and each text between two stars takes
the first offset behind the one before: a later one could only leave less for the rest.

A few patterns are tried one by one (trying). Of many, prefixes, whole subjects and heads are looked up (stems). What is
left are patterns with stars whose heads fit. If these are few they are tried as well; else their texts have names and
the patterns gates (grams), made when that is first needed: those whose gates are open are tried, and where that is more
work than it should be, or the subject is long, they are followed by where their texts stand (following).
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free

from app.robots.compiled.blocks cimport fitted, grown, zeroed
from app.robots.compiled.following cimport Starred, follow, try_gated
from app.robots.compiled.grams cimport Grams
from app.robots.compiled.hashing cimport Octets, hash_of, slot_behind, slot_of
from app.robots.compiled.stems cimport Stem, Stems
from app.robots.compiled.trying cimport PREFIX, STARRED, WHOLE, Matches, Pattern, found_at, matches, noted, tried

from collections.abc import Sequence
from os import urandom

from app.robots.compiled.texts cimport Texts


cdef extern from "Python.h":
    bint PyUnicode_Check(object)
    bint PyUnicode_IS_ASCII(object)
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL


cdef enum:
    FEW = 16  # so many patterns are tried one by one, whatever they are
    FEW_STARRED = 12  # so many patterns with stars are tried one by one
    SHORT = 512  # octets of a subject whose patterns with open gates are first tried one by one

# What may be spent on trying a few patterns, in octets looked at, before their texts are looked up.
cdef Py_ssize_t WORK_FEW = 1 << 19
# The same, for patterns with open gates.
cdef Py_ssize_t WORK_GATED = 1 << 16
# Patterns, octets of them all, and octets of a subject: what numbers of 32 bits hold with room to spare.
cdef size_t LIMIT = 0x7FFFFFFF

cdef struct Head:
    uint32_t first, last, count  # patterns with stars that begin with it


cdef uint64_t _stamp = 0
cdef uint64_t *_opened = NULL  # by head, the stamp of the last subject that began with it
cdef size_t _opened_room = 0
cdef uint64_t _factor = int.from_bytes(urandom(8), "little") | 1


def hash_by(factor: int) -> int:
    """Have indexes made from now on hash by another `factor` than the secret one; that, or the one before, is returned.

    For tests: by 0, everything collides.
    """
    global _factor
    before = _factor
    _factor = factor
    return before


cdef object _octets(object text, Octets *octets, size_t *length):
    """The UTF-8 of `text`, which stands as long as the object that is returned; a lone surrogate has three octets."""
    cdef Py_ssize_t size = 0
    cdef object held = text
    if not PyUnicode_Check(text):
        raise TypeError(f"{text!r} is no str")
    if PyUnicode_IS_ASCII(text):
        octets[0] = <Octets> PyUnicode_AsUTF8AndSize(text, &size)
    else:
        held = str.encode(text, "utf-8", "surrogatepass")
        octets[0] = <Octets> PyBytes_AS_STRING(held)
        size = PyBytes_GET_SIZE(held)
    if <size_t> size > LIMIT:
        raise OverflowError(f"a text of {size} octets is too long to be matched")
    length[0] = <size_t> size
    return held


cdef class _Index:
    """What the two have in common; they differ in how patterns are read."""

    cdef uint64_t _secret  # what hashes are made with
    cdef int32_t _none  # the number of patterns
    cdef uint8_t *_texts  # octets of all patterns
    cdef size_t _texts_count, _texts_room
    cdef int32_t *_same  # by place, the next that says the same, or -1; NULL: there is none anywhere
    cdef Pattern *_few  # all patterns, if they are few

    # Of a few patterns these are made when trying them has been too much work.
    cdef Stems _stems  # prefixes, whole subjects and heads
    cdef Head *_heads
    cdef uint32_t _heads_count
    # Those with stars, ascending, each once; and one more, whose names begin where all have ended.
    cdef Pattern *_starred
    cdef uint32_t _starred_count

    cdef Grams _grams  # of what those with stars say, when it is needed

    def __dealloc__(self):
        PyMem_Free(self._texts)
        PyMem_Free(self._same)
        PyMem_Free(self._few)
        self._drop_starred()

    cdef void _drop_starred(self) noexcept:
        PyMem_Free(self._heads)
        PyMem_Free(self._starred)
        self._heads, self._starred = NULL, NULL
        self._heads_count = self._starred_count = 0

    def first(self, subject: str) -> int:
        """The place of the first pattern that matches `subject`, or the number of patterns."""
        cdef Octets octets = NULL
        cdef size_t length = 0
        cdef object _held = _octets(subject, &octets, &length)
        return self._ask(octets, length, NULL)

    def every(self, subject: str) -> list[int]:
        """The places of all patterns that match, ascending."""
        cdef Octets octets = NULL
        cdef size_t length = 0, at
        cdef int32_t place
        cdef Matches found
        cdef object _held = _octets(subject, &octets, &length)
        memset(&found, 0, sizeof(found))
        try:
            self._ask(octets, length, &found)
            if self._same != NULL:
                for at in range(found.count):
                    place = self._same[found.places[at]]
                    while place >= 0:
                        noted(&found, place)
                        place = self._same[place]
            return sorted([found.places[at] for at in range(found.count)])
        finally:
            PyMem_Free(found.places)

    # -- Reading

    cdef int _build(self, object patterns, bint literal) except -1:
        cdef Texts texts = <Texts> patterns if isinstance(patterns, Texts) else None
        cdef tuple rows = tuple(patterns) if texts is None else ()
        cdef size_t count = len(rows) if texts is None else texts.count, length = 0
        cdef Octets octets = NULL
        cdef object _held
        cdef int32_t place
        if count > LIMIT:
            raise OverflowError(f"{count} patterns are too many to be matched")
        self._secret = _factor
        self._none = <int32_t> count
        self._few = <Pattern *> zeroed(count, sizeof(Pattern))
        for place in range(self._none):
            if texts is None:
                _held = _octets(rows[place], &octets, &length)
            else:
                octets, length = texts.octets + texts.bounds[place], texts.bounds[place + 1] - texts.bounds[place]
            self._read(octets, length, literal, place)
        self._texts = <uint8_t *> fitted(self._texts, self._texts_count, 1)
        self._texts_room = self._texts_count
        if count > FEW:
            self._make_stems()
            PyMem_Free(self._few)
            self._few = NULL
        return 0

    cdef int _read(self, Octets octets, size_t length, bint literal, int32_t place) except -1:
        """Take a pattern up: a star at its end says nothing, nor an anchor behind a star, nor a star behind a star."""
        cdef Pattern *it = &self._few[place]
        cdef size_t anchored, size = 0, at
        cdef uint8_t *text
        cdef const void *star
        if self._texts_count + length > LIMIT:
            raise OverflowError("these patterns are too long, all together, to be matched")
        self._texts = <uint8_t *> grown(self._texts, &self._texts_room, self._texts_count + length, 1)
        text = self._texts + self._texts_count
        it.text, it.place, it.kind = <uint32_t> self._texts_count, place, PREFIX
        anchored = not literal and length > 0 and octets[length - 1] == c"$"
        length -= anchored
        star = NULL if literal else memchr(octets, c"*", length)
        if star == NULL:
            memcpy(text, octets, length)
            self._texts_count += length
            it.length = it.stem = <uint32_t> length
            it.kind = WHOLE if anchored else PREFIX
            return 0
        it.stem = <uint32_t> (<Octets> star - octets)
        for at in range(length):
            if octets[at] != c"*" or size == 0 or text[size - 1] != c"*":
                text[size] = octets[at]
                size += 1
        if text[size - 1] == c"*":
            size -= 1
            anchored = False
        it.length = <uint32_t> size
        self._texts_count += size
        if size > it.stem:
            it.kind = STARRED
            while anchored and text[size - 1 - it.end] != c"*":  # there is one, behind the head
                it.end += 1
        return 0

    # -- Prefixes, whole subjects, heads

    cdef int _make_stems(self) except -1:
        """Read all patterns from `_few`."""
        cdef int32_t place
        cdef size_t starred = 0
        cdef uint64_t *same = NULL
        cdef int32_t *tails = NULL
        cdef Stems stems = Stems()
        self._drop_starred()  # those of an attempt that has failed
        for place in range(self._none):
            starred += self._few[place].kind == STARRED
        stems.expect(self._none, self._secret)
        self._heads = <Head *> zeroed(starred, sizeof(Head))
        self._starred = <Pattern *> zeroed(starred + 1, sizeof(Pattern))
        try:
            same = <uint64_t *> zeroed(2 * starred, sizeof(uint64_t))
            for place in range(self._none):
                self._add(&self._few[place], stems, same, 2 * starred, &tails)
        finally:
            PyMem_Free(same)
            PyMem_Free(tails)
        stems.finish()
        self._heads = <Head *> fitted(self._heads, self._heads_count, sizeof(Head))
        self._starred = <Pattern *> fitted(self._starred, self._starred_count + 1, sizeof(Pattern))
        self._stems = stems
        return 0

    cdef int _add(self, const Pattern *it, Stems stems, uint64_t *same, size_t slots, int32_t **tails) except -1:
        cdef Octets text = self._texts + it.text
        cdef uint64_t hashed = hash_of(text, it.stem, self._secret, self._secret)
        cdef Stem *stem = stems.of(self._texts, it.text, it.stem, hashed)
        cdef Pattern *other
        cdef Head *head
        cdef uint64_t slot
        if it.kind == PREFIX:
            if stem.prefix >= 0:
                return self._say_the_same(stem.prefix, it.place, tails)
            stem.prefix = it.place
            return 0
        if it.kind == WHOLE:
            if stem.whole >= 0:
                return self._say_the_same(stem.whole, it.place, tails)
            stem.whole = it.place
            return 0
        if stem.head < 0:
            stem.head = <int32_t> self._heads_count
            self._heads_count += 1
        hashed = hash_of(text + it.stem, it.length - it.stem, hashed, self._secret)
        slot = slot_of(hashed, slots)
        while same[slot]:
            other = &self._starred[<uint32_t> same[slot] - 1]
            if (
                same[slot] >> 32 == hashed >> 32 and other.length == it.length and other.end == it.end
                and memcmp(self._texts + other.text, text, it.length) == 0
            ):
                return self._say_the_same(other.place, it.place, tails)
            slot = slot_behind(slot, slots)
        other = &self._starred[self._starred_count]
        other[0] = it[0]
        other.head = <uint32_t> stem.head
        head = &self._heads[stem.head]
        if head.count:
            self._starred[head.last].following = self._starred_count
        else:
            head.first = self._starred_count
        head.last = self._starred_count
        head.count += 1
        self._starred_count += 1
        same[slot] = hashed >> 32 << 32 | self._starred_count
        return 0

    cdef int _say_the_same(self, int32_t first, int32_t place, int32_t **tails) except -1:
        """Put `place` behind all that say the same as `first`: the last is in `tails`, if it is not `first`."""
        if self._same == NULL:
            self._same = <int32_t *> zeroed(self._none, sizeof(int32_t))
            memset(self._same, 0xFF, <size_t> self._none * sizeof(int32_t))
        if tails[0] == NULL:
            tails[0] = <int32_t *> zeroed(self._none, sizeof(int32_t))
        self._same[tails[0][first] or first] = place  # no pattern stands behind others at 0
        tails[0][first] = place
        return 0

    # -- Deciding

    cdef int32_t _ask(self, Octets subject, size_t length, Matches *every) except -1:
        """The lowest place of the patterns that match; with `every`, note there one of each that says the same."""
        cdef Py_ssize_t work = WORK_FEW
        cdef int32_t place, best = self._none
        cdef uint32_t[FEW_STARRED] heads
        cdef uint32_t count
        cdef size_t known
        cdef Starred starred
        cdef int told = 0
        if self._few != NULL:
            for place in range(self._none):
                told = tried(self._texts, &self._few[place], subject, length, &work)
                if told > 0:
                    if every == NULL:
                        return place
                    noted(every, place)
                elif told < 0:
                    break
            if told >= 0:
                return best
            if every != NULL:
                every.count = 0
            if self._stems is None:
                self._make_stems()
        count = self._by_stems(subject, length, &best, every, heads)
        if not count:
            return best
        known = 0 if every == NULL else every.count
        if count <= FEW_STARRED:
            work = WORK_FEW if self._starred_count <= FEW_STARRED else WORK_GATED
            place = best
            if self._behind_heads(subject, length, heads, count, &place, every, &work):
                return place
            if every != NULL:
                every.count = known
        if self._grams is None:
            self._make_grams()
        starred.texts, starred.patterns, starred.opened, starred.stamp = self._texts, self._starred, _opened, _stamp
        if length <= SHORT:
            work = WORK_GATED
            place = best
            if try_gated(self._grams, &starred, subject, length, &place, every, &work):
                return place
            if every != NULL:
                every.count = known
        follow(self._grams, &starred, subject, length, &best, every)
        return best

    cdef int _make_grams(self) except -1:
        cdef Grams grams = Grams()
        grams.make(self._texts, self._starred, self._starred_count, self._secret)
        self._grams = grams
        return 0

    cdef uint32_t _by_stems(
        self, Octets subject, size_t length, int32_t *best, Matches *every, uint32_t *heads
    ) except? 0xFFFFFFFF:
        """Ask for prefixes and whole subjects, and open heads; how many patterns with stars begin with one of these.

        0: none of them comes before the best. If they are no more than FEW_STARRED, all their heads are in `heads`.
        """
        global _opened, _stamp
        cdef int32_t lowest = self._none
        cdef uint32_t count = 0
        cdef size_t stems, number
        cdef int opened = 0
        cdef Stem **found = self._stems.among(self._texts, subject, length, &stems)
        cdef Stem *stem
        _opened = <uint64_t *> grown(_opened, &_opened_room, self._heads_count, sizeof(uint64_t))
        _stamp += 1
        for number in range(stems):
            stem = found[number]
            if stem.prefix >= 0:
                found_at(stem.prefix, best, every)
            if stem.whole >= 0 and stem.length == length:
                found_at(stem.whole, best, every)
            if stem.head >= 0:
                _opened[stem.head] = _stamp
                count += self._heads[stem.head].count
                lowest = min(lowest, self._starred[self._heads[stem.head].first].place)
                if opened < FEW_STARRED:
                    heads[opened] = <uint32_t> stem.head
                    opened += 1
        return count if lowest < best[0] else 0

    cdef int _behind_heads(
        self, Octets subject, size_t length, const uint32_t *heads, uint32_t count, int32_t *best, Matches *every,
        Py_ssize_t *work
    ) except -1:
        """Try the patterns with stars behind heads, so many, one by one; 0: that was too much work, more may match."""
        cdef int told
        cdef uint32_t number, left
        cdef const Pattern *it
        while count:
            number = self._heads[heads[0]].first
            left = self._heads[heads[0]].count
            count -= left
            heads += 1
            while left and self._starred[number].place < best[0]:
                it = &self._starred[number]
                told = matches(self._texts, it, subject, length, work)
                if told < 0:
                    return 0
                if told:
                    found_at(it.place, best, every)
                number = it.following
                left -= 1
        return 1


cdef class PatternIndex(_Index):
    """Patterns of version 1.0: prefixes, whole subjects (a final `$`), and what holds a `*`."""

    def __cinit__(self, patterns: Sequence[str]) -> None:
        self._build(patterns, False)


cdef class PrefixIndex(_Index):
    """Patterns that are prefixes to the letter (spec E6)."""

    def __cinit__(self, patterns: Sequence[str]) -> None:
        self._build(patterns, True)
