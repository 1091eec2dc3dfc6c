/* pattern.c - compiling a regular expression to nodes; see pattern.h. Matching is in match.c. */
#include "data/pattern.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_REPEAT = 1000, MAX_GROUPS = 32 };

struct parser {
    struct pattern *pattern;
    const char *text, *at;
    bool any_case; /* inside (?i: ) */
    char before;   /* the letter before in there, small; '\0': none */
    int depth;
    struct fault *fault;
};

/* A piece of the graph: where it begins, and the node whose next is to be set. */
struct piece {
    int first, last;
};

static int refuse(const struct parser *p, const char *what)
{
    return fault_set(p->fault, CODE_DATA, "%s at byte %ld of the regular expression %s", what,
                     (long)(p->at - p->text), p->text);
}

static int add_node(struct parser *p, struct node node)
{
    if (p->pattern->n_nodes == PATTERN_MAX_NODES) return refuse(p, "too many parts");
    p->pattern->node[p->pattern->n_nodes] = node;
    return p->pattern->n_nodes++;
}

static int add_range(struct parser *p, struct char_set *set, uint32_t first, uint32_t last)
{
    if (last < first) return refuse(p, "a range that ends before it begins");
    if (set->n_ranges == CHAR_SET_MAX_RANGES) return refuse(p, "too many ranges in a set");
    set->range[set->n_ranges][0] = first;
    set->range[set->n_ranges++][1] = last;
    return 0;
}

static int add_spaces(struct parser *p, struct char_set *set)
{
    for (int i = 0; i < n_unicode_spaces; i++)
        if (add_range(p, set, unicode_spaces[i][0], unicode_spaces[i][1]) != 0) return -1;
    return 0;
}

/* The set's number in the alphabet; equal sets are one. */
static int add_set(struct parser *p, const struct char_set *set)
{
    struct alphabet *a = p->pattern->alphabet;

    for (int s = 0; s < a->n_sets; s++)
        if (memcmp(&a->set[s], set, sizeof *set) == 0) return s;
    if (a->n_sets == ALPHABET_MAX_SETS) return refuse(p, "too many different sets");
    a->set[a->n_sets] = *set;
    return a->n_sets++;
}

/* The code point at p->at, which moves behind it. -1: end of text or no UTF-8. */
static int next_char(struct parser *p, uint32_t *c)
{
    int bytes;
    if (!*p->at) return refuse(p, "unexpected end");
    *c = unicode_decode(p->at, (int64_t)strlen(p->at), &bytes);
    if (*c == UNICODE_CODE_POINTS) return refuse(p, "not UTF-8");
    p->at += bytes;
    return 0;
}

/* \p{Name} with p->at behind the p. */
static int parse_property(struct parser *p, uint32_t *categories)
{
    const char *name = p->at + 1, *close = *p->at == '{' ? strchr(p->at, '}') : NULL;

    if (!close) return refuse(p, "\\p without {name}");
    *categories = unicode_categories(name, (size_t)(close - name));
    if (!*categories) return refuse(p, "a property that is no general category");
    p->at = close + 1;
    return 0;
}

/* What follows a backslash: adds to the set, and sets *single to the code point if it is one (else
 * to UNICODE_CODE_POINTS). whole: \S may be the set itself, which is then negated. */
static int parse_escape(struct parser *p, struct char_set *set, bool whole, uint32_t *single)
{
    static const char from[] = "rntfv", to[] = "\r\n\t\f\v";
    uint32_t c, categories;

    if (next_char(p, &c) != 0) return -1;
    *single = UNICODE_CODE_POINTS;
    switch (c) {
    case 'p':
    case 'P':
        if (parse_property(p, &categories) != 0) return -1;
        set->categories |=
            c == 'p' ? categories : ((UINT32_C(1) << N_UNICODE_CATEGORIES) - 1) & ~categories;
        return 0;
    case 'd': set->categories |= UINT32_C(1) << UNICODE_ND; return 0;
    case 'S':
        if (!whole) break;
        set->negated = true;
        return add_spaces(p, set);
    case 's': return add_spaces(p, set);
    default: {
        const char *letter = c < 0x80 ? strchr(from, (int)c) : NULL;
        const bool is_word = (c >= '0' && c <= '9') || (c | 32) - 'a' < 26 || c >= 0x80;
        if (!letter && is_word) break;
        *single = letter ? (uint32_t)(unsigned char)to[letter - from] : c;
        return 0;
    }
    }
    p->at--;
    return refuse(p, "an escape that is not supported");
}

/* The part of first .. last that lies within from .. from + 25, moved by shift. */
static int add_moved(struct parser *p, struct char_set *set, uint32_t first, uint32_t last,
                     uint32_t from, int shift)
{
    if (first < from) first = from;
    if (last > from + 25) last = from + 25;
    if (first > last) return 0;
    return add_range(p, set, first + (uint32_t)shift, last + (uint32_t)shift);
}

static bool has_letter(uint32_t first, uint32_t last, uint32_t lower)
{
    return (first <= lower && lower <= last) || (first <= lower - 32 && lower - 32 <= last);
}

