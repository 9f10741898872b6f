"""What Request-rate, Crawl-delay and Visit-time lines say, and which of many of them ever decide (paces.pyi).

A file can have 40,000 such lines, and agents for each of whom another part of them speaks. So all lines of a file are
read once, into an array, and of a part of it only those are told that decide in some minute of the day: at most one for
each of its 1,440 minutes. They are found without any order of the lines. A window that is between 2 ** k and
2 ** (k + 1) minutes long is the union of two stretches of 2 ** k; for every stretch of such a length the slowest line
is kept, and at last each stretch gives what it has to both of its halves, the longest first.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int16_t, int32_t, uint32_t, uint64_t
from libc.string cimport memset

from app.robots.syntax import readable

cdef extern from "Python.h":
    Py_UCS4 PyUnicode_READ_CHAR(object text, Py_ssize_t at)

cdef enum:
    DAY = 24 * 60
    LEVELS = 11  # 2 ** (LEVELS - 1) <= DAY < 2 ** LEVELS
    # More digits than any site could mean; and a number of them fits 64 bits.
    DIGITS = 18

cdef uint64_t EXACT = 1 << 53  # up to here every whole number is a double


# --- From texts to numbers --------------------------------------------------------------------------------------------

cdef struct Clocks:
    # Minutes since midnight: `start` is below DAY, `end` 1 to DAY. No window where `start` is negative.
    int start
    int end

cdef struct Pace:
    uint64_t documents
    uint64_t time  # in units; 0 where no rate could be read
    uint32_t unit  # seconds
    Clocks window
    Py_ssize_t rest  # where what is written behind the rate begins, negative where nothing is


cdef inline bint _is_digit(Py_UCS4 it) noexcept:
    return u"0" <= it <= u"9"


cdef inline bint _is_letter(Py_UCS4 it) noexcept:
    return u"a" <= it <= u"z" or u"A" <= it <= u"Z"


cdef inline bint _is_blank(Py_UCS4 it) noexcept:
    return it == u" " or it == u"\t"


cdef inline Py_ssize_t _skip(str text, Py_ssize_t at, Py_ssize_t end) noexcept:
    while at < end and _is_blank(PyUnicode_READ_CHAR(text, at)):
        at += 1
    return at


cdef inline Py_ssize_t _trimmed(str text, Py_ssize_t at, Py_ssize_t end) noexcept:
    while at < end and _is_blank(PyUnicode_READ_CHAR(text, end - 1)):
        end -= 1
    return end


cdef inline Py_ssize_t _number(str text, Py_ssize_t at, Py_ssize_t end, uint64_t *number) noexcept:
    """Where the digits that begin at `at` end; `at` itself where there are none, or more than DIGITS."""
    cdef Py_ssize_t begin = at
    number[0] = 0
    while at < end and _is_digit(PyUnicode_READ_CHAR(text, at)):
        if at - begin == DIGITS:
            return begin
        number[0] = 10 * number[0] + (<uint64_t>PyUnicode_READ_CHAR(text, at) - 48)  # a digit
        at += 1
    return at


cdef inline Py_ssize_t _clock(str text, Py_ssize_t at, Py_ssize_t end, int *hour, int *minute) noexcept:
    """Where HHMM, HMM, or either with `:` or `.` before its last two digits, ends; `at` itself where none begins."""
    cdef Py_ssize_t begin = at, split
    cdef uint64_t number
    cdef Py_UCS4 mark
    split = _number(text, at, end, &number)
    if 3 <= split - begin <= 4:
        hour[0], minute[0] = <int>(number // 100), <int>(number % 100)
        return split
    if not 1 <= split - begin <= 2 or split == end:
        return begin
    mark = PyUnicode_READ_CHAR(text, split)
    if mark != u":" and mark != u".":
        return begin
    hour[0] = <int>number
    at = _number(text, split + 1, end, &number)
    minute[0] = <int>number
    return at if at == split + 3 else begin


cdef inline bint _is_utc(str text, Py_ssize_t at, Py_ssize_t end) noexcept:
    """Whether it is UTC, GMT or Z, however their letters are written."""
    cdef uint32_t word = 0
    if not 1 <= end - at <= 3:
        return False
    while at < end:
        if not _is_letter(PyUnicode_READ_CHAR(text, at)):
            return False
        word = word << 8 | <uint32_t>PyUnicode_READ_CHAR(text, at) | 32
        at += 1
    return word == 0x757463 or word == 0x676D74 or word == 0x7A


cdef Clocks _window(str text, Py_ssize_t at, Py_ssize_t end, bint blank) noexcept:
    """What `HHMM-HHMM` covers (spec F8c, F8d); `blank`: a blank may stand for the dash."""
    cdef Clocks none = Clocks(-1, 0)
    cdef int start_hour = 0, start_minute = 0, end_hour = 0, end_minute = 0, start, stop
    cdef Py_ssize_t behind, dash
    cdef Py_UCS4 mark
    at = _skip(text, at, end)
    end = _trimmed(text, at, end)
    behind = _clock(text, at, end, &start_hour, &start_minute)
    dash = _skip(text, behind, end)
    if behind == at or dash == end:
        return none
    mark = PyUnicode_READ_CHAR(text, dash)
    if mark == u"-" or mark == 0x2013:
        at = _skip(text, dash + 1, end)
    elif blank and dash > behind:
        at = dash
    else:
        return none
    behind = _clock(text, at, end, &end_hour, &end_minute)
    if behind == at:
        return none
    behind = _skip(text, behind, end)
    if behind < end and not _is_utc(text, behind, end):
        return none
    start, stop = 60 * start_hour + start_minute, 60 * end_hour + end_minute
    if start_minute > 59 or end_minute > 59 or start >= DAY or stop > DAY:
        return none
    # `0859-0859` is a whole day like any start that is its own end, so this is asked before the minute is added.
    if end_minute == 59 and stop != start:
        stop += 1
    return Clocks(start, stop if stop else DAY)


cdef inline bint _is_space(Py_UCS4 it) noexcept:
    return it == u" " or 9 <= it <= 13


cdef uint32_t _seconds(str text, Py_ssize_t at, Py_ssize_t end) noexcept:
    """Of a unit, 1 for none; 0 where there is no such unit."""
    cdef Py_UCS4 unit = 0
    if at == end:
        return 1
    if end == at + 1:
        unit = <Py_UCS4>(<uint32_t>PyUnicode_READ_CHAR(text, at) | 32)
    return 1 if unit == u"s" else 60 if unit == u"m" else 3600 if unit == u"h" else 86400 if unit == u"d" else 0


cdef Pace _rate(str text) noexcept:
    """`documents/time[unit] [window]` (spec F5, F6, F9)."""
    cdef Pace pace = Pace(0, 0, 1, Clocks(-1, 0), -1)
    cdef uint64_t time
    cdef Py_ssize_t at = _skip(text, 0, len(text)), end, behind, unit, rest
    end = _trimmed(text, at, len(text))
    behind = _number(text, at, end, &pace.documents)
    if behind == at:
        return pace
    at = _skip(text, behind, end)
    if at == end or PyUnicode_READ_CHAR(text, at) != u"/":
        return pace
    at = _skip(text, at + 1, end)
    behind = _number(text, at, end, &time)
    if behind == at or pace.documents == 0:
        return pace
    unit = rest = _skip(text, behind, end)
    while rest < end and _is_letter(PyUnicode_READ_CHAR(text, rest)):
        rest += 1
    at = _skip(text, rest, end)
    if rest == end or (rest > unit and at > rest and not _is_space(PyUnicode_READ_CHAR(text, at))):
        pace.unit = _seconds(text, unit, rest)
        pace.rest = -1 if rest == end else at
    elif behind < unit and not _is_space(PyUnicode_READ_CHAR(text, unit)):
        pace.rest = unit  # what begins as a unit would is no unit, where no blank ends it
    else:
        return pace
    if pace.unit == 0:
        return pace
    pace.time = time
    if pace.rest >= 0:
        pace.window = _window(text, pace.rest, end, False)
    return pace


cdef bint _is_delay(str text, Py_ssize_t *at, Py_ssize_t *end, uint64_t *whole, bint *is_whole) noexcept:
    """Whether it is a decimal number between `at` and `end`, point and no unit (spec G2)."""
    cdef uint64_t number
    cdef Py_ssize_t behind, last
    at[0] = _skip(text, 0, len(text))
    end[0] = _trimmed(text, at[0], len(text))
    behind = _number(text, at[0], end[0], whole)
    is_whole[0] = behind == end[0]
    if behind == at[0] or is_whole[0]:
        return behind > at[0]
    last = _number(text, behind + 1, end[0], &number)
    return PyUnicode_READ_CHAR(text, behind) == u"." and behind + 1 < last == end[0]


cdef inline tuple _told(Clocks window):
    return None if window.start < 0 else (window.start, window.end)


def request_rate(str value not None):
    cdef Pace pace = _rate(value)
    if pace.time == 0:
        return None
    rest = None if pace.rest < 0 or pace.window.start >= 0 else value[pace.rest :].rstrip(" \t")
    return pace.documents, pace.time * <object>pace.unit, _told(pace.window), rest


def crawl_delay(str value not None):
    cdef Py_ssize_t at, end
    cdef uint64_t whole
    cdef bint is_whole
    return float(value[at:end]) if _is_delay(value, &at, &end, &whole, &is_whole) else None


def visit_time(str value not None):
    return _told(_window(value, 0, len(value), True))


# --- From lines to those that decide ----------------------------------------------------------------------------------

cdef enum:
    DELAY, RATE, VISIT, KINDS

cdef struct Said:
    uint64_t documents
    uint64_t time
    double seconds  # of a delay, or from one document to the next
    uint32_t unit
    uint32_t line
    int16_t start  # negative where the whole day is meant
    int16_t end

ctypedef Said *Sayings
ctypedef int (*Reader)(str text, Said *said) except -1

cdef int _read_delay(str text, Said *said) except -1:
    """1 where the text is a delay, which is put in `said`."""
    cdef Py_ssize_t at, end
    cdef uint64_t whole
    cdef bint is_whole
    if not _is_delay(text, &at, &end, &whole, &is_whole):
        return 0
    said.seconds = <double>whole if is_whole and whole <= EXACT else float(text[at:end])
    return 1


cdef int _read_rate(str text, Said *said) except -1:
    cdef Pace pace = _rate(text)
    if pace.time == 0:
        return 0
    said.documents, said.time, said.unit = pace.documents, pace.time, pace.unit
    said.start, said.end = <int16_t>pace.window.start, <int16_t>pace.window.end
    # Numbers that are no doubles are divided as Python divides them, rounded once.
    if pace.documents <= EXACT and pace.time <= EXACT // pace.unit:
        said.seconds = <double>(pace.time * pace.unit) / <double>pace.documents
    else:
        said.seconds = (pace.time * <object>pace.unit) / <object>pace.documents
    return 1


cdef int _read_visit(str text, Said *said) except -1:
    cdef Clocks window = _window(text, 0, len(text), True)
    if window.start < 0:
        return 0
    said.start, said.end = <int16_t>window.start, <int16_t>window.end
    return 1


# The places of the slowest lines of all stretches of 2 ** k minutes, by where they begin: -1 for none.
cdef int32_t[LEVELS][DAY] _slowest


@cython.final
@cython.no_gc
cdef class PaceLines:
    # Of each kind all lines, in file order.
    cdef Sayings[KINDS] _said
    cdef int32_t[KINDS] _count

    def __cinit__(self, tuple delays not None, tuple rates not None, tuple visits not None):
        self._read(DELAY, delays[0], delays[1], _read_delay)
        self._read(RATE, rates[0], rates[1], _read_rate)
        self._read(VISIT, visits[0], visits[1], _read_visit)

    def __dealloc__(self):
        cdef int kind
        for kind in range(KINDS):
            PyMem_Free(self._said[kind])

    cdef int _read(self, int kind, list lines, list values, Reader reader) except -1:
        cdef Py_ssize_t at
        cdef str value
        cdef Said *said
        if len(lines) > 0x7FFFFFFF or len(lines) != len(values):
            raise ValueError("there are not as many lines as values, or more than any file has")
        said = self._said[kind] = <Said *>PyMem_Malloc(max(len(lines), 1) * sizeof(Said))
        if said == NULL:
            raise MemoryError
        for at in range(len(lines)):
            value = values[at]
            if reader(value if value.isascii() else readable(value), said):
                said.line = lines[at]
                said += 1
        self._count[kind] = <int32_t>(said - self._said[kind])
        return 0

    cdef inline int32_t _from(self, int kind, uint32_t line) noexcept:
        """The place of the first of the kind at this line or behind it."""
        cdef const Said *said = self._said[kind]
        cdef int32_t low = 0, high = self._count[kind], middle
        while low < high:
            middle = (low + high) // 2
            if said[middle].line < line:
                low = middle + 1
            else:
                high = middle
        return low

    def delay(self, tuple stretches not None):
        cdef const Said *said = self._said[DELAY]
        cdef int32_t at, found = -1
        cdef uint32_t begin, end
        for begin, end in stretches:
            for at in range(self._from(DELAY, begin), self._from(DELAY, end)):
                if found < 0 or said[at].seconds > said[found].seconds:
                    found = at
        return None if found < 0 else (said[found].seconds, said[found].line)

    def visits(self, tuple stretches not None):
        cdef int[DAY + 1] opening  # how many windows open in a minute, less those that close
        cdef int32_t at
        cdef int minute, opened = 0
        cdef uint32_t begin, end
        cdef const Said *said
        cdef bint stated = False
        memset(opening, 0, sizeof(opening))
        for begin, end in stretches:
            for at in range(self._from(VISIT, begin), self._from(VISIT, end)):
                said = &self._said[VISIT][at]
                stated = True
                opening[said.start] += 1
                opening[said.end] -= 1
                if said.start >= said.end:
                    opening[0] += 1
                    opening[DAY] -= 1
        if not stated:
            return None
        found = []
        for minute in range(DAY + 1):
            if opened == 0 and opening[minute] > 0:
                begin = minute
            elif opened > 0 and opened + opening[minute] == 0:
                found.append((begin, minute))
            opened += opening[minute]
        return found

    def rates(self, tuple stretches not None):
        cdef int32_t at, plain = -1
        cdef uint32_t begin, end
        cdef const Said *said
        cdef set deciding
        memset(_slowest, 0xFF, sizeof(_slowest))
        for begin, end in stretches:
            for at in range(self._from(RATE, begin), self._from(RATE, end)):
                said = &self._said[RATE][at]
                if said.start < 0:
                    plain = self._slower(plain, at)
                elif said.start < said.end:
                    self._lay(at, said.start, said.end)
                else:
                    self._lay(at, 0, said.end)
                    self._lay(at, said.start, DAY)
        self._hand_down()
        deciding = {_slowest[0][minute] for minute in range(DAY)}
        deciding.add(plain)
        deciding.discard(-1)
        return [self._rate(at) for at in sorted(deciding)]

    cdef inline int32_t _slower(self, int32_t one, int32_t other) noexcept:
        """The place of the line that is slower, of equals the first; a negative one is none."""
        if one < 0 or other < 0:
            return max(one, other)
        if self._said[RATE][one].seconds == self._said[RATE][other].seconds:
            return min(one, other)
        return one if self._said[RATE][one].seconds > self._said[RATE][other].seconds else other

    cdef inline void _lay(self, int32_t at, int begin, int end) noexcept:
        """Lay a line over the minutes [begin, end), of which there is one and no more than DAY."""
        cdef int level = 0
        while 2 << level <= end - begin:
            level += 1
        _slowest[level][begin] = self._slower(_slowest[level][begin], at)
        _slowest[level][end - (1 << level)] = self._slower(_slowest[level][end - (1 << level)], at)

    cdef inline void _hand_down(self) noexcept:
        cdef int level, minute, half
        for level in range(LEVELS - 1, 0, -1):
            half = 1 << (level - 1)
            for minute in range(DAY - 2 * half + 1):
                if _slowest[level][minute] >= 0:
                    _slowest[level - 1][minute] = self._slower(_slowest[level - 1][minute], _slowest[level][minute])
                    _slowest[level - 1][minute + half] = self._slower(
                        _slowest[level - 1][minute + half], _slowest[level][minute]
                    )

    cdef tuple _rate(self, int32_t at):
        cdef const Said *said = &self._said[RATE][at]
        return said.documents, said.time * <object>said.unit, _told(Clocks(said.start, said.end)), said.line
