/* The inner loops of globs.pyx: rows of bits, a bit for each place of a subject, and what starts they leave. */

#ifndef GLOBS_H
#define GLOBS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the rows of globs.pyx are laid out for little-endian machines"
#endif

/* One source for every x86-64, the widest registers of the machine it runs on. Where functions cannot be chosen
   when the module is loaded, what the compiler aims at has to do. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
    && !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_MACHINE
#endif

/* 512 places; read from anywhere. */
typedef uint64_t wide __attribute__((vector_size(64), aligned(1), may_alias));

/* A row, from an octet before the one that holds the place of the first start; so many bits behind its begin as the
   lowest four of `kind` say, 1 to 8. MORE: the next row is of the same place. */
typedef struct { const unsigned char *row; uint64_t kind; } Step;
#define MORE 16
#define OTHERS 32 /* the place takes what the rows have not */
#define LOOK 64 /* see whether a start is left */

#define SIDE 4 /* wide ones that are looked at together: a row is read where it lies, one behind the other */

static inline uint64_t any_of(wide it)
{
    it |= __builtin_shuffle(it, (wide){4, 5, 6, 7, 0, 1, 2, 3});
    it |= __builtin_shuffle(it, (wide){2, 3, 0, 1, 2, 3, 0, 1});
    return it[0] | it[1];
}

/* What stands `by` bits further on, 1 to 8 in each lane, in `it` and, behind it, in `then`. */
static inline __attribute__((always_inline)) wide further(wide it, wide then, wide by)
{
    return it >> by | __builtin_shuffle(it, then, (wide){1, 2, 3, 4, 5, 6, 7, 8}) << (64 - by);
}

/* What of a place's steps tells where it stands: the rows joined, and behind the last of them `step`. */
#define JOIN(step, at, joining) \
    do { \
        const wide *row = (const wide *)((step)->row + (at)); \
        joining; \
    } while ((step)++->kind & MORE)

/* Strike out of four times 512 starts what the steps strike out; whether one is left. */
static inline __attribute__((always_inline)) int sift_four(
    wide *starts, const wide *from, const Step *step, const Step *end, size_t at)
{
    wide one = from[0], two = from[1], three = from[2], four = from[3];
    while (step < end) {
        wide first = {0}, second = {0}, third = {0}, fourth = {0};
        JOIN(step, at, (first |= row[0], second |= row[1], third |= row[2], fourth |= row[3]));
        const uint64_t kind = step[-1].kind, others = -(kind >> 5 & 1);
        const wide by = (kind & 15) - (wide){0};
        one &= further(first, second, by) ^ others;
        two &= further(second, third, by) ^ others;
        three &= further(third, fourth, by) ^ others;
        four &= further(fourth, fourth, by) ^ others;
        if (kind & LOOK && !any_of((one | two) | (three | four)))
            return 0;
    }
    starts[0] = one, starts[1] = two, starts[2] = three, starts[3] = four;
    return 1;
}

static inline __attribute__((always_inline)) int sift_one(
    wide *starts, const wide *from, const Step *step, const Step *end, size_t at)
{
    wide one = from[0];
    while (step < end) {
        wide first = {0};
        JOIN(step, at, (first |= row[0]));
        const uint64_t kind = step[-1].kind;
        one &= further(first, first, (kind & 15) - (wide){0}) ^ -(kind >> 5 & 1);
        if (kind & LOOK && !any_of(one))
            return 0;
    }
    starts[0] = one;
    return 1;
}

/* Sift `wides` times 512 starts, 1 or SIDE, the first of them 8 * `at` behind the subject's begin: how many are left
   and, 32 bits further up, a bit for each word in which some are. Of the last eight starts nothing is known: what is
   behind the last octet that is read of a row is not. */
FOR_EACH_MACHINE static uint64_t sift(
    uint64_t *starts, const void *from, const Step *step, const Step *end, size_t at, int wides)
{
    uint64_t count = 0, words = 0;
    if (!(wides == 1 ? sift_one((wide *)starts, from, step, end, at)
                     : sift_four((wide *)starts, from, step, end, at)))
        return 0;
    #pragma GCC unroll 8
    for (int word = 0; word < wides * 8; ++word) {
        count += __builtin_popcountll(starts[word]);
        words |= (uint64_t)(starts[word] != 0) << word;
    }
    return words << 32 | count;
}

/* Read from SIDE * 64 - n on: all starts of n octets, and none behind. */
static const unsigned char *all_starts(void)
{
    static unsigned char edge[2 * SIDE * 64];
    if (!edge[0])
        memset(edge, 0xFF, SIDE * 64);
    return edge + SIDE * 64;
}

/* Whether one of `count` characters stands where a stretch that begins `by` bits behind does not take it: `rows`
   are where each stands from the octet on, `barred`, `stride` octets each, the places that do not take it. */
FOR_EACH_MACHINE static int strikes(
    const unsigned char *const *rows, const unsigned char *barred, size_t stride, size_t count, size_t at, uint64_t by)
{
    for (size_t place = 0; place < stride; place += sizeof(wide)) {
        wide found = {0};
        for (size_t each = 0; each < count; ++each) {
            const unsigned char *row = rows[each] + at + place;
            found |= (*(const wide *)row >> by | *(const wide *)(row + 8) << 1 << (63 - by))
                & *(const wide *)(barred + each * stride + place);
        }
        if (any_of(found))
            return 1;
    }
    return 0;
}

