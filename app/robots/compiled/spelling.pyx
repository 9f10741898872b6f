"""Texts brought to one spelling by tables; rules brought by it to patterns, put in order, and asked with paths.

Which octets and escapes are spelt how, which rules go first and what index tells them apart, the caller says.
"""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport (
    PyUnicode_1BYTE_DATA,
    PyUnicode_1BYTE_KIND,
    PyUnicode_2BYTE_DATA,
    PyUnicode_FindChar,
    PyUnicode_GET_LENGTH,
    PyUnicode_KIND,
    PyUnicode_New,
)
from libc.stdint cimport uint8_t, uint16_t
from libc.string cimport memchr, memset

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)

ctypedef fused Unit:
    uint8_t
    uint16_t

cdef enum:
    PERCENT = 0x25
    NO_DIGIT = 0x80
    LONGEST = 3

# The worth of each octet as a digit of an escape; what is none is NO_DIGIT, and stays so beside any digit.
cdef uint8_t[256] _DIGITS


cdef int _know_digits() except -1:
    cdef int worth
    memset(_DIGITS, NO_DIGIT, sizeof(_DIGITS))
    for worth in range(16):
        _DIGITS[ord("0123456789ABCDEF"[worth])] = _DIGITS[ord("0123456789abcdef"[worth])] = worth
    return 0


_know_digits()


cdef struct Spelt:
    # `size` characters; those behind them are 0. An escape of size 0 is spelt as the octets it is written with.
    uint16_t characters[LONGEST]
    uint16_t size


