"""What Content-Usage and Content-Signal lines state, by path and by purpose (uses.pyi).

A Content-Usage value is a structured-field dictionary (RFC 9651 3.2), of which only the members that are the tokens `y`
and `n` are of use: everything else is read only to know where it ends, and that it is well formed, since a value that
is not states nothing. Each function that reads a part begins at the reader's place and leaves it behind the part; False
is a part that is not well formed. Inner lists hold no others, so nothing recurses.
"""

from libc.stdint cimport int64_t, uint8_t

from app.robots.syntax import BLANKS, readable

cdef extern from "Python.h":
    int PyUnicode_KIND(object text)
    void *PyUnicode_DATA(object text)
    Py_UCS4 PyUnicode_READ_CHAR(object text, Py_ssize_t at)


# --- Structured fields ------------------------------------------------------------------------------------------------

cdef struct Reader:
    const uint8_t *text
    Py_ssize_t at
    Py_ssize_t end

cdef enum:
    INTEGER_DIGITS = 15
    WHOLE_DIGITS = 12  # of a decimal, which has one to three behind its point
    # Seconds of the first and the last instant that can be told, those of the years 1 to 9999.
    FIRST_DATE = -62135596800
    LAST_DATE = 253402300799

cdef bint[256] _begins_key, _in_key, _begins_token, _in_token, _in_base64


def _fill() -> None:
    lower, upper, digits = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
    for octet in lower + b"*":
        _begins_key[octet] = True
    for octet in lower + digits + b"_-.*":
        _in_key[octet] = True
    for octet in lower + upper + b"*":
        _begins_token[octet] = True
    for octet in lower + upper + digits + b"!#$%&'*+-.^_`|~:/":
        _in_token[octet] = True
    for octet in lower + upper + digits + b"+/":
        _in_base64[octet] = True


_fill()


cdef inline uint8_t _next(const Reader *it) noexcept nogil:
    """The octet at its place; 0, which nothing well formed has, at its end."""
    return it.text[it.at] if it.at < it.end else 0


cdef inline bint _take(Reader *it, uint8_t octet) noexcept nogil:
    if it.at == it.end or it.text[it.at] != octet:
        return False
    it.at += 1
    return True


cdef inline void _skip_spaces(Reader *it) noexcept nogil:
    while _next(it) == c" ":
        it.at += 1


cdef inline void _skip_blanks(Reader *it) noexcept nogil:
    while _next(it) == c" " or _next(it) == c"\t":
        it.at += 1


cdef inline bint _key(Reader *it) noexcept nogil:
    if not _begins_key[_next(it)]:
        return False
    while _in_key[_next(it)]:
        it.at += 1
    return True


cdef inline bint _is_digit(uint8_t octet) noexcept nogil:
    return c"0" <= octet <= c"9"


cdef bint _number(Reader *it) noexcept nogil:
    cdef Py_ssize_t begin, point
    _take(it, c"-")
    begin = it.at
    while _is_digit(_next(it)):
        it.at += 1
    point = it.at
    if point == begin or not _take(it, c"."):
        return 0 < point - begin <= INTEGER_DIGITS
    while _is_digit(_next(it)):
        it.at += 1
    return point - begin <= WHOLE_DIGITS and 1 <= it.at - point - 1 <= 3


cdef bint _date(Reader *it) noexcept nogil:
    cdef int64_t seconds = 0
    cdef bint before
    cdef Py_ssize_t begin
    it.at += 1
    before = _take(it, c"-")
    begin = it.at
    while _is_digit(_next(it)):
        if it.at - begin == INTEGER_DIGITS:
            return False
        seconds = 10 * seconds + (it.text[it.at] - c"0")
        it.at += 1
    if it.at == begin or _next(it) == c".":
        return False
    return FIRST_DATE <= (-seconds if before else seconds) <= LAST_DATE


cdef bint _string(Reader *it) noexcept nogil:
    cdef uint8_t octet
    it.at += 1
    while True:
        octet = _next(it)
        it.at += 1
        if octet == c'"':
            return True
        if octet == c"\\":
            octet = _next(it)
            it.at += 1
            if octet != c'"' and octet != c"\\":
                return False
        elif not 31 < octet < 127:
            return False


cdef bint _octets(Reader *it) noexcept nogil:
    """Base64 between colons, with its padding or without."""
    cdef Py_ssize_t begin, padding
    it.at += 1
    begin = it.at
    while _in_base64[_next(it)]:
        it.at += 1
    padding = it.at
    while _next(it) == c"=":
        it.at += 1
    if it.at - padding > (2 if padding > begin else 0) or (padding - begin) % 4 == 1:
        return False
    return _take(it, c":")


cdef inline int _hexadecimal(uint8_t octet) noexcept nogil:
    if _is_digit(octet):
        return octet - c"0"
    return octet - c"a" + 10 if c"a" <= octet <= c"f" else -1


