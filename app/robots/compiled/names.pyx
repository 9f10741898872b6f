"""Which of several names stands in a text, all of them looked for in one pass (names.pyi).

The names become one automaton (Aho and Corasick, 1975). A state is the longest beginning of any name that what was read
ends with, and for every character there is one state that comes next: so a pass costs what the text is long, whatever
the text and the names have in common. A row of states has a column for each character that some name has, and the
column 0 for all others.

Making the automaton costs more than a short text does, and most names stand in no text: so each name is asked first
whether every three characters of it stand in the text, in a table of bits that is made with it.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

cdef extern from "Python.h":
    int PyUnicode_KIND(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum:
    NAMES = 16  # that one automaton looks for: a bit of a state's mask for each
    STATES = 0xFFFF  # that one automaton has
    SHORT = 1000  # characters of a text in which names are looked for one by one
    GRAM = 3
    FEWEST_BITS = 10  # of the number of a gram, for which there is a table of 128 octets
    MOST_BITS = 17  # to 16 KiB

cdef uint32_t _ODD = 0x9E3779B1

cdef struct Automaton:
    # Of each state the row of those that come next, by column; the names that end here, a bit each; its ending.
    uint16_t *rows
    uint16_t *masks
    uint16_t *endings
    const uint8_t *column
    int width


@cython.final
@cython.no_gc
cdef class Names:
    cdef str _text
    cdef Py_ssize_t _length
    cdef const uint8_t *_octets
    cdef uint8_t *_grams  # a bit for the number of each gram of the text; NULL for a short text
    cdef int _shift

    def __cinit__(self, str text not None):
        cdef Py_ssize_t at
        cdef uint32_t gram
        if PyUnicode_KIND(text) != 1:
            raise ValueError("a text to be searched has one octet for each character")
        self._text = text
        self._octets = <const uint8_t *>PyUnicode_DATA(text)
        self._length = PyUnicode_GET_LENGTH(text)
        if self._length <= SHORT:
            return
        self._shift = 32 - FEWEST_BITS
        while self._shift > 32 - MOST_BITS and <Py_ssize_t>1 << (32 - self._shift) < 8 * self._length:
            self._shift -= 1
        self._grams = <uint8_t *>PyMem_Malloc(1 << (29 - self._shift))
        if self._grams == NULL:
            raise MemoryError
        memset(self._grams, 0, 1 << (29 - self._shift))
        for at in range(self._length - GRAM + 1):
            gram = self._number(self._octets + at)
            self._grams[gram >> 3] |= 1 << (gram & 7)

    def __dealloc__(self):
        PyMem_Free(self._grams)

    cdef inline uint32_t _number(self, const uint8_t *octets) noexcept nogil:
        """A number of 32 - _shift bits for the GRAM octets that begin here."""
        return (<uint32_t>octets[0] | <uint32_t>octets[1] << 8 | <uint32_t>octets[2] << 16) * _ODD >> self._shift

    def first(self, tuple names not None):
        cdef str name, found
        cdef list asked
        cdef Py_ssize_t states
        if self._length <= SHORT:
            for name in names:
                if name in self._text:
                    return name
            return None
        asked, states = [], 1
        for name in names:
            if not self._may_have(name):
                continue
            if not name:
                found = self._first_of(asked, states)
                return name if found is None else found
            if len(asked) == NAMES or states + len(name) > STATES:
                found = self._first_of(asked, states)
                if found is not None:
                    return found
                asked, states = [], 1
            asked.append(name)
            states += len(name)
        return self._first_of(asked, states)

    def find(self, str name not None):
        cdef Py_ssize_t end = 0
        if self._length <= SHORT or not name:
            return self._text.find(name)
        if not self._may_have(name) or not self._among([name], len(name) + 1, &end):
            return -1
        return end - len(name)

    cdef bint _may_have(self, str name) noexcept:
        """Whether the text has all grams of the name, which is then shorter than the text, and than STATES."""
        cdef const uint8_t *octets = <const uint8_t *>PyUnicode_DATA(name)
        cdef Py_ssize_t at, length = PyUnicode_GET_LENGTH(name)
        cdef uint32_t gram
        if length > self._length or length >= STATES or PyUnicode_KIND(name) != 1:
            return False
        for at in range(length - GRAM + 1):
            gram = self._number(octets + at)
            if not self._grams[gram >> 3] >> (gram & 7) & 1:
                return False
        return True

    cdef str _first_of(self, list names, Py_ssize_t states):
        """The first of at most NAMES names that the text has; `states` is one more than they have characters."""
        cdef Py_ssize_t end = 0
        cdef uint32_t found = self._among(names, states, &end) if names else 0
        cdef int place = 0
        if found == 0:
            return None
        while not found >> place & 1:
            place += 1
        return names[place]

    cdef uint32_t _among(self, list names, Py_ssize_t states, Py_ssize_t *end) except? 0xFFFFFFFF:
        """Those of the names that the text has, a bit each; where it has the first, `end` is where that first ends."""
        cdef uint8_t[256] column
        cdef uint8_t *octets
        cdef Automaton it
        cdef Py_ssize_t at
        cdef uint32_t found
        cdef int width = 1
        cdef str name
        memset(column, 0, sizeof(column))
        for name in names:
            octets = <uint8_t *>PyUnicode_DATA(name)
            for at in range(len(name)):
                # Where names have all 256 octets, the last has the column of the others, which are none.
                if column[octets[at]] == 0 and width < 256:
                    column[octets[at]] = width
                    width += 1
        it.width = width
        it.column = column
        # Less than 2 ** 26 octets. The rows first; what else a state has stands behind all of them.
        it.rows = <uint16_t *>PyMem_Malloc(states * (width + 2) * sizeof(uint16_t))
        if it.rows == NULL:
            raise MemoryError
        it.masks = it.rows + states * width
        it.endings = it.masks + states
        _make(&it, names)
        found = _run(&it, self._octets, self._length, end)
        PyMem_Free(it.rows)
        return found


cdef void _make(Automaton *it, list names) noexcept:
    """Make the states in the order of their lengths, those of each length behind one another.

    The row of a state is first that of its ending, the longest other state that it ends with: all shorter states, and
    what leads to those of the same length, are then complete. What stands in it for a character, before a state that is
    longer by this character takes the place, is the ending of that one.
    """
    cdef const uint8_t *octets
    cdef uint16_t *step
    cdef uint16_t[NAMES] states  # that the beginning of each name has led to
    cdef Py_ssize_t length = 0, begin = 0, end = 1, count, state
    cdef int place
    cdef str name
    memset(states, 0, sizeof(states))
    memset(it.rows, 0, it.width * sizeof(uint16_t))
    it.masks[0] = 0
    while begin < end:
        # Those of this length are [begin, end); of one more, [end, count).
        for state in range(max(begin, 1), end):
            memcpy(&it.rows[state * it.width], &it.rows[it.endings[state] * it.width], it.width * sizeof(uint16_t))
            it.masks[state] |= it.masks[it.endings[state]]
        count = end
        for place, name in enumerate(names):
            if PyUnicode_GET_LENGTH(name) <= length:
                continue
            octets = <const uint8_t *>PyUnicode_DATA(name)
            step = &it.rows[states[place] * it.width + it.column[octets[length]]]
            if step[0] < end:
                # There are as many states as all names have characters, and the root: no more than STATES.
                it.endings[count] = step[0]
                it.masks[count] = 0
                step[0] = <uint16_t>count
                count += 1
            states[place] = step[0]
            if PyUnicode_GET_LENGTH(name) == length + 1:
                it.masks[step[0]] |= 1 << place
        begin, end = end, count
        length += 1


cdef uint32_t _run(const Automaton *it, const uint8_t *text, Py_ssize_t length, Py_ssize_t *end) noexcept nogil:
    """The names that the text has, a bit each; no more are looked for when the first is found, which ends at `end`."""
    cdef const uint16_t *rows = it.rows
    cdef const uint8_t *column = it.column
    cdef uint32_t width = it.width, state = 0, found = 0
    cdef Py_ssize_t at
    for at in range(length):
        state = rows[state * width + column[text[at]]]
        found |= it.masks[state]
        if found & 1:
            end[0] = at + 1
            break
    return found
