cimport cython
from libc.stdint cimport uint32_t

from app.robots.compiled.spelling cimport Speller


@cython.final
cdef class Rules:
    cdef tuple _groups
    cdef Speller _spell
    # One piece of memory: for each group, where the numbers of its directives begin; then, in order of precedence, the
    # number of each rule, with SECOND where it stands for the second time.
    cdef uint32_t *_begins
    cdef uint32_t *_numbers
    cdef Py_ssize_t _count
    cdef bint _seconds  # whether any stands there twice

    cdef tuple _directive(self, uint32_t number)
    cdef int _check(self, Py_ssize_t place) except -1
