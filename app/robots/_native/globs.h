/* Globs of Robot-version 2.0, which match whole paths (spec F10, F11). Matching a glob takes at most (length of glob) *
 * (length of path) steps; the caller limits the steps for all globs together. */

#include "automaton.h"

/* A token is a byte or one of these; SET + n is the n-th set. */
enum { ANY_BYTE = 256, ANY_TEXT = 257, SET = 258 };

typedef struct {
    uint8_t members[32];  /* one bit for each byte */
} Set;

typedef struct {
    uint32_t *first;  /* the first token of each glob, and the end of the last glob's tokens */
    uint32_t *token;
    Set *set;
    uint32_t globs, tokens, sets;
} Globs;

static void free_globs(Globs *it)
{
    free(it->first);
    free(it->token);
    free(it->set);
}

/* Read a set from `at`, after its `[`, to its `]`, which must follow; return the offset after the `]`. */
static uint32_t read_set(const uint8_t *pattern, uint32_t at, Set *set)
{
    int negated = pattern[at] == '!' || pattern[at] == '^';
    uint32_t first = at + (uint32_t)negated;
    memset(set->members, 0, sizeof(set->members));
    for (at = first; pattern[at] != ']' || at == first; at++) {
        uint8_t low = pattern[at], high = low;
        if (pattern[at + 1] == '-' && pattern[at + 2] != ']') {
            high = pattern[at + 2];
            at += 2;
        }
        for (uint32_t byte = low; byte <= high; byte++)
            set->members[byte >> 3] |= (uint8_t)(1u << (byte & 7));
    }
    for (uint32_t each = 0; negated && each < sizeof(set->members); each++)
        set->members[each] ^= 0xff;
    return at + 1;
}

/* Append a glob. There must be room for a token for each byte and a set for each bracket. Time: linear in `length`. */
static void add_glob(Globs *it, const uint8_t *pattern, uint32_t length)
{
    uint32_t last_close = 0;  /* offset of the last `]`, or 0: no set ends at offset 0 */
    for (uint32_t at = 0; at < length; at++)
        last_close = pattern[at] == ']' ? at : last_close;
    for (uint32_t at = 0; at < length;) {
        uint32_t token = pattern[at++];
        if (token == '*')
            token = ANY_TEXT;
        else if (token == '?')
            token = ANY_BYTE;
        else if (token == '\\' && at < length)
            token = pattern[at++];
        else if (token == '[') {
            uint32_t first = at + (at < length && (pattern[at] == '!' || pattern[at] == '^'));
            if (last_close > first) {  /* otherwise the set is not closed, and `[` is literal */
                token = SET + it->sets;
                at = read_set(pattern, at, &it->set[it->sets++]);
            }
        }
        it->token[it->tokens++] = token;
    }
    it->first[++it->globs] = it->tokens;
}

/* Build `count` globs with `bytes` bytes and `brackets` brackets in total; return 0 if allocation fails. */
static int build_globs(Globs *it, const Text *patterns, uint32_t count, uint32_t bytes, uint32_t brackets)
{
    it->first = calloc((size_t)count + 1, sizeof(uint32_t));
    it->token = malloc(((size_t)bytes + 1) * sizeof(uint32_t));
    it->set = malloc(((size_t)brackets + 1) * sizeof(Set));
    for (uint32_t at = 0; it->first && it->token && it->set && at < count; at++)
        add_glob(it, patterns[at].bytes, patterns[at].length);
    return it->first && it->token && it->set;
}

static inline int takes(const Globs *it, uint32_t token, uint8_t byte)
{
    if (token < ANY_BYTE)
        return token == byte;
    return token == ANY_BYTE || it->set[token - SET].members[byte >> 3] >> (byte & 7) & 1;
}

/* Whether the glob matches the whole path, or -1 if the steps ran out. On a mismatch, only the last star backtracks. */
static int match_glob(const Globs *it, uint32_t number, const uint8_t *path, uint32_t length, int64_t *steps)
{
    uint32_t token = it->first[number], end = it->first[number + 1], at = 0, star = end, resumed = 0;
    while (at < length) {
        if (--*steps < 0)
            return -1;
        if (token < end && it->token[token] == ANY_TEXT) {
            star = token++;
            resumed = at;
        } else if (token < end && takes(it, it->token[token], path[at])) {
            token++;
            at++;
        } else if (star != end) {
            token = star + 1;
            at = ++resumed;
        } else {
            return 0;
        }
    }
    while (token < end && it->token[token] == ANY_TEXT)
        token++;
    return token == end;
}

/* As `match` in automaton.h, for globs, which are tried in order. */
static int64_t match_globs(const Globs *it, const uint8_t *path, uint32_t length, int64_t steps, uint8_t *matched)
{
    uint32_t best = NONE;
    for (uint32_t number = 0; number < it->globs; number++) {
        int found = match_glob(it, number, path, length, &steps);
        if (found < 0)
            return NO_STEPS;
        if (!found)
            continue;
        if (matched == NULL)
            return number;
        matched[number] = 1;
        best = best == NONE ? number : best;
    }
    return best;
}