cdef bint _display_string(Reader *it) noexcept nogil:
    """Octets in quotes, those that are not ASCII as %xx in lower case: all of them together are UTF-8."""
    cdef int more = 0  # octets that the character that was begun still needs
    cdef int low = 0x80, high = 0xBF  # what the next of them may be
    cdef int octet, first, second
    it.at += 1
    if not _take(it, c'"'):
        return False
    while True:
        octet = _next(it)
        it.at += 1
        if octet == c'"':
            return more == 0
        if not 31 < octet < 127:
            return False
        if octet == c"%":
            first = _hexadecimal(_next(it))
            if first < 0:
                return False
            it.at += 1
            second = _hexadecimal(_next(it))
            if second < 0:
                return False
            it.at += 1
            octet = first << 4 | second
        if more:
            if not low <= octet <= high:
                return False
            more -= 1
            low, high = 0x80, 0xBF
        elif octet >= 0x80:
            # No form that is longer than it needs to be, no half of a pair, nothing above U+10FFFF.
            if not 0xC2 <= octet <= 0xF4:
                return False
            more = 1 if octet < 0xE0 else 2 if octet < 0xF0 else 3
            low = 0xA0 if octet == 0xE0 else 0x90 if octet == 0xF0 else 0x80
            high = 0x9F if octet == 0xED else 0x8F if octet == 0xF4 else 0xBF


cdef bint _bare_item(Reader *it) noexcept nogil:
    cdef uint8_t octet = _next(it)
    if _begins_token[octet]:
        while _in_token[_next(it)]:
            it.at += 1
        return True
    if octet == c"-" or _is_digit(octet):
        return _number(it)
    if octet == c'"':
        return _string(it)
    if octet == c"?":
        it.at += 1
        return _take(it, c"0") or _take(it, c"1")
    if octet == c":":
        return _octets(it)
    if octet == c"@":
        return _date(it)
    return octet == c"%" and _display_string(it)


cdef bint _parameters(Reader *it) noexcept nogil:
    while _take(it, c";"):
        _skip_spaces(it)
        if not _key(it) or (_take(it, c"=") and not _bare_item(it)):
            return False
    return True


cdef bint _inner_list(Reader *it) noexcept nogil:
    it.at += 1
    while True:
        _skip_spaces(it)
        if _take(it, c")"):
            return _parameters(it)
        if not _bare_item(it) or not _parameters(it):
            return False
        if _next(it) != c" " and _next(it) != c")":
            return False


cdef dict _dictionary(str text, Py_ssize_t begin):
    """Of the text's part from `begin` on; of a key that comes again, the last member counts."""
    cdef Reader it
    cdef Py_ssize_t key, value
    cdef dict found = {}
    cdef str name
    cdef bint others = False
    if PyUnicode_KIND(text) != 1:
        return found
    it = Reader(<const uint8_t *>PyUnicode_DATA(text), begin, len(text))
    _skip_spaces(&it)
    while it.at < it.end:
        key = it.at
        if not _key(&it):
            return {}
        name = text[key : it.at]
        use = None
        if _take(&it, c"="):
            value = it.at
            if _next(&it) == c"(":
                if not _inner_list(&it):
                    return {}
            else:
                if not _bare_item(&it):
                    return {}
                if it.at == value + 1 and (it.text[value] == c"y" or it.text[value] == c"n"):
                    use = "y" if it.text[value] == c"y" else "n"
                if not _parameters(&it):
                    return {}
        elif not _parameters(&it):
            return {}
        found[name] = use
        others = others or use is None
        _skip_blanks(&it)
        if it.at == it.end:
            break
        if not _take(&it, c","):
            return {}
        _skip_blanks(&it)
        if it.at == it.end:
            return {}
    return {name: use for name, use in found.items() if use is not None} if others else found


def preferences(str text not None):
    return _dictionary(text, 0)


# --- Lines ------------------------------------------------------------------------------------------------------------

cdef str _BLANKS = BLANKS


def by_path(values, spell):
    cdef dict found = {}  # pattern -> what is stated
    cdef dict read = {}  # preferences -> the same: most lines of a file say what others say
    cdef set merged = set()
    cdef dict stated, before
    cdef str value, pattern, text
    cdef Py_ssize_t at
    for value in values:
        at = 0
        if value and PyUnicode_READ_CHAR(value, 0) == u"/":
            while at < len(value) and PyUnicode_READ_CHAR(value, at) not in _BLANKS:
                at += 1
        pattern = spell(value[:at]) if at else "*"
        while at and at < len(value) and PyUnicode_READ_CHAR(value, at) in _BLANKS:
            at += 1
        text = value[at:]
        stated = read.get(text)
        if stated is None:
            stated = read[text] = _dictionary(text, 0)
        before = found.get(pattern)
        if before is None:
            found[pattern] = stated
        elif before is not stated:
            if pattern not in merged:
                before = found[pattern] = dict(before)
                merged.add(pattern)
            for category, use in stated.items():
                before[category] = min(use, before.get(category, use))
    return found


def by_purpose(values):
    cdef dict found = {}
    cdef str value, purpose, said
    cdef Py_ssize_t at, end, equals
    cdef Py_UCS4 it
    for value in values:
        value = readable(value)
        at = 0
        while at < len(value):
            equals = -1
            end = at
            while end < len(value):
                it = PyUnicode_READ_CHAR(value, end)
                if it == u",":
                    break
                if it == u"=" and equals < 0:
                    equals = end
                end += 1
            if equals >= 0:
                purpose, said = value[at:equals].strip().lower(), value[equals + 1 : end].strip().lower()
                if purpose and said and found.setdefault(purpose, said) != said and said == "no":
                    found[purpose] = said
            at = end + 1
    return found
