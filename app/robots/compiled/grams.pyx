# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Names for the texts of patterns, and gates for the patterns (grams.pxd).

A number stands for each gram (1 to 4, 8, 16, 32, ... octets) that texts are made of. A text of another length is the
two of the greatest width below its length that it begins and ends with: they touch or overlap, so they are the whole
text. The key of a gram of up to 8 octets are these; that of a wider one is a hash, made of those of its halves, so that
to hash all grams of a subject takes a step for each offset and width. Equal texts have equal names; equal names mean
equal texts up to 16 octets, and what is longer is compared where it is found.

Of each pattern, a gram that few others have is its gate: if that does not stand in the subject, nobody looks at it.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memchr, memcpy, memset

from cpython.mem cimport PyMem_Free

from app.robots.compiled.blocks cimport fitted, grown, zeroed
from app.robots.compiled.hashing cimport SPREAD, Octets, hashed_word, loaded, slot_behind, slot_of
from app.robots.compiled.trying cimport Pattern

cdef enum:
    SAMPLED = 8  # texts of a pattern that its gate is chosen from
    SPARSE = 8  # slots for each name
    SPARSER = 4096  # so few names of a class have more: as many as there are octets to each,
    SPARSEST = 32  # up to so many
    SHARED = 16  # so many patterns behind one gate are not worth another width of gram

# What numbers of 32 bits hold; of so many slots, half are free with so many names.
cdef size_t MOST_NAMES = 0x7FFFFFFF
cdef size_t MOST_SLOTS = 0xFFFFFFFF
# In place of how many patterns a text may be the gate of.
cdef uint32_t NO_GRAM = 0xFFFFFFFF

cdef uint64_t *_row = NULL
cdef size_t _row_room = 0


cdef inline uint64_t _key(Octets text, size_t width) noexcept:
    """The octets of a gram of up to 8."""
    cdef uint64_t octets = 0
    if width == EXACT:
        return loaded(text)
    if width == HALF:
        memcpy(&octets, text, 4)
        return octets
    memcpy(&octets, text, width)
    return octets


cdef uint64_t _hash_of_gram(Octets text, size_t width, uint64_t secret) except? 0:
    global _row
    cdef size_t count = width // (2 * EXACT), at
    _row = <uint64_t *> grown(_row, &_row_room, count, sizeof(uint64_t))
    for at in range(count):
        _row[at] = hash_of_both(loaded(text + 16 * at), loaded(text + 16 * at + 8), secret)
    while count > 1:
        count >>= 1
        for at in range(count):
            _row[at] = hash_of_both(_row[2 * at], _row[2 * at + 1], secret)
    return _row[0]


cdef inline uint64_t _hashed_name(int number, uint64_t key, size_t length, uint64_t secret) noexcept:
    """The hash of a key of that class; only texts that are no grams have keys that can mean several lengths."""
    return hashed_word(key ^ length * SPREAD if number == WIDE else key, secret)


cdef inline void _settle(
    uint32_t *slots, size_t size, uint32_t name, int number, const Name *names, uint64_t secret
) noexcept:
    """Put a name that is not there into its slot."""
    cdef uint64_t slot = slot_of(_hashed_name(number, names[name].key, names[name].length, secret), size)
    while slots[slot]:
        slot = slot_behind(slot, size)
    slots[slot] = name


cdef inline uint64_t _of_numbers(uint64_t key, const uint32_t *numbers) noexcept:
    """The key of a text of two parts whose names get other numbers."""
    return <uint64_t> numbers[key >> 32] << 32 | numbers[<uint32_t> key]


