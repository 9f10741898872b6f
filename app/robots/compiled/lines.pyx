"""The lines of a robots.txt, its groups and its table of agents, kept as places in its octets (lines.pyi).

A file is read once, octet by octet, into an array of directives: line, key, place and length of the value. A group is a
stretch of that array, and an agent's token a place in the octets. Tuples and texts are made for whoever asks for them,
and not kept, but for the groups that were asked for: a group is told from others by its identity.

Nothing here raises for any octets, nothing recurses, and every step over a file costs what the file has octets, or
directives. The arrays are filled before any object of Python is made of them and never change after, so that whoever
comes from another thread finds them whole.
"""

from os import urandom

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.tuple cimport PyTuple_GET_ITEM
from cpython.unicode cimport PyUnicode_DecodeLatin1
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from app.robots.access import BODY_LIMIT
from app.robots.agents import STAR
from app.robots.compiled.names import Names
from app.robots.syntax import LINE_LIMIT, MEMBER_KEYS, PREFIXES, Key, Oddity

cdef extern from "Python.h":
    int PyUnicode_KIND(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)


# --- The tables, made once of what syntax.py says ---------------------------------------------------------------------

cdef enum:
    MOST_KEYS = 16
    MOST_PREFIXES = 16
    WORD = 16  # more octets than the name of any key has

cdef struct Word:
    uint8_t length
    uint8_t key
    uint8_t[WORD] octets

cdef tuple _KEYS = tuple(Key)
cdef tuple _ODDITIES = (None, Oddity.TYPO_KEY, Oddity.NO_COLON)

cdef enum:
    PLAIN, TYPO_KEY, NO_COLON  # the places in _ODDITIES

cdef uint8_t USER_AGENT = _KEYS.index(Key.USER_AGENT)
cdef uint8_t ALLOW = _KEYS.index(Key.ALLOW)
cdef uint8_t DISALLOW = _KEYS.index(Key.DISALLOW)
cdef uint8_t ROBOT_VERSION = _KEYS.index(Key.ROBOT_VERSION)
cdef uint8_t BLANK = _KEYS.index(Key.BLANK)
cdef uint8_t UNKNOWN = _KEYS.index(Key.UNKNOWN)
cdef uint8_t COMMENT = len(_KEYS)  # no key: a line that says nothing, and is not empty either

cdef Py_ssize_t LIMIT = BODY_LIMIT
cdef Py_ssize_t LONGEST = LINE_LIMIT

cdef Word[MOST_KEYS] _names
cdef int _names_count = 0
cdef Word[MOST_PREFIXES] _prefixes
cdef int _prefixes_count = 0
cdef bint[MOST_KEYS] _belongs  # whether a key is a group's beside its rules
# Where reading a line has to stop and look: its end, a colon, a comment, a NUL.
cdef bint[256] _marked
# What an octet may mean in a pattern.
cdef enum:
    LETTER, FOREIGN, WILDCARD, SET, DELIMITER  # of these, those that are not ASCII are three octets in a pattern
cdef uint8_t[256] _kinds
# What a key may begin with, in lower case.
cdef bint[256] _begins


cdef Word _word(str name, object key) except *:
    cdef Word word
    cdef bytes octets = name.encode("ascii")
    if len(octets) >= WORD:
        raise ValueError(f"the key {name!r} is longer than any that is looked for")
    memset(&word, 0, sizeof(Word))
    word.length = len(octets)
    word.key = _KEYS.index(key)
    memcpy(word.octets, PyBytes_AS_STRING(octets), word.length)
    return word


def _fill() -> None:
    global _names_count, _prefixes_count
    if len(_KEYS) > MOST_KEYS or len(PREFIXES) > MOST_PREFIXES:
        raise ValueError("there are more keys than there is room for")
    if LONGEST > 0xFFFF or LIMIT > 0x3FFFFFFF:
        raise ValueError("lines or files may be longer than their places can be told")
    for at, key in enumerate(_KEYS):
        _belongs[at] = key in MEMBER_KEYS
        if key is not Key.BLANK and key is not Key.UNKNOWN:
            _names[_names_count] = _word(str(key), key)
            _names_count += 1
    for prefix, key in PREFIXES:
        _prefixes[_prefixes_count] = _word(prefix, key)
        _prefixes_count += 1
    for at in range(_names_count):
        _begins[_names[at].octets[0]] = True
    for at in range(_prefixes_count):
        _begins[_prefixes[at].octets[0]] = True
    for octet in b"\n\r:#\0":
        _marked[octet] = True
    for octet in range(0x80, 0x100):
        _kinds[octet] = FOREIGN
    for octet in b":/?#]@":
        _kinds[octet] = DELIMITER
    _kinds[c"*"], _kinds[c"["] = WILDCARD, SET


_fill()


# --- From octets to lines, from lines to directives -------------------------------------------------------------------

cdef struct Cursor:
    const uint8_t *text
    Py_ssize_t at  # where the next line starts
    Py_ssize_t to  # where the last one ends
    uint32_t number  # of the line that was met last, from 1
    # What is read of it is [start, end), with its first colon at `colon`, or at `end` where it has none; `commented`: a
    # comment was left out, `cut`: it was longer than a line is read.
    Py_ssize_t start
    Py_ssize_t end
    Py_ssize_t colon
    bint commented
    bint cut


