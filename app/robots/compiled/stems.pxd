"""Prefixes, whole subjects and heads: texts that a subject begins with."""

from libc.stdint cimport int32_t, uint32_t, uint64_t

from app.robots.compiled.hashing cimport Octets


cdef struct Stem:
    uint32_t text, length  # where it begins in the texts of the index
    int32_t prefix, whole, head  # the lowest place, and the number of the head; or -1


cdef class Stems:
    """A table of them by a hash of theirs, which is asked once for each length that occurs."""

    cdef uint64_t _secret
    cdef Stem *_stems
    cdef uint32_t _count
    cdef uint64_t *_slots  # the half of the hash that tells the slot above, the number of the stem, from 1, below
    cdef size_t _slots_count
    cdef uint32_t *_lengths  # those that stems have, ascending
    cdef uint32_t _lengths_count

    cdef int expect(self, size_t count, uint64_t secret) except -1
    cdef Stem *of(self, Octets texts, uint32_t text, uint32_t length, uint64_t hashed) noexcept
    cdef int finish(self) except -1
    cdef int _fit_slots(self) except -1
    cdef int _make_lengths(self) except -1
    cdef Stem **among(self, Octets texts, Octets subject, size_t length, size_t *count) except NULL
