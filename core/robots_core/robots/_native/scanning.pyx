"""Scan a file into lines of key and value (RFC 9309 2.2, spec B1 to B7, K1, K2).

Python objects are created for a line only when it is accessed. All objects are immutable.
"""

cimport cython
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy


cdef enum:
    MOST_NAMES = 128
    LONGEST_NAME = 24
    LONGEST_BODY = 1 << 28
    LONGEST_LINE = 0xFFFF
    # Codes: an unknown key, an empty line, then four for each key, by its form.
    UNKNOWN = 0
    BLANK = 1
    # Added to the code of a key that is misspelled or has no colon.
    TOLERATED = 1


cdef struct Name:
    uint8_t length
    uint8_t code
    bint prefix
    uint8_t text[LONGEST_NAME]


cdef struct Line:
    uint32_t number
    uint32_t start  # of the value, in the body
    uint16_t length
    uint16_t code


cdef inline bint _is_blank(uint8_t byte) noexcept nogil:
    return byte == c" " or c"\t" <= byte <= c"\f" and byte != c"\n"


cdef inline const uint8_t *_first_in(const uint8_t *at, const uint8_t *end, uint8_t byte) noexcept nogil:
    """The first `byte`, or `end`."""
    cdef const uint8_t *found = <const uint8_t *>memchr(at, byte, end - at) if at < end else NULL
    return end if found == NULL else found


@cython.final
cdef class Scanner:
    cdef Name _names[MOST_NAMES]
    cdef int _count
    cdef size_t _line_limit

    def __init__(self, list names not None, size_t line_limit):
        if len(names) > MOST_NAMES or line_limit > LONGEST_LINE:
            raise ValueError(f"There can be at most {MOST_NAMES} names, and at most {LONGEST_LINE} bytes in a line.")
        for text, code, prefix in names:
            if len(text) > LONGEST_NAME:
                raise ValueError(f"The name {text!r} is longer than {LONGEST_NAME} bytes.")
            memcpy(self._names[self._count].text, PyBytes_AsString(text), len(text))
            self._names[self._count].length = len(text)
            self._names[self._count].code = code
            self._names[self._count].prefix = prefix
            self._count += 1
        self._line_limit = line_limit

    cdef uint8_t read_name(self, const uint8_t *key, size_t length) noexcept nogil:
        """The code of a key, or UNKNOWN; compares at most LONGEST_NAME bytes with each name."""
        cdef uint8_t lower[LONGEST_NAME]
        cdef size_t compared = min(length, <size_t>LONGEST_NAME), at, each
        cdef const Name *name
        for at in range(compared):
            lower[at] = key[at] | 0x20 if c"A" <= key[at] <= c"Z" else key[at]
        for each in range(self._count):
            name = &self._names[each]
            if (name.length == length or name.prefix and name.length < length) and not memcmp(
                name.text, lower, name.length
            ):
                return name.code
        return UNKNOWN

    cdef bint read_line(self, const uint8_t *text, size_t start, size_t end, Line *line) noexcept nogil:
        """Read one line without its end; False if it is neither empty nor has a key."""
        cdef const uint8_t *at = text + start
        cdef const uint8_t *stop = at + min(end - start, self._line_limit)
        cdef const uint8_t *edge
        cdef bint colon
        stop = _first_in(at, stop, 0)
        edge = _first_in(at, stop, c"#")
        line.code = BLANK if edge == stop else UNKNOWN
        stop = edge
        while at < stop and _is_blank(at[0]):
            at += 1
        while at < stop and _is_blank(stop[-1]):
            stop -= 1
        line.start = <uint32_t>(at - text)
        line.length = 0
        if at == stop:
            return line.code == BLANK
        edge = _first_in(at, stop, c":")
        colon = edge < stop
        if not colon:
            # Without a colon, two words are a key and its value (spec B5).
            edge = min(_first_in(at, stop, c" "), _first_in(at, stop, c"\t"))
        line.start = <uint32_t>(min(edge + 1, stop) - text)
        while edge > at and _is_blank(edge[-1]):
            edge -= 1
        line.code = self.read_name(at, edge - at)
        at = text + line.start
        if not colon:
            while at < stop and (at[0] == c" " or at[0] == c"\t"):
                at += 1
            if at == stop or _first_in(at, stop, c" ") != stop or _first_in(at, stop, c"\t") != stop:
                return False
            line.code |= TOLERATED if line.code > BLANK and line.code & 3 == 0 else 0
        while at < stop and _is_blank(at[0]):
            at += 1
        line.start = <uint32_t>(at - text)
        line.length = <uint16_t>(stop - at)
        return True

    def scan(self, bytes body not None):
        cdef Lines lines = Lines.__new__(Lines)
        cdef size_t size = len(body), each
        if size > LONGEST_BODY:
            raise OverflowError(f"A body of {size} bytes is too long.")
        lines.body = body
        lines._text = <const uint8_t *>PyBytes_AsString(body)
        with nogil:
            lines._read(self, 0, size)
        if lines._line == NULL:
            raise MemoryError
        lines.codes = PyBytes_FromStringAndSize(NULL, lines._kept)
        for each in range(lines._kept):
            PyBytes_AsString(lines.codes)[each] = <char>lines._line[each].code
        return lines


@cython.final
cdef class Lines:
    cdef readonly bytes body
    cdef readonly bytes codes
    cdef readonly uint32_t count
    cdef const uint8_t *_text
    cdef Line *_line
    cdef uint32_t _kept

    def __len__(self):
        return self._kept

    def __dealloc__(self):
        free(self._line)

    cdef void _read(self, Scanner scanner, size_t at, size_t size) noexcept nogil:
        """Fill the array, which is NULL if allocation fails. Linear in the size of the body."""
        cdef size_t room = 8 + (size - at) // 24, end, line_feed = 0, carriage_return = 0
        cdef Line *grown = <Line *>malloc(room * sizeof(Line))
        cdef Line *line
        self._line = grown
        while at < size and grown != NULL:
            # Each of the two searches visits every byte once, even if the body lacks one kind of line end.
            if line_feed <= at:
                line_feed = _first_in(self._text + at, self._text + size, c"\n") - self._text
            if carriage_return <= at:
                carriage_return = _first_in(self._text + at, self._text + size, c"\r") - self._text
            end = min(line_feed, carriage_return)
            self.count += 1
            if self._kept == room:
                room *= 2
                grown = <Line *>realloc(self._line, room * sizeof(Line))
                if grown == NULL:
                    break
                self._line = grown
            line = &self._line[self._kept]
            line.number = self.count
            # Keep one of several empty lines in a row.
            if scanner.read_line(self._text, at, end, line) and not (
                line.code == BLANK and self._kept and line[-1].code == BLANK
            ):
                self._kept += 1
            at = end + 1
            if end + 1 < size and self._text[end] == c"\r" and self._text[end + 1] == c"\n":
                at += 1
        if grown == NULL:
            free(self._line)
            self._line = NULL
            return
        grown = <Line *>realloc(self._line, (self._kept + 1) * sizeof(Line))
        if grown != NULL:
            self._line = grown

    cdef const Line *at(self, size_t position) except NULL:
        if position >= self._kept:
            raise IndexError(f"There are {self._kept} lines, and none at {position}.")
        return &self._line[position]

    def number(self, size_t position):
        return self.at(position).number

    def value(self, size_t position):
        cdef const Line *line = self.at(position)
        return self._text[line.start : line.start + line.length]

    def start(self, size_t position):
        return self.at(position).start

    def values(self, list positions not None):
        return [self.value(position) for position in positions]
