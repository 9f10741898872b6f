"""Rules brought from the octets of their file to patterns in order of precedence, without an object of each.

The values are spelt side by side, in file order; the rules are sorted by the length of what was spelt; and the patterns
are put side by side anew, in that order. What is kept of a rule is its number: that of its line, counted through all
groups. Whoever asks for a rule has its directive and its pattern made anew.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from app.robots.compiled.lines cimport Group, Rule
from app.robots.compiled.spelling cimport Speller
from app.robots.compiled.texts cimport Texts, room_for


cdef enum:
    MOST = 0x3FFFFFFF  # directives of all groups, so that SECOND is no part of a number

cdef uint32_t SECOND = 0x80000000


cdef struct Pattern:
    # Where it begins among what was spelt, and its size; what it is sorted by, the lowest first; its rule.
    uint32_t start
    uint32_t size
    uint32_t rank
    uint32_t number


@cython.final
@cython.no_gc
cdef class Rules:
    def __init__(self):
        raise TypeError("Rules are made by in_file_order, or by longest_first")

    def __dealloc__(self):
        PyMem_Free(self._begins)

    def __len__(self):
        return self._count

    def __getitem__(self, Py_ssize_t place):
        cdef uint32_t number
        cdef tuple directive
        cdef str pattern
        self._check(place)
        number = self._numbers[place]
        directive = self._directive(number & ~SECOND)
        pattern = self._spell.spell(directive[2])
        if number & SECOND:
            pattern = pattern[: pattern.rindex("/") + 1] + "$"
        return directive, pattern

    cdef tuple _directive(self, uint32_t number):
        # The last group whose numbers begin at this one or before; those of the first begin at 0.
        cdef Py_ssize_t low = 0, high = len(self._groups), middle
        while high - low > 1:
            middle = (low + high) // 2
            if self._begins[middle] <= number:
                low = middle
            else:
                high = middle
        return (<Group>PyTuple_GET_ITEM(self._groups, low)).directive(number - self._begins[low])

    def told(self, list places not None, Py_ssize_t limit):
        cdef Py_ssize_t place, count = 0
        cdef uint32_t number
        cdef uint8_t *seen
        cdef list first = []
        if not self._seconds:
            return [self[place] for place in places[:limit]], len(places)
        # As long as there are directives, so that no number is behind it.
        seen = <uint8_t *>PyMem_Calloc(<size_t>self._begins[len(self._groups)] + 1, 1)
        if seen == NULL:
            raise MemoryError
        try:
            for place in places:
                self._check(place)
                number = self._numbers[place] & ~SECOND
                if seen[number]:
                    continue
                seen[number] = True
                count += 1
                if count <= limit:
                    first.append(self[place])
        finally:
            PyMem_Free(seen)
        return first, count

    cdef int _check(self, Py_ssize_t place) except -1:
        if not 0 <= place < self._count:
            raise IndexError(f"there are {self._count} rules, and none in place {place}")
        return 0


def in_file_order(groups, Speller spell not None):
    return _made(tuple(groups), spell, False, None)


def longest_first(groups, Speller spell not None, bytes index_page=None):
    return _made(tuple(groups), spell, True, index_page)


cdef tuple _made(tuple groups, Speller spell, bint by_length, bytes index_page):
    cdef size_t numbers = 0, room = 0, octets = 0, count
    cdef Pattern *patterns
    cdef const Pattern *in_order
    cdef uint8_t *spelt
    cdef Rules rules
    cdef Texts texts
    cdef Group group
    for group in groups:
        if group is None:
            raise TypeError("None is no group")
        numbers += group.size()
        group.measure(&room, &octets)
    # Nothing overflows before this: a value has at most 65,535 octets, and there are no more than there are numbers.
    if numbers > MOST or octets * spell.widest > MOST:
        raise OverflowError("rules as no file can have them")
    octets *= spell.widest
    if index_page is not None:
        # Each may have a second pattern, which is no longer than the first but for its anchor.
        room, octets = 2 * room, 2 * octets + room
    patterns = <Pattern *>PyMem_Malloc(2 * room * sizeof(Pattern) + octets)  # as many again for sorting
    if patterns == NULL:
        raise MemoryError
    try:
        spelt = <uint8_t *>(patterns + 2 * room)
        count = _spell_all(groups, spell, index_page, patterns, spelt)
        in_order = _sorted(patterns, patterns + room, count) if by_length else patterns
        texts = _side_by_side(in_order, count, spelt)
        rules = _numbered(groups, spell, in_order, count)
    finally:
        PyMem_Free(patterns)
    return rules, texts


cdef size_t _spell_all(tuple groups, Speller spell, bytes index_page, Pattern *patterns, uint8_t *spelt) noexcept:
    """Fill both, for which there is room, in file order; how many patterns there are."""
    cdef const uint8_t *page = NULL
    cdef size_t page_size = 0, size, directory, count = 0
    cdef uint32_t at, start = 0, number = 0
    cdef Group group
    cdef Rule rule
    if index_page is not None:
        page, page_size = <const uint8_t *>PyBytes_AS_STRING(index_page), PyBytes_GET_SIZE(index_page)
    for group in groups:
        for at in range(group.size()):
            if group.rule(at, &rule):
                size = spell.put(rule.value, rule.length, spelt + start)
                patterns[count] = Pattern(start, <uint32_t>size, not rule.allows, number + at)
                count += 1
                if page != NULL and rule.allows:
                    directory = _directory(spelt + start, size, page, page_size)
                    if directory:
                        memcpy(spelt + start + size, spelt + start, directory)
                        spelt[start + size + directory] = c"$"
                        patterns[count] = Pattern(start + size, <uint32_t>directory + 1, False, number + at | SECOND)
                        count += 1
                        size += directory + 1
                start += <uint32_t>size
        number += group.size()
    return count


cdef size_t _directory(const uint8_t *pattern, size_t size, const uint8_t *page, size_t page_size) noexcept:
    """How much of a pattern is its directory, to its last slash, if what follows begins with `page`; 0 if not."""
    cdef size_t at = size
    while at and pattern[at - 1] != c"/":
        at -= 1
    return at if size - at >= page_size and memcmp(pattern + at, page, page_size) == 0 else 0


cdef const Pattern *_sorted(Pattern *patterns, Pattern *spare, size_t count) noexcept:
    """The longest first; of those as long, what has the lower rank, 0 or 1, then what stood first: in one of the two.

    By eight bits of what they go by after the other, the lowest first: no choice of lengths makes that slow.
    """
    cdef size_t[256] begins
    cdef size_t at, begin, found
    cdef uint32_t longest = 0, digit, digits
    cdef int shift = 0
    for at in range(count):
        longest = max(longest, patterns[at].size)
    for at in range(count):
        patterns[at].rank += 2 * (longest - patterns[at].size)  # lengths have less than 20 bits
    while 2 * longest + 1 >> shift:
        digits = min(2 * longest + 1 >> shift, 255) + 1  # no digit is as great
        memset(begins, 0, digits * sizeof(size_t))
        for at in range(count):
            begins[patterns[at].rank >> shift & 0xFF] += 1
        begin = 0
        for digit in range(digits):
            found = begins[digit]
            begins[digit] = begin
            begin += found
        for at in range(count):
            digit = patterns[at].rank >> shift & 0xFF
            spare[begins[digit]] = patterns[at]  # below `count`: each begins behind all that stand before it
            begins[digit] += 1
        patterns, spare = spare, patterns
        shift += 8
    return patterns


cdef Texts _side_by_side(const Pattern *patterns, size_t count, const uint8_t *spelt):
    cdef uint32_t *bounds = NULL
    cdef uint8_t *octets = NULL
    cdef size_t at, size = 0
    cdef Texts texts
    for at in range(count):
        size += patterns[at].size
    texts = room_for(count, size, &bounds, &octets)
    for at in range(count):
        memcpy(octets + bounds[at], spelt + patterns[at].start, patterns[at].size)
        bounds[at + 1] = bounds[at] + patterns[at].size
    return texts


cdef Rules _numbered(tuple groups, Speller spell, const Pattern *patterns, size_t count):
    cdef Rules rules = Rules.__new__(Rules)
    cdef size_t at, begins = len(groups) + 1
    cdef uint32_t number = 0
    cdef Group group
    rules._groups, rules._spell = groups, spell
    rules._begins = <uint32_t *>PyMem_Malloc((begins + count) * sizeof(uint32_t))
    if rules._begins == NULL:
        raise MemoryError
    rules._numbers = rules._begins + begins
    rules._count = count
    at = 0
    for group in groups:
        rules._begins[at] = number
        number += group.size()
        at += 1
    rules._begins[at] = number
    for at in range(count):
        rules._numbers[at] = patterns[at].number
        rules._seconds = rules._seconds or patterns[at].number >= SECOND
    return rules
