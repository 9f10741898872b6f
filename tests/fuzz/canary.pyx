"""Mistakes of purpose: `make sanitize` believes its sanitizers only when they have found these."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc


def read_past_the_end(Py_ssize_t size):
    """The octet behind `size` octets that were asked for."""
    cdef char *octets = <char *>PyMem_Malloc(size)
    if octets == NULL:
        raise MemoryError
    cdef Py_ssize_t at
    for at in range(size):
        octets[at] = 0
    found = octets[size]
    PyMem_Free(octets)
    return found


def count_past_the_largest(int number):
    """The number after `number`, which the largest does not have."""
    return number + 1
