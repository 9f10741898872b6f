# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Where grams stand in a subject, and patterns followed from text to text by that (following.pxd).

The offsets of all grams of a width are found in one pass, when the first text of that width is asked for. A text is
then looked up by its grams: in a list of offsets or, if it is frequent, in a bitset of them; and what was found is
remembered, so that who asks for the same text again and again has all its offsets found once. So a decision takes a
pass for each width, and for each text of a pattern a step, which in the worst of cases goes through a bitset of the
subject.

What is worked with is memory of the module, used by one decision after another: the GIL is held throughout, and no
Python is run while it is in use. What is in it from decisions before is told by its stamp, so that nothing is cleared.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from app.robots.compiled.blocks cimport grown
from app.robots.compiled.grams cimport (
    CLASSES, EXACT, WIDEST, Grams, Name, Table, class_of, hash_of_both, is_gram, name_in, part_of, width_of
)
from app.robots.compiled.hashing cimport Octets, loaded
from app.robots.compiled.trying cimport Matches, Pattern, found_at, matches

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
    int lowest_bit(uint64_t word) noexcept
    # The first word, from `index` to `last`, or the one behind it, in which an offset of one bitset is an offset of the
    # other, less `shift`.
    size_t common_word(
        const uint64_t *ahead, const uint64_t *behind, int shift, size_t index, size_t last
    ) noexcept


cdef enum:
    FREQUENT = 512  # a gram may have a bitset if it stands at more than one of so many offsets
    MOST_FREQUENT = 32  # and has one whatever others have, if at more than one of so many
    BITSETS = 1024  # of the others, in a decision
    DENSE = 128  # where both grams of a text stand at more than one of so many offsets, their bitsets are compared
    ASKED_ANEW = 3  # so often a text is looked for before more is made to find it by
    KEPT = 1 << 20  # offsets of texts of two grams, in a decision
    LISTED = -1000  # in place of the number of a bitset: all offsets are found
    LANES = 8  # so many patterns are followed at once

# Behind every offset.
cdef uint32_t NOWHERE = 0xFFFFFFFF

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
    const Pattern *pattern
    uint32_t at, name, end  # where it has come to, and which names are left
    uint32_t text  # where the text begins that is next


cdef uint64_t _stamp = 0
cdef uint32_t _round = 0  # the stamp of states, which are to be small
cdef Standing _standing[CLASSES]
memset(_standing, 0, sizeof(_standing))
cdef State *_states = NULL
cdef size_t _states_room = 0
cdef uint32_t *_open = NULL
cdef size_t _open_room = 0, _open_count = 0
cdef uint64_t *_bitsets = NULL
cdef size_t _bitsets_room = 0, _bitsets_count = 0, _bitset_words = 0
cdef uint32_t *_kept = NULL
cdef size_t _kept_room = 0, _kept_count = 0
cdef uint8_t *_text = NULL  # the subject
cdef size_t _text_length = 0, _text_room = 0
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


cdef void _begin_round() noexcept:
    """From now on, nothing stands but what is found."""
    global _stamp, _round
    _stamp += 1
    _round += 1
    if _round == 0:  # after so many, one from before would be taken for one of this round
        memset(_states, 0, _states_room * sizeof(State))
        _round = 1


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
    _bitsets = <uint64_t *> grown(_bitsets, &_bitsets_room, (_bitsets_count + 1) * each, sizeof(uint64_t))
    _bitsets_count += 1
    return _bitsets + (_bitsets_count - 1) * each


