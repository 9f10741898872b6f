"""Texts side by side in one piece of memory (texts.pyi)."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy


@cython.final
@cython.no_gc
cdef class Texts:
    def __cinit__(self, texts=None):
        cdef list encoded
        cdef bytes each
        cdef uint32_t *bounds = NULL
        cdef uint8_t *octets = NULL
        cdef Py_ssize_t at
        if texts is None:
            return  # for room_for
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._allocate(len(encoded), sum(map(len, encoded)), &bounds, &octets)
        for at in range(self.count):
            each = encoded[at]
            memcpy(octets + bounds[at], PyBytes_AS_STRING(each), PyBytes_GET_SIZE(each))
            bounds[at + 1] = bounds[at] + <uint32_t>PyBytes_GET_SIZE(each)  # no more than their sum, which fits

    def __dealloc__(self):
        PyMem_Free(<void *>self.bounds)

    cdef int _allocate(self, Py_ssize_t count, size_t size, uint32_t **bounds, uint8_t **octets) except -1:
        # Both in one block, bounds first. Neither factor nor sum overflows 64 bits.
        if count >= 0x7FFFFFFF or size > 0xFFFFFFFF:
            raise OverflowError(f"{count} texts of {size} octets are more than can be told apart")
        bounds[0] = <uint32_t *>PyMem_Malloc((<size_t>count + 1) * sizeof(uint32_t) + size)
        if bounds[0] == NULL:
            raise MemoryError
        octets[0] = <uint8_t *>(bounds[0] + count + 1)
        bounds[0][0] = 0
        self.bounds, self.octets, self.count = bounds[0], octets[0], count
        return 0

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        if isinstance(at, slice):
            return [self.text(each) for each in range(*at.indices(self.count))]
        if not -self.count <= at < self.count:
            raise IndexError(f"there are {self.count} texts, and none at {at}")
        return self.text(at if at >= 0 else at + self.count)

    cdef str text(self, Py_ssize_t at):
        """That at a place below the count."""
        cdef Py_ssize_t length = self.bounds[at + 1] - self.bounds[at]
        return PyUnicode_DecodeUTF8(<const char *>(self.octets + self.bounds[at]), length, "surrogatepass")

    cdef Texts some(self, const uint32_t *places, Py_ssize_t count):
        """Those at so many places, all of them below the count."""
        cdef uint32_t *bounds = NULL
        cdef uint8_t *octets = NULL
        cdef uint32_t length
        cdef size_t size = 0
        cdef Py_ssize_t at
        cdef Texts found
        for at in range(count):
            size += self.bounds[places[at] + 1] - self.bounds[places[at]]
        found = room_for(count, size, &bounds, &octets)
        for at in range(count):
            length = self.bounds[places[at] + 1] - self.bounds[places[at]]
            memcpy(octets + bounds[at], self.octets + self.bounds[places[at]], length)
            bounds[at + 1] = bounds[at] + length
        return found


cdef Texts room_for(Py_ssize_t count, size_t size, uint32_t **bounds, uint8_t **octets):
    """Texts with room for so many of so many octets in all; the caller writes the octets, and each bound but the first.
    """
    cdef Texts texts = Texts.__new__(Texts)
    texts._allocate(count, size, bounds, octets)
    return texts
