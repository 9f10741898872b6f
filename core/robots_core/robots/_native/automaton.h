/* Match all path patterns in one pass over a path.
 *
 * Stars divide a pattern into literal segments. The first segment is a prefix of the path; prefixes are sorted, and
 * found by binary search. The other segments are found by the automaton of A. V. Aho and M. J. Corasick, "Efficient
 * string matching", CACM 18 (1975). Each pattern waits for one segment at a time and takes its leftmost occurrence, so
 * there is no backtracking. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

typedef struct {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t number;
} Text;

/* A first segment; these are sorted. `parent` is the longest other one that is a prefix of this one, or NONE. */
typedef struct {
    Text text;
    uint32_t parent;
    uint32_t open, exact;           /* the first pattern with only this segment, without and with final `$`, or NONE */
    uint32_t waiting, waiting_end;  /* patterns with further segments: [waiting, waiting_end) of `Index.waiting` */
} Prefix;

/* A pattern with more segments than its first one. */
typedef struct {
    uint32_t pattern;
    uint32_t segments, segments_end;  /* the other segments: [segments, segments_end) of `Index.sequence` */
    Text tail;                        /* the segment before a final `$`: the path must end with it; may be empty */
} Waiting;

/* States in breadth-first order, so that the children of a state are adjacent; state 0 is the root. */
typedef struct {
    uint32_t *children;  /* the children of state s: [children[s], children[s + 1]) */
    uint8_t *bytes;      /* the byte that leads to the state */
    uint32_t *failure;   /* the state of the longest proper suffix */
    uint32_t *segment;   /* the segment that ends in the state, or NONE */
    uint32_t *output;    /* the state of the longest proper suffix that is a segment, or 0 */
    uint32_t states;
} Automaton;

typedef struct {
    uint32_t prefixes, waitings, segments;
    Prefix *prefix;
    Waiting *waiting;
    uint32_t *sequence;        /* the segment numbers of all waiting patterns */
    uint32_t *same;            /* by pattern: the next pattern that matches the same paths, or NONE */
    uint32_t *segment_length;
    Automaton automaton;
} Index;

