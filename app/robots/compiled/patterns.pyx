# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Patterns in order of precedence, and the first of them that a subject matches (spec D2, D3, E6).

All texts are UTF-8 here: what begins with a text, or holds it, does so by octets as by characters, since no octet that
begins a character stands within one. A *place* is the rank of a pattern, from 0, in order of precedence; an offset is
one of octets. Where a pattern has stars, the text before the first is its *head*, and each text between two stars takes
the first offset behind the one before: a later one could only leave less for the rest.

A few patterns are tried one by one. Of many, prefixes, whole subjects and heads stand in one table by a hash of theirs,
which is asked once for each length that occurs. What is left are patterns with stars whose heads fit:

- *Names.* A number stands for each gram (1 to 8 octets, or 16, 32, ...) that texts are made of. A text of up to 8
  octets is a gram; a longer one is the two of the greatest width below its length that it begins and ends with: they
  touch or overlap, so they are the whole text. A gram wider than 8 is in turn the two it is made of. So equal names
  mean equal texts, and nothing that is found has to be compared.
- *Gates.* Of each pattern, a gram that few others have; if it does not stand in the subject, nobody looks at it.
- A short subject's patterns with open gates are tried one by one. When that comes to more work than it should, or the
  subject is long, the offsets of all grams of a width are found in one pass, when the first text of that width is asked
  for, and texts are looked up. That has a bound which nobody can push far: a pass for each width, and for each text of
  a pattern a step, which in the worst of cases goes through a bitset of the subject; and who asks for the same text
  again and again has all its offsets found once.

What a decision works with is memory of the module, used by one after another: the GIL is held throughout, and no
Python is run while it is in use. What is in it from decisions before is told by its stamp, so that nothing is cleared.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc

from collections.abc import Sequence
from os import urandom

from app.robots.compiled.texts cimport Texts