cdef inline bint _next_line(Cursor *cursor) noexcept nogil:
    """Go on to the next line, if there is one (spec B1, B3, B7, B13)."""
    cdef const uint8_t *text = cursor.text
    cdef Py_ssize_t to = cursor.to, at = cursor.at, start = cursor.at, colon = -1, stop = -1, end
    cdef uint8_t octet = 0
    if at >= to:
        return False
    # Every index below is in [start, to), and `text` has `to` octets or more.
    while at < to:
        octet = text[at]
        if _marked[octet]:
            if octet == c"\n" or octet == c"\r":
                break
            if stop < 0:
                if octet != c":":
                    stop = at
                elif colon < 0:
                    colon = at
        at += 1
    end = at
    # CRLF is one end.
    at += 2 if at + 1 < to and octet == c"\r" and text[at + 1] == c"\n" else 1
    cursor.at = at
    cursor.number += 1
    cursor.start = start
    cursor.cut = end - start > LONGEST
    if cursor.cut:
        end = start + LONGEST
    cursor.commented = 0 <= stop < end and text[stop] == c"#"
    if 0 <= stop < end:
        end = stop
    cursor.end = end
    cursor.colon = colon if 0 <= colon < end else end
    return True


cdef inline bint _is_blank(uint8_t octet) noexcept nogil:
    """Whether it is one of syntax.BLANKS: space, tab, vertical tab, form feed. A line feed (10) is in no line."""
    return octet == 32 or (9 <= octet <= 12 and octet != 10)


cdef inline void _trim(const uint8_t *text, Py_ssize_t *start, Py_ssize_t *end) noexcept nogil:
    while start[0] < end[0] and _is_blank(text[start[0]]):
        start[0] += 1
    while start[0] < end[0] and _is_blank(text[end[0] - 1]):
        end[0] -= 1


cdef inline uint8_t _lower(uint8_t octet) noexcept nogil:
    return octet | 32 if c"A" <= octet <= c"Z" else octet


cdef inline uint8_t _read_key(const uint8_t *raw, Py_ssize_t length, uint8_t *oddity) noexcept nogil:
    """The key that trimmed octets name, exactly or as Google's parser takes it (spec B6)."""
    cdef uint8_t[WORD] lowered
    cdef Py_ssize_t at
    cdef int word
    if length == 0 or not _begins[_lower(raw[0])]:
        return UNKNOWN
    for at in range(min(length, WORD)):
        lowered[at] = _lower(raw[at])
    # No name has WORD octets, so those of a longer one are never compared.
    for word in range(_names_count):
        if _names[word].length == length and not memcmp(lowered, _names[word].octets, length):
            return _names[word].key
    for word in range(_prefixes_count):
        if _prefixes[word].length <= length and not memcmp(lowered, _prefixes[word].octets, _prefixes[word].length):
            oddity[0] = TYPO_KEY
            return _prefixes[word].key
    return UNKNOWN


cdef inline uint8_t _read_line(Cursor *cursor, Line *line) noexcept nogil:
    """The key of the line that was met last, or COMMENT; its value, of an UNKNOWN one the key itself, is put in `line`.

    Two words without a colon between them are a key and a value (spec B5).
    """
    cdef const uint8_t *text = cursor.text
    cdef Py_ssize_t start = cursor.start, end = cursor.end, key_end = cursor.colon, value
    cdef uint8_t key, oddity = PLAIN
    cdef bint colon = key_end < end
    _trim(text, &start, &end)
    if start == end:
        return COMMENT if cursor.commented else BLANK
    if colon:
        # No colon is a blank, so trimming the line did not pass it.
        value = key_end + 1
    else:
        key_end = start
        while key_end < end and text[key_end] != 32 and text[key_end] != 9:
            key_end += 1
        value = key_end
        while value < end and (text[value] == 32 or text[value] == 9):
            value += 1
        if value == end:
            return COMMENT  # one word; the line ends in no blank
        for at in range(value, end):
            if text[at] == 32 or text[at] == 9:
                return COMMENT
    _trim(text, &start, &key_end)
    key = _read_key(text + start, key_end - start, &oddity)
    if key == UNKNOWN:
        value, end = start, key_end
    else:
        _trim(text, &value, &end)
    line.number = cursor.number
    line.start = <uint32_t>value
    line.length = <uint16_t>(end - value)
    line.key = key
    line.oddity = oddity if colon else NO_COLON
    return key


cdef uint32_t _mask(keys) except? 0:
    """A bit for each of the keys, of which there are at most MOST_KEYS."""
    cdef uint32_t mask = 0
    for key in keys:
        mask |= <uint32_t>1 << <int>_KEYS.index(key)
    return mask


cdef inline str _text(const uint8_t *octets, Py_ssize_t length):
    return PyUnicode_DecodeLatin1(<const char *>octets, length, NULL)


cdef struct Patterns:
    size_t count
    size_t octets
    size_t wild