static int compare_texts(const void *one, const void *other)
{
    const Text *a = one, *b = other;
    uint32_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, shorter);
    if (order != 0)
        return order;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static inline int same_text(const Text *a, const Text *b)
{
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* The child of `state` for `byte`, or 0. Compares at most 256 bytes. */
static inline uint32_t child(const Automaton *it, uint32_t state, uint8_t byte)
{
    uint32_t first = it->children[state], count = it->children[state + 1] - first;
    if (count == 0)
        return 0;
    const uint8_t *found = memchr(it->bytes + first, byte, count);
    return found == NULL ? 0 : (uint32_t)(found - it->bytes);
}

/* The state after `byte`. Over a whole text, this follows at most one failure link per byte. */
static inline uint32_t transition(const Automaton *it, uint32_t state, uint8_t byte)
{
    for (;;) {
        uint32_t next = child(it, state, byte);
        if (next != 0 || state == 0)
            return next;
        state = it->failure[state];
    }
}

/* Build the automaton of `count` texts, which are sorted and distinct; return 0 if allocation fails.
 * Time and memory: linear in `most`, the limit of their total bytes. */
static int build_automaton(Automaton *it, const Text *texts, uint32_t count, uint32_t most)
{
    typedef struct { uint32_t first, end, depth; } Range;  /* the texts that have the state's text as a prefix */
    Range *range = malloc((most + 1) * sizeof(Range));
    it->children = malloc(((size_t)most + 2) * sizeof(uint32_t));
    it->bytes = malloc((size_t)most + 1);
    it->failure = calloc((size_t)most + 1, sizeof(uint32_t));
    it->segment = malloc(((size_t)most + 1) * sizeof(uint32_t));
    it->output = calloc((size_t)most + 1, sizeof(uint32_t));
    if (!range || !it->children || !it->bytes || !it->failure || !it->segment || !it->output) {
        free(range);
        return 0;
    }
    range[0] = (Range){0, count, 0};
    it->bytes[0] = 0;
    it->states = 1;
    for (uint32_t state = 0; state < it->states; state++) {
        uint32_t at = range[state].first, end = range[state].end, depth = range[state].depth;
        uint32_t suffix = it->failure[state];
        it->children[state] = it->states;
        it->segment[state] = at < end && texts[at].length == depth ? texts[at++].number : NONE;
        it->output[state] = it->segment[suffix] != NONE ? suffix : it->output[suffix];
        while (at < end) {
            uint8_t byte = texts[at].bytes[depth];
            uint32_t new = it->states++, first = at;
            while (at < end && texts[at].bytes[depth] == byte)
                at++;
            range[new] = (Range){first, at, depth + 1};
            it->bytes[new] = byte;
            /* Suffixes are shorter, so their states have been visited already. */
            it->failure[new] = state == 0 ? 0 : transition(it, suffix, byte);
        }
    }
    it->children[it->states] = it->states;
    free(range);
    return 1;
}

static void free_index(Index *it)
{
    free(it->prefix);
    free(it->waiting);
    free(it->sequence);
    free(it->same);
    free(it->segment_length);
    free(it->automaton.children);
    free(it->automaton.bytes);
    free(it->automaton.failure);
    free(it->automaton.segment);
    free(it->automaton.output);
}

/* The end of the segment of `text` that begins at `at`: the next star, or the end of the text. */
static inline uint32_t segment_end(const Text *text, uint32_t at)
{
    const uint8_t *star = at < text->length ? memchr(text->bytes + at, '*', text->length - at) : NULL;
    return star == NULL ? text->length : (uint32_t)(star - text->bytes);
}

/* Add a pattern without further segments; `first` is the prefix's field for the first such pattern. */
static inline void add_whole(Index *it, uint32_t *first, uint32_t pattern)
{
    if (*first == NONE) {
        *first = pattern;
    } else {
        it->same[pattern] = it->same[*first];
        it->same[*first] = pattern;
    }
}

/* Add a pattern under its `prefix`, and append its segments after the first one, which ends at `end`, to `segments`.
 * Patterns of a prefix must be added in order. */
static void add_pattern(Index *it, Prefix *prefix, const Text *pattern, uint32_t end, int literal, Text *segments)
{
    int anchored = !literal && pattern->length > 0 && pattern->bytes[pattern->length - 1] == '$';
    Text text = {pattern->bytes, pattern->length - (uint32_t)anchored, pattern->number};
    Waiting new = {text.number, it->segments, it->segments, {pattern->bytes, 0, 0}};
    if (literal || end >= text.length) {
        add_whole(it, anchored ? &prefix->exact : &prefix->open, text.number);
        return;
    }
    for (uint32_t at = end + 1, stop; at <= text.length; at = stop + 1) {
        stop = segment_end(&text, at);
        Text segment = {text.bytes + at, stop - at, it->segments};
        if (anchored && stop == text.length)
            new.tail = segment;
        else if (segment.length > 0)
            segments[it->segments++] = segment;
    }
    new.segments_end = it->segments;
    if (new.segments == new.segments_end && new.tail.length == 0) {
        add_whole(it, &prefix->open, text.number);
        return;
    }
    it->waiting[it->waitings++] = new;
    prefix->waiting_end = it->waitings;
}

/* Number the distinct segments, fill `sequence`, and build the automaton; return 0 if allocation fails. */
static int build_segments(Index *it, Text *segments)
{
    uint32_t count = it->segments, kept = 0, bytes = 0;
    it->sequence = malloc(((size_t)count + 1) * sizeof(uint32_t));
    it->segment_length = malloc(((size_t)count + 1) * sizeof(uint32_t));
    if (it->sequence == NULL || it->segment_length == NULL)
        return 0;
    qsort(segments, count, sizeof(Text), compare_texts);
    for (uint32_t at = 0; at < count; at++) {
        uint32_t position = segments[at].number;
        if (at == 0 || !same_text(&segments[at], &segments[kept - 1])) {
            segments[kept] = segments[at];
            segments[kept].number = kept;
            it->segment_length[kept++] = segments[at].length;
            bytes += segments[at].length;
        }
        it->sequence[position] = kept - 1;
    }
    it->segments = kept;
    return build_automaton(&it->automaton, segments, kept, bytes);
}

/* Build the index of `count` patterns, numbered in order of precedence; return 0 if allocation fails. The index points
 * into the patterns, which must outlive it. `literal`: `*` and `$` are literal. `stars` is their total number of `*`.
 * Time: sorting the patterns and their segments. Memory: linear in their bytes. */
static int build_index(Index *it, const Text *patterns, uint32_t count, uint32_t stars, int literal)
{
    Text *firsts = malloc(((size_t)count + 1) * sizeof(Text));
    Text *segments = malloc(((size_t)stars + 1) * sizeof(Text));
    it->prefix = malloc(((size_t)count + 1) * sizeof(Prefix));
    it->waiting = malloc(((size_t)(count < stars ? count : stars) + 1) * sizeof(Waiting));
    it->same = malloc(((size_t)count + 1) * sizeof(uint32_t));
    int made = firsts && segments && it->prefix && it->waiting && it->same;
    if (made)
        memset(it->same, 0xff, ((size_t)count + 1) * sizeof(uint32_t));
    for (uint32_t at = 0; made && at < count; at++) {
        uint32_t end = literal ? patterns[at].length : segment_end(&patterns[at], 0);
        if (!literal && end == patterns[at].length && end > 0 && patterns[at].bytes[end - 1] == '$')
            end--;
        firsts[at] = (Text){patterns[at].bytes, end, at};
    }
    if (made)
        qsort(firsts, count, sizeof(Text), compare_texts);
    for (uint32_t at = 0; made && at < count; at++) {
        Prefix *last = it->prefixes == 0 ? NULL : &it->prefix[it->prefixes - 1];
        if (last == NULL || !same_text(&last->text, &firsts[at])) {
            uint32_t parent = it->prefixes == 0 ? NONE : it->prefixes - 1;
            while (parent != NONE &&
                   (it->prefix[parent].text.length > firsts[at].length ||
                    memcmp(it->prefix[parent].text.bytes, firsts[at].bytes, it->prefix[parent].text.length) != 0))
                parent = it->prefix[parent].parent;
            last = &it->prefix[it->prefixes++];
            *last = (Prefix){firsts[at], parent, NONE, NONE, it->waitings, it->waitings};
        }
        add_pattern(it, last, &patterns[firsts[at].number], firsts[at].length, literal, segments);
    }
    made = made && build_segments(it, segments);
    free(firsts);
    free(segments);
    return made;
}

/* The state of one pass over a path. `lists` has the waiting patterns by segment. `due` has, by offset in the path, the
 * patterns whose next segment cannot end before it. `next` links these lists; a pattern is in at most one. */
typedef struct {
    const Index *index;
    const uint8_t *path;
    uint32_t length, best;
    uint8_t *matched;  /* flags by pattern; NULL if only the best one is needed */
    uint32_t *lists, *due, *next, *cursor;
    uint32_t in_lists;
} Pass;

static inline void report(Pass *pass, uint32_t pattern)
{
    if (pattern < pass->best)
        pass->best = pattern;
    for (; pass->matched != NULL && pattern != NONE; pattern = pass->index->same[pattern])
        pass->matched[pattern] = 1;
}

/* Make a pattern whose previous segment ends at `end` wait for its next segment; report it if there is none. */
static inline void await_segment(Pass *pass, uint32_t number, uint32_t end)
{
    const Waiting *it = &pass->index->waiting[number];
    if (pass->cursor[number] == it->segments_end) {
        if (it->tail.length <= pass->length - end &&
            memcmp(pass->path + pass->length - it->tail.length, it->tail.bytes, it->tail.length) == 0)
            report(pass, it->pattern);
        return;
    }
    uint32_t length = pass->index->segment_length[pass->index->sequence[pass->cursor[number]]];
    if (length > pass->length - end)
        return;
    pass->next[number] = pass->due[end + length];
    pass->due[end + length] = number;
    pass->in_lists++;
}

/* Run the automaton over the path until no pattern is waiting; return 0 if the steps run out. */
static int find_segments(Pass *pass, int64_t steps)
{
    const Index *index = pass->index;
    const Automaton *it = &index->automaton;
    uint32_t state = 0;
    for (uint32_t end = 1; end <= pass->length && pass->in_lists > 0; end++) {
        for (uint32_t number = pass->due[end], next; number != NONE; number = next) {
            uint32_t *list = &pass->lists[index->sequence[pass->cursor[number]]];
            next = pass->next[number];
            pass->next[number] = *list;
            *list = number;
        }
        state = transition(it, state, pass->path[end - 1]);
        uint32_t output = it->segment[state] != NONE ? state : it->output[state];
        for (; output != 0; output = it->output[output]) {
            if (--steps < 0)
                return 0;
            uint32_t *list = &pass->lists[it->segment[output]];
            uint32_t number = *list, next;
            *list = NONE;
            for (; number != NONE; number = next) {
                next = pass->next[number];
                pass->in_lists--;
                pass->cursor[number]++;
                await_segment(pass, number, end);
            }
        }
    }
    return 1;
}

/* The last prefix that does not sort after the path, or NONE. */
static uint32_t last_prefix(const Index *index, const uint8_t *path, uint32_t length)
{
    Text text = {path, length, NONE};
    uint32_t low = 0, high = index->prefixes;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_texts(&index->prefix[middle].text, &text) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NONE : low - 1;
}

/* Results of a search other than a pattern's number or NONE. */
enum { NO_STEPS = -1, NO_MEMORY = -2 };

/* Return the first pattern that matches, or NONE; set the flag in `matched`, unless NULL, of each one that matches.
 * Time: linear in the path and in the segments of all patterns, and a step for each segment that ends at a byte of the
 * path. Long segments that are suffixes of each other make these steps many, so `steps` limits them. */
static int64_t match(const Index *index, const uint8_t *path, uint32_t length, int64_t steps, uint8_t *matched)
{
    Pass pass = {.index = index, .path = path, .length = length, .best = NONE, .matched = matched};
    uint32_t prefix = last_prefix(index, path, length), waits = 0;
    /* The prefixes of the path are among this one and its ancestors. */
    while (prefix != NONE && (index->prefix[prefix].text.length > length ||
                              memcmp(index->prefix[prefix].text.bytes, path, index->prefix[prefix].text.length) != 0))
        prefix = index->prefix[prefix].parent;
    for (uint32_t each = prefix; each != NONE; each = index->prefix[each].parent) {
        report(&pass, index->prefix[each].open);
        if (index->prefix[each].text.length == length)
            report(&pass, index->prefix[each].exact);
        waits |= index->prefix[each].waiting != index->prefix[each].waiting_end;
    }
    if (waits) {
        size_t words = (size_t)index->segments + length + 1 + 2 * (size_t)index->waitings;
        uint32_t *room = malloc(words * sizeof(uint32_t));
        if (room == NULL)
            return NO_MEMORY;
        pass.lists = room;
        pass.due = pass.lists + index->segments;
        pass.next = pass.due + length + 1;
        pass.cursor = pass.next + index->waitings;
        memset(room, 0xff, ((size_t)index->segments + length + 1) * sizeof(uint32_t));
        for (uint32_t each = prefix; each != NONE; each = index->prefix[each].parent) {
            uint32_t end = index->prefix[each].waiting_end;
            for (uint32_t number = index->prefix[each].waiting; number < end; number++) {
                /* Patterns are in order: if this one cannot be the best, no later one can. */
                if (matched == NULL && index->waiting[number].pattern > pass.best)
                    break;
                pass.cursor[number] = index->waiting[number].segments;
                await_segment(&pass, number, index->prefix[each].text.length);
            }
        }
        int found = find_segments(&pass, steps);
        free(room);
        if (!found)
            return NO_STEPS;
    }
    return pass.best;
}
