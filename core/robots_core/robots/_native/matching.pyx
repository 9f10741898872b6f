"""Normalise paths and patterns, and match them (RFC 9309 2.2.2, 2.2.3).

All objects are immutable and calls share no buffers, so any number of threads may use them at once.
"""

cimport cython
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcmp, memcpy, memset


cdef extern from "percent.h":
    size_t normalise(const Normalisation *by, const uint8_t *bytes, size_t length, uint8_t *out) nogil


cdef extern from "globs.h":
    const uint32_t NONE
    ctypedef struct Text:
        const uint8_t *bytes
        uint32_t length
        uint32_t number
    int build_index(Index *it, const Text *patterns, uint32_t count, uint32_t stars, int literal) nogil
    int build_globs(Globs *it, const Text *patterns, uint32_t count, uint32_t bytes) nogil
    int64_t match(const Index *it, const uint8_t *path, uint32_t length, int64_t steps, uint8_t *matched) nogil
    int64_t match_globs(const Globs *it, const uint8_t *path, uint32_t length, int64_t steps, uint8_t *matched) nogil
    void free_index(Index *it) nogil
    void free_globs(Globs *it) nogil


cdef enum:
    LONGEST = 1 << 28  # bytes of a text, or of all patterns together


@cython.final
cdef class Spelling:
    """Normalises percent-encoding: encodes the bytes in `escaped`, and decodes escapes of the bytes in `decoded`.

    All other escapes get upper-case digits (RFC 3986 6.2.2). `kept_last`: a byte that is kept if it is the last one.
    Linear in the length of a text.
    """

    def __init__(self, bytes escaped not None, bytes decoded not None, *, bytes kept_last=b""):
        cdef uint8_t byte
        memset(&self._by, 0, sizeof(self._by))
        for byte in escaped:
            self._by.escaped[byte] = 1
        for byte in decoded:
            self._by.decoded[byte] = 1
        self._kept_last = kept_last[0] if kept_last else -1

    cdef size_t write(self, const uint8_t *text, size_t length, uint8_t *out) noexcept nogil:
        """Write `length` bytes normalised to `out`, which has room for three times as many."""
        cdef bint kept = length > 0 and text[length - 1] == self._kept_last
        cdef size_t written = normalise(&self._by, text, length - kept, out)
        if kept:
            out[written] = text[length - 1]
            written += 1
        return written

    def __call__(self, bytes text not None):
        return self.each([text])[0]

    def each(self, list texts not None):
        """Normalise all texts; one that is already normalised is returned as the same object."""
        cdef size_t length, longest = 0
        cdef uint8_t *out
        cdef list found = []
        cdef bytes text
        for text in texts:
            longest = max(longest, <size_t>_length(text))
        out = <uint8_t *>malloc(3 * longest + 1)
        if out == NULL:
            raise MemoryError
        try:
            for text in texts:
                length = self.write(<const uint8_t *>PyBytes_AsString(text), len(text), out)
                if length != <size_t>len(text) or memcmp(PyBytes_AsString(text), out, length):
                    text = PyBytes_FromStringAndSize(<char *>out, length)
                found.append(text)
        finally:
            free(out)
        return found