cdef class Speller:
    """What rewrites octets by one table and the escapes of octets by another, and gives all else back as it is.

    `octets` and `escapes` say what becomes of which octet, and of its escape in either case of its digits: one to three
    characters up to U+FFFF. What they put in is not read again. With `urls` any text is taken, and stands for its
    octets in UTF-8; without, one of a character per octet. `after`: only what follows the first such octet is
    rewritten; `final`: an octet that stays where it is the last.

    A text that needs no rewriting is returned itself. Takes time by the text's length alone.
    """

    cdef Spelt _octets[256]
    cdef Spelt _escapes[256]
    cdef uint8_t _odd[256]  # whether it may become anything but itself
    cdef bint _urls
    cdef int _after  # these two are octets, or -1
    cdef int _final

    def __init__(self, dict octets not None, dict escapes not None, *, bint urls=False, after=None, final=None):
        cdef int octet
        memset(self._escapes, 0, sizeof(self._escapes))
        for octet in range(256):
            _spell_as(&self._octets[octet], chr(octet))
            self._odd[octet] = octet in octets or (octet == PERCENT and len(escapes) > 0)
        for octet, text in octets.items():
            _spell_as(&self._octets[_octet(octet)], text)
        for octet, text in escapes.items():
            _spell_as(&self._escapes[_octet(octet)], text)
        self._urls = urls
        self._after = -1 if after is None else _octet(ord(after))
        self._final = -1 if final is None else _octet(ord(final))

    def __call__(self, str text):
        return self.spell(text)

    cdef str spell(self, str text):
        cdef bytes encoded
        if text is None:
            raise TypeError("None has no spelling.")
        if PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND and (not self._urls or PyUnicode_IS_ASCII(text)):
            return self._spell(text, PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text))
        if not self._urls:
            raise ValueError("A text of one character per octet has none above U+00FF.")
        encoded = text.encode("utf-8", "surrogatepass")
        return self._spell(None, encoded, len(encoded))

    cdef str _spell(self, str same, const uint8_t* octets, Py_ssize_t length):
        """What the `length` octets become; `same` is their text, None where they are no text yet.

        They are gone through twice, so that what is made is made once, in its size and width.
        """
        cdef Py_ssize_t begin = 0, end = length, at, read, size
        cdef int most = 0  # what has all bits of all characters is as wide as the widest
        cdef bint changed = same is None
        cdef const Spelt* spelt
        cdef const uint8_t* mark
        if end and octets[end - 1] == self._final:
            end -= 1
        if self._after >= 0:
            mark = <const uint8_t*>memchr(octets, self._after, end)
            begin = mark - octets + 1 if mark != NULL else end
        # From here on 0 <= begin <= at <= end <= length, and only what lies from `begin` to `end` is rewritten.
        at = begin = self._plain(octets, begin, end)
        if at == end and not changed:
            return same
        size = length - end + begin
        while at < end:
            if not self._odd[octets[at]]:
                most |= octets[at]
                size += 1
                at += 1
                continue
            spelt = self._read(octets + at, end - at, &read)
            if not changed:
                changed = not _stays(spelt, octets + at, read)
            most |= spelt.characters[0] | spelt.characters[1] | spelt.characters[2]
            size += spelt.size
            at += read
        if not changed:
            return same
        for at in range(begin):
            most |= octets[at]
        for at in range(end, length):
            most |= octets[at]
        text = PyUnicode_New(size, 0x7F if most < 0x80 else 0xFF if most < 0x100 else 0xFFFF)
        if most < 0x100:
            self._write[uint8_t](octets, begin, end, length, PyUnicode_1BYTE_DATA(text))
        else:
            self._write[uint16_t](octets, begin, end, length, PyUnicode_2BYTE_DATA(text))
        return text

    cdef Py_ssize_t _plain(self, const uint8_t* octets, Py_ssize_t at, Py_ssize_t end) noexcept:
        """The place of the first octet from `at` on that may become another, or `end`; most texts have none."""
        cdef const uint8_t* odd = self._odd
        while end - at >= 8:  # so that all eight lie before `end`
            if (
                odd[octets[at]] | odd[octets[at + 1]] | odd[octets[at + 2]] | odd[octets[at + 3]]
                | odd[octets[at + 4]] | odd[octets[at + 5]] | odd[octets[at + 6]] | odd[octets[at + 7]]
            ):
                break
            at += 8
        while at < end and not odd[octets[at]]:
            at += 1
        return at

    cdef const Spelt* _read(self, const uint8_t* octets, Py_ssize_t left, Py_ssize_t* read) noexcept:
        """What stands at the first of `left` octets, at least one; `read` becomes the number of those it takes."""
        cdef uint8_t high, low
        cdef const Spelt* spelt
        # Each table has a place for every octet.
        if octets[0] == PERCENT and left >= 3:
            high, low = _DIGITS[octets[1]], _DIGITS[octets[2]]
            if not (high | low) & NO_DIGIT:
                spelt = &self._escapes[high << 4 | low]  # both are below 16
                if spelt.size:
                    read[0] = 3
                    return spelt
        read[0] = 1
        return &self._octets[octets[0]]

    cdef void _write(
        self, const uint8_t* octets, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t length, Unit* out
    ) noexcept:
        """All `length` octets as they are spelt, of which none before `begin` or from `end` on is rewritten.

        `out` has room for as many units as `_spell` counted, by the same steps, and is as wide as the widest of them.
        """
        cdef Py_ssize_t at, read, to = begin
        cdef const Spelt* spelt
        cdef int each
        for at in range(begin):
            out[at] = octets[at]
        at = begin
        while at < end:
            if not self._odd[octets[at]]:
                out[to] = octets[at]
                to += 1
                at += 1
                continue
            spelt = self._read(octets + at, end - at, &read)
            for each in range(spelt.size):
                out[to + each] = <Unit>spelt.characters[each]
            to += spelt.size
            at += read
        for at in range(end, length):
            out[to + at - end] = octets[at]


cdef int _octet(octet) except -1:
    if not 0 <= octet < 256:
        raise ValueError(f"{octet!r} is no octet.")
    return octet


