"""Memory that is kept: taken as tracemalloc sees it, and checked. For a module of this package to cimport."""

from libc.string cimport memset

from cpython.mem cimport PyMem_Calloc, PyMem_Realloc


cdef inline void *grown(void *block, size_t *room, size_t wanted, size_t item) except NULL:
    """`block` with room for `wanted` items or more of so many octets; what is new is zero."""
    cdef size_t more = room[0] + room[0] // 2
    cdef void *larger
    if wanted <= room[0] and block != NULL:
        return block
    more = max(more, wanted, 16)
    if more > (<size_t> -1 >> 1) // item:
        raise MemoryError
    larger = PyMem_Realloc(block, more * item)
    if larger == NULL:
        raise MemoryError
    memset(<char *> larger + room[0] * item, 0, (more - room[0]) * item)
    room[0] = more
    return larger


cdef inline void *fitted(void *block, size_t count, size_t item) noexcept:
    """`block` without what is behind its first `count` items."""
    cdef void *less = PyMem_Realloc(block, max(count, 1) * item)
    return block if less == NULL else less


cdef inline void *zeroed(size_t count, size_t item) except NULL:
    cdef void *block = PyMem_Calloc(max(count, 1), item)
    if block == NULL:
        raise MemoryError
    return block