@cython.final
cdef class Patterns:
    """Normalised patterns in order of precedence; immutable.

    Patterns of version 1 may have `*` and a final `$` (spec D). `literal`: both are literal, and each pattern is a
    plain prefix (spec E6). `globs`: globs of version 2.0, which match whole paths (spec F10, F11). `steps` limits the
    work of a search in addition to what is linear in the path and the patterns.
    """

    def __cinit__(self, list patterns not None, *, int64_t steps, bint literal=False, bint globs=False):
        cdef Text *texts = <Text *>malloc((len(patterns) + 1) * sizeof(Text))
        cdef uint32_t length = 0, stars
        cdef bint made
        try:
            self._steps = steps
            self._bytes = b"".join(patterns)
            stars = <uint32_t>self._bytes.count(b"*")
            if globs:
                self._globs = <Globs *>calloc(1, sizeof(Globs))
            else:
                self._index = <Index *>calloc(1, sizeof(Index))
            if texts == NULL or (self._globs == NULL and self._index == NULL):
                raise MemoryError
            for pattern in patterns:
                texts[self._count].bytes = <const uint8_t *>PyBytes_AsString(self._bytes) + length
                texts[self._count].length = <uint32_t>len(pattern)
                texts[self._count].number = self._count
                length += <uint32_t>len(pattern)
                self._count += 1
            _length(self._bytes)
            with nogil:
                if globs:
                    made = build_globs(self._globs, texts, self._count, length)
                else:
                    made = build_index(self._index, texts, self._count, stars, literal)
            if not made:
                raise MemoryError
        finally:
            free(texts)

    def __dealloc__(self):
        if self._index != NULL:
            free_index(self._index)
        if self._globs != NULL:
            free_globs(self._globs)
        free(self._index)
        free(self._globs)

    def __len__(self):
        return self._count

    cdef int64_t find(self, const uint8_t *path, uint32_t length, uint8_t *matched) noexcept nogil:
        """As `match` in automaton.h, but returns the number of patterns if none matches."""
        cdef int64_t found = (
            match(self._index, path, length, self._steps, matched)
            if self._index != NULL
            else match_globs(self._globs, path, length, self._steps, matched)
        )
        return self._count if found == NONE else found


@cython.final
cdef class Matcher:
    """Matches paths, normalised by `subject`, against patterns.

    With `query`, the path is also matched in a second form, with the text after the first `?` normalised by `query`,
    against `query_patterns`: the same patterns in their second form (spec X5).
    """

    def __init__(
        self, Spelling subject not None, Patterns patterns not None, Spelling query=None, Patterns query_patterns=None
    ):
        self._subject = subject
        self.patterns = patterns
        self._query = query
        self._query_patterns = query_patterns
        if (query is None) != (query_patterns is None) or query_patterns and len(query_patterns) != len(patterns):
            raise ValueError("query and query_patterns go together, with as many patterns as the first form.")

    def __len__(self):
        return self.patterns._count

    def first(self, str path not None):
        """The number of the first pattern that matches; `len(self)` if none does, -1 if the steps ran out."""
        return self._find(path, NULL)

    def every(self, str path not None):
        """The numbers of all patterns that match, ascending; incomplete if the steps ran out."""
        cdef uint32_t each, count = self.patterns._count
        cdef uint8_t *matched = <uint8_t *>calloc(count + 1, 1)
        if matched == NULL:
            raise MemoryError
        try:
            self._find(path, matched)
            return [each for each in range(count) if matched[each]]
        finally:
            free(matched)

    cdef int64_t _find(self, str path, uint8_t *matched) except NO_MEMORY:
        cdef bytes text = path.encode("utf-8", "surrogatepass")
        cdef uint32_t length = _length(text)
        # The subject has at most three times as many bytes, and its second form three times as many again.
        cdef uint8_t *room = <uint8_t *>malloc(12 * <size_t>length + 1)
        cdef int64_t found = NO_MEMORY
        if room != NULL:
            found = self.find_in(<const uint8_t *>PyBytes_AsString(text), length, room, matched)
        free(room)
        if found == NO_MEMORY:
            raise MemoryError
        return found

    cdef int64_t find_in(self, const uint8_t *path, uint32_t length, uint8_t *room, uint8_t *matched) noexcept:
        """The first pattern that matches in either form, as Patterns.find; marks all in `matched` unless it is NULL.

        `room` takes the normalised path, and behind it its second form: 12 bytes for each byte of the path.
        """
        cdef uint32_t written = <uint32_t>self._subject.write(path, length, room)
        cdef const uint8_t *mark
        cdef size_t before
        cdef int64_t found = self.patterns.find(room, written, matched)
        if self._query is None or found < 0:
            return found
        mark = <const uint8_t *>memchr(room, c"?", written)
        if mark == NULL:
            return found
        before = <size_t>(mark - room) + 1
        path = room
        room += written
        memcpy(room, path, before)
        length = <uint32_t>(before + self._query.write(path + before, written - before, room + before))
        if self._query_patterns is self.patterns and length == written:
            return found
        return min(found, self._query_patterns.find(room, length, matched))


cdef uint32_t _length(bytes text) except? 0xFFFFFFFF:
    if len(text) > LONGEST:
        raise OverflowError(f"A text of {len(text)} bytes is too long.")
    return <uint32_t>len(text)
