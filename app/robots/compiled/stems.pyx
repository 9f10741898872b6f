# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""The texts that patterns begin with, in one table (stems.pxd)."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from cpython.mem cimport PyMem_Free

from app.robots.compiled.blocks cimport fitted, grown, zeroed
from app.robots.compiled.hashing cimport Octets, hashed_last, loaded, slot_behind, slot_of, stirred

cdef Stem **_found = NULL
cdef size_t _found_room = 0


cdef class Stems:
    def __dealloc__(self):
        PyMem_Free(self._stems)
        PyMem_Free(self._slots)
        PyMem_Free(self._lengths)

    cdef int expect(self, size_t count, uint64_t secret) except -1:
        """Make room for so many."""
        self._secret = secret
        self._slots_count = 2 * count
        self._slots = <uint64_t *> zeroed(self._slots_count, sizeof(uint64_t))
        self._stems = <Stem *> zeroed(count, sizeof(Stem))
        return 0

    cdef Stem *of(self, Octets texts, uint32_t text, uint32_t length, uint64_t hashed) noexcept:
        """The stem that begins at `text`, new or not, by its hash; it stays there until they are finished."""
        cdef uint64_t slot = slot_of(hashed, self._slots_count)
        cdef Stem *stem
        while self._slots[slot]:
            stem = &self._stems[<uint32_t> self._slots[slot] - 1]
            if (
                self._slots[slot] >> 32 == hashed >> 32 and stem.length == length
                and memcmp(texts + stem.text, texts + text, length) == 0
            ):
                return stem
            slot = slot_behind(slot, self._slots_count)
        stem = &self._stems[self._count]
        stem.text, stem.length = text, length
        stem.prefix = stem.whole = stem.head = -1
        self._count += 1
        self._slots[slot] = hashed >> 32 << 32 | self._count
        return stem

    cdef int finish(self) except -1:
        """Leave what is needed: there may be much fewer of them than patterns."""
        self._stems = <Stem *> fitted(self._stems, self._count, sizeof(Stem))
        self._fit_slots()
        self._make_lengths()
        return 0

    cdef int _fit_slots(self) except -1:
        """Leave two slots for each."""
        cdef size_t count = 2 * <size_t> self._count, at
        cdef uint64_t *slots
        cdef uint64_t slot
        if 2 * count > self._slots_count:
            return 0
        slots = <uint64_t *> zeroed(count, sizeof(uint64_t))
        for at in range(self._slots_count):
            if self._slots[at]:
                slot = slot_of(self._slots[at], count)
                while slots[slot]:
                    slot = slot_behind(slot, count)
                slots[slot] = self._slots[at]
        PyMem_Free(self._slots)
        self._slots, self._slots_count = slots, count
        return 0

    cdef int _make_lengths(self) except -1:
        cdef uint32_t longest = 0, number, length
        cdef uint8_t *occurs
        for number in range(self._count):
            longest = max(longest, self._stems[number].length)
        occurs = <uint8_t *> zeroed(<size_t> longest + 1, 1)
        try:
            for number in range(self._count):
                length = self._stems[number].length
                self._lengths_count += not occurs[length]
                occurs[length] = 1
            self._lengths = <uint32_t *> zeroed(self._lengths_count, sizeof(uint32_t))
            number = 0
            for length in range(longest + 1):
                if occurs[length]:
                    self._lengths[number] = length
                    number += 1
        finally:
            PyMem_Free(occurs)
        return 0

    cdef Stem **among(self, Octets texts, Octets subject, size_t length, size_t *count) except NULL:
        """Those that a subject begins with, the shortest first, until the next call; and how many they are."""
        global _found
        # What the loop needs is at hand: what it writes might else be taken to change it.
        cdef uint64_t secret = self._secret, words = secret, hashed, slot
        cdef const uint64_t *slots = self._slots
        cdef const uint32_t *lengths = self._lengths
        cdef const uint32_t *end = lengths + self._lengths_count
        cdef size_t at, stirred_up_to = 0, slots_count = self._slots_count
        cdef Stem *stems = self._stems
        cdef Stem *stem
        cdef Stem **found
        _found = <Stem **> grown(_found, &_found_room, self._lengths_count, sizeof(Stem *))
        found = _found
        while lengths < end and lengths[0] <= length:
            at = lengths[0]
            lengths += 1
            while stirred_up_to + 8 <= at:
                words = stirred(words ^ loaded(subject + stirred_up_to), secret)
                stirred_up_to += 8
            hashed = hashed_last(subject, at, words, secret)
            slot = slot_of(hashed, slots_count)
            while slots[slot]:
                stem = &stems[<uint32_t> slots[slot] - 1]
                if (
                    slots[slot] >> 32 == hashed >> 32 and stem.length == at
                    and memcmp(subject, texts + stem.text, at) == 0
                ):
                    found[0] = stem
                    found += 1
                    break
                slot = slot_behind(slot, slots_count)
        count[0] = found - _found
        return _found