/* A range; within (?i: ) in any case: two letters have a third form by Unicode's simple folding. */
static int add_chars(struct parser *p, struct char_set *set, uint32_t first, uint32_t last)
{
    if (add_range(p, set, first, last) != 0) return -1;
    if (!p->any_case) return 0;
    if (last >= 0x80) return refuse(p, "a character beyond ASCII within (?i:");
    if (add_moved(p, set, first, last, 'A', 32) != 0 ||
        add_moved(p, set, first, last, 'a', -32) != 0 ||
        (has_letter(first, last, 'k') && add_range(p, set, 0x212a, 0x212a) != 0) ||
        (has_letter(first, last, 's') && add_range(p, set, 0x17f, 0x17f) != 0))
        return -1;
    return 0;
}

/* One character or escape of a set. */
static int parse_member(struct parser *p, struct char_set *set, uint32_t *single)
{
    if (*p->at == '[') return refuse(p, "a set within a set");
    if (*p->at == '&' && p->at[1] == '&') return refuse(p, "an intersection of sets");
    if (next_char(p, single) != 0) return -1;
    return *single == '\\' ? parse_escape(p, set, false, single) : 0;
}

/* [...] with p->at behind the bracket. */
static int parse_set(struct parser *p, struct char_set *set)
{
    uint32_t first, last;

    if (*p->at == '^') {
        set->negated = true;
        p->at++;
    }
    if (*p->at == ']') return refuse(p, "an empty set");
    while (*p->at != ']') {
        if (parse_member(p, set, &first) != 0) return -1;
        if (first == UNICODE_CODE_POINTS) continue;
        last = first;
        if (p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            if (parse_member(p, set, &last) != 0) return -1;
            if (last == UNICODE_CODE_POINTS) return refuse(p, "a range that ends with a class");
        }
        if (add_chars(p, set, first, last) != 0) return -1;
    }
    if (p->any_case && set->categories) return refuse(p, "a category in a set within (?i:");
    p->at++;
    return 0;
}

/* Letters that stand side by side within (?i: ) and are one character in another case, like the
 * German sharp s or a ligature. */
static int check_pair(struct parser *p, char before, uint32_t c)
{
    const char pair[] = {before, (char)(c | 32), '\0'};
    if (!p->any_case || (c | 32) - 'a' >= 26) return 0;
    p->before = pair[1];
    if (!before || !strstr("ss st ff fi fl", pair)) return 0;
    return refuse(p, "letters within (?i: that are also one character");
}

/* One set, escape or literal; its number. */
static int parse_atom(struct parser *p)
{
    struct char_set set = {0};
    const char before = p->before;
    uint32_t c;

    p->before = '\0';
    if (next_char(p, &c) != 0) return -1;
    if (c == '[') {
        if (parse_set(p, &set) != 0) return -1;
    } else if (c == '.') {
        set.negated = true;
        if (add_range(p, &set, '\n', '\n') != 0) return -1;
    } else if (c < 0x80 && strchr("*+?{}^$", (int)c)) {
        p->at--;
        return refuse(p, "a character that needs something else before it, or a backslash,");
    } else {
        uint32_t single = c;
        if (c == '\\' && parse_escape(p, &set, true, &single) != 0) return -1;
        if (single != UNICODE_CODE_POINTS &&
            (check_pair(p, before, single) != 0 || add_chars(p, &set, single, single) != 0))
            return -1;
    }
    return add_set(p, &set);
}

static int parse_number(struct parser *p, int *value)
{
    char *end;
    const long x = strtol(p->at, &end, 10);

    if (end == p->at || *p->at < '0' || *p->at > '9' || x > MAX_REPEAT)
        return refuse(p, "a repetition that is no number up to 1000");
    *value = (int)x;
    p->at = end;
    return 0;
}

/* What stands behind an atom, into a SET; 1 .. 1 when nothing does. */
static int parse_repeat(struct parser *p, struct node *node)
{
    int *min = &node->min, *max = &node->max;
    const char c = *p->at;
    *min = *max = 1;
    if (c != '*' && c != '+' && c != '?' && c != '{') return 0;
    p->at++;
    p->before = '\0';
    if (c == '*' || c == '?') *min = 0;
    if (c == '*' || c == '+') *max = PATTERN_NO_LIMIT;
    if (c == '{') {
        if (parse_number(p, min) != 0) return -1;
        *max = *min;
        if (*p->at == ',') {
            p->at++;
            *max = PATTERN_NO_LIMIT;
            if (*p->at != '}' && parse_number(p, max) != 0) return -1;
        }
        if (*p->at != '}' || *max < *min)
            return refuse(p, "a repetition that is not {m}, {m,} or {m,n}");
        p->at++;
    }
    if (*p->at == '+' && c != '{') {
        node->possessive = true;
        p->at++;
    }
    if (*p->at == '?' || *p->at == '+' || *p->at == '*')
        return refuse(p, "a lazy or double repetition ({m,n}+ is one to tokenizers)");
    return 0;
}

static int parse_alternatives(struct parser *p, int *first, int max, int *n, int end);

