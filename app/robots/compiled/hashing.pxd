"""Octets read by the word, and hashes of them, made with a secret.

Whoever does not know the secret can make no texts that meet in a slot, nor many that have the same hash. But two may
have it by chance: who asks by a hash compares what is found.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    /* The product of two words, both of its halves in one. */
    static inline uint64_t stirred(uint64_t word, uint64_t factor)
    {
    #if defined(__SIZEOF_INT128__)
        unsigned __int128 product = (unsigned __int128)word * factor;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    #else
        uint64_t low = word & 0xFFFFFFFF, high = word >> 32, less = factor & 0xFFFFFFFF, more = factor >> 32;
        uint64_t one = high * less, other = low * more, carried = (low * less >> 32) + (uint32_t)one + (uint32_t)other;
        return word * factor ^ (high * more + (one >> 32) + (other >> 32) + (carried >> 32));
    #endif
    }

    #define SPREAD UINT64_C(0x9E3779B97F4A7C15)
    """
    const uint64_t SPREAD  # what a length is multiplied by, so that it touches no bit of a name
    uint64_t stirred(uint64_t word, uint64_t factor) noexcept


ctypedef const uint8_t *Octets


cdef inline uint64_t hashed_word(uint64_t key, uint64_t factor) noexcept:
    """A key, spread over the highest bits: whoever does not know the factor cannot make keys that meet there."""
    return key * factor


cdef inline uint64_t slot_of(uint64_t hashed, size_t size) noexcept:
    """Of so many slots, no more than 32 bits can tell, the one that the upper half of a hash says."""
    return (hashed >> 32) * size >> 32


cdef inline uint64_t slot_behind(uint64_t slot, size_t size) noexcept:
    return slot + 1 if slot + 1 < size else 0


cdef inline uint64_t loaded(Octets text) noexcept:
    cdef uint64_t octets
    memcpy(&octets, text, 8)
    return octets


cdef inline uint32_t loaded_half(Octets text) noexcept:
    cdef uint32_t octets
    memcpy(&octets, text, 4)
    return octets


cdef inline uint64_t last_word(Octets text, size_t length) noexcept:
    """The last 8 octets of a text; of a shorter one all, so that no other of its length has the same."""
    if length >= 8:
        return loaded(text + length - 8)
    if length >= 4:
        return <uint64_t> loaded_half(text + length - 4) << 32 | loaded_half(text)
    if length == 0:
        return 0
    return text[0] | <uint64_t> text[length >> 1] << 8 | <uint64_t> text[length - 1] << 16


cdef inline uint64_t hashed_words(
    Octets text, size_t begin, size_t end, uint64_t hashed, uint64_t secret
) noexcept:
    """The hash of so many whole words of a text, by that of those up to `begin`."""
    while begin + 8 <= end:
        hashed = stirred(hashed ^ loaded(text + begin), secret)
        begin += 8
    return hashed


cdef inline uint64_t hashed_last(Octets text, size_t length, uint64_t hashed, uint64_t secret) noexcept:
    """The hash of a text by that of its whole words."""
    return stirred(hashed ^ last_word(text, length) ^ length * SPREAD, secret)


cdef inline uint64_t hash_of(Octets text, size_t length, uint64_t hashed, uint64_t secret) noexcept:
    return hashed_last(text, length, hashed_words(text, 0, length, hashed, secret), secret)