cdef extern from "Python.h":
    bint PyUnicode_Check(object)
    bint PyUnicode_IS_ASCII(object)
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static int lowest_bit(unsigned __int64 word) { unsigned long at; _BitScanForward64(&at, word); return (int)at; }
    #else
    #define lowest_bit(word) __builtin_ctzll(word)
    #endif

    /* Where the loader can choose, a second version for processors that compute with 256 bits. */
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define WIDER __attribute__((target_clones("avx2", "default")))
    #else
    #define WIDER
    #endif

    /* The product of two words, both of its halves in one. */
    static inline uint64_t stirred(uint64_t word, uint64_t factor)
    {
    #if defined(__SIZEOF_INT128__)
        unsigned __int128 product = (unsigned __int128)word * factor;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    #else
        uint64_t low = word & 0xFFFFFFFF, high = word >> 32, less = factor & 0xFFFFFFFF, more = factor >> 32;
        uint64_t one = high * less, other = low * more, carried = (low * less >> 32) + (uint32_t)one + (uint32_t)other;
        return word * factor ^ (high * more + (one >> 32) + (other >> 32) + (carried >> 32));
    #endif
    }

    #define SPREAD UINT64_C(0x9E3779B97F4A7C15)

    #define WORD_OF_BOTH(index) (ahead[index] & (behind[index] >> shift | behind[(index) + 1] << 1 << (63 - shift)))

    #if defined(__GNUC__)
    typedef uint64_t four_words __attribute__((vector_size(32), aligned(8), may_alias));
    #define FOUR(words) (*(const four_words *)(words))
    #define FOUR_OF_BOTH(index) \
        (FOUR(ahead + (index)) \
         & (FOUR(behind + (index)) >> (uint64_t)shift | FOUR(behind + (index) + 1) << 1 << (uint64_t)(63 - shift)))
    #endif

    static WIDER size_t
    common_word(const uint64_t *ahead, const uint64_t *behind, int shift, size_t index, size_t last)
    {
    #if defined(__GNUC__)
        for (; index + 7 <= last; index += 8) {
            four_words any = FOUR_OF_BOTH(index) | FOUR_OF_BOTH(index + 4);
            if (any[0] | any[1] | any[2] | any[3])
                break;
        }
    #endif
        while (index <= last && !WORD_OF_BOTH(index))
            index++;
        return index;
    }
    """
    const uint64_t SPREAD  # what a length is multiplied by, so that it touches no bit of a name
    int lowest_bit(uint64_t word) noexcept
    uint64_t stirred(uint64_t word, uint64_t factor) noexcept
    # The first word, from `index` to `last`, or the one behind it, in which an offset of one bitset is an offset of the
    # other, less `shift`.
    size_t common_word(
        const uint64_t *ahead, const uint64_t *behind, int shift, size_t index, size_t last
    ) noexcept


ctypedef const uint8_t *Octets

cdef enum:
    FEW = 16  # so many patterns are tried one by one, whatever they are
    FEW_STARRED = 12  # so many patterns with stars are tried one by one
    SHORT = 512  # octets of a subject whose patterns with open gates are first tried one by one
    BLOCK = 16  # offsets that are looked at together
    HALF = 4
    EXACT = 8  # the widest gram whose octets are its key
    WIDEST = 4  # its class: wider ones are made of two
    WIDE = 33  # the class of texts that are no grams, behind those of the grams
    CLASSES = 34
    FREQUENT = 512  # a gram may have a bitset if it stands at more than one of so many offsets
    MOST_FREQUENT = 32  # and has one whatever others have, if at more than one of so many
    BITSETS = 1024  # of the others, in a decision
    DENSE = 128  # where both grams of a text stand at more than one of so many offsets, their bitsets are compared
    ASKED_ANEW = 3  # so often a text is looked for before more is made to find it by
    KEPT = 1 << 20  # offsets of texts of two grams, in a decision
    LISTED = -1000  # in place of the number of a bitset: all offsets are found
    LANES = 8  # so many patterns are followed at once
    SAMPLED = 8  # texts of a pattern that its gate is chosen from
    SPARSE = 8  # slots for each name
    SPARSER = 4096  # so few names of a class have more: as many as there are octets to each,
    SPARSEST = 32  # up to so many
    SHARED = 16  # so many patterns behind one gate are not worth another width of gram

# What may be spent on trying a few patterns, in octets looked at, before their texts are looked up.
cdef Py_ssize_t WORK_FEW = 1 << 19
# The same, for patterns with open gates.
cdef Py_ssize_t WORK_GATED = 1 << 16
# Patterns, octets of them all, and octets of a subject: what numbers of 32 bits hold with room to spare.
cdef size_t LIMIT = 0x7FFFFFFF
# Behind every offset.
cdef uint32_t NOWHERE = 0xFFFFFFFF
# In place of how many patterns a text may be the gate of.
cdef uint32_t NO_GRAM = 0xFFFFFFFF

cdef enum Kind:
    PREFIX
    WHOLE
    STARRED

cdef struct Pattern:
    # Its octets, with single stars, none at its end, and without the anchor; they begin at `text` in the index's own.
    uint32_t text, length
    uint32_t stem  # octets of its head, or all of them where it has no star
    uint32_t end  # octets behind its last star if it is anchored, or 0
    uint32_t head  # the number of its head
    uint32_t following  # the next pattern with stars that has this head, or 0
    uint32_t names  # where its names begin
    int32_t place
    Kind kind

cdef struct Stem:
    uint32_t text, length
    int32_t prefix, whole, head  # the lowest place, and the number of the head; or -1

cdef struct Head:
    uint32_t first, last, count  # patterns with stars that begin with it

cdef struct Name:
    uint64_t key  # the octets of a gram of up to 8, or the names of its two parts
    uint32_t length
    # Where those patterns begin that it is the gate of; they end where the next name's begin. While names are made, how
    # many patterns it may be the gate of, or NO_GRAM.
    uint32_t gates

cdef struct Table:
    uint32_t *slots  # a name or 0
    size_t size, count

cdef struct Drawn:
    uint32_t *names  # grams that stand in every subject that matches, pattern by pattern
    size_t room, count

cdef struct State:
    # Of a gram: how often it stands, where its offsets end in the posting, and the number of its bitset or -1.
    # Of another text, the same if all its offsets are found: `bits` is LISTED or the number of its bitset. Else it does
    # not stand between `count`, from where it was looked for, and `end`, where it was found, and `bits` is below 0.
    uint32_t round
    uint32_t count, end
    int32_t bits

cdef struct Standing:
    uint32_t *names  # of the gram at each offset, or 0
    uint32_t *posting  # the offsets of each gram, ascending
    size_t room
    uint64_t stamp
    uint64_t *hashes  # of the gram at each offset, if it is wider than 8 octets
    size_t hashes_room
    uint64_t hashes_stamp

cdef struct Lane:
    Pattern *pattern
    uint32_t at, name, end  # where it has come to, and which names are left
    uint32_t text  # where the text begins that is next

cdef struct Matches:
    int32_t *places
    size_t room, count


# ---- What decisions work with, one after another ----------------------------------------------------------------

cdef uint64_t _stamp = 0
cdef uint32_t _round = 0  # the stamp of states, which are to be small
cdef Standing _standing[CLASSES]
memset(_standing, 0, sizeof(_standing))
cdef State *_states = NULL
cdef size_t _states_room = 0
cdef uint32_t *_open = NULL
cdef size_t _open_room = 0, _open_count = 0
cdef uint64_t *_opened = NULL  # by head, the stamp of the last subject that began with it
cdef size_t _opened_room = 0
cdef uint64_t *_bitsets = NULL
cdef size_t _bitsets_room = 0, _bitsets_count = 0, _bitset_words = 0
cdef uint32_t *_kept = NULL
cdef size_t _kept_room = 0, _kept_count = 0
cdef uint8_t *_text = NULL
cdef size_t _text_length = 0
cdef size_t _text_room = 0
cdef uint64_t *_row = NULL
cdef size_t _row_room = 0
cdef uint32_t *_matched = NULL
cdef size_t _matched_room = 0
cdef uint64_t _masks[EXACT + 1]


cdef void _make_masks() noexcept:
    """What of eight octets belongs to a gram, by its width; octets in the order of this machine."""
    cdef int width
    for width in range(EXACT + 1):
        _masks[width] = 0
        memset(&_masks[width], 0xFF, width)


_make_masks()
cdef uint64_t _factor = int.from_bytes(urandom(8), "little") | 1


def hash_by(factor: int) -> int:
    """Have indexes made from now on hash by another `factor` than the secret one; that, or the one before, is returned.

    For tests: by 0, everything collides.
    """
    global _factor
    before = _factor
    _factor = factor
    return before


# ---- Memory ----------------------------------------------------------------------------------------------------

cdef void *_grown(void *block, size_t *room, size_t wanted, size_t item) except NULL:
    """`block` with room for `wanted` items or more of so many octets; what is new is zero."""
    cdef size_t more = room[0] + room[0] // 2
    cdef void *grown
    if wanted <= room[0] and block != NULL:
        return block
    more = max(more, wanted, 16)
    if more > (<size_t> -1 >> 1) // item:
        raise MemoryError
    grown = PyMem_Realloc(block, more * item)
    if grown == NULL:
        raise MemoryError
    memset(<char *> grown + room[0] * item, 0, (more - room[0]) * item)
    room[0] = more
    return grown


cdef void *_fitted(void *block, size_t count, size_t item) noexcept:
    """`block` without what is behind its first `count` items."""
    cdef void *fitted = PyMem_Realloc(block, max(count, 1) * item)
    return block if fitted == NULL else fitted


cdef void *_zeroed(size_t count, size_t item) except NULL:
    cdef void *block = PyMem_Calloc(max(count, 1), item)
    if block == NULL:
        raise MemoryError
    return block


cdef object _octets(object text, Octets *octets, size_t *length):
    """The UTF-8 of `text`, which stands as long as the object that is returned; a lone surrogate has three octets."""
    cdef Py_ssize_t size = 0
    cdef object held = text
    if not PyUnicode_Check(text):
        raise TypeError(f"{text!r} is no str")
    if PyUnicode_IS_ASCII(text):
        octets[0] = <Octets> PyUnicode_AsUTF8AndSize(text, &size)
    else:
        held = str.encode(text, "utf-8", "surrogatepass")
        octets[0] = <Octets> PyBytes_AS_STRING(held)
        size = PyBytes_GET_SIZE(held)
    if <size_t> size > LIMIT:
        raise OverflowError(f"a text of {size} octets is too long to be matched")
    length[0] = <size_t> size
    return held


# ---- Hashes ----------------------------------------------------------------------------------------------------

cdef inline uint64_t _hashed(uint64_t key, uint64_t factor) noexcept:
    """A key, spread over the highest bits: whoever does not know the factor cannot make keys that meet there."""
    return key * factor


cdef inline uint64_t _slot(uint64_t hashed, size_t size) noexcept:
    """Of so many slots, no more than 32 bits can tell, the one that the upper half of a hash says."""
    return (hashed >> 32) * size >> 32


cdef inline uint64_t _slot_behind(uint64_t slot, size_t size) noexcept:
    return slot + 1 if slot + 1 < size else 0


cdef inline uint64_t _loaded(Octets text) noexcept:
    cdef uint64_t octets
    memcpy(&octets, text, 8)
    return octets


cdef inline uint32_t _loaded_half(Octets text) noexcept:
    cdef uint32_t octets
    memcpy(&octets, text, 4)
    return octets


cdef inline uint64_t _key(Octets text, size_t width) noexcept:
    """The octets of a gram of up to 8."""
    cdef uint64_t octets = 0
    if width == EXACT:
        return _loaded(text)
    if width == HALF:
        memcpy(&octets, text, 4)
        return octets
    memcpy(&octets, text, width)
    return octets


cdef inline uint64_t _last_word(Octets text, size_t length) noexcept:
    """The last 8 octets of a text; of a shorter one all, so that no other of its length has the same."""
    if length >= 8:
        return _loaded(text + length - 8)
    if length >= 4:
        return <uint64_t> _loaded_half(text + length - 4) << 32 | _loaded_half(text)
    if length == 0:
        return 0
    return text[0] | <uint64_t> text[length >> 1] << 8 | <uint64_t> text[length - 1] << 16


cdef inline uint64_t _hashed_words(
    Octets text, size_t begin, size_t end, uint64_t hashed, uint64_t secret
) noexcept:
    """The hash of so many whole words of a text, by that of those up to `begin`."""
    while begin + 8 <= end:
        hashed = stirred(hashed ^ _loaded(text + begin), secret)
        begin += 8
    return hashed


cdef inline uint64_t _hashed_last(Octets text, size_t length, uint64_t hashed, uint64_t secret) noexcept:
    """The hash of a text by that of its whole words."""
    return stirred(hashed ^ _last_word(text, length) ^ length * SPREAD, secret)


cdef inline uint64_t _hash_of(Octets text, size_t length, uint64_t hashed, uint64_t secret) noexcept:
    return _hashed_last(text, length, _hashed_words(text, 0, length, hashed, secret), secret)


cdef inline uint64_t _hash_of_both(uint64_t left, uint64_t right, uint64_t secret) noexcept:
    """The hash of a gram of 16 octets or more by those of its halves; of one of 8, these are the octets."""
    return stirred(left ^ secret, right ^ secret * SPREAD)


cdef uint64_t _hash_of_gram(Octets text, size_t width, uint64_t secret) except? 0:
    global _row
    cdef size_t count = width // (2 * EXACT), at
    _row = <uint64_t *> _grown(_row, &_row_room, count, sizeof(uint64_t))
    for at in range(count):
        _row[at] = _hash_of_both(_loaded(text + 16 * at), _loaded(text + 16 * at + 8), secret)
    while count > 1:
        count >>= 1
        for at in range(count):
            _row[at] = _hash_of_both(_row[2 * at], _row[2 * at + 1], secret)
    return _row[0]


cdef int _hash_grams(int number, size_t length, uint64_t secret) except -1:
    """Hash what stands at each offset of the subject, as far as there are grams of that class, wider than 8 octets."""
    cdef int above
    cdef size_t half, at
    cdef const uint64_t *halves
    cdef uint64_t *hashes
    cdef Standing *standing
    for above in range(WIDEST + 1, number + 1):
        standing = &_standing[above]
        if standing.hashes_stamp == _stamp:
            continue
        half = _width_of(above - 1)
        standing.hashes = <uint64_t *> _grown(standing.hashes, &standing.hashes_room, length, sizeof(uint64_t))
        hashes = standing.hashes
        if above == WIDEST + 1:
            for at in range(length - 2 * half + 1):
                hashes[at] = _hash_of_both(_loaded(_text + at), _loaded(_text + at + half), secret)
        else:
            halves = _standing[above - 1].hashes
            for at in range(length - 2 * half + 1):
                hashes[at] = _hash_of_both(halves[at], halves[at + half], secret)
        standing.hashes_stamp = _stamp
    return 0


cdef inline bint _is_gram(size_t length) noexcept:
    return length <= HALF or length == EXACT


cdef inline int _class_of(size_t width) noexcept:
    """The class of grams of that width, from 0: 1 to 4, or a power of two."""
    cdef int found = HALF - 1
    if width <= HALF:
        return <int> width - 1
    while width > HALF:
        width >>= 1
        found += 1
    return found


cdef inline size_t _width_of(int number) noexcept:
    """The width of the grams of a class."""
    return <size_t> number + 1 if number < HALF else <size_t> HALF << (number - HALF + 1)


cdef inline size_t _part(size_t length) noexcept:
    """The width of the two grams that a text is which is none: the greatest below its length."""
    cdef size_t width = HALF
    while 2 * width < length:
        width *= 2
    return width


# ---- Trying one pattern ----------------------------------------------------------------------------------------

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


cdef int _matches(Octets texts, Pattern *it, Octets subject, size_t length, Py_ssize_t *work) noexcept:
    """Whether a pattern with stars matches; -1: that was too much work."""
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


# ---- Offsets ---------------------------------------------------------------------------------------------------

cdef inline size_t _first_from(const uint32_t *offsets, size_t count, uint32_t at) noexcept:
    """How many of the ascending `offsets`, one at least, are below `at`."""
    cdef const uint32_t *begin = offsets
    cdef size_t half
    while count > 1:
        half = count >> 1
        begin += half if begin[half - 1] < at else 0
        count -= half
    return begin - offsets + (begin[0] < at)


cdef uint64_t *_new_bitset() except NULL:
    """Room for one more, not empty: a word for each 64 offsets and two more, of which the last is to be empty, and
    behind them for each word, in 32 bits, which is the next that is not empty, or else the last.
    """
    global _bitsets, _bitsets_count
    cdef size_t each = _bitset_words + (_bitset_words + 1) // 2
    _bitsets = <uint64_t *> _grown(_bitsets, &_bitsets_room, (_bitsets_count + 1) * each, sizeof(uint64_t))
    _bitsets_count += 1
    return _bitsets + (_bitsets_count - 1) * each


cdef inline uint64_t *_bitset_of(int32_t number) noexcept:
    return _bitsets + <size_t> number * (_bitset_words + (_bitset_words + 1) // 2)


cdef int _put_into_bitset(State *state, const uint32_t *posting, size_t length) except -1:
    """Give a gram that stands its bitset, if it is frequent and there are not too many; else `bits` stays below 0."""
    cdef uint64_t *bits
    cdef uint32_t *following
    cdef size_t at
    if <uint64_t> state.count * FREQUENT <= length:
        return 0
    # The most frequent are too dear without one: there are at most so many of these to a width.
    if _bitsets_count >= BITSETS and <uint64_t> state.count * MOST_FREQUENT <= length:
        return 0
    bits = _new_bitset()
    memset(bits, 0, _bitset_words * sizeof(uint64_t))
    for at in range(state.end - state.count, state.end):
        bits[posting[at] >> 6] |= <uint64_t> 1 << (posting[at] & 63)
    following = <uint32_t *> (bits + _bitset_words)
    following[_bitset_words - 1] = <uint32_t> _bitset_words - 1
    for at in range(_bitset_words - 1, 0, -1):
        following[at - 1] = <uint32_t> at - 1 if bits[at - 1] else following[at]
    state.bits = <int32_t> _bitsets_count - 1
    return 0


cdef inline int64_t _bit_from(int32_t number, uint32_t at) noexcept:
    """The first offset in a bitset at `at`, which is no more than the subject is long, or behind it; -1: none."""
    cdef const uint64_t *bits = _bitset_of(number)
    cdef size_t index = at >> 6
    cdef uint64_t word = bits[index] >> (at & 63), begin = at
    # Both ways are taken, and no branch: which of them it is cannot be foreseen, and to be wrong about that costs more.
    cdef uint64_t further = -<uint64_t> (word == 0)
    index = (<const uint32_t *> (bits + _bitset_words))[index + 1]
    begin ^= (begin ^ <uint64_t> index << 6) & further
    word |= bits[index] & further
    return <int64_t> begin + lowest_bit(word) if word else -1


cdef int64_t _listed_from(State *state, const uint32_t *posting, uint32_t at) noexcept:
    """The first of a list of offsets at `at` or behind it; -1: none."""
    cdef const uint32_t *offsets = posting + (state.end - state.count)
    if offsets[0] >= at:
        return offsets[0]
    if offsets[state.count - 1] < at:
        return -1
    return offsets[_first_from(offsets, state.count, at)]


cdef inline uint64_t _word_of_both(const uint64_t *ahead, const uint64_t *behind, size_t index, int shift) noexcept:
    """A word of offsets that stand in one bitset, and so many bits behind that in the other."""
    return ahead[index] & (behind[index] >> shift | behind[index + 1] << 1 << (63 - shift))


cdef int64_t _both_from(
    State *left, State *right, uint32_t names[2], uint32_t apart, Standing *standing, uint32_t at, uint32_t stop
) noexcept:
    """The first offset from `at` and before `stop` of the first gram, where the other stands `apart` behind; -1: none.

    At `stop`, both have room before the end of the subject; so, the last words that are looked at are within bitsets.
    """
    cdef const uint32_t *offsets
    cdef const uint32_t *end
    cdef const uint64_t *ahead
    cdef const uint64_t *behind
    cdef uint64_t word
    cdef size_t index, last
    cdef int shift = apart & 63
    if at >= stop:
        return -1
    if left.bits >= 0 and right.bits >= 0 and <uint64_t> min(left.count, right.count) * DENSE > _text_length:
        ahead, behind = _bitset_of(left.bits), _bitset_of(right.bits) + (apart >> 6)
        index, last = at >> 6, (stop - 1) >> 6
        word = _word_of_both(ahead, behind, index, shift) & ~<uint64_t> 0 << (at & 63)
        if not word:
            index = common_word(ahead, behind, shift, index + 1, last)
            if index > last:
                return -1
            word = _word_of_both(ahead, behind, index, shift)
        index = (index << 6) + lowest_bit(word)
        return <int64_t> index if index < stop else -1
    if left.count <= right.count:
        offsets, end = standing.posting + (left.end - left.count), standing.posting + left.end
        offsets += _first_from(offsets, left.count, at)
        while offsets < end and offsets[0] < stop:
            if standing.names[offsets[0] + apart] == names[1]:
                return offsets[0]
            offsets += 1
        return -1
    offsets, end = standing.posting + (right.end - right.count), standing.posting + right.end
    offsets += _first_from(offsets, right.count, at + apart)
    while offsets < end and offsets[0] - apart < stop:
        if standing.names[offsets[0] - apart] == names[0]:
            return offsets[0] - apart
        offsets += 1
    return -1


cdef bint _keep_both(
    State *state, State *left, State *right, uint32_t names[2], uint32_t apart, Standing *standing, uint32_t stop
) except -1:
    """Find all offsets of a text of two grams, so that it is like a gram from now on; False where there is no room."""
    global _kept, _kept_count
    cdef const uint64_t *ahead
    cdef const uint64_t *behind
    cdef uint64_t *bits
    cdef uint32_t *following
    cdef uint32_t next_one
    cdef size_t index
    cdef int64_t found
    if left.bits >= 0 and right.bits >= 0:
        if _bitsets_count >= BITSETS:
            return False
        bits = _new_bitset()
        following = <uint32_t *> (bits + _bitset_words)
        ahead, behind = _bitset_of(left.bits), _bitset_of(right.bits) + (apart >> 6)
        next_one = <uint32_t> _bitset_words - 1
        # Behind `stop` there is nothing; the last offset before it is the last there can be.
        for index in range(((stop - 1) >> 6) + 1, _bitset_words):
            bits[index], following[index] = 0, next_one
        for index in range(((stop - 1) >> 6) + 1, 0, -1):
            bits[index - 1] = _word_of_both(ahead, behind, index - 1, apart & 63)
            if bits[index - 1]:
                next_one = <uint32_t> index - 1
            following[index - 1] = next_one
        state.bits = <int32_t> _bitsets_count - 1
        return True
    index = _kept_count
    if index + min(left.count, right.count) > KEPT:
        return False
    _kept = <uint32_t *> _grown(_kept, &_kept_room, index + min(left.count, right.count), sizeof(uint32_t))
    found = _both_from(left, right, names, apart, standing, 0, stop)
    while found >= 0:
        _kept[_kept_count] = <uint32_t> found
        _kept_count += 1
        found = _both_from(left, right, names, apart, standing, <uint32_t> found + 1, stop)
    state.count, state.end, state.bits = <uint32_t> (_kept_count - index), <uint32_t> _kept_count, LISTED
    return True


# ---- The index -------------------------------------------------------------------------------------------------

cdef inline uint64_t _hashed_name(int number, uint64_t key, size_t length, uint64_t secret) noexcept:
    """The hash of a key of that class; only texts that are no grams have keys that can mean several lengths."""
    return _hashed(key ^ length * SPREAD if number == WIDE else key, secret)


cdef inline void _settle(
    uint32_t *slots, size_t size, uint32_t name, int number, const Name *names, uint64_t secret
) noexcept:
    """Put a name that is not there into its slot."""
    cdef uint64_t slot = _slot(_hashed_name(number, names[name].key, names[name].length, secret), size)
    while slots[slot]:
        slot = _slot_behind(slot, size)
    slots[slot] = name


cdef inline uint64_t _of_numbers(uint64_t key, const uint32_t *numbers) noexcept:
    """The key of a text of two parts whose names get other numbers."""
    return <uint64_t> numbers[key >> 32] << 32 | numbers[<uint32_t> key]


cdef inline uint32_t _name_in(const Table *table, const Name *names, uint64_t key, uint64_t secret) noexcept:
    """The name of a gram of the class that the table is of, or 0.

    Whether there is one cannot be foreseen, but that the first look tells: so the only branch is where it does not.
    """
    cdef uint64_t slot = _slot(_hashed(key, secret), table.size)
    cdef uint32_t name = table.slots[slot]
    while (name != 0) & (names[name].key != key):
        slot = _slot_behind(slot, table.size)
        name = table.slots[slot]
    return name


cdef size_t _name_all(
    const Table *table, const Name *known, uint64_t factor, uint64_t mask, size_t length, uint32_t *names,
    uint32_t *matched
) noexcept:
    """Put down the name of the gram at each of so many offsets, or 0, and which have one; these are counted."""
    cdef Octets text = _text
    cdef Table here = table[0]  # which, as far as the compiler knows, nothing changes that is written
    cdef size_t count = 0, at
    cdef uint64_t key
    cdef uint32_t name
    for at in range(length):
        key = _loaded(text + at) & mask
        name = _name_in(&here, known, key, factor)
        names[at], matched[count] = name, <uint32_t> at
        count += name != 0
    return count


cdef size_t _name_all_hashed(
    const Table *table, const Name *known, uint64_t secret, const uint64_t *hashes, size_t length, uint32_t *names,
    uint32_t *matched
) noexcept:
    """The same, of grams that are known by their hashes."""
    cdef Table here = table[0]
    cdef size_t count = 0, at
    cdef uint32_t name
    for at in range(length):
        name = _name_in(&here, known, hashes[at], secret)
        names[at], matched[count] = name, <uint32_t> at
        count += name != 0
    return count


cdef int _noted(Matches *every, int32_t place) except -1:
    every.places = <int32_t *> _grown(every.places, &every.room, every.count + 1, sizeof(int32_t))
    every.places[every.count] = place
    every.count += 1
    return 0


cdef void _begin_round() noexcept:
    """From now on, nothing stands but what is found."""
    global _stamp, _round
    _stamp += 1
    _round += 1
    if _round == 0:  # after so many, one from before would be taken for one of this round
        memset(_states, 0, _states_room * sizeof(State))
        _round = 1


cdef class _Index:
    """What the two have in common; they differ in how patterns are read."""

    cdef uint64_t _secret  # what hashes are made with
    cdef int32_t _none  # the number of patterns
    cdef uint8_t *_texts  # octets of all patterns
    cdef size_t _texts_count, _texts_room
    cdef int32_t *_same  # by place, the next that says the same, or -1; NULL: there is none anywhere
    cdef Pattern *_few  # all patterns, if they are few

    # Of a few patterns these are made when trying them has been too much work.
    cdef bint _has_stems
    cdef Stem *_stems  # prefixes, whole subjects and heads
    cdef uint64_t *_slots  # the half of the hash that tells the slot above, the number of the stem, from 1, below
    cdef size_t _slots_count
    cdef uint32_t _stems_count
    cdef uint32_t *_lengths  # those that stems have, ascending
    cdef uint32_t _lengths_count
    cdef Head *_heads
    cdef uint32_t _heads_count
    # Those with stars, ascending, each once; and one more, whose names begin where all have ended.
    cdef Pattern *_starred
    cdef uint32_t _starred_count

    # And of a few with stars, these.
    cdef bint _has_names
    cdef Name *_names  # from 1; and one more, whose gated begin where all have ended
    cdef size_t _names_count, _names_room
    cdef Table _tables[CLASSES]
    cdef uint32_t *_spelled  # by pattern with stars, the names of its texts, but for an anchored end
    cdef size_t _spelled_count, _spelled_room
    cdef uint32_t *_gated  # patterns by their gates, ascending
    cdef uint32_t _gate_classes  # a bit for each class of grams that has a gate

    def __dealloc__(self):
        PyMem_Free(self._texts)
        PyMem_Free(self._same)
        PyMem_Free(self._few)
        self._drop_stems()
        self._drop_names()

    cdef void _drop_stems(self) noexcept:
        PyMem_Free(self._stems)
        PyMem_Free(self._slots)
        PyMem_Free(self._lengths)
        PyMem_Free(self._heads)
        PyMem_Free(self._starred)
        self._stems, self._slots, self._lengths, self._heads, self._starred = NULL, NULL, NULL, NULL, NULL
        self._stems_count = self._lengths_count = self._heads_count = self._starred_count = 0

    cdef void _drop_names(self) noexcept:
        cdef int number
        PyMem_Free(self._names)
        PyMem_Free(self._spelled)
        PyMem_Free(self._gated)
        self._names, self._spelled, self._gated = NULL, NULL, NULL
        self._names_count = self._names_room = self._spelled_count = self._spelled_room = 0
        for number in range(CLASSES):
            PyMem_Free(self._tables[number].slots)
        memset(self._tables, 0, sizeof(self._tables))

    def first(self, subject: str) -> int:
        """The place of the first pattern that matches `subject`, or the number of patterns."""
        cdef Octets octets = NULL
        cdef size_t length = 0
        cdef object _held = _octets(subject, &octets, &length)
        return self._ask(octets, length, NULL)

    def every(self, subject: str) -> list[int]:
        """The places of all patterns that match, ascending."""
        cdef Octets octets = NULL
        cdef size_t length = 0, at
        cdef int32_t place
        cdef Matches found
        cdef object _held = _octets(subject, &octets, &length)
        memset(&found, 0, sizeof(found))
        try:
            self._ask(octets, length, &found)
            if self._same != NULL:
                for at in range(found.count):
                    place = self._same[found.places[at]]
                    while place >= 0:
                        _noted(&found, place)
                        place = self._same[place]
            return sorted([found.places[at] for at in range(found.count)])
        finally:
            PyMem_Free(found.places)

    # -- Reading

    cdef int _build(self, object patterns, bint literal) except -1:
        cdef Texts texts = <Texts> patterns if isinstance(patterns, Texts) else None
        cdef tuple rows = tuple(patterns) if texts is None else ()
        cdef size_t count = len(rows) if texts is None else texts.count, length = 0
        cdef Octets octets = NULL
        cdef object _held
        cdef int32_t place
        if count > LIMIT:
            raise OverflowError(f"{count} patterns are too many to be matched")
        self._secret = _factor
        self._none = <int32_t> count
        self._few = <Pattern *> _zeroed(count, sizeof(Pattern))
        for place in range(self._none):
            if texts is None:
                _held = _octets(rows[place], &octets, &length)
            else:
                octets, length = texts.octets + texts.bounds[place], texts.bounds[place + 1] - texts.bounds[place]
            self._read(octets, length, literal, place)
        self._texts = <uint8_t *> _fitted(self._texts, self._texts_count, 1)
        self._texts_room = self._texts_count
        if count > FEW:
            self._make_stems()
            PyMem_Free(self._few)
            self._few = NULL
        return 0

    cdef int _read(self, Octets octets, size_t length, bint literal, int32_t place) except -1:
        """Take a pattern up: a star at its end says nothing, nor an anchor behind a star, nor a star behind a star."""
        cdef Pattern *it = &self._few[place]
        cdef size_t anchored, size = 0, at
        cdef uint8_t *text
        cdef const void *star
        if self._texts_count + length > LIMIT:
            raise OverflowError("these patterns are too long, all together, to be matched")
        self._texts = <uint8_t *> _grown(self._texts, &self._texts_room, self._texts_count + length, 1)
        text = self._texts + self._texts_count
        it.text, it.place, it.kind = <uint32_t> self._texts_count, place, PREFIX
        anchored = not literal and length > 0 and octets[length - 1] == c"$"
        length -= anchored
        star = NULL if literal else memchr(octets, c"*", length)
        if star == NULL:
            memcpy(text, octets, length)
            self._texts_count += length
            it.length = it.stem = <uint32_t> length
            it.kind = WHOLE if anchored else PREFIX
            return 0
        it.stem = <uint32_t> (<Octets> star - octets)
        for at in range(length):
            if octets[at] != c"*" or size == 0 or text[size - 1] != c"*":
                text[size] = octets[at]
                size += 1
        if text[size - 1] == c"*":
            size -= 1
            anchored = False
        it.length = <uint32_t> size
        self._texts_count += size
        if size > it.stem:
            it.kind = STARRED
            while anchored and text[size - 1 - it.end] != c"*":  # there is one, behind the head
                it.end += 1
        return 0

    # -- Prefixes, whole subjects, heads

    cdef int _make_stems(self) except -1:
        """Read all patterns from `_few`."""
        cdef int32_t place
        cdef size_t starred = 0
        cdef uint64_t *same = NULL
        cdef int32_t *tails = NULL
        self._drop_stems()  # those of an attempt that has failed
        for place in range(self._none):
            starred += self._few[place].kind == STARRED
        self._slots_count = 2 * <size_t> self._none
        self._slots = <uint64_t *> _zeroed(self._slots_count, sizeof(uint64_t))
        self._stems = <Stem *> _zeroed(self._none, sizeof(Stem))
        self._heads = <Head *> _zeroed(starred, sizeof(Head))
        self._starred = <Pattern *> _zeroed(starred + 1, sizeof(Pattern))
        try:
            same = <uint64_t *> _zeroed(2 * starred, sizeof(uint64_t))
            for place in range(self._none):
                self._add(&self._few[place], same, 2 * starred, &tails)
        finally:
            PyMem_Free(same)
            PyMem_Free(tails)
        self._fit_slots()
        self._stems = <Stem *> _fitted(self._stems, self._stems_count, sizeof(Stem))
        self._heads = <Head *> _fitted(self._heads, self._heads_count, sizeof(Head))
        self._starred = <Pattern *> _fitted(self._starred, self._starred_count + 1, sizeof(Pattern))
        self._make_lengths()
        self._has_stems = True
        return 0

    cdef int _add(self, Pattern *it, uint64_t *same, size_t slots, int32_t **tails) except -1:
        cdef Octets text = self._texts + it.text
        cdef uint64_t hashed = _hash_of(text, it.stem, self._secret, self._secret)
        cdef Stem *stem = self._stem(text, it, hashed)
        cdef Pattern *other
        cdef Head *head
        cdef uint64_t slot
        if it.kind == PREFIX:
            if stem.prefix >= 0:
                return self._say_the_same(stem.prefix, it.place, tails)
            stem.prefix = it.place
            return 0
        if it.kind == WHOLE:
            if stem.whole >= 0:
                return self._say_the_same(stem.whole, it.place, tails)
            stem.whole = it.place
            return 0
        if stem.head < 0:
            stem.head = <int32_t> self._heads_count
            self._heads_count += 1
        hashed = _hash_of(text + it.stem, it.length - it.stem, hashed, self._secret)
        slot = _slot(hashed, slots)
        while same[slot]:
            other = &self._starred[<uint32_t> same[slot] - 1]
            if (
                same[slot] >> 32 == hashed >> 32 and other.length == it.length and other.end == it.end
                and memcmp(self._texts + other.text, text, it.length) == 0
            ):
                return self._say_the_same(other.place, it.place, tails)
            slot = _slot_behind(slot, slots)
        other = &self._starred[self._starred_count]
        other[0] = it[0]
        other.head = <uint32_t> stem.head
        head = &self._heads[stem.head]
        if head.count:
            self._starred[head.last].following = self._starred_count
        else:
            head.first = self._starred_count
        head.last = self._starred_count
        head.count += 1
        self._starred_count += 1
        same[slot] = hashed >> 32 << 32 | self._starred_count
        return 0

    cdef Stem *_stem(self, Octets text, Pattern *it, uint64_t hashed) noexcept:
        """The stem of a pattern, new or not; there is room for one of each pattern."""
        cdef uint64_t slot = _slot(hashed, self._slots_count)
        cdef Stem *stem
        while self._slots[slot]:
            stem = &self._stems[<uint32_t> self._slots[slot] - 1]
            if (
                self._slots[slot] >> 32 == hashed >> 32 and stem.length == it.stem
                and memcmp(self._texts + stem.text, text, it.stem) == 0
            ):
                return stem
            slot = _slot_behind(slot, self._slots_count)
        stem = &self._stems[self._stems_count]
        stem.text, stem.length = it.text, it.stem
        stem.prefix = stem.whole = stem.head = -1
        self._stems_count += 1
        self._slots[slot] = hashed >> 32 << 32 | self._stems_count
        return stem

    cdef int _fit_slots(self) except -1:
        """Leave two slots for each stem: there may be much fewer of them than patterns."""
        cdef size_t count = 2 * <size_t> self._stems_count, at
        cdef uint64_t *slots
        cdef uint64_t slot
        if 2 * count > self._slots_count:
            return 0
        slots = <uint64_t *> _zeroed(count, sizeof(uint64_t))
        for at in range(self._slots_count):
            if self._slots[at]:
                slot = _slot(self._slots[at], count)
                while slots[slot]:
                    slot = _slot_behind(slot, count)
                slots[slot] = self._slots[at]
        PyMem_Free(self._slots)
        self._slots, self._slots_count = slots, count
        return 0

    cdef int _say_the_same(self, int32_t first, int32_t place, int32_t **tails) except -1:
        """Put `place` behind all that say the same as `first`: the last is in `tails`, if it is not `first`."""
        if self._same == NULL:
            self._same = <int32_t *> _zeroed(self._none, sizeof(int32_t))
            memset(self._same, 0xFF, <size_t> self._none * sizeof(int32_t))
        if tails[0] == NULL:
            tails[0] = <int32_t *> _zeroed(self._none, sizeof(int32_t))
        self._same[tails[0][first] or first] = place  # no pattern stands behind others at 0
        tails[0][first] = place
        return 0

    cdef int _make_lengths(self) except -1:
        cdef uint32_t longest = 0, number, length
        cdef uint8_t *occurs
        for number in range(self._stems_count):
            longest = max(longest, self._stems[number].length)
        occurs = <uint8_t *> _zeroed(<size_t> longest + 1, 1)
        try:
            for number in range(self._stems_count):
                length = self._stems[number].length
                self._lengths_count += not occurs[length]
                occurs[length] = 1
            self._lengths = <uint32_t *> _zeroed(self._lengths_count, sizeof(uint32_t))
            number = 0
            for length in range(longest + 1):
                if occurs[length]:
                    self._lengths[number] = length
                    number += 1
        finally:
            PyMem_Free(occurs)
        return 0

    # -- Names and gates

    cdef int _make_names(self) except -1:
        """Name the texts of the patterns with stars, and give each of these its gate."""
        cdef uint32_t number
        cdef uint32_t *gates = NULL  # by pattern, where its grams begin among those drawn; then its gate
        cdef Drawn drawn
        self._drop_names()  # those of an attempt that has failed
        self._gate_classes = 0
        memset(&drawn, 0, sizeof(drawn))
        try:
            gates = <uint32_t *> _zeroed(self._starred_count + 1, sizeof(uint32_t))
            self._names = <Name *> _grown(self._names, &self._names_room, 2, sizeof(Name))
            self._names_count = 1
            for number in range(self._starred_count):
                self._starred[number].names = <uint32_t> self._spelled_count
                gates[number] = <uint32_t> drawn.count
                self._spell(&self._starred[number], &drawn)
            self._starred[self._starred_count].names = <uint32_t> self._spelled_count
            gates[self._starred_count] = <uint32_t> drawn.count
            for number in range(self._starred_count):
                gates[number] = self._gate(drawn.names + gates[number], gates[number + 1] - gates[number])
            self._renumber(gates)
            self._make_gates(gates)
        finally:
            PyMem_Free(drawn.names)
            PyMem_Free(gates)
        self._spelled = <uint32_t *> _fitted(self._spelled, self._spelled_count, sizeof(uint32_t))
        self._has_names = True
        return 0

    cdef int _spell(self, Pattern *it, Drawn *drawn) except -1:
        """Name the texts of a pattern, and draw grams of it: of its first few texts and of its end."""
        cdef Octets text = self._texts + it.text
        cdef size_t begin = it.stem + 1, stop = it.length - it.end, end
        cdef int texts = 0
        cdef uint32_t ends[2]
        cdef const void *star
        while begin < stop:
            star = memchr(text + begin, c"*", stop - begin)
            end = stop if star == NULL else <Octets> star - text
            self._spelled = <uint32_t *> _grown(
                self._spelled, &self._spelled_room, self._spelled_count + 1, sizeof(uint32_t)
            )
            self._spelled[self._spelled_count] = self._name_of(text + begin, end - begin, ends)
            self._spelled_count += 1
            if texts < SAMPLED:
                self._draw(drawn, ends)
                texts += 1
            begin = end + 1
        if it.end:
            self._grams_at_ends(text + stop, it.end, ends)
            self._draw(drawn, ends)
        return 0

    cdef int _draw(self, Drawn *drawn, uint32_t ends[2]) except -1:
        cdef int at
        drawn.names = <uint32_t *> _grown(drawn.names, &drawn.room, drawn.count + 2, sizeof(uint32_t))
        for at in range(1 + (ends[0] != ends[1])):
            drawn.names[drawn.count] = ends[at]
            drawn.count += 1
            self._names[ends[at]].gates += 1
        return 0

    cdef uint32_t _name_of(self, Octets text, size_t length, uint32_t ends[2]) except? 0xFFFFFFFF:
        """The name of a text; `ends`: the grams of up to 8 octets that it begins and ends with."""
        cdef size_t width
        cdef uint64_t left, right
        cdef int number
        self._grams_at_ends(text, length, ends)
        if _is_gram(length):
            return ends[0]
        left, right = ends[0], ends[1]
        if length > 2 * EXACT:
            width = _part(length)
            number = _class_of(width)
            left = self._named(number, _hash_of_gram(text, width, self._secret), width)
            right = self._named(number, _hash_of_gram(text + length - width, width, self._secret), width)
        return self._named(WIDE, left << 32 | right, length)

    cdef int _grams_at_ends(self, Octets text, size_t length, uint32_t ends[2]) except -1:
        """The widest grams of up to 8 octets that a text begins and ends with; they touch in one of up to 16."""
        cdef size_t width = length if length <= HALF else HALF if length < EXACT else EXACT
        cdef int number = _class_of(width)
        ends[0] = ends[1] = self._named(number, _key(text, width), width)
        if length > width:
            ends[1] = self._named(number, _key(text + length - width, width), width)
        return 0

    cdef uint32_t _named(self, int number, uint64_t key, size_t length) except? 0xFFFFFFFF:
        """The name of a text by its class and key, new or not."""
        cdef Table *table = &self._tables[number]
        cdef uint64_t slot
        cdef Name *name
        if 2 * table.count >= table.size:
            self._enlarge(number)
        slot = _slot(_hashed_name(number, key, length, self._secret), table.size)
        while table.slots[slot]:
            name = &self._names[table.slots[slot]]
            if name.key == key and name.length == length:
                return table.slots[slot]
            slot = _slot_behind(slot, table.size)
        self._names = <Name *> _grown(self._names, &self._names_room, self._names_count + 2, sizeof(Name))
        name = &self._names[self._names_count]
        name.key, name.length, name.gates = key, <uint32_t> length, NO_GRAM if number == WIDE else 0
        table.slots[slot] = <uint32_t> self._names_count
        table.count += 1
        self._names_count += 1
        return table.slots[slot]

    cdef int _enlarge(self, int number) except -1:
        cdef Table *table = &self._tables[number]
        cdef size_t size = max(4 * table.size, 64)
        cdef uint32_t *slots = <uint32_t *> _zeroed(size, sizeof(uint32_t))
        cdef size_t at
        for at in range(table.size):
            if table.slots[at]:
                _settle(slots, size, table.slots[at], number, self._names, self._secret)
        PyMem_Free(table.slots)
        table.slots, table.size = slots, size
        return 0

    cdef int _renumber(self, uint32_t *gates) except -1:
        """Number names by class, and in each as patterns have them: what is looked up together lies together then."""
        cdef uint32_t *numbers = NULL  # by those before
        cdef Name *names = NULL
        cdef uint32_t behind[CLASSES]
        cdef uint32_t count = 1, name
        cdef size_t at
        cdef int number
        try:
            numbers = <uint32_t *> _zeroed(self._names_count, sizeof(uint32_t))
            names = <Name *> _zeroed(self._names_count + 1, sizeof(Name))
            for number in range(CLASSES):
                behind[number] = count
                count += <uint32_t> self._tables[number].count
            for name in range(1, <uint32_t> self._names_count):
                number = self._class_of_name(name)
                numbers[name] = behind[number]
                names[behind[number]] = self._names[name]
                behind[number] += 1
                if number == WIDE:  # it is of two that have been named before
                    names[numbers[name]].key = _of_numbers(self._names[name].key, numbers)
            for at in range(self._spelled_count):
                self._spelled[at] = numbers[self._spelled[at]]
            for at in range(self._starred_count):
                gates[at] = numbers[gates[at]]
            PyMem_Free(self._names)
            self._names, self._names_room, names = names, self._names_count + 1, NULL
        finally:
            PyMem_Free(numbers)
            PyMem_Free(names)
        for number in range(WIDE):
            if self._tables[number].count:
                self._fit(number, behind[number])
        PyMem_Free(self._tables[WIDE].slots)  # these are never looked up again
        memset(&self._tables[WIDE], 0, sizeof(Table))
        return 0

    cdef int _class_of_name(self, uint32_t name) noexcept:
        return WIDE if self._names[name].gates == NO_GRAM else _class_of(self._names[name].length)

    cdef int _fit(self, int number, uint32_t behind) except -1:
        """Put the names of a class, which are those before `behind`, into slots that fit.

        Where most grams of a subject have no name, what takes longest is to be told so by a slot that another one has.
        """
        cdef Table *table = &self._tables[number]
        cdef uint32_t name
        PyMem_Free(table.slots)
        table.slots = NULL
        table.size = SPARSE * table.count
        if table.count <= SPARSER:
            table.size = min(max(_width_of(number), SPARSE), SPARSEST) * table.count
        table.slots = <uint32_t *> _zeroed(table.size, sizeof(uint32_t))
        for name in range(behind - <uint32_t> table.count, behind):
            _settle(table.slots, table.size, name, number, self._names, self._secret)
        return 0

    cdef uint32_t _gate(self, const uint32_t *drawn, size_t count) noexcept:
        """The gram that fewest patterns share; but a wide one will do that few share, so that few widths are used."""
        cdef uint32_t best = drawn[0]
        cdef uint64_t least = <uint64_t> -1, cost
        cdef Name *name
        cdef size_t at
        for at in range(count):
            name = &self._names[drawn[at]]
            cost = name.gates
            cost += (EXACT - name.length) * SHARED if cost <= SHARED else EXACT * SHARED
            if cost < least:
                best, least = drawn[at], cost
        return best

    cdef int _make_gates(self, uint32_t *gates) except -1:
        """Sort patterns by their gates."""
        cdef uint32_t number, behind = 0, before
        cdef size_t name
        self._gated = <uint32_t *> _zeroed(self._starred_count, sizeof(uint32_t))
        for name in range(self._names_count + 1):
            self._names[name].gates = 0
        for number in range(self._starred_count):
            self._names[gates[number]].gates += 1
            self._gate_classes |= <uint32_t> 1 << _class_of(self._names[gates[number]].length)
        for name in range(self._names_count + 1):
            before = behind
            behind += self._names[name].gates
            self._names[name].gates = before
        # Each where its gate's next one goes; then all of them have moved on to where the next name's begin.
        for number in range(self._starred_count):
            self._gated[self._names[gates[number]].gates] = number
            self._names[gates[number]].gates += 1
        for name in range(self._names_count, 0, -1):
            self._names[name].gates = self._names[name - 1].gates
        self._names[0].gates = 0
        return 0

    # -- Deciding

    cdef int32_t _ask(self, Octets subject, size_t length, Matches *every) except -1:
        """The lowest place of the patterns that match; with `every`, note there one of each that says the same."""
        cdef Py_ssize_t work = WORK_FEW
        cdef int32_t place, best = self._none
        cdef uint32_t open[FEW_STARRED + 1]
        cdef uint32_t count
        cdef size_t known
        cdef uint64_t heads
        cdef int told = 0
        if self._few != NULL:
            for place in range(self._none):
                told = self._tried(&self._few[place], subject, length, &work)
                if told > 0:
                    if every == NULL:
                        return place
                    _noted(every, place)
                elif told < 0:
                    break
            if told >= 0:
                return best
            if every != NULL:
                every.count = 0
            if not self._has_stems:
                self._make_stems()
        count = self._by_stems(subject, length, &best, every, open)
        if not count:
            return best
        heads = _stamp
        known = 0 if every == NULL else every.count
        if count <= FEW_STARRED:
            work = WORK_FEW if self._starred_count <= FEW_STARRED else WORK_GATED
            place = best
            if self._behind_heads(subject, length, open, &place, every, &work):
                return place
            if every != NULL:
                every.count = known
        if not self._has_names:
            self._make_names()
        self._take(subject, length)
        if length <= SHORT:
            work = WORK_GATED
            place = best
            if self._behind_gates(length, heads, &place, every, &work):
                return place
            if every != NULL:
                every.count = known
        self._by_places(length, heads, &best, every)
        return best

    cdef int _tried(self, Pattern *it, Octets subject, size_t length, Py_ssize_t *work) noexcept:
        if it.kind == STARRED:
            return _matches(self._texts, it, subject, length, work)
        if it.kind == WHOLE and it.length != length:
            return 0
        return it.length <= length and memcmp(subject, self._texts + it.text, it.length) == 0

    cdef uint32_t _by_stems(
        self, Octets subject, size_t length, int32_t *best, Matches *every, uint32_t *open
    ) except? 0xFFFFFFFF:
        """Ask for prefixes and whole subjects, and mark heads; how many patterns with stars begin with one of these;
        0 where none of them comes before the best.

        The numbers of the first few heads are in `open`, which ends behind the last of them if it is not full.
        """
        global _opened, _stamp
        # What the loop needs is at hand: what it writes might else be taken to change it.
        cdef uint64_t secret = self._secret, words = secret, hashed, slot
        cdef const uint64_t *slots = self._slots
        cdef const uint32_t *lengths = self._lengths
        cdef const uint32_t *end = lengths + self._lengths_count
        cdef int32_t lowest = self._none
        cdef uint32_t count = 0
        cdef int opened = 0
        cdef size_t at, stirred_up_to = 0, slots_count = self._slots_count
        cdef Stem *stem
        _opened = <uint64_t *> _grown(_opened, &_opened_room, self._heads_count, sizeof(uint64_t))
        _stamp += 1
        while lengths < end and lengths[0] <= length:
            at = lengths[0]
            lengths += 1
            while stirred_up_to + 8 <= at:
                words = stirred(words ^ _loaded(subject + stirred_up_to), secret)
                stirred_up_to += 8
            hashed = _hashed_last(subject, at, words, secret)
            slot = _slot(hashed, slots_count)
            while slots[slot]:
                stem = &self._stems[<uint32_t> slots[slot] - 1]
                if (
                    slots[slot] >> 32 == hashed >> 32 and stem.length == at
                    and memcmp(subject, self._texts + stem.text, at) == 0
                ):
                    if stem.prefix >= 0:
                        self._found(stem.prefix, best, every)
                    if stem.whole >= 0 and at == length:
                        self._found(stem.whole, best, every)
                    if stem.head >= 0:
                        _opened[stem.head] = _stamp
                        count += self._heads[stem.head].count
                        lowest = min(lowest, self._starred[self._heads[stem.head].first].place)
                        if opened < FEW_STARRED:
                            open[opened] = <uint32_t> stem.head
                            opened += 1
                    break
                slot = _slot_behind(slot, slots_count)
        open[opened] = NOWHERE
        return count if lowest < best[0] else 0

    cdef int _behind_heads(
        self, Octets subject, size_t length, const uint32_t *open, int32_t *best, Matches *every, Py_ssize_t *work
    ) except -1:
        """Try the patterns with stars behind these heads, one by one; 0: that was too much work, more may match."""
        cdef int told
        cdef uint32_t number
        cdef Pattern *it
        while open[0] != NOWHERE:
            number = self._heads[open[0]].first
            while True:
                it = &self._starred[number]
                if it.place >= best[0]:
                    break
                told = _matches(self._texts, it, subject, length, work)
                if told < 0:
                    return 0
                if told:
                    self._found(it.place, best, every)
                number = it.following
                if not number:
                    break
            open += 1
        return 1

    cdef int _found(self, int32_t place, int32_t *best, Matches *every) except -1:
        """A pattern matches: with `every`, nothing is kept from being looked at by the best so far."""
        if every != NULL:
            return _noted(every, place)
        best[0] = min(best[0], place)
        return 0

    cdef int _take(self, Octets subject, size_t length) except -1:
        """Have the subject where eight octets can be read from any of it, and room for the state of each name."""
        global _text, _states, _bitsets_count, _bitset_words, _kept_count
        global _text_length
        _text_length = length
        _text = <uint8_t *> _grown(_text, &_text_room, length + EXACT, 1)
        memcpy(_text, subject, length)
        memset(_text + length, 0, EXACT)
        _states = <State *> _grown(_states, &_states_room, self._names_count, sizeof(State))
        _bitset_words = (length >> 6) + 2
        _bitsets_count = _kept_count = 0
        return 0

    cdef int _behind_gates(
        self, size_t length, uint64_t heads, int32_t *best, Matches *every, Py_ssize_t *work
    ) except -1:
        """Try the patterns whose gates are open, one by one; 0: that was too much work, and more may match."""
        cdef int number, told
        cdef size_t width, at
        cdef uint64_t mask, key, secret = self._secret
        cdef uint32_t name, gated
        cdef Octets text = _text
        cdef Table table  # a copy, as all these, which nothing changes that is written
        cdef const Name *names = self._names
        cdef Pattern *it
        _begin_round()
        for number in range(WIDEST + 1):
            width = _width_of(number)
            if not self._gate_classes >> number & 1 or width > length:
                continue
            mask, table = _masks[width], self._tables[number]
            for at in range(length - width + 1):
                key = _loaded(text + at) & mask
                name = _name_in(&table, names, key, secret)
                if not name or _states[name].round == _round:
                    continue
                _states[name].round = _round
                for gated in range(self._names[name].gates, self._names[name + 1].gates):
                    it = &self._starred[self._gated[gated]]
                    if it.place >= best[0]:
                        break
                    if _opened[it.head] != heads:
                        continue
                    told = _matches(self._texts, it, _text, length, work)
                    if told > 0:
                        self._found(it.place, best, every)
                    if told < 0 or work[0] < 0:
                        return 0
        return 1

    cdef int _by_places(self, size_t length, uint64_t heads, int32_t *best, Matches *every) except -1:
        """Follow the patterns whose gates are open, from text to text; several at once: each step waits for memory."""
        global _open_count
        cdef Lane lanes[LANES]
        cdef int number, count = 0
        cdef size_t at
        cdef uint32_t name, gated
        cdef Pattern *it
        _begin_round()
        _open_count = 0
        for number in range(WIDEST + 1):
            if self._gate_classes >> number & 1:
                self._stand(number, length)
        for at in range(_open_count):
            name = _open[at]
            for gated in range(self._names[name].gates, self._names[name + 1].gates):
                it = &self._starred[self._gated[gated]]
                if it.place >= best[0]:
                    break
                if _opened[it.head] == heads and self._fits(it, length):
                    lanes[count].pattern, lanes[count].at = it, it.stem
                    lanes[count].name, lanes[count].end = it.names, it[1].names
                    lanes[count].text = it.text + it.stem + 1
                    count += 1
                    while count == LANES:
                        count = self._step(lanes, count, length, best, every)
        while count:
            count = self._step(lanes, count, length, best, every)
        return 0

    cdef bint _fits(self, Pattern *it, size_t length) noexcept:
        """Whether the end does, and room is left for it behind the head."""
        cdef int64_t limit = <int64_t> length - it.end
        return limit >= it.stem and (
            not it.end or memcmp(_text + limit, self._texts + it.text + it.length - it.end, it.end) == 0
        )

    cdef int _step(self, Lane *lanes, int count, size_t length, int32_t *best, Matches *every) except -1:
        """Take each pattern one text further, and drop those that are decided; how many are left."""
        cdef int number = 0
        cdef uint32_t name, size
        cdef int64_t at
        cdef Lane *lane
        while number < count:
            lane = &lanes[number]
            if lane.name == lane.end:
                self._found(lane.pattern.place, best, every)
                at = -1
            else:
                name = self._spelled[lane.name]
                size = self._names[name].length
                at = self._next(name, lane.at, length)
                # What is known by hashes is compared: so, all that is compared is no more than there is of patterns.
                while at >= 0 and size > 2 * EXACT and memcmp(_text + at, self._texts + lane.text, size):
                    at = self._next(name, <uint32_t> at + 1, length)
                if at >= 0:
                    at += size
                    lane.text += size + 1
                    if at + lane.pattern.end > <int64_t> length:
                        at = -1
            if at < 0:
                count -= 1
                lane[0] = lanes[count]
            else:
                lane.at = <uint32_t> at
                lane.name += 1
                number += 1
        return count

    cdef int64_t _next(self, uint32_t name, uint32_t at, size_t length) except -2:
        """The first offset of a text at `at` or behind it; -1: none."""
        cdef State *state = &_states[name]
        cdef int number
        if state.round == _round and state.bits >= 0:
            return _bit_from(state.bits, at)
        if not _is_gram(self._names[name].length):
            return self._next_of_both(name, at, length)
        number = _class_of(self._names[name].length)
        if _standing[number].stamp != _stamp:
            self._stand(number, length)
        if state.round != _round:
            return -1
        state.bits -= 1
        if state.bits < -ASKED_ANEW:
            state.bits = -1
            _put_into_bitset(state, _standing[number].posting, length)
            if state.bits >= 0:
                return _bit_from(state.bits, at)
        return _listed_from(state, _standing[number].posting, at)

    cdef int64_t _next_of_both(self, uint32_t name, uint32_t at, size_t length) except -2:
        """The same, of a text that is two grams.

        It is remembered between which two offsets it was looked for and found, so that who asks for it again does not
        go through the same of the subject. When that does not help any more, all its offsets are found.
        """
        cdef Name *it = &self._names[name]
        cdef State *state = &_states[name]
        cdef State *left
        cdef State *right
        cdef uint32_t width, stop
        cdef uint32_t names[2]
        cdef int number
        cdef int64_t found
        if state.round == _round:
            if state.bits == LISTED:
                return _listed_from(state, _kept, at) if state.count else -1
            if state.count <= at <= state.end:
                return -1 if state.end == NOWHERE else state.end
        if it.length > length:
            return -1
        width = <uint32_t> _part(it.length)
        number = _class_of(width)
        if _standing[number].stamp != _stamp:
            self._stand(number, length)
        names = [<uint32_t> (it.key >> 32), <uint32_t> it.key]
        left, right = &_states[names[0]], &_states[names[1]]
        if left.round != _round or right.round != _round:
            return -1
        if left.bits < 0 or right.bits < 0:
            # The rarer one is gone through if it is so rare that it has no bitset.
            if <uint64_t> min(left.count, right.count) * DENSE > length:
                if left.bits < 0:
                    _put_into_bitset(left, _standing[number].posting, length)
                if right.bits < 0:
                    _put_into_bitset(right, _standing[number].posting, length)
        stop = <uint32_t> length - it.length + 1
        if state.round != _round:
            state.round, state.bits = _round, -1
        else:
            state.bits -= 1
            if state.bits < -ASKED_ANEW:
                state.bits = -1
                if _keep_both(state, left, right, names, it.length - width, &_standing[number], stop):
                    return self._next(name, at, length)
            if at < state.count:
                found = _both_from(
                    left, right, names, it.length - width, &_standing[number], at, min(stop, state.count)
                )
                state.count = at
                if found < 0:
                    return -1 if state.end == NOWHERE else state.end
                state.end = <uint32_t> found
                return found
        found = _both_from(left, right, names, it.length - width, &_standing[number], at, stop)
        state.count = at
        state.end = NOWHERE if found < 0 else <uint32_t> found
        return found

    cdef int _stand(self, int number, size_t length) except -1:
        """Find all grams of a class."""
        global _matched, _open, _open_count
        cdef Standing *standing = &_standing[number]
        cdef Table *table = &self._tables[number]
        cdef size_t width = _width_of(number), count = 0, at, room
        cdef uint32_t *names
        cdef uint32_t *matched
        cdef const Name *known
        cdef uint32_t name, behind = 0
        cdef uint32_t *posting
        cdef uint32_t round
        cdef State *states
        cdef State *state
        standing.stamp = _stamp
        if width > length or not table.count:
            return 0
        if number > WIDEST:
            _hash_grams(number, length, self._secret)
        length -= width - 1
        room = standing.room
        standing.names = <uint32_t *> _grown(standing.names, &room, length, sizeof(uint32_t))
        standing.posting = <uint32_t *> _grown(standing.posting, &standing.room, length, sizeof(uint32_t))
        _matched = <uint32_t *> _grown(_matched, &_matched_room, length, sizeof(uint32_t))
        _open = <uint32_t *> _grown(_open, &_open_room, _open_count + length, sizeof(uint32_t))
        # What a loop needs is at hand: what it writes might else be taken to change it.
        names, matched, known = standing.names, _matched, self._names
        if number <= WIDEST:
            count = _name_all(table, known, self._secret, _masks[width], length, names, matched)
        else:
            count = _name_all_hashed(table, known, self._secret, standing.hashes, length, names, matched)
        states, posting, round = _states, standing.posting, _round
        for at in range(count):
            name = names[matched[at]]
            state = &states[name]
            if state.round != round:
                state.round, state.count, state.end, state.bits = round, 0, NOWHERE, -1
                _open[_open_count] = name
                _open_count += known[name].gates != known[name + 1].gates
            state.count += 1
        for at in range(count):
            state = &states[names[matched[at]]]
            if state.end == NOWHERE:
                state.end = behind
                behind += state.count
            posting[state.end] = matched[at]
            state.end += 1
        return 0


cdef class PatternIndex(_Index):
    """Patterns of version 1.0: prefixes, whole subjects (a final `$`), and what holds a `*`."""

    def __cinit__(self, patterns: Sequence[str]) -> None:
        self._build(patterns, False)


cdef class PrefixIndex(_Index):
    """Patterns that are prefixes to the letter (spec E6)."""

    def __cinit__(self, patterns: Sequence[str]) -> None:
        self._build(patterns, True)
