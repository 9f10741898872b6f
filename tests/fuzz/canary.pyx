"""Deliberate bugs: `make sanitize` first checks that its sanitizers detect these."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc


def read_past_the_end(Py_ssize_t size):
    """The byte after an allocation of `size` bytes."""
    cdef char *room = <char *>PyMem_Malloc(size)
    if room == NULL:
        raise MemoryError
    cdef Py_ssize_t at
    for at in range(size):
        room[at] = 0
    found = room[size]
    PyMem_Free(room)
    return found


def count_past_the_largest(int number):
    """The number after `number`, which overflows for the largest int."""
    return number + 1
