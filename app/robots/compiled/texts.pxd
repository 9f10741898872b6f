cimport cython
from libc.stdint cimport uint8_t, uint32_t


@cython.final
cdef class Texts:
    # Text `at` is octets[bounds[at]:bounds[at + 1]], in UTF-8; there are count + 1 bounds, the first of them 0. What
    # made the texts writes both before anybody else sees them, and nobody after.
    cdef const uint8_t *octets
    cdef const uint32_t *bounds
    cdef Py_ssize_t count

    cdef int _allocate(self, Py_ssize_t count, size_t size, uint32_t **bounds, uint8_t **octets) except -1
    cdef str text(self, Py_ssize_t at)
    cdef Texts some(self, const uint32_t *places, Py_ssize_t count)


cdef Texts room_for(Py_ssize_t count, size_t size, uint32_t **bounds, uint8_t **octets)
