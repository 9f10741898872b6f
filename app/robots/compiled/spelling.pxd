cimport cython
from libc.stdint cimport uint8_t, uint16_t

cdef enum:
    LONGEST = 3


cdef struct Spelt:
    # `size` characters, and 0 behind them; and their UTF-8. An escape of size 0 is spelt as it is written.
    uint16_t characters[LONGEST]
    uint16_t size
    uint8_t utf8[3 * LONGEST]
    uint8_t utf8_size


@cython.final
cdef class Speller:
    cdef Spelt _octets[256]
    cdef Spelt _escapes[256]
    cdef uint8_t _odd[256]  # whether it may become anything but itself; all that are not ASCII are odd
    cdef size_t widest  # how many octets of UTF-8 an octet becomes at most
    cdef bint _urls
    cdef int _after  # these two are octets, or -1
    cdef int _final

    cdef str spell(self, str text)
    cdef size_t put(self, const uint8_t* octets, Py_ssize_t length, uint8_t* out) noexcept
    cdef bint changes(self, const uint8_t* octets, Py_ssize_t length) noexcept
    cdef bint leaves_all(self, const uint8_t* octets, Py_ssize_t length) noexcept
    cdef str _spell(self, str same, const uint8_t* octets, Py_ssize_t length)
    cdef void _bound(self, const uint8_t* octets, Py_ssize_t length, Py_ssize_t* begin, Py_ssize_t* end) noexcept
    cdef Py_ssize_t _plain(self, const uint8_t* octets, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef Py_ssize_t _copy_plain(
        self, const uint8_t* octets, Py_ssize_t begin, Py_ssize_t end, uint8_t* out
    ) noexcept
    cdef bint _any_odd(self, const uint8_t* octets) noexcept
    cdef const Spelt* _read(self, const uint8_t* octets, Py_ssize_t left, Py_ssize_t* read) noexcept