FOR_EACH_MACHINE static void joined(uint64_t *to, const uint64_t *from, size_t words)
{
    for (size_t word = 0; word < words; ++word)
        to[word] |= from[word];
}

/* A bit for each octet that is `wanted`; all of them are below 0x80. */
static void marked(unsigned char *row, const unsigned char *octets, size_t eights, unsigned char wanted)
{
    const uint64_t all = 0x0101010101010101u * wanted, low = 0x7F7F7F7F7F7F7F7Fu;
    for (size_t eight = 0; eight < eights; ++eight) {
        uint64_t word;
        memcpy(&word, octets + 8 * eight, 8);
        word = ~((word ^ all) + low) & ~low; /* the highest bit of each octet that is equal */
        row[eight] = (unsigned char)((word >> 7) * 0x0102040810204080u >> 56);
    }
}

/* Bit `y` of word `x` becomes bit `x` of word `y`. */
static void flipped(uint64_t *square)
{
    uint64_t mask = 0x00000000FFFFFFFFu;
    for (int by = 32; by; by >>= 1, mask ^= mask << by)
        for (int at = 0; at < 64; at = ((at | by) + 1) & ~by) {
            uint64_t moved = (square[at] >> by ^ square[at | by]) & mask;
            square[at | by] ^= moved;
            square[at] ^= moved << by;
        }
}

/* Of some characters: where they stand in the subject. */
typedef struct {
    uint32_t count, first, behind; /* `behind` is one behind the last; NONE and 0 where there is none */
} Extent;

/* The same so that it is joined without asking: `before` is ~`first`, so of both the greatest counts. */
typedef struct { uint32_t count, before, behind, none; } Span;

/* For all sets of each four characters side by side where they stand, by where each stands. */
static void tabled(Span (*table)[16], const Extent *each)
{
    for (int four = 0; four < 32; ++four) {
        table[four][0] = (Span){0, 0, 0, 0};
        for (int some = 1; some < 16; ++some) {
            const Extent *it = each + four * 4 + __builtin_ctz(some);
            const Span less = table[four][some & (some - 1)];
            table[four][some] = (Span){
                less.count + it->count, less.before > ~it->first ? less.before : ~it->first,
                less.behind > it->behind ? less.behind : it->behind, 0};
        }
    }
}

/* In how many fours of characters side by side some of these are. */
static inline uint32_t fours_of(uint64_t members)
{
    members |= members >> 2;
    members = (members | members >> 1) & 0x1111111111111111u; /* a bit for each, so none of the sums is above 16 */
    return (uint32_t)(((members + (members >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}

/* Tell where the characters of a set stand; `fours` are those, `count` of them, which the subject has characters of.
   In how many of them the set's are and, 32 bits further up, the others of the subject. */
static uint64_t surveyed(
    Extent *it, const Span (*table)[16], const uint8_t *fours, size_t count, const uint64_t *set,
    const uint64_t *present)
{
    uint32_t all = 0, before = 0, behind = 0;
    for (size_t each = 0; each < count; ++each) {
        const Span *one = &table[fours[each]][set[fours[each] >> 4] >> (fours[each] & 15) * 4 & 15];
        all += one->count;
        before = before > one->before ? before : one->before;
        behind = behind > one->behind ? behind : one->behind;
    }
    *it = (Extent){all, ~before, behind};
    return (uint64_t)(fours_of(~set[0] & present[0]) + fours_of(~set[1] & present[1])) << 32
        | (fours_of(set[0] & present[0]) + fours_of(set[1] & present[1]));
}

/* Put `key` among the least, `room` of them in order; the greatest goes. Where among them it comes nobody foresees,
   so that is not asked. */
static inline void keep_least(uint64_t *least, uint32_t room, uint64_t key)
{
    if (key >= least[room - 1])
        return;
    for (uint32_t each = room - 1; each; --each) {
        const uint64_t less = least[each] < key ? least[each] : key;
        least[each] = less > least[each - 1] ? less : least[each - 1];
    }
    least[0] = least[0] < key ? least[0] : key;
}

static inline uint64_t folded(uint64_t one, uint64_t other)
{
    unsigned __int128 product = (unsigned __int128)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hashed(const unsigned char *octets, size_t length, uint64_t seed, uint64_t factor)
{
    uint64_t word, hash = seed ^ length;
    for (; length >= 8; octets += 8, length -= 8) {
        memcpy(&word, octets, 8);
        hash = folded(hash ^ word, factor);
    }
    word = 0;
    memcpy(&word, octets, length);
    return folded(folded(hash ^ word, factor) ^ seed, factor);
}

/* The bucket of a gram of one word or four. */
static inline uint32_t bucket(const unsigned char *octets, int wide_one, const uint64_t *factors)
{
    uint64_t words[4];
    memcpy(words, octets, wide_one ? 32 : 8);
    if (!wide_one)
        return (uint32_t)(words[0] * factors[0] >> 48);
    return (uint32_t)(
        (words[0] * factors[0] + words[1] * factors[1] + words[2] * factors[2] + words[3] * factors[3]) >> 48);
}

static inline int same_eight(const unsigned char *one, const unsigned char *other)
{
    return !memcmp(one, other, 8);
}

#define lowest(word) __builtin_ctzll(word)
#define highest(word) (63 - __builtin_clzll(word))

#define NONE 0xFFFFFFFFu /* no number */
#define TEXT 0x80000000u /* in Piece.count: a text, and not places that take the same */

#endif