cdef inline void _count_pattern(const uint8_t *value, Py_ssize_t length, Patterns *all_of) noexcept:
    """Add the pattern of a rule, and that with its query escaped if it is another (Scan.patterns)."""
    cdef size_t octets = 0, wild = 0, escaped = 0, escaped_wild = 0, width
    cdef bint starred = False, asks = False
    cdef Py_ssize_t at
    cdef uint8_t kind
    for at in range(length):
        kind = _kinds[value[at]]
        width = 3 if kind == FOREIGN else 1
        starred = starred or kind == WILDCARD or kind == SET
        octets += width
        wild += starred * width
        if asks and (kind == DELIMITER or kind == SET):
            escaped += 2
            escaped_wild += 2 * starred
        asks = asks or value[at] == c"?"
    all_of.count += 1 + (escaped > 0)
    all_of.octets += octets
    all_of.wild += wild
    if escaped:
        all_of.octets += octets + escaped
        all_of.wild += wild + escaped_wild


cdef inline Cursor _cursor(Scan scan) noexcept:
    return Cursor(scan._text, scan._from, scan._to, 0, scan._from, scan._from, scan._from, False, False)


@cython.final
@cython.no_gc
cdef class Scan:
    def __init__(self):
        raise TypeError("a Scan is made by scan")

    def __dealloc__(self):
        PyMem_Free(self._lines)

    def __len__(self):
        return self._count

    cdef int _read(self) except -1:
        """Fill the array with the directives of [_from, _to): once, when the scan is made."""
        cdef Cursor cursor = _cursor(self)
        cdef Line *lines
        # A line of 16 octets is a short one; if there are more, the room doubles.
        cdef size_t room = 4 + (self._to - self._from) // 16
        cdef uint32_t count = 0
        cdef uint8_t key
        self._lines = <Line *>PyMem_Malloc(room * sizeof(Line))
        if self._lines == NULL:
            raise MemoryError
        while _next_line(&cursor):
            if count == room:
                room *= 2
                lines = <Line *>PyMem_Realloc(self._lines, room * sizeof(Line))
                if lines == NULL:
                    raise MemoryError
                self._lines = lines
            key = _read_line(&cursor, &self._lines[count])
            if key == BLANK:
                # Of a run of empty lines, one says it all.
                if count == 0 or self._lines[count - 1].key == BLANK:
                    continue
                self._lines[count] = Line(cursor.number, <uint32_t>cursor.start, 0, BLANK, PLAIN)
            elif key == COMMENT or key == UNKNOWN:
                continue
            self._agents += key == USER_AGENT
            count += 1
        # What is given back can only become less; should that fail, what there was stays good.
        lines = <Line *>PyMem_Realloc(self._lines, max(count, 1) * sizeof(Line))
        if lines != NULL:
            self._lines = lines
        self._count = count
        self.lines = cursor.number
        return 0

    cdef tuple _directive(self, uint32_t at):
        # `at` is below _count, and a key below len(_KEYS).
        cdef Line *line = &self._lines[at]
        return line.number, <object>PyTuple_GET_ITEM(_KEYS, line.key), _text(self._text + line.start, line.length)

    cdef str _value(self, uint32_t at):
        return _text(self._text + self._lines[at].start, self._lines[at].length)

    @property
    def directives(self):
        cdef uint32_t at
        return tuple([self._directive(at) for at in range(self._count)])

    def with_keys(self, keys):
        cdef uint32_t wanted = _mask(keys), at
        return tuple([self._directive(at) for at in range(self._count) if wanted >> self._lines[at].key & 1])

    def count(self, keys):
        cdef uint32_t wanted = _mask(keys), at, found = 0
        for at in range(self._count):
            found += wanted >> self._lines[at].key & 1
        return found

    def patterns(self):
        cdef const Line *line
        cdef uint32_t at
        cdef Patterns all_of
        memset(&all_of, 0, sizeof(Patterns))
        for at in range(self._count):
            line = &self._lines[at]
            if _is_rule(line.key) and line.length:
                _count_pattern(self._text + line.start, line.length, &all_of)
        return all_of.count, all_of.octets, all_of.wild

    @property
    def oddities(self):
        cdef uint32_t at
        return {
            self._lines[at].number: _ODDITIES[self._lines[at].oddity]
            for at in range(self._count)
            if self._lines[at].oddity != PLAIN
        }

    @property
    def unknown_keys(self):
        cdef Cursor cursor = _cursor(self)
        cdef Line line = Line(0, 0, 0, 0, PLAIN)
        found = {}
        while _next_line(&cursor):
            if _read_line(&cursor, &line) == UNKNOWN:
                found[cursor.number] = _text(self._text + line.start, line.length)
        return found

    @property
    def long_lines(self):
        cdef Cursor cursor = _cursor(self)
        found = []
        while _next_line(&cursor):
            if cursor.cut:
                found.append(cursor.number)
        return found

    def texts(self, numbers):
        cdef Cursor cursor = _cursor(self)
        cdef Py_ssize_t start, end
        cdef set wanted = set(numbers)
        found = {}
        while len(found) < len(wanted) and _next_line(&cursor):
            if cursor.number in wanted:
                start, end = cursor.start, cursor.end
                _trim(cursor.text, &start, &end)
                found[cursor.number] = _text(cursor.text + start, end - start)
        return found


