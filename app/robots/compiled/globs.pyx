"""Which globs of Robot-version 2.0 match a subject: `*`, `?`, `\\c`, `[set]`, `[!set]`, ranges (spec F10, F11).

A glob is stretches of places with stars between them. The first stretch is compared where the subject begins, the last
where it ends, and each between takes its first place behind the one before, for a later one could only leave less for
the rest: so no glob makes this go back. A stretch is looked for at some 2,000 starts at once, a bit each: what each of
its places takes is a row of bits over the subject, and the rows, shifted by how far behind the start the place is, are
joined by AND until no start is left. A few starts that do not go away are tried by themselves. Stretches that say the
same are one, and of one that is looked for again and again all starts are noted, so that the next is looked up.

Most globs are never asked: each that has a text waits for a gram of it, and the subject is cut into grams once.

What is found while one subject is asked about is kept in memory of the module, used again by the next; calls do not
overlap, for none lets go of the interpreter's lock.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc

from os import urandom

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    void *PyUnicode_DATA(object text)

cdef extern from "globs.h":
    ctypedef struct Step:
        const uint8_t *row
        uint64_t kind
    const uint64_t MORE, OTHERS, LOOK
    const int SIDE
    void keep_least(uint64_t *least, uint32_t room, uint64_t key) noexcept
    const uint32_t NONE, TEXT
    uint64_t sift(
        uint64_t *starts, const void *source, const Step *step, const Step *end, size_t at, int wides
    ) noexcept
    const uint8_t *all_starts() noexcept
    bint strikes(
        const uint8_t **rows, const uint8_t *barred, size_t stride, size_t count, size_t at, uint64_t by
    ) noexcept
    void joined(uint64_t *to, const uint64_t *source, size_t words) noexcept
    void marked(uint8_t *row, const uint8_t *octets, size_t eights, uint8_t wanted) noexcept
    void flipped(uint64_t *square) noexcept
    uint64_t folded(uint64_t one, uint64_t other) noexcept
    uint64_t hashed(const uint8_t *octets, size_t length, uint64_t seed, uint64_t factor) noexcept
    ctypedef struct Extent:  # of some characters: where they stand in the subject
        uint32_t count
        uint32_t first
        uint32_t behind  # one behind the last, 0 where there is none
    ctypedef struct Span:
        pass
    void tabled(Span (*table)[16], const Extent *each) noexcept
    uint64_t surveyed(
        Extent *it, const Span (*table)[16], const uint8_t *fours, size_t count, const uint64_t *set,
        const uint64_t *present
    ) noexcept
    uint32_t bucket(const uint8_t *octets, bint wide_one, const uint64_t *factors) noexcept
    bint same_eight(const uint8_t *one, const uint8_t *other) noexcept
    int lowest(uint64_t word) noexcept
    int highest(uint64_t word) noexcept


cdef enum:
    ALPHABET = 128  # what `paths.glob_subject` and `paths.glob_pattern` return is ASCII
    LONG = 32  # so many places side by side that take the same are told by where the next character is that they do not
    GRAM = 4  # characters of the widest gram
    COUNTED = 1 << 16  # counters of grams while a gate is chosen; grams that share one count as one
    CONSIDERED = 64  # grams of a glob among which its gate is chosen
    FEW = 8  # so many globs are asked one by one
    BLOCK = 512  # starts of one `wide`
    WORDS = 8 * SIDE  # of starts that are looked at together, 64 of them each
    PASS = SIDE * 512 - 8  # starts that are told together
    KEPT = 0xFFFFFFF0  # every number of what is noted is less
    UNKEPT = 0xFFFFFFF1  # what is not to be noted
    NOTE_TRIED = 64  # starts that are tried, at most, while all are noted
    TRIED = 16  # starts of a stretch, or places of a character, that are tried as they come
    PREPARED = 16  # places that are prepared at a time
    DEEPER = 64  # so often what is prepared is asked of each block at once, where one before had to be asked it,
    DEEP = 1  # and so often where a few of its starts were tried
    PIECES = 32  # a stretch of more is not tried from end to end, start by start, but a few times
    NARROW = 8  # characters of the grams that a subject is cut into,
    WIDE = 32  # and of the others
    BUCKETS = 1 << 16  # of grams by their hash
    SURVEYED = 64  # characters of a text that it is bounded by, and its rarest chosen of
    LOOKED_UP = 64  # grams of a stretch, at most, of which the rarest is chosen
    BOUNDED = 8  # stretches between stars, the last ones, that are known not to stand behind a place
    RARE = 8  # places that strike out the most for what they cost come first

cdef uint64_t ALL = ~(<uint64_t>0)
# Octets of what is noted of stretches that are looked for again and again; where it would be more, they are looked for.
cdef size_t NOTES = 4 << 20
# Characters of a subject that rows are made of; what is longer, and no URL is, is tried start by start.
cdef size_t LONGEST = 1 << 18
# Octets of rows of several characters together; where they would be more, there are fewer together.
cdef size_t ARENA = 2 << 20
cdef double LIKELY = 0.25  # starts that are expected to be left where it is likely that there are none
cdef size_t UNTOLD = ~(<size_t>0)
# What patterns of one index, and what a subject, have to be shorter than, so that 32 bits hold every number.
cdef uint64_t LENGTHS = 1 << 30

cdef uint64_t SEED = int.from_bytes(urandom(8), "little")
cdef uint64_t[4] FACTORS
for _each in range(4):
    FACTORS[_each] = int.from_bytes(urandom(8), "little") | 1
cdef uint64_t FACTOR = int.from_bytes(urandom(8), "little") | 1


cdef struct Set:  # the characters that a place takes, a bit each
    uint64_t low
    uint64_t high

cdef struct Piece:
    uint32_t what  # the number of a set; of a text, where in the texts it begins
    uint32_t offset  # behind the begin of its stretch
    uint32_t count  # places, with TEXT where they are a text

cdef struct Stretch:
    uint32_t piece  # the first; whatever is between them takes anything
    uint32_t pieces
    uint32_t length
    uint32_t longs  # pieces of LONG places at least that take the same
    uint32_t texts  # pieces that are texts of NARROW characters at least

cdef struct Memo:  # of a stretch: where it stands in the subject
    uint32_t asked  # the number of the subject
    uint32_t low  # no start is before,
    uint32_t high  # and none behind; less than `low` where there is none
    uint32_t spent  # how many blocks it was looked for in
    uint32_t row  # the number of what is noted: all of its starts
    bint found  # whether it stands at `low`

cdef struct Glob:
    uint32_t place
    uint32_t stretch  # where the first is named: what is before all stars, then what is between, then what is behind
    uint32_t stretches  # one without a star, else two at least
    uint32_t length  # of all stretches
    uint32_t following  # the next glob that waits for the same gram

cdef struct Whole:  # a pattern that is nothing but a text
    uint32_t text
    uint32_t length
    uint32_t place

cdef struct Gate:
    uint64_t gram
    uint32_t glob  # the first that waits for it, in order of precedence
    uint32_t last
    uint32_t asked  # the number of the last subject that had it

cdef struct Standing:  # of a set
    uint32_t asked  # the number of the subject
    uint32_t rows  # so many have to be joined to tell where it stands, or where the `others` do
    bint others
    Extent extent


cdef void *_grown(void *memory, size_t *room, size_t needed, size_t size) except NULL:
    """`memory` with room for `needed` of `size` octets; `room` are those it has room for."""
    cdef size_t more
    if memory != NULL and needed <= room[0]:
        return memory
    more = max(needed + needed // 2, 8)
    if more > (<size_t>1 << 40) // size:
        raise MemoryError
    memory = PyMem_Realloc(memory, more * size)
    if memory == NULL:
        raise MemoryError
    room[0] = more
    return memory


cdef void *_fitted(void *memory, size_t needed, size_t size) noexcept:
    """`memory` with room for no more than `needed`."""
    cdef void *less
    if memory == NULL:
        return memory
    less = PyMem_Realloc(memory, max(needed * size, 1))
    return less if less != NULL else memory


cdef inline uint32_t _turned(uint32_t number, uint32_t count) noexcept:
    """Which of `count` comes as that `number`, if they come in turn, from one on that nobody knows.

    What is asked of a stretch is asked so: else what strikes out its starts could be put where it is asked last.
    """
    number += <uint32_t>(<uint64_t>(<uint32_t>SEED) * count >> 32)
    return number if number < count else number - count


cdef inline uint64_t _spread(uint64_t gram) noexcept:
    return folded(gram ^ SEED, FACTOR)


cdef inline uint64_t _gram(const uint8_t *octets, uint32_t width) noexcept:
    """A number for these characters, another one for each width."""
    cdef uint64_t gram = width
    cdef uint32_t at
    for at in range(width):
        gram = gram << 8 | octets[at]
    return gram


# ---------------------------------------------------------------------------------------------------------------------
# The subject that is asked about, and what is known of it.

cdef const uint8_t *_subject = NULL  # a copy, with zeros behind it
cdef uint8_t *_copy = NULL
cdef size_t _copy_room = 0
cdef size_t _length
cdef uint32_t _number = 0  # of the subject; what bears another is of an earlier one
cdef uint32_t _tried  # globs
cdef Set _present
cdef uint32_t _characters  # how many of them
cdef Extent[ALPHABET] _extents  # of each character

cdef Standing *_standings = NULL  # by numbers of sets
cdef size_t _standings_room = 0
cdef bint _tabled
cdef Span _spans[32][16]  # for all sets of four characters side by side where they stand
cdef uint8_t[32] _fours  # those that the subject has
cdef size_t _fours_count

# The rows. Characters of one group stand `_together` in order; there is a row for each of the sets of a group's
# characters.
cdef bint _rowed
cdef uint32_t _together_bits  # by how many bits a character is shifted to give its group: 2, 1 or 0
cdef uint64_t _together_mask
cdef size_t _row_octets
cdef uint8_t *_rows = NULL
cdef size_t _rows_room = 0
cdef uint8_t[ALPHABET] _groups  # by the number of a group, its place among those that the subject has
cdef uint8_t *_made = NULL  # whether a row is made
cdef size_t _made_room = 0

# The starts of stretches that were looked for often: `_noted_words` each, a bit for each start, and behind them a bit
# for each word that is not 0.
cdef uint64_t *_notes = NULL
cdef size_t _notes_room = 0
cdef uint32_t _noted  # how many there are
cdef size_t _noted_words
cdef size_t _start_words  # of them those that hold the starts
cdef Memo *_memos = NULL  # by numbers of stretches
cdef size_t _memos_room = 0

# Where the subject's grams stand, narrow ones and wide ones, by buckets; made when much has been looked for in vain.
cdef bint[2] _listed
cdef uint32_t _buckets[2][BUCKETS + 1]  # where in the places those of a bucket begin
cdef uint32_t *_gram_places[2]
cdef size_t[2] _gram_room
_gram_places[0] = _gram_places[1] = NULL
_gram_room[0] = _gram_room[1] = 0
cdef size_t _scanned  # blocks of starts that a text was looked for in

# What a stretch is looked for by.
cdef Step *_steps = NULL
cdef size_t _steps_room = 0
cdef size_t _steps_count
cdef uint32_t *_ends = NULL  # of what is prepared together
cdef size_t _ends_room = 0
cdef uint32_t _places_prepared
cdef uint32_t _next_rare, _next_piece, _next_place
cdef uint32_t _rare_count
cdef bint _rare_all  # whether the stretch has no other places
# The places that strike out the most for what they cost. Below what one weighs, which is less than LONGEST * 32, stand
# the turn of its piece, less than LENGTHS, and the place in it, less than SURVEYED: all of it is less than 1 << 59.
cdef uint64_t[RARE] _rare
cdef double _expected  # starts that are left of those that are told together, if all places were independent
cdef uint64_t[WORDS] _starts
cdef const uint8_t *_all = all_starts()

# What single starts of a stretch are tried by.
cdef uint32_t *_strangers = NULL  # of each piece that is long: one behind the next character that it does not take
cdef size_t _strangers_room = 0
cdef bint _strangers_fresh
cdef uint64_t _spent
cdef bint _barring
cdef uint8_t *_barred = NULL
cdef size_t _barred_room = 0
cdef size_t _barred_stride
cdef uint32_t _barred_count
cdef uint8_t[ALPHABET] _barred_characters
cdef const uint8_t *_barred_rows[ALPHABET]
cdef size_t _onward  # the first start that the one that was tried leaves open


cdef int _begin(object subject) except -1:
    """Make `subject` the one that is asked about."""
    global _subject, _copy, _length, _number, _tried, _present, _tabled, _rowed, _characters, _scanned
    global _noted, _noted_words, _start_words
    cdef size_t at
    cdef Extent *extent
    cdef size_t length = len(subject)
    if not PyUnicode_IS_ASCII(subject):
        raise ValueError(f"{subject[:80]!r} is not ASCII, as paths.glob_subject makes every subject")
    if length >= LENGTHS:
        raise ValueError(f"a subject of {length} characters is longer than any that can be told")
    _copy = <uint8_t *>_grown(_copy, &_copy_room, length + 16, 1)
    memcpy(_copy, PyUnicode_DATA(subject), length)
    memset(_copy + length, 0, 16)
    _subject = _copy
    _length = length
    if _number == NONE:  # nothing may bear the number of another subject by chance
        _number = 0
        if _standings != NULL:
            memset(_standings, 0, _standings_room * sizeof(Standing))
        if _memos != NULL:
            memset(_memos, 0, _memos_room * sizeof(Memo))
    _number += 1
    _noted = 0
    _start_words = _length // 64 + 1
    _noted_words = _start_words + (_start_words + 63) // 64
    _tried = 0
    _scanned = 0
    _tabled = _rowed = _listed[0] = _listed[1] = False
    memset(_extents, 0, sizeof(_extents))
    for at in range(length):
        extent = _extents + _copy[at]  # below ALPHABET, for it is ASCII
        if not extent.count:
            extent.first = <uint32_t>at
        extent.count += 1
        extent.behind = <uint32_t>at + 1
    _present.low = _present.high = 0
    _characters = 0
    for at in range(ALPHABET):
        if _extents[at].count:
            _present = _with(_present, <uint8_t>at)
            _characters += 1
        else:
            _extents[at].first = NONE
    return 0


cdef inline Set _only(uint8_t character) noexcept:
    cdef Set taken
    taken.low = <uint64_t>(character < 64) << (character & 63)
    taken.high = <uint64_t>(character >= 64) << (character & 63)
    return taken


cdef inline bint _takes(Set taken, uint8_t character) noexcept:
    return (taken.high if character & 64 else taken.low) >> (character & 63) & 1


cdef inline Set _with(Set taken, uint8_t character) noexcept:
    cdef Set more = _only(character)
    more.low |= taken.low
    more.high |= taken.high
    return more


cdef void _make_table() noexcept:
    """Make ready for telling where sets stand."""
    global _fours_count
    cdef uint32_t four
    tabled(_spans, _extents)
    _fours_count = 0
    for four in range(32):
        if (_present.high if four >= 16 else _present.low) >> (four & 15) * 4 & 0xF:
            _fours[_fours_count] = <uint8_t>four
            _fours_count += 1


cdef int _make_rowed() except -1:
    """Make ready for rows of the subject, of which there is none yet."""
    global _rowed, _rows, _made, _row_octets, _together_bits, _together_mask
    cdef uint32_t group, groups = 0, bits = 3
    cdef size_t slots = 0
    cdef uint64_t members
    # What is read of a row begins in the subject, and is no more than SIDE wide ones, or one and a word.
    _row_octets = (_length // 8 + 1 + SIDE * 64 + 8 + 63) // 64 * 64
    while bits:
        bits -= 1
        _together_bits = bits
        _together_mask = (<uint64_t>1 << (1 << bits)) - 1
        groups = 0
        for group in range(ALPHABET >> bits):
            members = (_present.high if group << bits >= 64 else _present.low) >> (group << bits & 63)
            if members & _together_mask:
                _groups[group] = <uint8_t>groups
                groups += 1
        slots = groups * <size_t>_together_mask
        if slots * _row_octets <= ARENA:
            break
    # And an octet before each.
    _rows = <uint8_t *>_grown(_rows, &_rows_room, 64 + slots * _row_octets, 1)
    _made = <uint8_t *>_grown(_made, &_made_room, slots, 1)
    memset(_made, 0, slots)
    _rowed = True
    return 0


cdef inline const uint8_t *_row(uint32_t group, uint32_t some) noexcept:
    """Where in the subject one of the characters `some` of `group` stands; it has one of them."""
    cdef size_t slot = _groups[group] * <size_t>_together_mask + some - 1
    if not _made[slot]:
        _make_row(group, some, _rows + 64 + slot * _row_octets)
        _made[slot] = 1
    return _rows + 64 + slot * _row_octets


cdef inline const uint8_t *_row_of(uint8_t character) noexcept:
    return _row(character >> _together_bits, 1 << (character & ((1 << _together_bits) - 1)))


cdef void _make_row(uint32_t group, uint32_t some, uint8_t *row) noexcept:
    """Make that row; what it is made of is asked of `_row`, two deep at most."""
    cdef uint32_t rest
    cdef size_t eights = (_length + 7) // 8
    if some & (some - 1):
        rest = some & (some - 1)
        memcpy(row, _row(group, some ^ rest), _row_octets)
        while rest:
            joined(<uint64_t *>row, <const uint64_t *>_row(group, rest & ~(rest - 1)), _row_octets // 8)
            rest &= rest - 1
    else:
        marked(row, _subject, eights, <uint8_t>((group << _together_bits) + lowest(some)))
        memset(row + eights, 0, _row_octets - eights)


cdef uint32_t _rows_of(Set taken, bint others, const uint8_t **rows) noexcept:
    """The rows, at most ALPHABET, of the characters of `taken` that the subject has, or of the `others`."""
    cdef uint64_t members
    cdef uint32_t half, at, count = 0
    for half in range(2):
        members = taken.high if half else taken.low
        members = (~members if others else members) & (_present.high if half else _present.low)
        while members:
            at = <uint32_t>lowest(members) >> _together_bits << _together_bits
            rows[count] = _row((half * 64 + at) >> _together_bits, <uint32_t>(members >> at & _together_mask))
            count += 1
            members &= ~(_together_mask << at)
    return count


cdef int _list_grams(uint32_t which) except -1:
    """Note where each gram of that width stands; the subject has one."""
    cdef size_t at, count = _length - (WIDE if which else NARROW) + 1
    cdef uint32_t each, begin = 0
    cdef uint32_t *buckets = _buckets[which]
    _gram_places[which] = <uint32_t *>_grown(_gram_places[which], &_gram_room[which], count, sizeof(uint32_t))
    memset(buckets, 0, sizeof(_buckets[which]))
    for at in range(count):
        buckets[bucket(_subject + at, which, FACTORS)] += 1
    for each in range(BUCKETS + 1):  # where each one's end; each place put down takes it back by one
        begin += buckets[each]
        buckets[each] = begin
    for at in range(count, 0, -1):
        each = bucket(_subject + at - 1, which, FACTORS)
        buckets[each] -= 1
        _gram_places[which][buckets[each]] = <uint32_t>at - 1
    _listed[which] = True
    return 0


cdef size_t _next(Set taken, bint others, size_t at, size_t limit) except? 0:
    """The first place of `at` to `limit`, which is at most the subject's length, where one of `taken` stands; else
    `limit`. With `others`, it is told by the rows of those that are not taken.
    """
    cdef const uint8_t *rows[ALPHABET]
    cdef uint32_t count, each
    cdef size_t word, last
    cdef uint64_t found
    cdef size_t near = min(limit, at + TRIED) if _length <= LONGEST else limit
    while at < near:
        if _takes(taken, _subject[at]):
            return at
        at += 1
    if at >= limit:
        return limit
    if not _rowed:
        _make_rowed()
    count = _rows_of(taken, others, rows)
    word = at >> 6
    last = (limit - 1) >> 6
    found = 0
    for each in range(count):
        found |= (<const uint64_t *>rows[each])[word]
    found = (found ^ (ALL if others else 0)) >> (at & 63) << (at & 63)
    while not found:
        word += 1
        if word > last:
            return limit
        for each in range(count):
            found |= (<const uint64_t *>rows[each])[word]
        if others:
            found = ~found
    return min(limit, word * 64 + lowest(found))


# ---------------------------------------------------------------------------------------------------------------------
# The index.

cdef class GlobIndex:
    """Patterns of version 2.0, which match whole subjects (spec F10)."""

    cdef size_t _none
    cdef Set *_sets
    cdef Piece *_pieces
    cdef Stretch *_stretches  # each of them once
    cdef uint32_t *_named  # the stretches of each glob, by their numbers
    cdef Glob *_globs
    cdef Whole *_wholes
    cdef uint8_t *_texts
    cdef uint32_t *_same  # of each pattern the next that says the same
    cdef Gate *_gates
    cdef uint32_t *_gate_table
    cdef uint32_t *_set_table
    cdef uint32_t *_stretch_table
    cdef uint32_t *_whole_table
    cdef uint64_t *_glance  # of each gram that is waited for, a bit by its hash
    cdef size_t _set_count, _piece_count, _stretch_count, _named_count, _glob_count, _whole_count, _text_count
    cdef size_t _gate_count
    cdef size_t _set_room, _piece_room, _stretch_room, _named_room, _glob_room, _whole_room, _text_room
    cdef uint64_t _set_mask, _stretch_mask, _gate_mask, _whole_mask
    cdef int _glance_shift
    cdef uint32_t _widths  # of grams, a bit each
    cdef uint32_t _always  # the first glob that waits for nothing
    cdef uint32_t _stretch_begin, _stretch_piece, _stretch_text  # of the pattern that is read
    cdef uint32_t _repeated

    def __cinit__(self, patterns):
        cdef list held = list(patterns)
        cdef uint64_t mask = 0
        cdef size_t place, length, total = 0
        cdef uint64_t at
        cdef uint32_t *seen = NULL
        cdef uint32_t *last = NULL
        cdef const uint8_t *octets
        for pattern in held:
            if not PyUnicode_IS_ASCII(<str?>pattern):
                raise ValueError(f"{pattern[:80]!r} is not ASCII, as paths.glob_pattern makes every pattern")
            total += len(pattern)
        if total >= LENGTHS or <uint64_t>len(held) >= LENGTHS:
            raise ValueError(f"patterns of {total} characters are more than one index can hold")
        self._none = len(held)
        self._same = <uint32_t *>PyMem_Malloc(max(self._none, 1) * sizeof(uint32_t))
        if self._same == NULL:
            raise MemoryError
        mask = _mask_for(self._none)
        try:
            seen = _table(mask)
            last = <uint32_t *>PyMem_Malloc(max(self._none, 1) * sizeof(uint32_t))
            if last == NULL:
                raise MemoryError
            for place in range(self._none):
                pattern = held[place]
                octets = <const uint8_t *>PyUnicode_DATA(pattern)
                length = len(pattern)
                self._same[place] = NONE
                last[place] = <uint32_t>place
                at = hashed(octets, length, SEED, FACTOR) & mask
                while seen[at] != NONE and pattern != held[seen[at]]:
                    at = (at + 1) & mask
                if seen[at] == NONE:
                    seen[at] = <uint32_t>place
                    self._read(octets, length, place)
                else:
                    self._same[last[seen[at]]] = <uint32_t>place
                    last[seen[at]] = <uint32_t>place
        finally:
            PyMem_Free(seen)
            PyMem_Free(last)
        self._make_gates()
        self._make_wholes()
        PyMem_Free(self._set_table)
        PyMem_Free(self._stretch_table)
        self._set_table = self._stretch_table = NULL
        self._named = <uint32_t *>_fitted(self._named, self._named_count, sizeof(uint32_t))
        self._sets = <Set *>_fitted(self._sets, self._set_count, sizeof(Set))
        self._pieces = <Piece *>_fitted(self._pieces, self._piece_count, sizeof(Piece))
        self._stretches = <Stretch *>_fitted(self._stretches, self._stretch_count, sizeof(Stretch))
        self._globs = <Glob *>_fitted(self._globs, self._glob_count, sizeof(Glob))
        self._wholes = <Whole *>_fitted(self._wholes, self._whole_count, sizeof(Whole))
        self._texts = <uint8_t *>_fitted(self._texts, self._text_count, 1)

    def __dealloc__(self):
        PyMem_Free(self._sets)
        PyMem_Free(self._pieces)
        PyMem_Free(self._stretches)
        PyMem_Free(self._named)
        PyMem_Free(self._globs)
        PyMem_Free(self._wholes)
        PyMem_Free(self._texts)
        PyMem_Free(self._same)
        PyMem_Free(self._gates)
        PyMem_Free(self._gate_table)
        PyMem_Free(self._set_table)
        PyMem_Free(self._stretch_table)
        PyMem_Free(self._whole_table)
        PyMem_Free(self._glance)

    def first(self, str subject not None):
        """The place of the first pattern that matches `subject`; the number of patterns if none does."""
        return self._ask(subject, None)

    def every(self, str subject not None):
        """The places of all patterns that match, in order."""
        cdef list found = []
        self._ask(subject, found)
        found.sort()
        return found

    # -- reading patterns ---------------------------------------------------------------------------------------------

    cdef int _read(self, const uint8_t *pattern, size_t length, size_t place) except -1:
        """Add what stands at `place`."""
        cdef size_t at, end, last_close = 0
        cdef uint8_t character
        cdef Set taken
        cdef bint marked_up = False, starred = False
        cdef Glob *glob
        for at in range(length):
            character = pattern[at]
            marked_up |= character == c"*" or character == c"?" or character == c"[" or character == c"\\"
            if character == c"]":
                last_close = at
        if not marked_up:
            self._wholes = <Whole *>_grown(self._wholes, &self._whole_room, self._whole_count + 1, sizeof(Whole))
            self._wholes[self._whole_count].text = <uint32_t>self._text_count
            self._wholes[self._whole_count].length = <uint32_t>length
            self._wholes[self._whole_count].place = <uint32_t>place
            self._whole_count += 1
            self._texts = <uint8_t *>_grown(self._texts, &self._text_room, self._text_count + length, 1)
            memcpy(self._texts + self._text_count, pattern, length)
            self._text_count += length
            return 0
        self._globs = <Glob *>_grown(self._globs, &self._glob_room, self._glob_count + 1, sizeof(Glob))
        glob = self._globs + self._glob_count
        glob.place = <uint32_t>place
        glob.stretch = <uint32_t>self._named_count
        glob.length = 0
        glob.following = NONE
        self._open_stretch()
        at = 0
        while at < length:
            character = pattern[at]
            at += 1
            if character == c"*":
                self._close_stretch(glob, not starred)
                starred = True
                continue
            if character == c"?":
                self._stretch_begin += 1
                continue
            if character == c"[" and (end := _set_end(pattern, length, at, last_close)):
                taken = _read_set(pattern, at, end)
                at = end + 1
                if not taken.low and not taken.high:
                    # Nothing takes that place, so nothing matches: the pattern counts for nothing.
                    self._piece_count = self._stretch_piece
                    self._text_count = self._stretch_text
                    self._named_count = glob.stretch
                    return 0
                self._add(taken)
                continue
            if character == c"\\" and at < length:
                character = pattern[at]
                at += 1
            self._add_character(character)
        self._close_stretch(glob, True)
        glob.stretches = <uint32_t>self._named_count - glob.stretch
        self._glob_count += 1
        return 0

    # While a stretch is read, `_stretch_begin` is its length so far, `_stretch_piece` its first piece, `_stretch_text`
    # where its texts begin, and `_repeated` how often the last character of its last piece, if that is a text,
    # stands at its end.

    cdef void _open_stretch(self) noexcept:
        self._stretch_begin = 0
        self._stretch_piece = <uint32_t>self._piece_count
        self._stretch_text = <uint32_t>self._text_count
        self._repeated = 0

    cdef int _close_stretch(self, Glob *glob, bint outer) except -1:
        """End the stretch; of those that are not `outer`, the first or the last, an empty one says nothing."""
        cdef Stretch *stretch
        cdef Piece *piece
        cdef uint64_t at
        cdef size_t each
        if self._stretch_begin or outer:
            self._stretches = <Stretch *>_grown(
                self._stretches, &self._stretch_room, self._stretch_count + 1, sizeof(Stretch)
            )
            stretch = self._stretches + self._stretch_count
            stretch.piece = self._stretch_piece
            stretch.pieces = <uint32_t>self._piece_count - self._stretch_piece
            stretch.length = self._stretch_begin
            stretch.longs = stretch.texts = 0
            for each in range(self._stretch_piece, self._piece_count):
                piece = self._pieces + each
                stretch.longs += piece.count >= LONG and not piece.count & TEXT
                stretch.texts += piece.count >= NARROW | TEXT
            self._named = <uint32_t *>_grown(self._named, &self._named_room, self._named_count + 1, sizeof(uint32_t))
            at = self._stretch_slot(stretch)
            if self._stretch_table[at] == NONE:
                self._stretch_table[at] = <uint32_t>self._stretch_count
                self._stretch_count += 1
            else:
                self._piece_count = self._stretch_piece
                self._text_count = self._stretch_text
            self._named[self._named_count] = self._stretch_table[at]
            self._named_count += 1
            glob.length += self._stretch_begin
        self._open_stretch()
        return 0

    cdef uint64_t _stretch_slot(self, Stretch *stretch) except? 0:
        """Where in the table it stands, or may be put: there is room."""
        cdef uint64_t at
        cdef uint32_t number
        cdef size_t each
        if self._stretch_table == NULL or self._stretch_count * 2 > self._stretch_mask:
            PyMem_Free(self._stretch_table)
            self._stretch_table = NULL
            self._stretch_mask = _mask_for(self._stretch_count * 2 + 8)
            self._stretch_table = _table(self._stretch_mask)
            for each in range(self._stretch_count):
                self._stretch_table[self._stretch_slot(self._stretches + each)] = <uint32_t>each
        at = self._stretch_hash(stretch) & self._stretch_mask
        while self._stretch_table[at] != NONE:
            number = self._stretch_table[at]
            if self._same_stretch(self._stretches + number, stretch):
                break
            at = (at + 1) & self._stretch_mask
        return at

    cdef uint64_t _stretch_hash(self, Stretch *stretch) noexcept:
        cdef uint64_t hash = SEED ^ stretch.length
        cdef uint64_t what
        cdef uint32_t each, count
        cdef Piece *piece
        for each in range(stretch.pieces):
            piece = self._pieces + stretch.piece + each
            count = piece.count & ~TEXT
            what = hashed(self._texts + piece.what, count, SEED, FACTOR) if piece.count & TEXT else piece.what
            hash = folded(hash ^ (<uint64_t>piece.offset << 32 | piece.count) ^ _spread(what), FACTOR)
        return hash

    cdef bint _same_stretch(self, Stretch *one, Stretch *other) noexcept:
        cdef uint32_t each
        cdef Piece *piece = self._pieces + one.piece
        cdef Piece *others = self._pieces + other.piece
        if one.length != other.length or one.pieces != other.pieces:
            return False
        for each in range(one.pieces):
            if piece[each].offset != others[each].offset or piece[each].count != others[each].count:
                return False
            if not piece[each].count & TEXT:
                if piece[each].what != others[each].what:
                    return False
            elif memcmp(
                self._texts + piece[each].what, self._texts + others[each].what, piece[each].count & ~TEXT
            ):
                return False
        return True

    cdef int _add(self, Set taken) except -1:
        """Another place, which takes these characters, at least one."""
        cdef uint32_t number
        cdef Piece *piece
        if taken.low == ALL and taken.high == ALL:
            self._stretch_begin += 1
            return 0
        if not (taken.low and taken.high) and not ((taken.low | taken.high) & ((taken.low | taken.high) - 1)):
            return self._add_character(<uint8_t>(lowest(taken.low) if taken.low else 64 + lowest(taken.high)))
        number = self._numbered(taken)
        piece = self._last_piece()
        if piece != NULL and not piece.count & TEXT and piece.what == number:
            piece.count += 1
            self._stretch_begin += 1
            return 0
        return self._add_piece(number, 1)

    cdef int _add_character(self, uint8_t character) except -1:
        """Another place, which takes this one."""
        cdef Piece *piece = self._last_piece()
        cdef Set only
        cdef uint32_t number
        if piece != NULL and not piece.count & TEXT:
            only = self._sets[piece.what]
            if _takes(only, character) and not (only.low & (only.low - 1)) and not (only.high & (only.high - 1)):
                if not (only.low and only.high):
                    piece.count += 1
                    self._stretch_begin += 1
                    return 0
        self._texts = <uint8_t *>_grown(self._texts, &self._text_room, self._text_count + 1, 1)
        self._texts[self._text_count] = character
        self._text_count += 1
        if piece == NULL or not piece.count & TEXT:
            self._repeated = 1
            return self._add_piece(<uint32_t>self._text_count - 1, 1 | TEXT)
        self._repeated = self._repeated + 1 if self._texts[self._text_count - 2] == character else 1
        piece.count += 1
        self._stretch_begin += 1
        if self._repeated == LONG:
            number = self._numbered(_only(character))
            self._text_count -= LONG
            piece.count -= LONG
            self._stretch_begin -= LONG
            if piece.count == TEXT:
                self._piece_count -= 1
            self._add_piece(number, LONG)
            self._stretch_begin += LONG - 1
        return 0

    cdef Piece *_last_piece(self) noexcept:
        """The one that ends where the stretch does so far, if there is one."""
        cdef Piece *piece
        if self._piece_count == self._stretch_piece:
            return NULL
        piece = self._pieces + self._piece_count - 1
        return piece if piece.offset + (piece.count & ~TEXT) == self._stretch_begin else NULL

    cdef int _add_piece(self, uint32_t what, uint32_t count) except -1:
        cdef Piece *piece
        self._pieces = <Piece *>_grown(self._pieces, &self._piece_room, self._piece_count + 1, sizeof(Piece))
        piece = self._pieces + self._piece_count
        piece.what = what
        piece.offset = self._stretch_begin
        piece.count = count
        self._piece_count += 1
        self._stretch_begin += 1
        return 0

    cdef uint32_t _numbered(self, Set taken) except? NONE:
        """The number of this set; each has one."""
        cdef uint64_t at
        cdef size_t each
        if self._set_table == NULL or self._set_count * 2 > self._set_mask:
            PyMem_Free(self._set_table)
            self._set_table = NULL
            self._set_mask = _mask_for(self._set_count * 2 + 8)
            self._set_table = _table(self._set_mask)
            for each in range(self._set_count):
                at = self._set_slot(self._sets[each])
                self._set_table[at] = <uint32_t>each
        at = self._set_slot(taken)
        if self._set_table[at] == NONE:
            self._sets = <Set *>_grown(self._sets, &self._set_room, self._set_count + 1, sizeof(Set))
            self._sets[self._set_count] = taken
            self._set_table[at] = <uint32_t>self._set_count
            self._set_count += 1
        return self._set_table[at]

    cdef uint64_t _set_slot(self, Set taken) noexcept:
        """Where in the table it stands, or may be put."""
        cdef uint64_t at = folded(_spread(taken.low) ^ taken.high, FACTOR) & self._set_mask
        cdef Set *other
        while self._set_table[at] != NONE:
            other = self._sets + self._set_table[at]
            if other.low == taken.low and other.high == taken.high:
                break
            at = (at + 1) & self._set_mask
        return at

    cdef int _make_wholes(self) except -1:
        cdef size_t each
        cdef uint64_t at
        self._whole_mask = _mask_for(self._whole_count)
        self._whole_table = _table(self._whole_mask)
        for each in range(self._whole_count):  # no two of them are the same
            at = hashed(self._texts + self._wholes[each].text, self._wholes[each].length, SEED, FACTOR)
            at &= self._whole_mask
            while self._whole_table[at] != NONE:
                at = (at + 1) & self._whole_mask
            self._whole_table[at] = <uint32_t>each
        return 0

    # -- gates --------------------------------------------------------------------------------------------------------

    cdef int _make_gates(self) except -1:
        """Let each glob wait for the gram of its texts that the fewest others have, wide ones first."""
        cdef uint32_t *counters = <uint32_t *>PyMem_Malloc(COUNTED * sizeof(uint32_t))
        cdef uint32_t *last_always = &self._always
        cdef size_t each, gates_room = 0, bits
        cdef uint64_t gram, at
        cdef uint32_t number
        cdef Gate *gate
        self._always = NONE
        if counters == NULL:
            raise MemoryError
        try:
            memset(counters, 0, COUNTED * sizeof(uint32_t))
            if self._glob_count > FEW:
                for each in range(self._glob_count):
                    self._grams(self._globs + each, counters, True)
                self._gate_mask = _mask_for(self._glob_count)
                self._gate_table = _table(self._gate_mask)
            for each in range(self._glob_count):
                gram = self._grams(self._globs + each, counters, False) if self._glob_count > FEW else 0
                if not gram:
                    last_always[0] = <uint32_t>each
                    last_always = &self._globs[each].following
                    continue
                at = self._gate_slot(gram)
                number = self._gate_table[at]
                if number == NONE:
                    self._gates = <Gate *>_grown(self._gates, &gates_room, self._gate_count + 1, sizeof(Gate))
                    gate = self._gates + self._gate_count
                    gate.gram = gram
                    gate.glob = <uint32_t>each
                    gate.asked = 0
                    self._gate_table[at] = <uint32_t>self._gate_count
                    self._gate_count += 1
                    self._widths |= 1 << <uint32_t>_width(gram)
                else:
                    gate = self._gates + number
                    self._globs[gate.last].following = <uint32_t>each
                gate.last = <uint32_t>each
        finally:
            PyMem_Free(counters)
        self._gates = <Gate *>_fitted(self._gates, self._gate_count, sizeof(Gate))
        if self._gate_count:
            bits = 8
            while bits < 22 and <size_t>1 << bits < self._gate_count * 8:
                bits += 1
            self._glance = <uint64_t *>PyMem_Malloc((<size_t>1 << bits) // 8)
            if self._glance == NULL:
                raise MemoryError
            memset(self._glance, 0, (<size_t>1 << bits) // 8)
            self._glance_shift = <int>(64 - bits)
            for each in range(self._gate_count):
                at = _spread(self._gates[each].gram) >> self._glance_shift
                self._glance[at >> 6] |= <uint64_t>1 << (at & 63)
        return 0

    cdef uint64_t _grams(self, Glob *glob, uint32_t *counters, bint counting) noexcept:
        """Count the grams of a glob's texts; or, without `counting`, the best of them, 0 where it has no text."""
        cdef Stretch *stretch = self._stretches + self._named[glob.stretch]
        cdef uint32_t piece = 0, name = 0, width, at, count, considered = 0
        cdef uint64_t gram, cost, least = ALL, best = 0
        cdef Piece *text
        while True:
            if piece == stretch.pieces:
                name += 1
                if name == glob.stretches:
                    return best
                stretch = self._stretches + self._named[glob.stretch + name]
                piece = 0
                continue
            text = self._pieces + stretch.piece + piece
            piece += 1
            if not text.count & TEXT:
                continue
            count = text.count & ~TEXT
            width = min(count, <uint32_t>GRAM)
            for at in range(count - width + 1):
                gram = _gram(self._texts + text.what + at, width)
                if counting:
                    counters[_spread(gram) & (COUNTED - 1)] += 1
                else:
                    # A wider gram stands in fewer subjects.
                    cost = <uint64_t>counters[_spread(gram) & (COUNTED - 1)] << (GRAM - width) * 3
                    # Of the same, one behind: every subject begins with a slash.
                    if cost <= least:
                        least = cost
                        best = gram
                considered += 1
                if considered == CONSIDERED:
                    return best

    cdef uint64_t _gate_slot(self, uint64_t gram) noexcept:
        """Where in the table it stands, or may be put."""
        cdef uint64_t at = _spread(gram) & self._gate_mask
        while self._gate_table[at] != NONE and self._gates[self._gate_table[at]].gram != gram:
            at = (at + 1) & self._gate_mask
        return at

    # -- asking -------------------------------------------------------------------------------------------------------

    cdef size_t _ask(self, str subject, list found) except? 0:
        """The place of the first that matches; with `found`, all of them are added to it."""
        global _standings, _memos
        cdef size_t best = self._none, room
        cdef uint32_t width
        cdef size_t at, number
        cdef uint64_t hash
        cdef Whole *whole
        _begin(subject)
        if self._set_count > _standings_room:
            room = _standings_room
            _standings = <Standing *>_grown(_standings, &_standings_room, self._set_count, sizeof(Standing))
            memset(_standings + room, 0, (_standings_room - room) * sizeof(Standing))
        if self._stretch_count > _memos_room:
            room = _memos_room
            _memos = <Memo *>_grown(_memos, &_memos_room, self._stretch_count, sizeof(Memo))
            memset(_memos + room, 0, (_memos_room - room) * sizeof(Memo))
        if self._whole_count:
            hash = hashed(_subject, _length, SEED, FACTOR) & self._whole_mask
            while self._whole_table[hash] != NONE:
                whole = self._wholes + self._whole_table[hash]
                if whole.length == _length and not memcmp(self._texts + whole.text, _subject, _length):
                    best = self._found(whole.place, found)
                    break
                hash = (hash + 1) & self._whole_mask
        for width in range(1, GRAM + 1):
            if not self._widths >> width & 1 or _length < width:
                continue
            for at in range(_length - width + 1):
                hash = _spread(_gram(_subject + at, width))
                if self._glance[hash >> self._glance_shift >> 6] >> (hash >> self._glance_shift & 63) & 1:
                    number = self._gate_table[self._gate_slot(_gram(_subject + at, width))]
                    if number != NONE and self._gates[number].asked != _number:
                        self._gates[number].asked = _number
                        best = self._ask_all(self._gates[number].glob, best, found)
        return self._ask_all(self._always, best, found)

    cdef size_t _found(self, size_t place, list found) except? 0:
        """`place`, which matches; all patterns that say the same are added to `found`."""
        cdef size_t other = place
        if found is not None:
            while other != NONE:
                found.append(other)
                other = self._same[other]
        return place

    cdef size_t _ask_all(self, uint32_t number, size_t best, list found) except? 0:
        """Ask a glob and those that follow it; without `found`, only those that come before `best`."""
        cdef Glob *glob
        while number != NONE:
            glob = self._globs + number
            if found is None and glob.place >= best:
                break
            if glob.length <= _length and self._matches(glob):
                self._found(glob.place, found)
                best = min(best, glob.place)
            number = glob.following
        return best

    cdef int _matches(self, Glob *glob) except -1:
        """Whether `glob`, whose places are no more than the subject's characters, matches it."""
        global _tried
        cdef uint32_t *names = self._named + glob.stretch
        cdef uint32_t closing = glob.stretches - 1
        cdef Stretch *first = self._stretches + names[0]
        cdef Stretch *last = self._stretches + names[closing]
        cdef Memo *memo
        cdef size_t at = first.length, end = _length - last.length, rest, start, until
        cdef size_t[BOUNDED] limits
        cdef uint32_t each, count
        if not closing:
            return glob.length == _length and self._stands(first, 0)
        if not self._stands(first, 0) or not self._stands(last, end):
            return False
        _tried += 1
        # From the end: by where its characters last stand each has to be found before those behind it. That tells of
        # many globs that they do not match, before anything is looked for.
        count = min(closing - 1, <uint32_t>BOUNDED)
        until = end
        for each in range(count):
            start = self._stretches[names[closing - 1 - each]].length
            memo = self._memo(names[closing - 1 - each])
            if until < at + start:
                return False
            until = min(until - start, <size_t>memo.high)
            if until < at or until < memo.low:
                return False
            limits[each] = until
        # What is left of the subject when all that is still to come stands as far behind as it can.
        rest = _length - glob.length
        for each in range(1, closing):
            until = at + rest
            if closing - each <= count:
                until = min(until, limits[closing - each - 1])
                if until < at:
                    return False
            start = self._find(names[each], at, until)
            if start > until:
                return False
            rest -= start - at
            at = start + self._stretches[names[each]].length
        return True

    cdef bint _stands(self, Stretch *stretch, size_t start) noexcept:
        """Whether `stretch`, for which there is room, stands at `start`."""
        cdef Piece *piece = self._pieces + stretch.piece
        cdef Piece *end = piece + stretch.pieces
        cdef const uint8_t *octets
        cdef uint32_t count
        cdef Set taken
        while piece < end:
            octets = _subject + start + piece.offset
            count = piece.count
            if count & TEXT:
                count &= ~TEXT
                if octets[0] != self._texts[piece.what] or memcmp(octets, self._texts + piece.what, count):
                    return False
            else:
                taken = self._sets[piece.what]
                while count:
                    count -= 1
                    if not _takes(taken, octets[count]):
                        return False
            piece += 1
        return True

    cdef inline Standing *_standing(self, uint32_t number) noexcept:
        """Where a set stands in the subject."""
        cdef Standing *it = _standings + number
        if it.asked != _number:
            self._survey(number, it)
        return it

    cdef void _survey(self, uint32_t number, Standing *it) noexcept:
        global _tabled
        cdef uint64_t fours
        if not _tabled:
            _make_table()
            _tabled = True
        it.asked = _number
        fours = surveyed(&it.extent, _spans, _fours, _fours_count, &self._sets[number].low, &_present.low)
        # Where nothing is taken, the others are everywhere.
        it.others = fours >> 32 < <uint32_t>fours or not it.extent.count
        it.rows = min(<uint32_t>fours, <uint32_t>(fours >> 32))

    cdef Memo *_memo(self, uint32_t number) noexcept:
        """What is known of a stretch."""
        cdef Memo *memo = _memos + number
        if memo.asked != _number:
            memo.asked = _number
            memo.spent = 0
            memo.row = NONE
            memo.found = False
            self._bound(self._stretches + number, memo)
        return memo

    cdef size_t _find(self, uint32_t number, size_t at, size_t last) except? 0:
        """The first start of a stretch from `at` to `last`, for which there is room; else one behind `last`."""
        cdef Stretch *stretch = self._stretches + number
        cdef Memo *memo = self._memo(number)
        cdef size_t none = last + 1, start
        cdef bint lowest_yet = at <= memo.low
        if not stretch.pieces:
            return at
        at = max(at, <size_t>memo.low)
        last = min(last, <size_t>memo.high)
        if at > last:
            return none
        if memo.found and at == memo.low:
            return at
        if memo.row == NONE and memo.spent > 2 * (_length // PASS) + 8 and _length <= LONGEST:
            self._note(stretch, memo)
            if at > memo.high:
                return none
        if memo.row < KEPT:
            start = _next_noted(memo.row, at, last)
            return start if start <= last else none
        if stretch.pieces == 1 and self._pieces[stretch.piece].count & ~TEXT == 1:
            start = self._find_place(self._pieces + stretch.piece, at, last)
        else:
            start = self._look(stretch, at, last)
        memo.spent += 1 + <uint32_t>((min(start, last) - at) // PASS)
        if lowest_yet:
            memo.low = <uint32_t>start
            memo.found = start <= last
        return start if start <= last else none

    cdef size_t _find_place(self, Piece *piece, size_t at, size_t last) except? 0:
        """As `_look`, for a single place."""
        cdef size_t offset = piece.offset
        if piece.count & TEXT:
            return _next(_only(self._texts[piece.what]), False, at + offset, last + offset + 1) - offset
        return _next(
            self._sets[piece.what], self._standing(piece.what).others, at + offset, last + offset + 1
        ) - offset

    cdef size_t _look(self, Stretch *stretch, size_t at, size_t last) except? 0:
        """Look for the first start from `at` to `last`; one behind `last` if there is none."""
        cdef size_t start
        if stretch.texts and _scanned > _length // 4 and last - at > 4 * BLOCK:
            self._make_ready()
            start = self._search_gram(stretch, at, last, NULL)
            if start != UNTOLD:
                return start
        if _length > LONGEST or last - at < TRIED // 4 or (_tried < TRIED and last - at < 4 * TRIED):
            while at <= last and not self._stands(stretch, at):
                at += 1
            return at
        self._make_ready()
        start = self._search(stretch, at, last, NULL)
        return min(start, last + 1)

    cdef int _note(self, Stretch *stretch, Memo *memo) except -1:
        """Note all starts of a stretch, if that is done without trying many of them, and if there is room."""
        global _notes, _noted
        cdef uint64_t *row
        cdef size_t word, last = 0
        memo.row = UNKEPT
        if (_noted + 1) * _noted_words * sizeof(uint64_t) > NOTES:
            return 0
        _notes = <uint64_t *>_grown(_notes, &_notes_room, (_noted + 1) * _noted_words, sizeof(uint64_t))
        row = _notes + _noted * _noted_words
        memset(row, 0, _noted_words * sizeof(uint64_t))
        self._make_ready()
        if not stretch.texts or self._search_gram(stretch, memo.low, memo.high, row) == UNTOLD:
            if self._search(stretch, memo.low, memo.high, row) == UNTOLD:
                return 0
        memo.row = _noted
        _noted += 1
        memo.low = NONE
        memo.high = 0
        for word in range(_start_words):
            if row[word]:
                row[_start_words + (word >> 6)] |= <uint64_t>1 << (word & 63)
                if memo.low == NONE:
                    memo.low = <uint32_t>(word * 64 + lowest(row[word]))
                last = word
        if memo.low != NONE:
            memo.high = <uint32_t>(last * 64 + highest(row[last]))
        return 0

    cdef int _make_ready(self) except -1:
        """Forget what another stretch was looked for by."""
        global _strangers_fresh, _spent, _barring
        if not _rowed:
            _make_rowed()
        _strangers_fresh = _barring = False
        _spent = 0
        return 0

    cdef size_t _search_gram(self, Stretch *stretch, size_t at, size_t last, uint64_t *row) except? 0:
        """As `_search`, by where the rarest gram of its texts stands; UNTOLD where even that stands all too often."""
        cdef Piece *piece = self._pieces + stretch.piece
        cdef Piece *end = piece + stretch.pieces
        cdef uint32_t which, width, count, number, offset, looked_up = 0
        cdef size_t place, until, start, rarest_offset = 0, rarest_end
        cdef uint32_t fewest = NONE, rarest_which = 0, rarest_number = 0
        cdef Piece *rarest = piece
        cdef const uint8_t *octets
        cdef uint32_t *places
        while piece < end and looked_up < LOOKED_UP:
            if piece.count >= NARROW | TEXT:
                count = piece.count & ~TEXT
                which = count >= WIDE
                width = WIDE if which else NARROW
                if not _listed[which]:
                    _list_grams(which)
                offset = 0
                while looked_up < LOOKED_UP:
                    looked_up += 1
                    number = bucket(self._texts + piece.what + offset, which, FACTORS)
                    if _buckets[which][number + 1] - _buckets[which][number] < fewest:
                        fewest = _buckets[which][number + 1] - _buckets[which][number]
                        rarest_which = which
                        rarest_number = number
                        rarest_offset = piece.offset + offset
                        rarest = piece
                        if not fewest:
                            return last + 1
                    if offset == count - width:
                        break
                    offset = min(offset + width, count - width)
            piece += 1
        if fewest > (last - at) // BLOCK * 4:
            return UNTOLD
        count = rarest.count & ~TEXT
        rarest_end = count - 8
        places = _gram_places[rarest_which]
        place = _buckets[rarest_which][rarest_number]
        until = _buckets[rarest_which][rarest_number + 1]
        while place < until and places[place] < at + rarest_offset:
            place += 1
        while place < until and places[place] <= last + rarest_offset:
            octets = _subject + places[place] - rarest_offset + rarest.offset
            # How the text begins and how it ends is seen at a glance.
            if (
                same_eight(octets, self._texts + rarest.what)
                and same_eight(octets + rarest_end, self._texts + rarest.what + rarest_end)
                and not memcmp(octets, self._texts + rarest.what, count)
                and (stretch.pieces == 1 or self._stands_here(stretch, places[place] - rarest_offset))
            ):
                start = places[place] - rarest_offset
                if row == NULL:
                    return start
                row[start >> 6] |= <uint64_t>1 << (start & 63)
            place += 1
        return last + 1

    cdef int _bound(self, Stretch *stretch, Memo *memo) noexcept:
        """Between which starts a stretch can stand, by where its characters first and last stand."""
        cdef Piece *piece
        cdef uint32_t number
        cdef Extent *extent
        cdef int64_t low = 0, high = <int64_t>_length - stretch.length
        cdef uint32_t each, count
        cdef uint8_t character
        memo.low = NONE
        memo.high = 0
        for number in range(stretch.pieces):
            piece = self._pieces + stretch.piece + _turned(number, stretch.pieces)
            if piece.count & TEXT:
                count = piece.count & ~TEXT
                for each in range(count):
                    character = self._texts[piece.what + each]
                    if not _extents[character].count:
                        return 0
                    if each >= SURVEYED:
                        continue
                    low = max(low, <int64_t>_extents[character].first - piece.offset - each)
                    high = min(high, <int64_t>_extents[character].behind - 1 - piece.offset - each)
            else:
                extent = &self._standing(piece.what).extent
                if not extent.count:
                    return 0
                low = max(low, <int64_t>extent.first - piece.offset)
                high = min(high, <int64_t>extent.behind - piece.count - piece.offset)
            if low > high:
                return 0
        memo.low = <uint32_t>low
        memo.high = <uint32_t>high
        return 0

    cdef void _choose(self, Stretch *stretch) noexcept:
        """Note the places that strike out the most for what they cost."""
        global _rare_count, _rare_all
        cdef uint64_t weight
        cdef uint32_t at, number, each, count, places = 0
        cdef uint32_t room = min(stretch.length, <uint32_t>RARE)  # which is not 0, for there is a piece
        cdef Piece *piece
        cdef Standing *standing
        for each in range(room):
            _rare[each] = ALL
        _rare_count = 0
        for at in range(stretch.pieces):
            number = _turned(at, stretch.pieces)
            piece = self._pieces + stretch.piece + number
            count = piece.count & ~TEXT
            places += count
            if piece.count & TEXT:
                count = min(count, <uint32_t>SURVEYED)
                _rare_count += count
                for each in range(count):
                    weight = _extents[self._texts[piece.what + each]].count
                    keep_least(_rare, room, weight << 36 | <uint64_t>at << 6 | each)
            else:
                _rare_count += 1
                standing = self._standing(piece.what)
                weight = <uint64_t>standing.extent.count * standing.rows
                keep_least(_rare, room, weight << 36 | <uint64_t>at << 6)
        _rare_count = min(_rare_count, room)
        _rare_all = places == _rare_count

    cdef size_t _search(self, Stretch *stretch, size_t at, size_t last, uint64_t *row) except? 0:
        """The first start of `stretch` from `at` to `last`, with room for it; a greater one if there is none.

        With `row`, all of them are noted there; UNTOLD where that takes too long.
        """
        global _steps_count, _places_prepared, _next_rare, _next_piece, _next_place, _onward
        global _scanned, _expected
        cdef size_t block = at & ~<size_t>7, width, batch, batches = 1, depth = 0, from_step, start, cost, behind
        cdef uint32_t stalled, tried = 0, count, word
        cdef uint64_t left, starts, words
        cdef int wides
        cdef bint prepared = False, found
        _steps_count = _places_prepared = _next_rare = _next_piece = _next_place = 0
        if stretch.texts:
            _scanned -= block // BLOCK  # and what it comes to is added
        _expected = PASS
        self._choose(stretch)
        # About what it costs to try a single start, in rows joined.
        cost = 4 if stretch.pieces <= 8 else _characters
        prepared = self._prepare(stretch)
        _ends_set(0, <uint32_t>_steps_count)
        while block <= last:
            width = PASS if last - block >= BLOCK - 8 else BLOCK - 8
            wides = SIDE if width == PASS else 1
            behind = min(last + 1 - block, width)
            batch = depth
            left = sift(_starts, _all - (behind + 7) // 8, _steps, _steps + _ends[depth], block >> 3, wides)
            stalled = 0
            found = False
            while left:
                count = <uint32_t>left
                from_step = _ends[batch]
                batch += 1
                if batch == batches and prepared:
                    found = not stretch.longs
                    break
                # Starts of which few go while more is asked are there to stay.
                if (count <= 2 or count * cost <= from_step) and (stalled > 1 or stretch.pieces <= 8):
                    break
                if batch == batches:
                    prepared = self._prepare(stretch)
                    _ends_set(batches, <uint32_t>_steps_count)
                    batches += 1
                left = sift(_starts, _starts, _steps + from_step, _steps + _ends[batch], block >> 3, wides)
                stalled += <uint32_t>left * 4 > count * 3
            if left:
                # Octets were asked for; those of their starts are not that are too far in front or behind.
                if at > block:
                    _starts[0] &= ALL << (at - block)
                _starts[behind >> 6] &= ~(ALL << (behind & 63))
                words = left >> 32
                while words:
                    word = lowest(words)
                    words &= words - 1
                    starts = _starts[word]
                    if found and row != NULL:
                        _keep_starts(row, block + word * 64, starts)
                        continue
                    while starts:
                        start = block + word * 64 + lowest(starts)
                        starts &= starts - 1
                        if start < at:
                            continue
                        tried += not found
                        if found or self._stands_here(stretch, start):
                            if row == NULL:
                                _scanned += block // BLOCK if stretch.texts else 0
                                return start
                            row[start >> 6] |= <uint64_t>1 << (start & 63)
                            _onward = start + 1
                        if row != NULL and tried > NOTE_TRIED:
                            return UNTOLD
                        at = max(at, _onward)
                depth = max(depth, min(depth + 1, <size_t>DEEP))
            else:
                # What this block was asked in the end the next ones are asked from the beginning.
                depth = max(depth, min(batch, <size_t>DEEPER))
            block = max(block + width, at & ~<size_t>7)
            depth = min(depth, batches - 1)
        _scanned += last // BLOCK if stretch.texts else 0
        return last + 1

    cdef bint _prepare(self, Stretch *stretch) except -1:
        """Prepare some more places of `stretch`, as many as are likely to leave no start; whether that are all."""
        global _next_rare, _next_piece, _next_place
        cdef uint32_t until = _places_prepared + PREPARED, count, number
        cdef Piece *piece
        while _next_rare < _rare_count:
            number = _turned(<uint32_t>(_rare[_next_rare] >> 6) & (1 << 30) - 1, stretch.pieces)
            self._prepare_place(self._pieces + stretch.piece + number, _rare[_next_rare] & (SURVEYED - 1))
            _next_rare += 1
            if _expected < LIKELY:
                return _rare_all and _next_rare == _rare_count
        if _rare_all:
            return True
        while _next_piece < stretch.pieces:
            piece = self._pieces + stretch.piece + _turned(_next_piece, stretch.pieces)
            count = piece.count & ~TEXT
            while _next_place < count:
                if _places_prepared >= until:
                    return False
                self._prepare_place(piece, _next_place)
                if piece.count & TEXT or count < LONG:
                    _next_place += 1
                else:  # some of them: starts that are left are tried
                    _next_place = count if _next_place == count - 1 else min(_next_place + count // 8, count - 1)
            _next_piece += 1
            _next_place = 0
        return True

    cdef int _prepare_place(self, Piece *piece, uint32_t place) except -1:
        """Prepare that place of a piece; one that takes all that the subject has needs no step."""
        global _steps, _steps_count, _places_prepared, _expected
        cdef const uint8_t *rows[ALPHABET]
        cdef Standing *standing
        cdef uint32_t each, count, stands
        cdef uint32_t offset = piece.offset + place
        cdef uint64_t kind = (offset + 7 & 7) + 1
        cdef uint8_t character
        if piece.count & TEXT:
            character = self._texts[piece.what + place]
            rows[0] = _row_of(character)
            count = 1
            stands = _extents[character].count
        else:
            standing = self._standing(piece.what)
            count = _rows_of(self._sets[piece.what], standing.others, rows)
            kind |= OTHERS if standing.others else 0
            stands = standing.extent.count
        if not count:
            return 0
        _steps = <Step *>_grown(_steps, &_steps_room, _steps_count + count, sizeof(Step))
        for each in range(count):
            _steps[_steps_count + each].row = rows[each] + ((offset + 7) >> 3) - 1
            _steps[_steps_count + each].kind = kind | MORE
        _steps_count += count
        _places_prepared += 1
        _expected *= <double>stands / <double>_length
        kind |= LOOK if _expected < 1 or _places_prepared & 3 == 3 else 0
        _steps[_steps_count - 1].kind = kind
        return 0

    cdef bint _stands_here(self, Stretch *stretch, size_t start) except -1:
        """Whether `stretch` stands at `start`, one of the few that are left; if not, `_onward` is the next that may."""
        global _onward, _spent, _strangers, _strangers_fresh
        cdef Piece *pieces = self._pieces + stretch.piece
        cdef uint32_t each, count
        cdef size_t place
        cdef Set others
        _onward = start + 1
        if stretch.longs:
            if not _strangers_fresh:
                _strangers = <uint32_t *>_grown(_strangers, &_strangers_room, stretch.pieces, sizeof(uint32_t))
                memset(_strangers, 0, stretch.pieces * sizeof(uint32_t))
                _strangers_fresh = True
            for each in range(stretch.pieces):
                count = pieces[each].count
                if count & TEXT or count < LONG:
                    continue
                place = start + pieces[each].offset
                if _strangers[each] <= place:
                    others.low = ~self._sets[pieces[each].what].low
                    others.high = ~self._sets[pieces[each].what].high
                    _strangers[each] = <uint32_t>_next(others, False, place, _length) + 1
                if _strangers[each] <= place + count:
                    # No start has room before that character.
                    _onward = _strangers[each] - pieces[each].offset
                    return False
        if stretch.pieces > PIECES and (_barring or _spent > 4 * <uint64_t>stretch.pieces):
            if not _barring:
                self._bar(stretch)
            return not self._barred_at(start)
        return self._stands_from(stretch, start)

    cdef bint _stands_from(self, Stretch *stretch, size_t start) noexcept:
        """As `_stands`, from a piece on that nobody knows; what it takes is added to `_spent`."""
        global _spent
        cdef uint32_t each, count
        cdef Piece *piece
        cdef Stretch one
        one.pieces = 1
        for each in range(stretch.pieces):
            one.piece = stretch.piece + _turned(each, stretch.pieces)
            piece = self._pieces + one.piece
            count = piece.count
            _spent += 1
            if not count & TEXT and count >= LONG:
                continue  # known to stand
            if not self._stands(&one, start):
                return False
        return True

    cdef int _bar(self, Stretch *stretch) except -1:
        """Note for each character of the subject the places of `stretch` that do not take it."""
        global _barring, _barred, _barred_stride, _barred_count
        cdef uint64_t[64] low, high
        cdef uint64_t some
        cdef uint32_t each, count, place, number
        cdef size_t word = 0
        cdef Piece *piece
        cdef Set taken
        cdef uint8_t[ALPHABET] slots
        _barred_stride = (stretch.length + 511) // 512 * 64
        _barred_count = 0
        for number in range(ALPHABET):
            if _extents[number].count:
                slots[number] = <uint8_t>_barred_count
                _barred_characters[_barred_count] = <uint8_t>number
                _barred_count += 1
        _barred = <uint8_t *>_grown(_barred, &_barred_room, _barred_count * _barred_stride, 1)
        memset(_barred, 0, _barred_count * _barred_stride)
        memset(low, 0, sizeof(low))
        memset(high, 0, sizeof(high))
        for number in range(stretch.pieces):
            piece = self._pieces + stretch.piece + number
            count = piece.count & ~TEXT
            if not piece.count & TEXT and count >= LONG:
                continue  # known to stand
            for each in range(count):
                place = piece.offset + each
                if place >> 6 != word:
                    _bar_word(low, high, slots, word)
                    word = place >> 6
                taken = _only(self._texts[piece.what + each]) if piece.count & TEXT else self._sets[piece.what]
                low[place & 63] = ~taken.low
                high[place & 63] = ~taken.high
        _bar_word(low, high, slots, word)
        # Those that every place takes strike out nothing.
        count = 0
        for number in range(_barred_count):
            some = 0
            for word in range(_barred_stride // 8):
                some |= (<uint64_t *>(_barred + number * _barred_stride))[word]
            if some:
                if count != number:
                    memcpy(_barred + count * _barred_stride, _barred + number * _barred_stride, _barred_stride)
                _barred_characters[count] = _barred_characters[number]
                count += 1
        _barred_count = count
        for number in range(_barred_count):
            _barred_rows[number] = _row_of(_barred_characters[number])
        _barring = True
        return 0

    cdef bint _barred_at(self, size_t start) noexcept:
        """Whether a character stands where the stretch, if it stood at `start`, does not take it."""
        return strikes(_barred_rows, _barred, _barred_stride, _barred_count, start >> 3, start & 7)


cdef void _bar_word(uint64_t *low, uint64_t *high, const uint8_t *slots, size_t word) noexcept:
    """Put down 64 places, each as the characters that it does not take, by characters; and clear them."""
    cdef uint32_t each
    flipped(low)
    flipped(high)
    for each in range(64):
        if _extents[each].count:
            (<uint64_t *>(_barred + slots[each] * _barred_stride))[word] = low[each]
        if _extents[64 + each].count:
            (<uint64_t *>(_barred + slots[64 + each] * _barred_stride))[word] = high[each]
    memset(low, 0, 64 * sizeof(uint64_t))
    memset(high, 0, 64 * sizeof(uint64_t))


cdef int _ends_set(size_t batch, uint32_t step) except -1:
    global _ends
    _ends = <uint32_t *>_grown(_ends, &_ends_room, batch + 1, sizeof(uint32_t))
    _ends[batch] = step
    return 0


cdef inline void _keep_starts(uint64_t *row, size_t begin, uint64_t starts) noexcept:
    """Note these starts, of 64 from `begin` on."""
    cdef size_t word = begin >> 6
    cdef int by = begin & 63
    row[word] |= starts << by
    if by and starts >> (64 - by):
        row[word + 1] |= starts >> (64 - by)


cdef size_t _next_noted(uint32_t number, size_t at, size_t last) noexcept:
    """The first start that is noted there from `at` on, any behind `last` if there is none before."""
    cdef const uint64_t *row = _notes + number * _noted_words
    cdef const uint64_t *full = row + _start_words
    cdef size_t word = at >> 6, sixty_four
    cdef uint64_t found = row[word] >> (at & 63)
    if found:
        return at + lowest(found)
    word += 1
    sixty_four = word >> 6
    if word >= _start_words:
        return last + 1
    found = full[sixty_four] >> (word & 63) << (word & 63)
    while not found:
        sixty_four += 1
        if sixty_four * 4096 > last:
            return last + 1
        found = full[sixty_four]
    word = sixty_four * 64 + lowest(found)
    return word * 64 + lowest(row[word])


cdef inline uint64_t _width(uint64_t gram) noexcept:
    cdef uint64_t width = 1
    while gram >> width * 8 != width:
        width += 1
    return width


cdef uint64_t _mask_for(size_t count) noexcept:
    """One less than a power of two that is at least twice `count`."""
    cdef uint64_t size = 8
    while size < 2 * <uint64_t>count:
        size *= 2
    return size - 1


cdef uint32_t *_table(uint64_t mask) except NULL:
    cdef uint32_t *table = <uint32_t *>PyMem_Malloc((mask + 1) * sizeof(uint32_t))
    if table == NULL:
        raise MemoryError
    memset(table, 0xFF, (mask + 1) * sizeof(uint32_t))  # NONE everywhere
    return table


cdef size_t _set_end(const uint8_t *pattern, size_t length, size_t at, size_t last_close) noexcept:
    """Where the set ends whose `[` stands before `at`; 0 where it never does. A `]` that stands first is a member."""
    cdef size_t first = at
    if at < length and (pattern[at] == c"!" or pattern[at] == c"^"):
        first += 1
    if first >= last_close:
        return 0
    first += 1
    while pattern[first] != c"]":  # there is one, the last at the latest
        first += 1
    return first


cdef Set _read_set(const uint8_t *pattern, size_t at, size_t end) noexcept:
    """The set that is written from `at`, behind its `[`, to `end`, where its `]` stands."""
    cdef Set members
    cdef bint negated = pattern[at] == c"!" or pattern[at] == c"^"
    cdef uint8_t first, last
    members.low = members.high = 0
    at += negated
    while at < end:
        first = last = pattern[at]
        if pattern[at + 1] == c"-" and at + 2 < end:  # at `end` there is a `]`
            last = pattern[at + 2]
            at += 2
        at += 1
        if first <= last:
            members.low |= _up_to(last, 0) & ~_up_to_excluding(first, 0)
            members.high |= _up_to(last, 64) & ~_up_to_excluding(first, 64)
    if negated:
        members.low = ~members.low
        members.high = ~members.high
    return members


cdef inline uint64_t _up_to_excluding(uint32_t character, uint32_t base) noexcept:
    """The characters of the 64 from `base` on that are below `character`."""
    if character <= base:
        return 0
    return ALL if character - base >= 64 else (<uint64_t>1 << (character - base)) - 1


cdef inline uint64_t _up_to(uint32_t character, uint32_t base) noexcept:
    return _up_to_excluding(character + 1, base)