cdef int _spell_as(Spelt* spelt, str text) except -1:
    cdef int at
    if not (1 <= len(text) <= LONGEST and max(text) <= "\uffff"):
        raise ValueError(f"{text!r} is not one to three characters up to U+FFFF.")
    memset(spelt, 0, sizeof(Spelt))
    spelt.size = len(text)
    for at in range(len(text)):
        spelt.characters[at] = ord(text[at])
    return 0


cdef bint _stays(const Spelt* spelt, const uint8_t* octets, Py_ssize_t read) noexcept:
    cdef Py_ssize_t at
    if spelt.size != read:
        return False
    for at in range(read):  # at most LONGEST
        if spelt.characters[at] != octets[at]:
            return False
    return True


def spelled(groups, Speller spell not None, also=None):
    """The rules of all `groups` that have a value, and as many patterns: their values as `spell` has them.

    `also` is asked with a rule and its pattern: where it gives another, the rule stands there again with that.
    """
    cdef list rules = [], patterns = []
    cdef tuple rule
    cdef str value, pattern
    for group in groups:
        for rule in group:
            value = rule[2]
            if not value:
                continue
            pattern = spell.spell(value)
            rules.append(rule)
            patterns.append(pattern)
            if also is not None:
                other = also(rule, pattern)
                if other is not None:
                    rules.append(rule)
                    patterns.append(other)
    return rules, patterns


cdef struct Ranked:
    size_t rank
    Py_ssize_t place


def by_length(list rules not None, list patterns not None, key):
    """Both again, the longest pattern first; of those as long, rules with that `key`, then those that stood first."""
    cdef Py_ssize_t count = len(rules), at, longest = 0
    cdef list rules_in_order = PyList_New(count), patterns_in_order = PyList_New(count)
    cdef str pattern
    cdef tuple rule
    cdef Ranked* ranked
    cdef const Ranked* in_order
    if len(patterns) != count:
        raise ValueError(f"{count} rules have {len(patterns)} patterns.")
    for pattern in patterns:
        longest = max(longest, len(pattern))
    # Nothing overflows: there are lists of `count` pointers, and text of `longest` octets.
    ranked = <Ranked*>PyMem_Malloc(2 * count * sizeof(Ranked))
    if ranked == NULL:
        raise MemoryError
    try:
        for at in range(count):
            pattern, rule = patterns[at], rules[at]
            ranked[at].rank = 2 * (longest - len(pattern)) + (rule[1] is not key)
            ranked[at].place = at
        in_order = _sorted(ranked, ranked + count, count, 2 * longest + 1)
        for at in range(count):
            pattern, rule = patterns[in_order[at].place], rules[in_order[at].place]
            Py_INCREF(pattern)
            PyList_SET_ITEM(patterns_in_order, at, pattern)
            Py_INCREF(rule)
            PyList_SET_ITEM(rules_in_order, at, rule)
    finally:
        PyMem_Free(ranked)
    return rules_in_order, patterns_in_order


cdef const Ranked* _sorted(Ranked* ranked, Ranked* spare, Py_ssize_t count, size_t most) noexcept:
    """By rank, none of which is above `most`; those alike stay in their order. It is in one of the two given.

    By one octet of the rank after the other, the lowest first: no choice of lengths makes that slow.
    """
    cdef Py_ssize_t[256] begins
    cdef Py_ssize_t at, begin, found
    cdef int shift = 0, octet
    while most >> shift:
        memset(begins, 0, sizeof(begins))
        for at in range(count):
            begins[ranked[at].rank >> shift & 0xFF] += 1
        begin = 0
        for octet in range(256):
            found = begins[octet]
            begins[octet] = begin
            begin += found
        for at in range(count):
            octet = ranked[at].rank >> shift & 0xFF
            spare[begins[octet]] = ranked[at]  # below `count`: each begins behind all that stand before it
            begins[octet] += 1
        ranked, spare = spare, ranked
        shift += 8
        if shift == 8 * sizeof(size_t):
            break
    return ranked