/* (?!set) or (?=set) with p->at behind the sign. */
static int parse_look(struct parser *p, bool negated, struct piece *piece)
{
    const int set = parse_atom(p);

    if (set < 0) return -1;
    if (*p->at != ')') return refuse(p, "a lookahead at more than one character");
    p->at++;
    piece->first = piece->last =
        add_node(p, (struct node){.kind = NODE_LOOK, .set = set, .negated = negated, .next = -1});
    return piece->first < 0 ? -1 : 0;
}

/* The alternatives of a group meet in one JOIN; a chain of SPLITs tries them in their order. */
static int parse_group(struct parser *p, struct piece *piece)
{
    int first[MAX_GROUPS], n = 0;
    struct node repeat = {0};
    const bool outer_case = p->any_case;

    if (p->at[0] == '?') {
        const char kind = p->at[1];
        const bool colon = kind == ':' || (kind == 'i' && p->at[2] == ':');
        if (kind != '!' && kind != '=' && !colon) return refuse(p, "a group of this kind");
        p->at += kind == 'i' ? 3 : 2;
        if (!colon) return parse_look(p, kind == '!', piece);
        p->any_case = p->any_case || kind == 'i';
    }
    const int join = add_node(p, (struct node){.kind = NODE_JOIN, .next = -1});
    if (join < 0 || parse_alternatives(p, first, MAX_GROUPS - 1, &n, join) != 0) return -1;
    p->any_case = outer_case;
    if (*p->at != ')') return refuse(p, "a group that is not closed");
    p->at++;
    if (parse_repeat(p, &repeat) != 0) return -1;
    if (repeat.max != 1 || repeat.possessive) return refuse(p, "a repeated or possessive group");
    if (repeat.min == 0) first[n++] = join;
    int rest = first[n - 1];
    for (int i = n - 2; i >= 0; i--) {
        rest = add_node(p, (struct node){.kind = NODE_SPLIT, .next = first[i], .other = rest});
        if (rest < 0) return -1;
    }
    *piece = (struct piece){rest, join};
    return 0;
}

static int parse_piece(struct parser *p, struct piece *piece)
{
    struct node node = {.kind = NODE_SET, .next = -1};

    if (*p->at == '(') {
        p->at++;
        if (++p->depth > MAX_GROUPS) return refuse(p, "groups nested too deep");
        const int bad = parse_group(p, piece);
        p->depth--;
        return bad;
    }
    node.set = parse_atom(p);
    if (node.set < 0 || parse_repeat(p, &node) != 0) return -1;
    piece->first = piece->last = add_node(p, node);
    return piece->first < 0 ? -1 : 0;
}

/* Alternatives up to a closing bracket or the end; each ends in node end. */
static int parse_alternatives(struct parser *p, int *first, int max, int *n, int end)
{
    struct node *node = p->pattern->node;

    for (*n = 0;;) {
        int last = -1;
        if (*n == max) return refuse(p, "too many alternatives");
        first[*n] = end;
        while (*p->at && *p->at != '|' && *p->at != ')') {
            struct piece piece = {-1, -1};
            if (parse_piece(p, &piece) != 0) return -1;
            if (last < 0)
                first[*n] = piece.first;
            else
                node[last].next = piece.first;
            last = piece.last;
        }
        if (last < 0) return refuse(p, "an empty alternative");
        node[last].next = end;
        ++*n;
        if (*p->at != '|') return 0;
        p->at++;
        p->before = '\0';
    }
}

/* Whether an alternative may match no characters: found backwards from the end, until nothing
 * changes, as paths through groups are too many to follow. */
static bool may_be_empty(const struct pattern *pattern)
{
    bool empty[PATTERN_MAX_NODES] = {false}, changed = true;

    while (changed) {
        changed = false;
        for (int i = 0; i < pattern->n_nodes; i++) {
            const struct node *node = &pattern->node[i];
            const bool now = node->kind == NODE_END ||
                             ((node->kind != NODE_SET || node->min == 0) && empty[node->next]) ||
                             (node->kind == NODE_SPLIT && empty[node->other]);
            changed = changed || now != empty[i];
            empty[i] = now;
        }
    }
    for (int a = 0; a < pattern->n_alternatives; a++)
        if (empty[pattern->alternative[a]]) return true;
    return false;
}

int pattern_try_compile(struct pattern *pattern, struct alphabet *alphabet, const char *text,
                        struct fault *fault)
{
    struct parser p = {.pattern = pattern, .text = text, .at = text, .fault = fault};

    memset(pattern, 0, sizeof *pattern);
    pattern->text = strdup(text);
    CHECK(pattern->text, "no memory for a regular expression");
    pattern->alphabet = alphabet;
    const int end = add_node(&p, (struct node){.kind = NODE_END});
    if (parse_alternatives(&p, pattern->alternative, PATTERN_MAX_ALTERNATIVES,
                           &pattern->n_alternatives, end) != 0)
        return -1;
    if (*p.at) return refuse(&p, "a bracket that closes nothing");
    return may_be_empty(pattern) ? refuse(&p, "a match of no characters") : 0;
}
