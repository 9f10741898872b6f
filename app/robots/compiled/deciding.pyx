"""A decision: which of the rules of an agent is the first that matches a path, whose query may have two forms.

Patterns that the form makes others of match as they are no subject that it has spelt, and none without a `?`; all
others are asked with a subject in either form. So no pattern is asked more than twice, by three indexes: one of those
that the form leaves alone, one of the others as they are, and one of these as the form has them.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.unicode cimport PyUnicode_FindChar
from libc.stdint cimport uint8_t, uint32_t

from app.robots.compiled.rules cimport Rules
from app.robots.compiled.spelling cimport Speller
from app.robots.compiled.texts cimport Texts, room_for


cdef class Decider:
    cdef readonly Rules rules
    cdef readonly object subject
    cdef Speller _form
    cdef object _make_index
    cdef Py_ssize_t _count
    # The places of those that the form leaves alone, then of the others, both ascending; NULL: there are no others.
    cdef uint32_t *_places
    cdef Py_ssize_t _alone
    cdef object _plain
    cdef object _plain_first
    cdef object _asking
    cdef Texts _unformed  # what the third index will be made of when a query first comes
    cdef object _formed

    def __cinit__(self, Rules rules not None, Texts patterns not None, subject, index, Speller form=None):
        if len(rules) != patterns.count:
            raise ValueError(f"{len(rules)} rules have {patterns.count} patterns")
        self.rules = rules
        self.subject = subject
        self._form = form
        self._make_index = index
        self._count = patterns.count
        if form is not None and not form.leaves_all(patterns.octets, patterns.bounds[patterns.count]):
            patterns = self._parted(patterns)
        self._plain = index(patterns)
        self._plain_first = self._plain.first

    def __dealloc__(self):
        PyMem_Free(self._places)

    cdef Texts _parted(self, Texts patterns):
        """Those that the form leaves alone; an index is made of the others, if there are any."""
        cdef Py_ssize_t place, alone = 0, others = patterns.count, last
        cdef uint32_t *places = <uint32_t *>PyMem_Malloc(patterns.count * sizeof(uint32_t))
        if places == NULL:
            raise MemoryError
        for place in range(patterns.count):
            if self._form.changes(
                patterns.octets + patterns.bounds[place], patterns.bounds[place + 1] - patterns.bounds[place]
            ):
                others -= 1
                places[others] = <uint32_t>place
            else:
                places[alone] = <uint32_t>place
                alone += 1
        if alone == patterns.count:
            PyMem_Free(places)
            return patterns
        # The others stand there from the last to the first.
        self._places, self._alone, last = places, alone, patterns.count - 1
        while others < last:
            places[others], places[last] = places[last], places[others]
            others += 1
            last -= 1
        self._unformed = patterns.some(places + alone, patterns.count - alone)
        self._asking = self._make_index(self._unformed)
        return patterns.some(places, alone)

    def __len__(self):
        return self._count

    def first(self, str path not None):
        cdef str subject = self._subject(path), formed
        cdef Py_ssize_t place
        if self._form is None or not _asks(subject):
            return self._plain_first(subject) if self._places == NULL else self._among_plain(self._plain_first(subject))
        formed = self._form.spell(subject)
        place = self._among_plain(self._plain_first(subject))
        if formed is not subject:
            place = min(place, self._among_plain(self._plain_first(formed)))
        if self._places != NULL:
            place = min(place, self._among_others(self._asking.first(subject)))
            place = min(place, self._among_others(self._formed_index().first(formed)))
        return place

    def places(self, str path not None):
        cdef str subject = self._subject(path), formed
        cdef Py_ssize_t place
        cdef uint8_t *matches
        if self._form is None or (self._places == NULL and not _asks(subject)):
            return self._plain.every(subject)
        plain, others = [self._plain.every(subject)], []
        if _asks(subject):
            formed = self._form.spell(subject)
            if formed is not subject:
                plain.append(self._plain.every(formed))
            if self._places != NULL:
                others = [self._asking.every(subject), self._formed_index().every(formed)]
        matches = <uint8_t *>PyMem_Calloc(self._count + 1, 1)  # by place; the last is that of no pattern
        if matches == NULL:
            raise MemoryError
        try:
            for found in plain:
                for place in found:
                    matches[self._among_plain(place)] = True
            for found in others:
                for place in found:
                    matches[self._among_others(place)] = True
            return [place for place in range(self._count) if matches[place]]
        finally:
            PyMem_Free(matches)

    cdef inline str _subject(self, str path):
        return (<Speller>self.subject).spell(path) if type(self.subject) is Speller else self.subject(path)

    cdef inline Py_ssize_t _among_plain(self, Py_ssize_t found) noexcept:
        """The place among all of what an index of the first part has found; none is its number of patterns."""
        if self._places == NULL:
            return found
        return self._places[found] if 0 <= found < self._alone else self._count

    cdef inline Py_ssize_t _among_others(self, Py_ssize_t found) noexcept:
        return self._places[self._alone + found] if 0 <= found < self._count - self._alone else self._count

    cdef object _formed_index(self):
        # Made when a query first comes; another thread may make it meanwhile as well, and either is good.
        cdef Texts unformed = self._unformed
        if self._formed is None:
            self._formed = self._make_index(_formed(unformed, self._form))
            self._unformed = None
        return self._formed


cdef Texts _formed(Texts texts, Speller form):
    """All of them as `form` has them. There is more room than they need: they are kept no longer than a call."""
    cdef uint32_t *bounds = NULL
    cdef uint8_t *octets = NULL
    cdef Py_ssize_t at
    cdef Texts formed = room_for(texts.count, texts.bounds[texts.count] * form.widest, &bounds, &octets)
    for at in range(texts.count):
        bounds[at + 1] = bounds[at] + <uint32_t>form.put(
            texts.octets + texts.bounds[at], texts.bounds[at + 1] - texts.bounds[at], octets + bounds[at]
        )
    return formed


cdef bint _asks(str subject) except -1:
    return PyUnicode_FindChar(subject, u"?", 0, len(subject), 1) >= 0
