cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t


cdef struct Line:
    # 12 octets. A value is no longer than a line is read, and starts within the octets of the file, of which there are
    # at most twice its limit (_fill sees to both).
    uint32_t number
    uint32_t start
    uint16_t length
    uint8_t key
    uint8_t oddity


cdef struct Rule:
    # The octets of a rule's value, which stand as long as its group; there are at most 65,535.
    const uint8_t *value
    uint32_t length
    bint allows


@cython.final
cdef class Scan:
    cdef bytes _octets
    cdef const uint8_t *_text
    cdef Py_ssize_t _from, _to  # what is read of the octets: behind their mark, and to their limit
    cdef Line *_lines
    cdef uint32_t _count
    cdef uint32_t _agents  # how many of the directives are User-agent lines
    cdef readonly uint32_t lines
    cdef readonly bint bom
    cdef readonly bint truncated

    cdef int _read(self) except -1
    cdef tuple _directive(self, uint32_t at)
    cdef str _value(self, uint32_t at)


@cython.final
cdef class Group:
    cdef Scan _scan
    cdef uint32_t _start, _end
    cdef bint _tolerant
    cdef readonly bint version_2

    cdef bint _takes(self, uint32_t at) noexcept
    cdef uint32_t size(self) noexcept
    cdef void measure(self, size_t *count, size_t *octets) noexcept
    cdef bint rule(self, uint32_t at, Rule *found) noexcept
    cdef tuple directive(self, uint32_t at)