cdef class Decider:
    """Patterns in order of precedence, asked with paths as callers write them.

    `subject` spells a path; `index` makes of patterns what tells the first that matches a subject. `form`, where there
    is one, spells what follows a `?`: a pattern then also matches where both sides do when they are spelt so, too.
    """

    cdef public object subject
    cdef Speller _form
    cdef object _make_index
    cdef Py_ssize_t _count
    # Patterns that `form` makes others of match as they are no subject that it has spelt, and none without a `?`; all
    # others are asked with a subject in either form. So no pattern is asked more than twice. The places of the patterns
    # of an index are None where it has them all.
    cdef object _plain
    cdef object _plain_first
    cdef list _plain_places
    cdef object _asking
    cdef list _asking_places
    cdef list _forms
    cdef object _formed

    def __init__(self, list patterns not None, subject, index, Speller form=None):
        cdef list plain = [], asking = [], forms = [], plain_places = [], asking_places = []
        cdef str pattern, formed
        cdef Py_ssize_t place
        self.subject = subject
        self._form = form
        self._make_index = index
        self._count = len(patterns)
        if form is not None:
            for place, pattern in enumerate(patterns):
                formed = form.spell(pattern)
                if formed is not pattern:
                    asking.append(pattern)
                    asking_places.append(place)
                    forms.append(formed)
        if asking:
            among = set(asking_places)
            plain_places = [place for place in range(self._count) if place not in among]
            plain = [patterns[place] for place in plain_places]
            self._plain_places = plain_places
            self._asking, self._asking_places, self._forms = index(asking), asking_places, forms
        self._plain = index(plain if asking else patterns)
        self._plain_first = self._plain.first

    def first(self, str path not None):
        """The place of the first pattern that matches `path`; the number of patterns where none does."""
        cdef str subject = self._subject(path), formed
        cdef Py_ssize_t place
        if self._form is None or not _asks(subject):
            if self._plain_places is None:
                return self._plain_first(subject)
            return self._at(self._plain_places, self._plain_first(subject))
        formed = self._form.spell(subject)
        place = self._at(self._plain_places, self._plain_first(subject))
        if formed is not subject:
            place = min(place, self._at(self._plain_places, self._plain_first(formed)))
        if self._asking is not None:
            place = min(place, self._at(self._asking_places, self._asking.first(subject)))
            place = min(place, self._at(self._asking_places, self._formed_index().first(formed)))
        return place

    def places(self, str path not None):
        """The places of all patterns that match `path`, ascending."""
        cdef str subject = self._subject(path), formed
        found = _all_at(self._plain_places, self._plain.every(subject))
        if self._form is None or not _asks(subject):
            return found
        formed = self._form.spell(subject)
        both = set(found)
        both.update(_all_at(self._plain_places, self._plain.every(formed)))
        if self._asking is not None:
            both.update(_all_at(self._asking_places, self._asking.every(subject)))
            both.update(_all_at(self._asking_places, self._formed_index().every(formed)))
        return sorted(both)

    cdef str _subject(self, str path):
        subject = self.subject
        return (<Speller>subject).spell(path) if type(subject) is Speller else subject(path)

    cdef Py_ssize_t _at(self, list places, Py_ssize_t found) except -1:
        """The place among all patterns of the one that stands at `found` among those at `places`."""
        if places is None:
            return found
        return <Py_ssize_t>places[found] if found < len(places) else self._count

    cdef object _formed_index(self):
        # Made when a query first comes; another thread may make it meanwhile as well, and either is good.
        if self._formed is None:
            self._formed = self._make_index(self._forms)
            self._forms = None
        return self._formed


cdef list _all_at(list places, list found):
    return found if places is None else [places[place] for place in found]


cdef bint _asks(str subject) except -1:
    return PyUnicode_FindChar(subject, u"?", 0, len(subject), 1) >= 0
