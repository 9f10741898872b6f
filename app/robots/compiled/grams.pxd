"""The texts of patterns with stars by names, and the grams that they are made of."""

from libc.stdint cimport uint32_t, uint64_t

from app.robots.compiled.hashing cimport SPREAD, Octets, hashed_word, slot_behind, slot_of, stirred
from app.robots.compiled.trying cimport Pattern


cdef enum:
    HALF = 4
    EXACT = 8  # the widest gram whose octets are its key
    WIDEST = 4  # its class: wider ones are known by their hashes
    WIDE = 33  # the class of texts that are no grams, behind those of the grams
    CLASSES = 34


cdef struct Name:
    uint64_t key  # the octets of a gram of up to 8, the hash of a wider one, or the names of two
    uint32_t length
    # Where those patterns begin that it is the gate of; they end where the next name's begin. While names are made, how
    # many patterns it may be the gate of, or NO_GRAM.
    uint32_t gates

cdef struct Table:
    uint32_t *slots  # a name or 0
    size_t size, count

cdef struct Drawn:
    uint32_t *names  # grams that stand in every subject that matches, pattern by pattern
    size_t room, count


cdef class Grams:
    """The names of what patterns say between stars, and for each pattern a gram by which it is found, its gate."""

    cdef Name *names  # from 1; and one more, whose gated begin where all have ended
    cdef size_t count
    cdef Table[CLASSES] tables
    cdef uint32_t *spelled  # by pattern, the names of its texts, but for an anchored end
    cdef uint32_t *gated  # patterns by their gates, ascending
    cdef uint32_t gate_classes  # a bit for each class of grams that has a gate
    cdef uint64_t secret
    cdef size_t _names_room, _spelled_count, _spelled_room

    cdef int make(self, Octets texts, Pattern *starred, uint32_t count, uint64_t secret) except -1
    cdef int _spell(self, Octets texts, const Pattern *it, Drawn *drawn) except -1
    cdef int _draw(self, Drawn *drawn, uint32_t[2] ends) except -1
    cdef uint32_t _name_of(self, Octets text, size_t length, uint32_t[2] ends) except? 0xFFFFFFFF
    cdef int _grams_at_ends(self, Octets text, size_t length, uint32_t[2] ends) except -1
    cdef uint32_t _named(self, int number, uint64_t key, size_t length) except? 0xFFFFFFFF
    cdef int _enlarge(self, int number) except -1
    cdef int _renumber(self, uint32_t *gates, uint32_t starred) except -1
    cdef int _class_of_name(self, uint32_t name) noexcept
    cdef int _fit(self, int number, uint32_t behind) except -1
    cdef uint32_t _gate(self, const uint32_t *drawn, size_t count) noexcept
    cdef int _make_gates(self, const uint32_t *gates, uint32_t starred) except -1


cdef inline bint is_gram(size_t length) noexcept:
    return length <= HALF or length == EXACT


cdef inline int class_of(size_t width) noexcept:
    """The class of grams of that width, from 0: 1 to 4, or a power of two."""
    cdef int found = HALF - 1
    if width <= HALF:
        return <int> width - 1
    while width > HALF:
        width >>= 1
        found += 1
    return found


cdef inline size_t width_of(int number) noexcept:
    """The width of the grams of a class."""
    return <size_t> number + 1 if number < HALF else <size_t> HALF << (number - HALF + 1)


cdef inline size_t part_of(size_t length) noexcept:
    """The width of the two grams that a text is which is none: the greatest below its length."""
    cdef size_t width = HALF
    while 2 * width < length:
        width *= 2
    return width


cdef inline uint32_t name_in(const Table *table, const Name *names, uint64_t key, uint64_t secret) noexcept:
    """The name of a gram of the class that the table is of, or 0.

    Whether there is one cannot be foreseen, but that the first look tells: so the only branch is where it does not.
    """
    cdef uint64_t slot = slot_of(hashed_word(key, secret), table.size)
    cdef uint32_t name = table.slots[slot]
    while (name != 0) & (names[name].key != key):
        slot = slot_behind(slot, table.size)
        name = table.slots[slot]
    return name


cdef inline uint64_t hash_of_both(uint64_t left, uint64_t right, uint64_t secret) noexcept:
    """The hash of a gram of 16 octets or more by those of its halves; of one of 8, these are the octets."""
    return stirred(left ^ secret, right ^ secret * SPREAD)
