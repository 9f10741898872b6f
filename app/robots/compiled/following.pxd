"""Finding the patterns with stars that match a subject by the grams that stand in it."""

from libc.stdint cimport int32_t, uint32_t, uint64_t

from app.robots.compiled.grams cimport Grams
from app.robots.compiled.hashing cimport Octets
from app.robots.compiled.trying cimport Matches, Pattern


cdef struct Starred:
    # Patterns with stars, ascending by place, and one more; and what is asked of them now.
    Octets texts
    const Pattern *patterns
    const uint64_t *opened  # by head: `stamp`, if the subject begins with it
    uint64_t stamp


# Patterns that come before the best, or `every` one, with open gates: each is tried. 0: that was too much work, and
# more may match.
cdef int try_gated(
    Grams grams, const Starred *starred, Octets subject, size_t length, int32_t *best, Matches *every, Py_ssize_t *work
) except -1
# The same, followed from text to text: the work has a bound, whatever they are.
cdef int follow(
    Grams grams, const Starred *starred, Octets subject, size_t length, int32_t *best, Matches *every
) except -1
