"""Patterns as they are read, and trying one: of a few, and of those of which few are left to be tried."""

from libc.stdint cimport int32_t, uint32_t

from app.robots.compiled.hashing cimport Octets


cdef enum Kind:
    PREFIX
    WHOLE
    STARRED

cdef struct Pattern:
    # Its octets, with single stars, none at its end, and without the anchor; they begin at `text` in the index's own.
    uint32_t text, length
    uint32_t stem  # octets of its head, or all of them where it has no star
    uint32_t end  # octets behind its last star if it is anchored, or 0
    uint32_t head  # the number of its head
    uint32_t following  # the next pattern with stars that has this head, or 0
    uint32_t names  # where its names begin
    int32_t place
    Kind kind

cdef struct Matches:
    int32_t *places
    size_t room, count


# Whether a pattern matches; -1: that was too much work, of which so much is left.
cdef int tried(Octets texts, const Pattern *it, Octets subject, size_t length, Py_ssize_t *work) noexcept
# The same of one with stars.
cdef int matches(Octets texts, const Pattern *it, Octets subject, size_t length, Py_ssize_t *work) noexcept

# A pattern matches that stands at `place`: it is the best now, or one of `every`, if that is not NULL. So with `every`
# nothing is kept from being looked at by the best.
cdef int found_at(int32_t place, int32_t *best, Matches *every) except -1
cdef int noted(Matches *every, int32_t place) except -1