cdef inline uint64_t *_bitset_of(int32_t number) noexcept:
    return _bitsets + <size_t> number * (_bitset_words + (_bitset_words + 1) // 2)


cdef int _put_into_bitset(State *state, const uint32_t *posting) except -1:
    """Give a gram that stands its bitset, if it is frequent and there are not too many; else `bits` stays below 0."""
    cdef uint64_t *bits
    cdef uint32_t *following
    cdef size_t at
    if <uint64_t> state.count * FREQUENT <= _text_length:
        return 0
    # The most frequent are too dear without one: there are at most so many of these to a width.
    if _bitsets_count >= BITSETS and <uint64_t> state.count * MOST_FREQUENT <= _text_length:
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
    _kept = <uint32_t *> grown(_kept, &_kept_room, index + min(left.count, right.count), sizeof(uint32_t))
    found = _both_from(left, right, names, apart, standing, 0, stop)
    while found >= 0:
        _kept[_kept_count] = <uint32_t> found
        _kept_count += 1
        found = _both_from(left, right, names, apart, standing, <uint32_t> found + 1, stop)
    state.count, state.end, state.bits = <uint32_t> (_kept_count - index), <uint32_t> _kept_count, LISTED
    return True


# ---- Grams of the subject --------------------------------------------------------------------------------------

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
        key = loaded(text + at) & mask
        name = name_in(&here, known, key, factor)
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
        name = name_in(&here, known, hashes[at], secret)
        names[at], matched[count] = name, <uint32_t> at
        count += name != 0
    return count


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
        half = width_of(above - 1)
        standing.hashes = <uint64_t *> grown(standing.hashes, &standing.hashes_room, length, sizeof(uint64_t))
        hashes = standing.hashes
        if above == WIDEST + 1:
            for at in range(length - 2 * half + 1):
                hashes[at] = hash_of_both(loaded(_text + at), loaded(_text + at + half), secret)
        else:
            halves = _standing[above - 1].hashes
            for at in range(length - 2 * half + 1):
                hashes[at] = hash_of_both(halves[at], halves[at + half], secret)
        standing.hashes_stamp = _stamp
    return 0


cdef int _stand(Grams grams, int number) except -1:
    """Find all grams of a class."""
    global _matched, _open, _open_count
    cdef Standing *standing = &_standing[number]
    cdef const Table *table = &grams.tables[number]
    cdef size_t width = width_of(number), length = _text_length, count = 0, at, room
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
        _hash_grams(number, length, grams.secret)
    length -= width - 1
    room = standing.room
    standing.names = <uint32_t *> grown(standing.names, &room, length, sizeof(uint32_t))
    standing.posting = <uint32_t *> grown(standing.posting, &standing.room, length, sizeof(uint32_t))
    _matched = <uint32_t *> grown(_matched, &_matched_room, length, sizeof(uint32_t))
    _open = <uint32_t *> grown(_open, &_open_room, _open_count + length, sizeof(uint32_t))
    # What a loop needs is at hand: what it writes might else be taken to change it.
    names, matched, known = standing.names, _matched, grams.names
    if number <= WIDEST:
        count = _name_all(table, known, grams.secret, _masks[width], length, names, matched)
    else:
        count = _name_all_hashed(table, known, grams.secret, standing.hashes, length, names, matched)
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


# ---- Patterns --------------------------------------------------------------------------------------------------

cdef int _take(Grams grams, Octets subject, size_t length) except -1:
    """Have the subject where eight octets can be read from any of it, and room for the state of each name."""
    global _text, _text_length, _states, _bitsets_count, _bitset_words, _kept_count
    _text_length = length
    _text = <uint8_t *> grown(_text, &_text_room, length + EXACT, 1)
    memcpy(_text, subject, length)
    memset(_text + length, 0, EXACT)
    _states = <State *> grown(_states, &_states_room, grams.count, sizeof(State))
    _bitset_words = (length >> 6) + 2
    _bitsets_count = _kept_count = 0
    return 0


cdef int try_gated(
    Grams grams, const Starred *starred, Octets subject, size_t length, int32_t *best, Matches *every, Py_ssize_t *work
) except -1:
    cdef int number, told
    cdef size_t width, at
    cdef uint64_t mask, key, secret = grams.secret
    cdef uint32_t name, gated
    cdef Octets text
    cdef Table table  # a copy, as all these, which nothing changes that is written
    cdef const Name *names = grams.names
    cdef const Pattern *it
    _take(grams, subject, length)
    _begin_round()
    text = _text
    for number in range(WIDEST + 1):
        width = width_of(number)
        if not grams.gate_classes >> number & 1 or width > length:
            continue
        mask, table = _masks[width], grams.tables[number]
        for at in range(length - width + 1):
            key = loaded(text + at) & mask
            name = name_in(&table, names, key, secret)
            if not name or _states[name].round == _round:
                continue
            _states[name].round = _round
            for gated in range(grams.names[name].gates, grams.names[name + 1].gates):
                it = &starred.patterns[grams.gated[gated]]
                if it.place >= best[0]:
                    break
                if starred.opened[it.head] != starred.stamp:
                    continue
                told = matches(starred.texts, it, _text, length, work)
                if told > 0:
                    found_at(it.place, best, every)
                if told < 0 or work[0] < 0:
                    return 0
    return 1


cdef int follow(
    Grams grams, const Starred *starred, Octets subject, size_t length, int32_t *best, Matches *every
) except -1:
    global _open_count
    cdef Lane lanes[LANES]
    cdef int number, count = 0
    cdef size_t at
    cdef uint32_t name, gated
    cdef const Pattern *it
    _take(grams, subject, length)
    _begin_round()
    _open_count = 0
    for number in range(WIDEST + 1):
        if grams.gate_classes >> number & 1:
            _stand(grams, number)
    for at in range(_open_count):
        name = _open[at]
        for gated in range(grams.names[name].gates, grams.names[name + 1].gates):
            it = &starred.patterns[grams.gated[gated]]
            if it.place >= best[0]:
                break
            if starred.opened[it.head] == starred.stamp and _fits(starred, it):
                lanes[count].pattern, lanes[count].at = it, it.stem
                lanes[count].name, lanes[count].end = it.names, it[1].names
                lanes[count].text = it.text + it.stem + 1
                count += 1
                while count == LANES:
                    count = _step(grams, starred, lanes, count, best, every)
    while count:
        count = _step(grams, starred, lanes, count, best, every)
    return 0


cdef bint _fits(const Starred *starred, const Pattern *it) noexcept:
    """Whether the end does, and room is left for it behind the head."""
    cdef int64_t limit = <int64_t> _text_length - it.end
    return limit >= it.stem and (
        not it.end or memcmp(_text + limit, starred.texts + it.text + it.length - it.end, it.end) == 0
    )


cdef int _step(
    Grams grams, const Starred *starred, Lane *lanes, int count, int32_t *best, Matches *every
) except -1:
    """Take each pattern one text further, and drop those that are decided; how many are left.

    They are several at once, since each step waits for memory.
    """
    cdef int number = 0
    cdef uint32_t name, size
    cdef int64_t at
    cdef Lane *lane
    while number < count:
        lane = &lanes[number]
        if lane.name == lane.end:
            found_at(lane.pattern.place, best, every)
            at = -1
        else:
            name = grams.spelled[lane.name]
            size = grams.names[name].length
            at = _next(grams, name, lane.at)
            # What is known by hashes is compared: so, all that is compared is no more than there is of patterns.
            while at >= 0 and size > 2 * EXACT and memcmp(_text + at, starred.texts + lane.text, size):
                at = _next(grams, name, <uint32_t> at + 1)
            if at >= 0:
                at += size
                lane.text += size + 1
                if at + lane.pattern.end > <int64_t> _text_length:
                    at = -1
        if at < 0:
            count -= 1
            lane[0] = lanes[count]
        else:
            lane.at = <uint32_t> at
            lane.name += 1
            number += 1
    return count


cdef int64_t _next(Grams grams, uint32_t name, uint32_t at) except -2:
    """The first offset of a text at `at` or behind it; -1: none."""
    cdef State *state = &_states[name]
    cdef int number
    if state.round == _round and state.bits >= 0:
        return _bit_from(state.bits, at)
    if not is_gram(grams.names[name].length):
        return _next_of_both(grams, name, at)
    number = class_of(grams.names[name].length)
    if _standing[number].stamp != _stamp:
        _stand(grams, number)
    if state.round != _round:
        return -1
    state.bits -= 1
    if state.bits < -ASKED_ANEW:
        state.bits = -1
        _put_into_bitset(state, _standing[number].posting)
        if state.bits >= 0:
            return _bit_from(state.bits, at)
    return _listed_from(state, _standing[number].posting, at)


cdef int64_t _next_of_both(Grams grams, uint32_t name, uint32_t at) except -2:
    """The same, of a text that is two grams.

    It is remembered between which two offsets it was looked for and found, so that who asks for it again does not
    go through the same of the subject. When that does not help any more, all its offsets are found.
    """
    cdef Name *it = &grams.names[name]
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
    if it.length > _text_length:
        return -1
    width = <uint32_t> part_of(it.length)
    number = class_of(width)
    if _standing[number].stamp != _stamp:
        _stand(grams, number)
    names = [<uint32_t> (it.key >> 32), <uint32_t> it.key]
    left, right = &_states[names[0]], &_states[names[1]]
    if left.round != _round or right.round != _round:
        return -1
    if left.bits < 0 or right.bits < 0:
        # The rarer one is gone through if it is so rare that it has no bitset.
        if <uint64_t> min(left.count, right.count) * DENSE > _text_length:
            if left.bits < 0:
                _put_into_bitset(left, _standing[number].posting)
            if right.bits < 0:
                _put_into_bitset(right, _standing[number].posting)
    stop = <uint32_t> _text_length - it.length + 1
    if state.round != _round:
        state.round, state.bits = _round, -1
    else:
        state.bits -= 1
        if state.bits < -ASKED_ANEW:
            state.bits = -1
            if _keep_both(state, left, right, names, it.length - width, &_standing[number], stop):
                return _next(grams, name, at)
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