cdef struct Wide:
    # How octets behind a mark are read: so many to a unit, the first of them the lowest or the highest.
    int mark
    int width
    bint little

cdef inline Wide _wide(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Of UTF-16 or UTF-32, whose mark the octets begin with; a mark of no octets where they do not."""
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    if size >= 4 and not memcmp(text, b"\xff\xfe\0\0", 4):
        return Wide(4, 4, True)
    if size >= 4 and not memcmp(text, b"\0\0\xfe\xff", 4):
        return Wide(4, 4, False)
    if size >= 2 and not memcmp(text, b"\xff\xfe", 2):
        return Wide(2, 2, True)
    if size >= 2 and not memcmp(text, b"\xfe\xff", 2):
        return Wide(2, 2, False)
    return Wide(0, 0, False)


cdef inline uint32_t _unit(const uint8_t *text, Wide wide) noexcept nogil:
    cdef uint32_t unit = 0
    cdef int at
    for at in range(wide.width):
        unit = unit << 8 | text[wide.width - 1 - at if wide.little else at]
    return unit


cdef bytes _narrowed(const uint8_t *text, Py_ssize_t size, Wide wide):
    """The octets behind the mark as UTF-8; what is no character becomes U+FFFD."""
    # A unit of two octets becomes at most three, two of them or one of four become at most four, and so does a rest.
    cdef bytes octets = PyBytes_FromStringAndSize(NULL, 2 * size + 4)
    cdef uint8_t *start = <uint8_t *>PyBytes_AS_STRING(octets)
    cdef uint8_t *to = start
    cdef Py_ssize_t at = wide.mark
    cdef uint32_t point, low
    while at < size:
        if size - at < wide.width:
            point = 0xFFFD
            at = size
        else:
            point = _unit(text + at, wide)
            at += wide.width
        if wide.width == 2 and 0xD800 <= point < 0xDC00:
            # The first half of a character, if the second one follows.
            if size - at < 2:
                at = size
            else:
                low = _unit(text + at, wide)
                if 0xDC00 <= low < 0xE000:
                    point = 0x10000 + ((point - 0xD800) << 10 | (low - 0xDC00))
                    at += 2
        if 0xD800 <= point < 0xE000 or point > 0x10FFFF:
            point = 0xFFFD
        if point < 0x80:
            to[0] = point
            to += 1
        elif point < 0x800:
            to[0] = 0xC0 | point >> 6
            to[1] = 0x80 | point & 0x3F
            to += 2
        elif point < 0x10000:
            to[0] = 0xE0 | point >> 12
            to[1] = 0x80 | point >> 6 & 0x3F
            to[2] = 0x80 | point & 0x3F
            to += 3
        else:
            to[0] = 0xF0 | point >> 18
            to[1] = 0x80 | point >> 12 & 0x3F
            to[2] = 0x80 | point >> 6 & 0x3F
            to[3] = 0x80 | point & 0x3F
            to += 4
    return octets[: to - start]


def scan(bytes body not None, *, bint truncated=False):
    cdef Scan read = Scan.__new__(Scan)
    cdef const uint8_t *text = <const uint8_t *>PyBytes_AS_STRING(body)
    cdef Py_ssize_t size = len(body), start = 0
    cdef Wide wide
    if size > LIMIT:
        size = LIMIT
        truncated = True
    if size and (text[0] == 0 or text[0] >= 0xEF):
        wide = _wide(text, size)
        if wide.mark:
            read.bom = True
            body = _narrowed(text, size, wide)
            text = <const uint8_t *>PyBytes_AS_STRING(body)
            size = len(body)
        elif text[0] == 0xEF:
            # Also a partial mark is one (spec B2).
            start = 1
            if size > 1 and text[1] == 0xBB:
                start = 3 if size > 2 and text[2] == 0xBF else 2
            read.bom = True
    if truncated:
        # The cut last line may be half a rule, and half a rule says more than its author did.
        while size > start and text[size - 1] != c"\n" and text[size - 1] != c"\r":
            size -= 1
    read._octets = body
    read._text = text
    read._from = start
    read._to = size
    read.truncated = truncated
    read._read()
    return read


# --- From directives to groups ----------------------------------------------------------------------------------------

cdef struct Span:
    # The directives [start, end): from a group's first User-agent line to what ends it.
    uint32_t start
    uint32_t end
    bint version_2


cdef bint _is_version_2(const uint8_t *text, Py_ssize_t length) noexcept nogil:
    """Whether it is 2, 2.0 or 2.0.x with x a number of at most nine digits (spec F12)."""
    cdef Py_ssize_t at
    if length == 0 or text[0] != c"2":
        return False
    if length == 1:
        return True
    if length < 3 or text[1] != c"." or text[2] != c"0":
        return False
    if length == 3:
        return True
    if not 5 <= length <= 13 or text[3] != c".":
        return False
    for at in range(4, length):
        if not c"0" <= text[at] <= c"9":
            return False
    return True


@cython.final
@cython.no_gc
cdef class Group:
    def __init__(self):
        raise TypeError("a Group is made by Groups, or by group_of")

    cdef bint _takes(self, uint32_t at) noexcept:
        return self._tolerant or self._scan._lines[at].oddity == PLAIN

    cdef uint32_t size(self) noexcept:
        """How many directives there are from its first to its last, with those that are not its own."""
        return self._end - self._start

    cdef void measure(self, size_t *count, size_t *octets) noexcept:
        """Add its rules that say something, and the octets of their values."""
        cdef const Line *line
        cdef uint32_t at
        for at in range(self._start, self._end):
            line = &self._scan._lines[at]
            if _is_rule(line.key) and line.length and self._takes(at):
                count[0] += 1
                octets[0] += line.length

    cdef bint rule(self, uint32_t at, Rule *found) noexcept:
        """Whether the directive at a place below its size is a rule that says something; if so, it is put in `found`.
        """
        cdef const Line *line = &self._scan._lines[self._start + at]
        if not (_is_rule(line.key) and line.length and self._takes(self._start + at)):
            return False
        found.value = self._scan._text + line.start
        found.length = line.length
        found.allows = line.key == ALLOW
        return True

    cdef tuple directive(self, uint32_t at):
        """That at a place below its size."""
        return self._scan._directive(self._start + at)

    @property
    def line(self):
        return self._scan._lines[self._start].number

    @property
    def agents(self):
        cdef uint32_t at
        return tuple([
            self._scan._value(at)
            for at in range(self._start, self._end)
            if self._scan._lines[at].key == USER_AGENT and self._takes(at)
        ])

    @property
    def rules(self):
        cdef uint32_t at
        return tuple([
            self._scan._directive(at)
            for at in range(self._start, self._end)
            if _is_rule(self._scan._lines[at].key) and self._takes(at)
        ])

    @property
    def rules_count(self):
        cdef uint32_t at, count = 0
        for at in range(self._start, self._end):
            count += _is_rule(self._scan._lines[at].key) and self._takes(at)
        return count

    @property
    def members(self):
        cdef uint32_t at, listed = 0
        found = []
        for at in range(self._start, self._end):
            if self._takes(at):
                listed += self._scan._lines[at].key == USER_AGENT
                if _belongs[self._scan._lines[at].key]:
                    found.append((*self._scan._directive(at), listed))
        return tuple(found)


cdef inline bint _is_rule(uint8_t key) noexcept nogil:
    return key == ALLOW or key == DISALLOW


@cython.final
@cython.no_gc
cdef class Groups:
    cdef Scan _scan
    cdef bint _tolerant
    cdef Span *_spans
    cdef uint32_t _count
    cdef list _made  # the groups, None for those that nobody has asked for

    def __cinit__(self, Scan scan not None, bint tolerant, bint members_end_run, bint blank_ends_record):
        cdef const Line *line
        cdef Span *span = NULL  # the open group's
        cdef uint32_t at, count = 0
        cdef bint closed = True  # whether the next User-agent line opens a new group
        cdef bint begun = False  # whether the open one has a rule or a member
        self._scan = scan
        self._tolerant = tolerant
        # Every group begins with a User-agent line.
        self._spans = <Span *>PyMem_Malloc(max(scan._agents, 1) * sizeof(Span))
        if self._spans == NULL:
            raise MemoryError
        for at in range(scan._count):
            line = &scan._lines[at]
            if line.oddity != PLAIN and not tolerant:
                continue
            if _is_rule(line.key):
                closed = begun = True
            elif line.key == USER_AGENT:
                if closed:
                    if span != NULL:
                        span.end = at
                    span = &self._spans[count]
                    span[0] = Span(at, scan._count, False)
                    count += 1
                    closed = begun = False
            elif line.key == BLANK:
                if blank_ends_record:
                    if span != NULL:
                        span.end = at
                    span = NULL
                    closed = True
            elif _belongs[line.key] and span != NULL:
                if line.key == ROBOT_VERSION and not begun:
                    span.version_2 = _is_version_2(scan._text + line.start, line.length)
                begun = True
                closed = closed or members_end_run
        self._count = count
        if count < scan._agents:
            # Less room than there was; should that fail, what there was stays good.
            span = <Span *>PyMem_Realloc(self._spans, max(count, 1) * sizeof(Span))
            if span != NULL:
                self._spans = span

    def __dealloc__(self):
        PyMem_Free(self._spans)

    def __len__(self):
        return self._count

    cdef inline bint _lists(self, uint32_t at) noexcept:
        """Whether the directive is a User-agent line of the grammar."""
        cdef const Line *line = &self._scan._lines[at]
        return line.key == USER_AGENT and (self._tolerant or line.oddity == PLAIN)

    cdef Group _group(self, uint32_t at):
        """The group at a place below the count: the same one every time."""
        cdef Group group
        if self._made is None:
            made = [None] * self._count
            if self._made is None:  # making a list may let another thread in
                self._made = made
        group = self._made[at]
        if group is None:
            # Here nothing can: a group is not watched by the collector of garbage.
            group = Group.__new__(Group)
            group._scan = self._scan
            group._start = self._spans[at].start
            group._end = self._spans[at].end
            group._tolerant = self._tolerant
            group.version_2 = self._spans[at].version_2
            self._made[at] = group
        return group

    @property
    def groups(self):
        return tuple([self._group(at) for at in range(self._count)])

    @property
    def orphans(self):
        cdef const Line *line
        cdef uint32_t at = 0, next_span = 0
        found = []
        while at < self._scan._count:
            if next_span < self._count and at == self._spans[next_span].start:
                at = self._spans[next_span].end
                next_span += 1
                continue
            line = &self._scan._lines[at]
            if (_is_rule(line.key) or _belongs[line.key]) and (self._tolerant or line.oddity == PLAIN):
                found.append(self._scan._directive(at))
            at += 1
        return tuple(found)


def group_of(rules, *, bint version_2=False):
    cdef Scan read = Scan.__new__(Scan)
    cdef Group group = Group.__new__(Group)
    cdef list values = [value.encode("latin-1") for _, _, value in rules]
    cdef Py_ssize_t start = 0
    cdef uint32_t at = 0
    read._octets = b"".join(values)
    read._text = <const uint8_t *>PyBytes_AS_STRING(read._octets)
    if len(read._octets) > 0xFFFFFFFF or len(values) > 0xFFFFFFFF or max(map(len, values), default=0) > LONGEST:
        raise OverflowError("rules as no file can have them")
    read._lines = <Line *>PyMem_Malloc(max(len(values), 1) * sizeof(Line))
    if read._lines == NULL:
        raise MemoryError
    for (number, key, _), value in zip(rules, values, strict=True):
        read._lines[at] = Line(number, <uint32_t>start, <uint16_t>len(value), _KEYS.index(key), PLAIN)
        start += len(value)
        at += 1
    read._count = at
    group._scan = read
    group._end = at
    group._tolerant = True
    group.version_2 = version_2
    return group


# --- From agents to groups --------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc
cdef class Cut:
    cdef bint[256] _alphabet

    def __cinit__(self, bytes alphabet not None):
        if not alphabet.isascii():
            raise ValueError(f"{alphabet!r} is no alphabet of tokens: they are ASCII")
        for octet in alphabet:
            self._alphabet[octet] = True

    def __call__(self, str value not None):
        cdef bytes octets = value.encode("latin-1", "replace")
        cdef const uint8_t *text = <const uint8_t *>PyBytes_AS_STRING(octets)
        return _text(text, self._length(text, len(octets))).lower()

    cdef inline Py_ssize_t _length(self, const uint8_t *text, Py_ssize_t length) noexcept:
        """How much of a value is its token: a star counts where a blank or nothing comes after it (spec C2, C3)."""
        cdef Py_ssize_t at = 0
        if length and text[0] == c"*":
            return length == 1 or _is_blank(text[1])
        while at < length and self._alphabet[text[at]]:
            at += 1
        return at


cdef struct Naming:
    # One group that a token names. `group` is its place; `other` leads to the next group of the same token, in file
    # order, `next` to another token of the same bucket: both count from 1, 0 is none.
    uint32_t start
    uint32_t group
    uint32_t other
    uint32_t next
    uint16_t length

# Tokens are hashed as polynomials over a prime field, at a point that is drawn for this process. Two different tokens
# of at most 3 n octets have the same hash at no more than n + 1 of the 2 ** 31 points, so whoever writes a file cannot
# know which will fall together; the odd factor spreads hashes over the buckets, any two of them into one bucket with a
# chance of no more than two to the number of buckets. That is enough where a bucket is a chain.
cdef enum:
    PRIME = 0x7FFFFFFF
cdef uint64_t _point = int.from_bytes(urandom(8), "little") % (PRIME - 2) + 2
cdef uint64_t _factor = int.from_bytes(urandom(8), "little") | 1


cdef inline uint64_t _hash(const uint8_t *token, Py_ssize_t length) noexcept nogil:
    """Of a token however its letters are written; three octets a step, so that nothing overflows 62 bits."""
    cdef uint64_t value = length % PRIME
    cdef Py_ssize_t at = 0
    while at + 3 <= length:
        value = (
            value * _point
            + (<uint64_t>_lower(token[at]) << 16 | <uint64_t>_lower(token[at + 1]) << 8 | _lower(token[at + 2]))
        ) % PRIME
        at += 3
    while at < length:
        value = (value * _point + _lower(token[at])) % PRIME
        at += 1
    return value * _factor


cdef inline bint _same(const uint8_t *one, const uint8_t *other, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t at
    for at in range(length):
        if _lower(one[at]) != _lower(other[at]):
            return False
    return True


cdef tuple _lines_with(Groups groups, key):
    """The numbers and the values of the lines with that key, as the grammar takes them."""
    cdef Scan scan = groups._scan
    cdef uint8_t wanted = _KEYS.index(key)
    cdef uint32_t at
    cdef list numbers = [], values = []
    for at in range(scan._count):
        if scan._lines[at].key == wanted and (groups._tolerant or scan._lines[at].oddity == PLAIN):
            numbers.append(scan._lines[at].number)
            values.append(scan._value(at))
    return numbers, values


@cython.final
@cython.no_gc
cdef class MergedGroups:
    cdef Groups _groups
    cdef Cut _cut
    cdef bint _prefer_version_2
    # One piece of memory: the heads of the buckets, then the namings.
    cdef uint32_t *_heads
    cdef Naming *_namings
    cdef int _shift  # 64 less the bits of a bucket's number
    cdef uint32_t _star  # the first naming of `*`

    def __cinit__(self, Groups groups not None, Cut cut not None, *, bint prefer_version_2=False):
        cdef Scan scan = groups._scan
        cdef const Line *line
        cdef uint32_t *heads
        cdef uint32_t at, place, count = 0
        cdef size_t buckets = 2
        cdef Py_ssize_t length
        self._groups = groups
        self._cut = cut
        self._prefer_version_2 = prefer_version_2
        self._shift = 63
        while buckets < scan._agents:
            buckets *= 2
            self._shift -= 1
        # Together less than 28 octets for each User-agent line, of which no file has a million.
        self._heads = <uint32_t *>PyMem_Malloc(buckets * sizeof(uint32_t) + scan._agents * sizeof(Naming))
        if self._heads == NULL:
            raise MemoryError
        self._namings = <Naming *>(self._heads + buckets)
        memset(self._heads, 0, buckets * sizeof(uint32_t))
        # From the last group to the first, so that of the groups of a token every one is put before the others.
        for place in range(groups._count, 0, -1):
            for at in range(groups._spans[place - 1].start, groups._spans[place - 1].end):
                if not groups._lists(at):
                    continue
                line = &scan._lines[at]
                length = cut._length(scan._text + line.start, line.length)
                if length:
                    count += self._put(Naming(line.start, place - 1, 0, 0, <uint16_t>length), count)
        self._star = self._find(STAR)
        if count < scan._agents:
            heads = <uint32_t *>PyMem_Realloc(self._heads, buckets * sizeof(uint32_t) + count * sizeof(Naming))
            if heads != NULL:
                self._heads = heads
                self._namings = <Naming *>(heads + buckets)

    def __dealloc__(self):
        PyMem_Free(self._heads)

    cdef inline uint32_t _put(self, Naming naming, uint32_t count) noexcept:
        """Put a naming before all others of its token: 1, or 0 where its group has the token already."""
        cdef const uint8_t *token = self._groups._scan._text + naming.start
        cdef uint32_t *head = &self._heads[_hash(token, naming.length) >> self._shift]
        cdef uint32_t same = self._search(head[0], token, naming.length)
        # There are as many namings as User-agent lines, and each is put once.
        if same == 0:
            naming.next = head[0]
            self._namings[count] = naming
            head[0] = count + 1
            return 1
        if self._namings[same - 1].group == naming.group:
            return 0
        # What leads to the first of a token stays, so that is what the new one becomes.
        self._namings[count] = self._namings[same - 1]
        naming.next = self._namings[same - 1].next
        naming.other = count + 1
        self._namings[same - 1] = naming
        return 1

    cdef inline uint32_t _search(self, uint32_t at, const uint8_t *token, Py_ssize_t length) noexcept:
        """The first naming of a token in the chain from `at` on, counted from 1; 0 where there is none."""
        cdef const uint8_t *text = self._groups._scan._text
        while at:
            if self._namings[at - 1].length == length and _same(text + self._namings[at - 1].start, token, length):
                return at
            at = self._namings[at - 1].next
        return 0

    cdef inline uint32_t _find(self, str token) noexcept:
        # The tokens of files are ASCII.
        cdef const uint8_t *text = <const uint8_t *>PyUnicode_DATA(token)
        cdef Py_ssize_t length = PyUnicode_GET_LENGTH(token)
        if PyUnicode_KIND(token) != 1 or length > LONGEST:
            return 0
        return self._search(self._heads[_hash(text, length) >> self._shift], text, length)

    def token(self, agent):
        cdef tuple chain = agent.chain
        cdef str token
        for token in chain:
            if self._find(token):
                return token
        return STAR if self._star and agent.obeys_star else None

    def groups(self, str token not None):
        cdef uint32_t at = self._find(token)
        cdef Group group
        found = []
        while at:
            found.append(self._groups._group(self._namings[at - 1].group))
            at = self._namings[at - 1].other
        if self._prefer_version_2:
            found = [group for group in found if group.version_2] or found
        return tuple(found)

    def stretches(self, str token not None):
        cdef Scan scan = self._groups._scan
        cdef Group group
        cdef uint32_t at
        found = []
        if not self._find(token):
            return ()
        for group in self.groups(token):
            at = self._said_to(group, token)
            if at < group._end:
                found.append((scan._lines[at].number, scan._lines[group._end - 1].number + 1))
        return tuple(found)

    def said(self, str token not None, key):
        cdef Scan scan = self._groups._scan
        cdef uint8_t wanted = _KEYS.index(key)
        cdef Group group
        cdef uint32_t at
        found = []
        if not self._find(token):
            return found
        for group in self.groups(token):
            for at in range(self._said_to(group, token), group._end):
                if scan._lines[at].key == wanted and group._takes(at):
                    found.append(scan._value(at))
        return found

    def lines(self, key):
        return _lines_with(self._groups, key)

    cdef uint32_t _said_to(self, Group group, str token) noexcept:
        """The group's first member below an agent line of the token; its end where it has none."""
        cdef const uint8_t *wanted = <const uint8_t *>PyUnicode_DATA(token)
        cdef const Line *line
        cdef uint32_t at
        cdef bint named = False
        for at in range(group._start, group._end):
            line = &self._groups._scan._lines[at]
            if not group._takes(at):
                continue
            if named and _belongs[line.key]:
                return at
            if not named and line.key == USER_AGENT:
                named = self._names(line, wanted, PyUnicode_GET_LENGTH(token))
        return group._end

    cdef inline bint _names(self, const Line *line, const uint8_t *token, Py_ssize_t length) noexcept:
        cdef const uint8_t *text = self._groups._scan._text + line.start
        return self._cut._length(text, line.length) == length and _same(text, token, length)


@cython.final
@cython.no_gc
cdef class FirstRecord:
    cdef Groups _groups
    # The values of all User-agent lines in lower case, each with a line end behind it, and where those of each group
    # end: however many there are, one search finds the first that holds a name.
    cdef str _text
    cdef object _names  # of that text
    cdef uint32_t *_ends
    cdef uint32_t _star  # the place of the first group that lists `*`, the number of groups where none does

    def __cinit__(self, Groups groups not None):
        cdef Scan scan = groups._scan
        cdef const Line *line
        cdef uint8_t *text
        cdef uint32_t at, place, step
        cdef Py_ssize_t size = 0
        cdef bytes octets
        self._groups = groups
        self._star = groups._count
        self._ends = <uint32_t *>PyMem_Malloc(max(groups._count, 1) * sizeof(uint32_t))
        if self._ends == NULL:
            raise MemoryError
        for place in range(groups._count):
            for at in range(groups._spans[place].start, groups._spans[place].end):
                if groups._lists(at):
                    line = &scan._lines[at]
                    size += line.length + 1
                    if line.length == 1 and scan._text[line.start] == c"*":
                        self._star = min(self._star, place)
            # A value stands in the file behind its key, so all of them have less octets than the file.
            self._ends[place] = <uint32_t>size
        octets = PyBytes_FromStringAndSize(NULL, size)
        text = <uint8_t *>PyBytes_AS_STRING(octets)
        for place in range(groups._count):
            for at in range(groups._spans[place].start, groups._spans[place].end):
                if groups._lists(at):
                    line = &scan._lines[at]
                    for step in range(line.length):
                        text[step] = _lower(scan._text[line.start + step])
                    text[line.length] = c"\n"
                    text += line.length + 1
        self._text = octets.decode("latin-1")
        self._names = Names(self._text)

    def __dealloc__(self):
        PyMem_Free(self._ends)

    def token(self, agent):
        cdef tuple names = agent.names
        cdef str name
        if STAR in names:
            names = tuple([name for name in names if name != STAR])
        name = self._names.first(names)
        if name is not None:
            return name
        return STAR if self._star < self._groups._count else None

    cdef uint32_t _record(self, str token, Py_ssize_t *found) except? 0xFFFFFFFF:
        """The place of the record that is found by the token, the number of all where none is.

        `found` is where the token first stands among its agents in the text.
        """
        cdef uint32_t low = 0, high = self._groups._count, middle
        if token == STAR:
            if self._star < high:
                found[0] = self._text.find(STAR, self._begin(self._star))
            return self._star
        found[0] = self._names.find(token)
        if found[0] < 0:
            return high
        # What was found lies before the last end.
        while low < high:
            middle = (low + high) // 2
            if self._ends[middle] > found[0]:
                high = middle
            else:
                low = middle + 1
        return low

    cdef inline Py_ssize_t _begin(self, uint32_t place) noexcept:
        return self._ends[place - 1] if place else 0

    def groups(self, str token not None):
        cdef Py_ssize_t found
        cdef uint32_t place = self._record(token, &found)
        return () if place == self._groups._count else (self._groups._group(place),)

    cdef Span _said(self, str token) except *:
        """From the record's first member below an agent line that holds the token to its end; [0, 0) for nothing."""
        cdef const Line *lines = self._groups._scan._lines
        cdef Py_ssize_t found, end
        cdef uint32_t place = self._record(token, &found), at
        cdef Span span
        if place == self._groups._count:
            return Span(0, 0, False)
        span = self._groups._spans[place]
        end = self._begin(place)
        for at in range(span.start, span.end):
            if self._groups._lists(at):
                end += lines[at].length + 1
            elif end > found and self._says(at):
                return Span(at, span.end, False)
        return Span(0, 0, False)

    cdef inline bint _says(self, uint32_t at) noexcept:
        """Whether the directive is a member of the grammar."""
        cdef const Line *line = &self._groups._scan._lines[at]
        return _belongs[line.key] and (self._groups._tolerant or line.oddity == PLAIN)

    def stretches(self, str token not None):
        cdef const Line *lines = self._groups._scan._lines
        cdef Span span = self._said(token)
        return () if span.start == span.end else ((lines[span.start].number, lines[span.end - 1].number + 1),)

    def said(self, str token not None, key):
        cdef Span span = self._said(token)
        cdef uint8_t wanted = _KEYS.index(key)
        cdef uint32_t at
        return [
            self._groups._scan._value(at)
            for at in range(span.start, span.end)
            if self._groups._scan._lines[at].key == wanted and self._says(at)
        ]

    def lines(self, key):
        return _lines_with(self._groups, key)
