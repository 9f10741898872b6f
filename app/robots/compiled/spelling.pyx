"""Texts brought to one spelling by tables: which octets and escapes are spelt how, the caller says."""

cimport cython
from cpython.unicode cimport (
    PyUnicode_1BYTE_DATA,
    PyUnicode_1BYTE_KIND,
    PyUnicode_2BYTE_DATA,
    PyUnicode_GET_LENGTH,
    PyUnicode_KIND,
    PyUnicode_New,
)
from libc.stdint cimport uint8_t, uint16_t
from libc.string cimport memchr, memcpy, memset

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)

ctypedef fused Unit:
    uint8_t
    uint16_t


cdef enum:
    PERCENT = 0x25
    NO_DIGIT = 0x80

# The worth of each octet as a digit of an escape; what is none is NO_DIGIT, and stays so beside any digit.
cdef uint8_t[256] _DIGITS


cdef int _know_digits() except -1:
    cdef int worth
    memset(_DIGITS, NO_DIGIT, sizeof(_DIGITS))
    for worth in range(16):
        _DIGITS[ord("0123456789ABCDEF"[worth])] = _DIGITS[ord("0123456789abcdef"[worth])] = worth
    return 0


_know_digits()


@cython.final
cdef class Speller:
    def __init__(self, dict octets not None, dict escapes not None, *, bint urls=False, after=None, final=None):
        cdef int octet
        memset(self._escapes, 0, sizeof(self._escapes))
        for octet in range(256):
            _spell_as(&self._octets[octet], chr(octet))
            self._odd[octet] = octet in octets or octet >= 0x80 or (octet == PERCENT and len(escapes) > 0)
        for octet, text in octets.items():
            _spell_as(&self._octets[_octet(octet)], text)
        for octet, text in escapes.items():
            _spell_as(&self._escapes[_octet(octet)], text)
        self.widest = 1
        for octet in range(256):
            # An escape is three octets, and it may be that it becomes more of them.
            self.widest = max(
                self.widest, self._octets[octet].utf8_size, (<size_t>self._escapes[octet].utf8_size + 2) // 3
            )
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
        cdef Py_ssize_t begin, end, at, read, size
        cdef int most = 0  # what has all bits of all characters is as wide as the widest
        cdef bint changed = same is None
        cdef const Spelt* spelt
        self._bound(octets, length, &begin, &end)
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
            _write[uint8_t](self, octets, begin, end, length, PyUnicode_1BYTE_DATA(text))
        else:
            _write[uint16_t](self, octets, begin, end, length, PyUnicode_2BYTE_DATA(text))
        return text

    cdef size_t put(self, const uint8_t* octets, Py_ssize_t length, uint8_t* out) noexcept:
        """Write to `out` what the octets become, in UTF-8; how many octets that has, at most `widest` for each.

        What `after` and `final` leave as it is has to be ASCII.
        """
        cdef Py_ssize_t begin, end, at, read
        cdef const Spelt* spelt
        cdef uint8_t* to = out
        cdef int each
        self._bound(octets, length, &begin, &end)
        memcpy(to, octets, begin)
        to += begin
        while True:
            at = self._copy_plain(octets, begin, end, to)
            to += at - begin
            if at == end:
                break
            spelt = self._read(octets + at, end - at, &read)
            for each in range(spelt.utf8_size):
                to[each] = spelt.utf8[each]
            to += spelt.utf8_size
            begin = at + read
        memcpy(to, octets + end, length - end)
        return to + length - end - out

    cdef Py_ssize_t _copy_plain(
        self, const uint8_t* octets, Py_ssize_t begin, Py_ssize_t end, uint8_t* out
    ) noexcept:
        """As `_plain`; what stands before that place is copied, and of what comes after, before `end`, up to eight."""
        cdef Py_ssize_t at = begin
        while end - at >= 8:
            memcpy(out + at - begin, octets + at, 8)
            if self._any_odd(octets + at):
                break
            at += 8
        else:
            # The last eight once more, rather than those that are left one by one.
            if end - begin >= 8 and not self._any_odd(octets + end - 8):
                memcpy(out + end - 8 - begin, octets + end - 8, 8)
                return end
        while at < end and not self._odd[octets[at]]:
            out[at - begin] = octets[at]
            at += 1
        return at

    cdef bint _any_odd(self, const uint8_t* octets) noexcept:
        """Of eight."""
        cdef const uint8_t* odd = self._odd
        return (
            odd[octets[0]] | odd[octets[1]] | odd[octets[2]] | odd[octets[3]]
            | odd[octets[4]] | odd[octets[5]] | odd[octets[6]] | odd[octets[7]]
        ) != 0

    cdef bint changes(self, const uint8_t* octets, Py_ssize_t length) noexcept:
        """Whether the octets become any others."""
        cdef Py_ssize_t end, at, read
        cdef const Spelt* spelt
        self._bound(octets, length, &at, &end)
        at = self._plain(octets, at, end)
        while at < end:
            spelt = self._read(octets + at, end - at, &read)
            if not _stays(spelt, octets + at, read):
                return True
            at = self._plain(octets, at + read, end)
        return False

    cdef bint leaves_all(self, const uint8_t* octets, Py_ssize_t length) noexcept:
        """Whether no text changes of those that the octets are, side by side; that some do is not said."""
        return self._after >= 0 and memchr(octets, self._after, length) == NULL

    cdef void _bound(self, const uint8_t* octets, Py_ssize_t length, Py_ssize_t* begin, Py_ssize_t* end) noexcept:
        """Only what lies from `begin` to `end` is rewritten: 0 <= begin <= end <= length."""
        cdef const uint8_t* mark
        begin[0], end[0] = 0, length
        if length and octets[length - 1] == self._final:
            end[0] -= 1
        if self._after >= 0:
            mark = <const uint8_t*>memchr(octets, self._after, end[0])
            begin[0] = mark - octets + 1 if mark != NULL else end[0]

    cdef Py_ssize_t _plain(self, const uint8_t* octets, Py_ssize_t at, Py_ssize_t end) noexcept:
        """The place of the first octet from `at` on that may become another, or `end`; most texts have none."""
        while end - at >= 8 and not self._any_odd(octets + at):
            at += 8
        while at < end and not self._odd[octets[at]]:
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
    Speller speller, const uint8_t* octets, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t length, Unit* out
) noexcept:
    """All `length` octets as they are spelt, of which none before `begin` or from `end` on is rewritten.

    `out` has room for as many units as `spell` counted, by the same steps, and is as wide as the widest of them.
    """
    cdef Py_ssize_t at, read, to = begin
    cdef const Spelt* spelt
    cdef int each
    for at in range(begin):
        out[at] = octets[at]
    at = begin
    while at < end:
        if not speller._odd[octets[at]]:
            out[to] = octets[at]
            to += 1
            at += 1
            continue
        spelt = speller._read(octets + at, end - at, &read)
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
    cdef bytes octets
    cdef int at
    if not (1 <= len(text) <= LONGEST and max(text) <= "\uffff"):
        raise ValueError(f"{text!r} is not one to three characters up to U+FFFF.")
    memset(spelt, 0, sizeof(Spelt))
    spelt.size = len(text)
    for at in range(len(text)):
        spelt.characters[at] = ord(text[at])
    octets = text.encode("utf-8", "surrogatepass")
    spelt.utf8_size = len(octets)  # three for a character at most
    for at in range(len(octets)):
        spelt.utf8[at] = octets[at]
    return 0


cdef bint _stays(const Spelt* spelt, const uint8_t* octets, Py_ssize_t read) noexcept:
    cdef Py_ssize_t at
    if spelt.size != read:
        return False
    for at in range(read):  # at most LONGEST
        if spelt.characters[at] != octets[at]:
            return False
    return True
