"""Split and match the URLs of an Arrow array, without a Python object for each.

Buffers are as Arrow has them: UTF-8, and for each row the 32-bit offset of its end behind that of its begin.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp

from robots_core.robots._native.matching cimport NO_MEMORY, Matcher


cdef enum:
    BEGINNING = 256  # bytes of the longest beginning of a URL that is read here
    URL = 16 * 1024  # bytes of the longest URL (spec A31)
    ROBOTS_TXT = -3  # instead of a rule's number; those of a matcher are -1 and above


cdef class _Buffers:
    """The buffers of a call, which last as long as this object."""

    cdef Py_buffer _views[6]
    cdef int _count

    cdef char *get(self, object buffer, Py_ssize_t bytes_, int flags=PyBUF_SIMPLE) except? NULL:
        """The memory of a buffer, which must have so many bytes."""
        PyObject_GetBuffer(buffer, &self._views[self._count], flags)
        self._count += 1
        if self._views[self._count - 1].len < bytes_:
            raise ValueError("A buffer is shorter than its rows.")
        return <char *>self._views[self._count - 1].buf

    def __dealloc__(self):
        cdef int each
        for each in range(self._count):
            PyBuffer_Release(&self._views[each])


def split(data, offsets, Py_ssize_t first, Py_ssize_t count, dict seen not None, codes, starts, ends):
    """Split `count` URLs from row `first` on: the number of each beginning in `seen`, and where its path lies.

    A beginning is what is before the first slash of the path; new ones are numbered as they come. `codes`, `starts` and
    `ends` take 32-bit numbers; a code of -1 is for what has no `://`, no path or a long beginning, is too long, or has
    other characters before the path that may end a host.
    """
    cdef _Buffers buffers = _Buffers()
    cdef const int32_t *offset = <const int32_t *>buffers.get(offsets, 4 * (first + count + 1)) + first
    cdef const uint8_t *text = <const uint8_t *>buffers.get(data, offset[count])
    cdef int32_t *code = <int32_t *>buffers.get(codes, 4 * count, PyBUF_WRITABLE)
    cdef int32_t *start = <int32_t *>buffers.get(starts, 4 * count, PyBUF_WRITABLE)
    cdef int32_t *end = <int32_t *>buffers.get(ends, 4 * count, PyBUF_WRITABLE)
    cdef int32_t number = -1
    cdef Py_ssize_t at, begin, stop, last = 0, length = -1  # wider than offsets, as `at` may go beyond the last one
    cdef const uint8_t *mark
    cdef Py_ssize_t row
    for row in range(count):
        begin, stop = offset[row], offset[row + 1]
        if begin < 0 or stop < begin or stop > offset[count]:
            raise ValueError("The offsets of an array do not ascend.")
        at = begin
        while at < stop and at < begin + 8 and text[at] != c":":  # `https://` has 8 characters
            at += 1
        at += 3
        while at < stop and text[at] != c"/" and text[at] != c"?" and text[at] != c"#" and text[at] != c"\\":
            at += 1
        if at >= stop or text[at] != c"/" or stop - begin > URL or at - begin > BEGINNING:
            code[row] = -1
            start[row] = end[row] = <int32_t>begin
            continue
        start[row] = <int32_t>at
        mark = <const uint8_t *>memchr(text + at, c"#", stop - at)
        end[row] = <int32_t>(stop if mark == NULL else mark - text)
        if at - begin != length or memcmp(text + begin, text + last, length):
            last, length = begin, at - begin
            key = PyBytes_FromStringAndSize(<const char *>text + begin, length)
            number = seen.setdefault(key, len(seen))
        code[row] = number


def first_of_each(list plain not None, list with_query not None, groups, data, starts, ends, Py_ssize_t count, found):
    """Write the number of the first rule for each path to `found`, in 32 bits: as Matcher.first, or -3 for /robots.txt.

    The group of a row chooses the matcher: that of `with_query` if the path has a query, else that of `plain`. None:
    the path is not matched, and its number is 0.
    """
    cdef _Buffers buffers = _Buffers()
    cdef const int32_t *group = <const int32_t *>buffers.get(groups, 4 * count)
    cdef const int32_t *start = <const int32_t *>buffers.get(starts, 4 * count)
    cdef const int32_t *end = <const int32_t *>buffers.get(ends, 4 * count)
    cdef int32_t *number = <int32_t *>buffers.get(found, 4 * count, PyBUF_WRITABLE)
    cdef const uint8_t *text = <const uint8_t *>buffers.get(data, 0)
    cdef Py_ssize_t size = buffers._views[buffers._count - 1].len
    cdef uint8_t *room = <uint8_t *>malloc(12 * URL + 1)
    cdef uint32_t length
    cdef int64_t rule
    cdef Py_ssize_t row
    cdef Matcher matcher
    try:
        if room == NULL:
            raise MemoryError
        for row in range(count):
            if not 0 <= start[row] <= end[row] <= size or end[row] - start[row] > URL:
                raise ValueError("A path is too long, or outside of the text.")
            length = <uint32_t>(end[row] - start[row])
            if length == 11 and not memcmp(text + start[row], b"/robots.txt", 11):
                number[row] = ROBOTS_TXT
                continue
            matcher = with_query[group[row]] if memchr(text + start[row], c"?", length) else plain[group[row]]
            number[row] = 0
            if matcher is not None:
                rule = matcher.find_in(text + start[row], length, room, NULL)
                if rule == NO_MEMORY:
                    raise MemoryError
                number[row] = <int32_t>rule
    finally:
        free(room)
