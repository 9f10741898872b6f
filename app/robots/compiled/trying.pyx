# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Whether one pattern matches, with a bound to the work, which can be the product of both lengths (trying.pxd)."""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr, memcmp

from app.robots.compiled.blocks cimport grown
from app.robots.compiled.hashing cimport Octets

cdef enum:
    BLOCK = 16  # offsets that are looked at together


cdef Py_ssize_t _find(
    Octets text, Py_ssize_t length, Octets wanted, Py_ssize_t size, Py_ssize_t at, Py_ssize_t *work
) noexcept:
    """The first offset of `wanted`, which is not empty, at `at` or behind it; -1: nowhere; -2: it was too much work."""
    cdef Py_ssize_t last = length - size, offset
    cdef uint8_t first = wanted[0], final = wanted[size - 1]
    cdef uint8_t stands
    cdef const void *found
    work[0] -= 16
    if at > last:
        return -1
    if size == 1:
        found = memchr(text + at, first, length - at)
        return -1 if found == NULL else <Octets> found - text
    while at <= last:
        work[0] -= BLOCK
        if at + BLOCK <= last + 1:
            stands = 0
            # The last octet that is looked at is that at `last` + `size` - 1, within the text.
            for offset in range(BLOCK):
                stands |= (text[at + offset] == first) & (text[at + offset + size - 1] == final)
            if not stands:
                at += BLOCK
                continue
        for offset in range(at, min(at + BLOCK, last + 1)):
            if text[offset] == first and text[offset + size - 1] == final:
                work[0] -= 16 + size // 8
                if memcmp(text + offset, wanted, size) == 0:
                    return offset
        if work[0] < 0:
            return -2
        at += BLOCK
    return -1


cdef int matches(Octets texts, const Pattern *it, Octets subject, size_t length, Py_ssize_t *work) noexcept:
    cdef Octets text = texts + it.text
    cdef Py_ssize_t at = it.stem, limit = <Py_ssize_t> length - it.end
    cdef Py_ssize_t begin = it.stem + 1, stop = it.length - it.end, end
    cdef const void *star
    work[0] -= 16
    if limit < at or memcmp(subject, text, it.stem):
        return 0
    if it.end and memcmp(subject + limit, text + stop, it.end):
        return 0
    while begin < stop:
        star = memchr(text + begin, c"*", stop - begin)
        end = stop if star == NULL else <Octets> star - text
        at = _find(subject, limit, text + begin, end - begin, at, work)
        if at < 0:
            return 0 if at == -1 else -1
        at += end - begin
        begin = end + 1
    return 1


cdef int tried(Octets texts, const Pattern *it, Octets subject, size_t length, Py_ssize_t *work) noexcept:
    if it.kind == STARRED:
        return matches(texts, it, subject, length, work)
    if it.kind == WHOLE and it.length != length:
        return 0
    return it.length <= length and memcmp(subject, texts + it.text, it.length) == 0


cdef int found_at(int32_t place, int32_t *best, Matches *every) except -1:
    if every != NULL:
        return noted(every, place)
    best[0] = min(best[0], place)
    return 0


cdef int noted(Matches *every, int32_t place) except -1:
    every.places = <int32_t *> grown(every.places, &every.room, every.count + 1, sizeof(int32_t))
    every.places[every.count] = place
    every.count += 1
    return 0
