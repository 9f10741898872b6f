"""What `batches` uses of `matching`."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef extern from "percent.h":
    ctypedef struct Normalisation:
        uint8_t escaped[256]
        uint8_t decoded[256]


cdef extern from "globs.h":
    const int64_t NO_MEMORY
    ctypedef struct Index:
        pass
    ctypedef struct Globs:
        pass


@cython.final
cdef class Spelling:
    cdef Normalisation _by
    cdef int _kept_last
    cdef size_t write(self, const uint8_t *text, size_t length, uint8_t *out) noexcept nogil


@cython.final
cdef class Patterns:
    cdef Index *_index
    cdef Globs *_globs  # instead of the index
    cdef bytes _bytes  # the text that either points into
    cdef int64_t _steps
    cdef uint32_t _count
    cdef int64_t find(self, const uint8_t *path, uint32_t length, uint8_t *matched) noexcept nogil


@cython.final
cdef class Matcher:
    cdef Spelling _subject
    cdef Spelling _query
    cdef readonly Patterns patterns
    cdef Patterns _query_patterns
    cdef int64_t _find(self, str path, uint8_t *matched) except NO_MEMORY
    cdef int64_t find_in(self, const uint8_t *path, uint32_t length, uint8_t *room, uint8_t *matched) noexcept