cdef class Grams:
    def __dealloc__(self):
        cdef int number
        PyMem_Free(self.names)
        PyMem_Free(self.spelled)
        PyMem_Free(self.gated)
        for number in range(CLASSES):
            PyMem_Free(self.tables[number].slots)

    cdef int make(self, Octets texts, Pattern *starred, uint32_t count, uint64_t secret) except -1:
        """Name the texts of the patterns with stars, and give each of these its gate."""
        cdef uint32_t number
        cdef uint32_t *gates = NULL  # by pattern, where its grams begin among those drawn; then its gate
        cdef Drawn drawn
        self.secret = secret
        memset(&drawn, 0, sizeof(drawn))
        try:
            gates = <uint32_t *> zeroed(count + 1, sizeof(uint32_t))
            self.names = <Name *> grown(self.names, &self._names_room, 2, sizeof(Name))
            self.count = 1
            for number in range(count):
                starred[number].names = <uint32_t> self._spelled_count
                gates[number] = <uint32_t> drawn.count
                self._spell(texts, &starred[number], &drawn)
            starred[count].names = <uint32_t> self._spelled_count
            gates[count] = <uint32_t> drawn.count
            for number in range(count):
                gates[number] = self._gate(drawn.names + gates[number], gates[number + 1] - gates[number])
            self._renumber(gates, count)
            self._make_gates(gates, count)
        finally:
            PyMem_Free(drawn.names)
            PyMem_Free(gates)
        self.spelled = <uint32_t *> fitted(self.spelled, self._spelled_count, sizeof(uint32_t))
        return 0

    cdef int _spell(self, Octets texts, const Pattern *it, Drawn *drawn) except -1:
        """Name the texts of a pattern, and draw grams of it: of its first few texts and of its end."""
        cdef Octets text = texts + it.text
        cdef size_t begin = it.stem + 1, stop = it.length - it.end, end
        cdef int drawn_from = 0
        cdef uint32_t ends[2]
        cdef const void *star
        while begin < stop:
            star = memchr(text + begin, c"*", stop - begin)
            end = stop if star == NULL else <Octets> star - text
            self.spelled = <uint32_t *> grown(
                self.spelled, &self._spelled_room, self._spelled_count + 1, sizeof(uint32_t)
            )
            self.spelled[self._spelled_count] = self._name_of(text + begin, end - begin, ends)
            self._spelled_count += 1
            if drawn_from < SAMPLED:
                self._draw(drawn, ends)
                drawn_from += 1
            begin = end + 1
        if it.end:
            self._grams_at_ends(text + stop, it.end, ends)
            self._draw(drawn, ends)
        return 0

    cdef int _draw(self, Drawn *drawn, uint32_t[2] ends) except -1:
        cdef int at
        drawn.names = <uint32_t *> grown(drawn.names, &drawn.room, drawn.count + 2, sizeof(uint32_t))
        for at in range(1 + (ends[0] != ends[1])):
            drawn.names[drawn.count] = ends[at]
            drawn.count += 1
            self.names[ends[at]].gates += 1
        return 0

    cdef uint32_t _name_of(self, Octets text, size_t length, uint32_t[2] ends) except? 0xFFFFFFFF:
        """The name of a text; `ends`: the grams of up to 8 octets that it begins and ends with."""
        cdef size_t width
        cdef uint64_t left, right
        cdef int number
        self._grams_at_ends(text, length, ends)
        if is_gram(length):
            return ends[0]
        left, right = ends[0], ends[1]
        if length > 2 * EXACT:
            width = part_of(length)
            number = class_of(width)
            left = self._named(number, _hash_of_gram(text, width, self.secret), width)
            right = self._named(number, _hash_of_gram(text + length - width, width, self.secret), width)
        return self._named(WIDE, left << 32 | right, length)

    cdef int _grams_at_ends(self, Octets text, size_t length, uint32_t[2] ends) except -1:
        """The widest grams of up to 8 octets that a text begins and ends with; they touch in one of up to 16."""
        cdef size_t width = length if length <= HALF else HALF if length < EXACT else EXACT
        cdef int number = class_of(width)
        ends[0] = ends[1] = self._named(number, _key(text, width), width)
        if length > width:
            ends[1] = self._named(number, _key(text + length - width, width), width)
        return 0

    cdef uint32_t _named(self, int number, uint64_t key, size_t length) except? 0xFFFFFFFF:
        """The name of a text by its class and key, new or not."""
        cdef Table *table = &self.tables[number]
        cdef uint64_t slot
        cdef Name *name
        if 2 * table.count >= table.size:
            self._enlarge(number)
        slot = slot_of(_hashed_name(number, key, length, self.secret), table.size)
        while table.slots[slot]:
            name = &self.names[table.slots[slot]]
            if name.key == key and name.length == length:
                return table.slots[slot]
            slot = slot_behind(slot, table.size)
        if self.count > MOST_NAMES:
            raise OverflowError("the texts of these patterns are too many to be matched")
        self.names = <Name *> grown(self.names, &self._names_room, self.count + 2, sizeof(Name))
        name = &self.names[self.count]
        name.key, name.length, name.gates = key, <uint32_t> length, NO_GRAM if number == WIDE else 0
        table.slots[slot] = <uint32_t> self.count
        table.count += 1
        self.count += 1
        return table.slots[slot]

    cdef int _enlarge(self, int number) except -1:
        cdef Table *table = &self.tables[number]
        cdef size_t size = min(max(4 * table.size, 64), MOST_SLOTS)
        cdef uint32_t *slots = <uint32_t *> zeroed(size, sizeof(uint32_t))
        cdef size_t at
        for at in range(table.size):
            if table.slots[at]:
                _settle(slots, size, table.slots[at], number, self.names, self.secret)
        PyMem_Free(table.slots)
        table.slots, table.size = slots, size
        return 0

    cdef int _renumber(self, uint32_t *gates, uint32_t starred) except -1:
        """Number names by class, and in each as patterns have them: what is looked up together lies together then."""
        cdef uint32_t *numbers = NULL  # by those before
        cdef Name *names = NULL
        cdef uint32_t behind[CLASSES]
        cdef uint32_t count = 1, name
        cdef size_t at
        cdef int number
        try:
            numbers = <uint32_t *> zeroed(self.count, sizeof(uint32_t))
            names = <Name *> zeroed(self.count + 1, sizeof(Name))
            for number in range(CLASSES):
                behind[number] = count
                count += <uint32_t> self.tables[number].count
            for name in range(1, <uint32_t> self.count):
                number = self._class_of_name(name)
                numbers[name] = behind[number]
                names[behind[number]] = self.names[name]
                behind[number] += 1
                if number == WIDE:  # it is of two that have been named before
                    names[numbers[name]].key = _of_numbers(self.names[name].key, numbers)
            for at in range(self._spelled_count):
                self.spelled[at] = numbers[self.spelled[at]]
            for at in range(starred):
                gates[at] = numbers[gates[at]]
            PyMem_Free(self.names)
            self.names, self._names_room, names = names, self.count + 1, NULL
        finally:
            PyMem_Free(numbers)
            PyMem_Free(names)
        for number in range(WIDE):
            if self.tables[number].count:
                self._fit(number, behind[number])
        PyMem_Free(self.tables[WIDE].slots)  # these are never looked up again
        memset(&self.tables[WIDE], 0, sizeof(Table))
        return 0

    cdef int _class_of_name(self, uint32_t name) noexcept:
        return WIDE if self.names[name].gates == NO_GRAM else class_of(self.names[name].length)

    cdef int _fit(self, int number, uint32_t behind) except -1:
        """Put the names of a class, which are those before `behind`, into slots that fit.

        Where most grams of a subject have no name, what takes longest is to be told so by a slot that another one has.
        """
        cdef Table *table = &self.tables[number]
        cdef uint32_t name
        PyMem_Free(table.slots)
        table.slots = NULL
        table.size = min(SPARSE * table.count, MOST_SLOTS)
        if table.count <= SPARSER:
            table.size = min(max(width_of(number), SPARSE), SPARSEST) * table.count
        table.slots = <uint32_t *> zeroed(table.size, sizeof(uint32_t))
        for name in range(behind - <uint32_t> table.count, behind):
            _settle(table.slots, table.size, name, number, self.names, self.secret)
        return 0

    cdef uint32_t _gate(self, const uint32_t *drawn, size_t count) noexcept:
        """The gram that fewest patterns share; but a wide one will do that few share, so that few widths are used."""
        cdef uint32_t best = drawn[0]
        cdef uint64_t least = <uint64_t> -1, cost
        cdef Name *name
        cdef size_t at
        for at in range(count):
            name = &self.names[drawn[at]]
            cost = name.gates
            cost += (EXACT - name.length) * SHARED if cost <= SHARED else EXACT * SHARED
            if cost < least:
                best, least = drawn[at], cost
        return best

    cdef int _make_gates(self, const uint32_t *gates, uint32_t starred) except -1:
        """Sort patterns by their gates."""
        cdef uint32_t number, behind = 0, before
        cdef size_t name
        self.gated = <uint32_t *> zeroed(starred, sizeof(uint32_t))
        for name in range(self.count + 1):
            self.names[name].gates = 0
        for number in range(starred):
            self.names[gates[number]].gates += 1
            self.gate_classes |= <uint32_t> 1 << class_of(self.names[gates[number]].length)
        for name in range(self.count + 1):
            before = behind
            behind += self.names[name].gates
            self.names[name].gates = before
        # Each where its gate's next one goes; then all of them have moved on to where the next name's begin.
        for number in range(starred):
            self.gated[self.names[gates[number]].gates] = number
            self.names[gates[number]].gates += 1
        for name in range(self.count, 0, -1):
            self.names[name].gates = self.names[name - 1].gates
        self.names[0].gates = 0
        return 0
