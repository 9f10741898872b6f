/* Globs of Robot-version 2.0, which match whole paths (spec F10, F11). Matching a glob takes at most (length of glob) *
 * (length of path) steps; the caller limits the steps for all globs together.
 *
 * Patterns and paths are normalised and compared by character: the escapes of a character's UTF-8 are that character,
 * any other escape is one of its own, which equals only itself. */

#include "automaton.h"
#include "percent.h"

/* Characters are code points, or OCTET + the byte of an escape. A token is a character or one of the others. Behind SET
 * and OTHERS, the members or non-members of a set, follow the number of its ranges and the ends of each, ascending. */
enum { OCTET = 0x110000, ANY_CHARACTER = OCTET + 256, ANY_TEXT, SET, OTHERS };

typedef struct {
    uint32_t *first;  /* the first token of each glob, and the end of the last glob's tokens */
    uint32_t *token;
    uint32_t globs, tokens;
} Globs;

static void free_globs(Globs *it)
{
    free(it->first);
    free(it->token);
}

/* The byte that an escape at `at` writes, or -1 if there is none. */
static inline int escaped_byte(const uint8_t *text, uint32_t length, uint32_t at)
{
    if (at + 2 >= length || text[at] != '%')
        return -1;
    int high = hex_digit(text[at + 1]), low = hex_digit(text[at + 2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Read the character at `*at`, which must be in the text, and advance `*at` behind it. */
static uint32_t character(const uint8_t *text, uint32_t length, uint32_t *at)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};  /* a smaller one has a shorter form (RFC 3629 3) */
    int byte = escaped_byte(text, length, *at);
    if (byte < 0)
        return text[(*at)++];
    *at += 3;
    uint32_t alone = OCTET + (uint32_t)byte, more = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    uint32_t point = (uint32_t)byte & 0x3f >> more;
    if (byte < 0xc2 || byte > 0xf4)
        return alone;
    for (uint32_t each = 0; each < more; each++) {
        int next = escaped_byte(text, length, *at + 3 * each);
        if (next < 0x80 || next > 0xbf)
            return alone;
        point = point << 6 | ((uint32_t)next & 0x3f);
    }
    if (point < least[more] || point >= OCTET || (point >= 0xd800 && point < 0xe000))
        return alone;
    *at += 3 * more;
    return point;
}

static int compare_ranges(const void *one, const void *other)
{
    const uint32_t *a = one, *b = other;
    return a[0] < b[0] ? -1 : a[0] > b[0];
}

/* Read a set from `at`, after its `[`, to its `]`, which must follow; return the offset after the `]`. */
static uint32_t add_set(Globs *it, const uint8_t *pattern, uint32_t length, uint32_t at)
{
    int negated = pattern[at] == '!' || pattern[at] == '^';
    uint32_t first = at + (uint32_t)negated, ranges = 0, kept = 0;
    uint32_t *range = it->token + it->tokens + 2;
    for (at = first; pattern[at] != ']' || at == first;) {
        uint32_t low = character(pattern, length, &at), high = low;
        if (pattern[at] == '-' && pattern[at + 1] != ']') {
            at++;
            high = character(pattern, length, &at);
        }
        if (low <= high) {
            range[2 * ranges] = low;
            range[2 * ranges++ + 1] = high;
        }
    }
    qsort(range, ranges, 2 * sizeof(uint32_t), compare_ranges);
    for (uint32_t each = 0; each < ranges; each++) {
        uint32_t low = range[2 * each], high = range[2 * each + 1];
        if (kept && low <= range[2 * kept - 1] + 1) {
            range[2 * kept - 1] = high > range[2 * kept - 1] ? high : range[2 * kept - 1];
        } else {
            range[2 * kept] = low;
            range[2 * kept++ + 1] = high;
        }
    }
    it->token[it->tokens++] = negated ? OTHERS : SET;
    it->token[it->tokens++] = kept;
    it->tokens += 2 * kept;
    return at + 1;
}

/* Append a glob. There must be room for two tokens for each byte. Time: linear in `length` but for sorting sets. */
static void add_glob(Globs *it, const uint8_t *pattern, uint32_t length)
{
    uint32_t last_close = 0;  /* offset of the last `]`, or 0: no set ends at offset 0 */
    for (uint32_t at = 0; at < length; at++)
        last_close = pattern[at] == ']' ? at : last_close;
    for (uint32_t at = 0; at < length;) {
        uint32_t token = character(pattern, length, &at);
        if (token == '[') {
            uint32_t first = at + (at < length && (pattern[at] == '!' || pattern[at] == '^'));
            if (last_close > first) {  /* otherwise the set is not closed, and `[` is literal */
                at = add_set(it, pattern, length, at);
                continue;
            }
        } else if (token == '*')
            token = ANY_TEXT;
        else if (token == '?')
            token = ANY_CHARACTER;
        else if (token == '\\' && at < length)
            token = character(pattern, length, &at);
        it->token[it->tokens++] = token;
    }
    it->first[++it->globs] = it->tokens;
}

/* Build `count` globs with `bytes` bytes in total; return 0 if allocation fails. */
static int build_globs(Globs *it, const Text *patterns, uint32_t count, uint32_t bytes)
{
    it->first = calloc((size_t)count + 1, sizeof(uint32_t));
    it->token = malloc((2 * (size_t)bytes + 1) * sizeof(uint32_t));
    for (uint32_t at = 0; it->first && it->token && at < count; at++)
        add_glob(it, patterns[at].bytes, patterns[at].length);
    uint32_t *shrunk = it->token ? realloc(it->token, ((size_t)it->tokens + 1) * sizeof(uint32_t)) : NULL;
    it->token = shrunk ? shrunk : it->token;
    return it->first && it->token;
}

/* Whether a token other than ANY_TEXT takes the character. Time: logarithmic in the ranges of a set. */
static inline int takes(const uint32_t *token, uint32_t taken)
{
    if (*token < SET)
        return *token == taken || *token == ANY_CHARACTER;
    const uint32_t *range = token + 2;
    uint32_t low = 0, high = token[1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (range[2 * middle + 1] < taken)
            low = middle + 1;
        else
            high = middle;
    }
    return (low < token[1] && range[2 * low] <= taken) == (*token == SET);
}

/* Whether the glob matches the whole path, or -1 if the steps ran out. On a mismatch, only the last star backtracks. */
static int match_glob(const Globs *it, uint32_t number, const uint8_t *path, uint32_t length, int64_t *steps)
{
    uint32_t token = it->first[number], end = it->first[number + 1], at = 0, star = end, resumed = 0;
    while (at < length) {
        if (--*steps < 0)
            return -1;
        uint32_t next = at, read = character(path, length, &next);
        if (token < end && it->token[token] == ANY_TEXT) {
            star = token++;
            resumed = at;
        } else if (token < end && takes(it->token + token, read)) {
            token += it->token[token] < SET ? 1 : 2 + 2 * it->token[token + 1];
            at = next;
        } else if (star != end) {
            token = star + 1;
            character(path, length, &resumed);
            at = resumed;
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
