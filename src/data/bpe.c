/* bpe.c - byte-pair merges; see bpe.h. */
#include "data/bpe.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    CACHE_BITS = 17, /* 4 MiB: common pieces stay in the nearer caches, rare ones beat merging */
    CACHED_BYTES = 16,
    CACHED_IDS = 3,
    NOWHERE = -1
};
#define NO_RANK UINT32_MAX
#define NO_ID UINT32_MAX

struct merge {
    uint32_t left, right, rank, id; /* rank NO_RANK: empty */
};

struct whole {
    const char *text; /* NULL: empty */
    int64_t n;
    uint32_t id;
};

/* A piece of 1 .. 16 bytes, known by its length, its first and its last bytes; and its ids. */
struct cached {
    uint64_t key[2];
    uint32_t n; /* bytes; 0: empty */
    uint32_t id[CACHED_IDS];
};

/* What is left of a piece: a list in which merged symbols are skipped. */
struct symbol {
    uint32_t id;
    int32_t before, after;
};

struct bpe {
    uint32_t byte_id[256];
    struct merge *merge; /* [merge_mask + 1] by hash */
    uint64_t merge_mask;
    uint32_t n_ranks;
    struct whole *whole; /* [whole_mask + 1] by hash; NULL: none */
    uint64_t whole_mask;
    int64_t n_whole;
    struct cached *cache; /* [1 << CACHE_BITS] */
    struct symbol *symbol;
    uint64_t *heap;      /* rank << 32 | place: the pair that begins there */
    int64_t n_heap, cap; /* cap: of symbol; the heap holds three times as many */
};

static void *grow(void *old, size_t bytes)
{
    void *p = realloc(old, bytes);
    CHECK(p, "no memory for %zu bytes", bytes);
    return p;
}

uint32_t *id_list_reserve(struct id_list *list, int64_t n)
{
    if (list->n + n > list->cap) {
        list->cap = 2 * list->cap > list->n + n ? 2 * list->cap : list->n + n;
        list->id = grow(list->id, (size_t)list->cap * sizeof *list->id);
    }
    return list->id + list->n;
}

/* A power of two of at least twice as many, so that a search ends soon. */
static uint64_t table_mask(int64_t n)
{
    uint64_t size = 16;
    while (size < 2 * (uint64_t)n) size *= 2;
    return size - 1;
}

struct bpe *bpe_init(const uint32_t *byte_id, int64_t n_merges)
{
    struct bpe *bpe = mem_alloc(sizeof *bpe, "byte-pair encoder");

    memcpy(bpe->byte_id, byte_id, sizeof bpe->byte_id);
    bpe->merge_mask = table_mask(n_merges);
    bpe->merge = mem_alloc((bpe->merge_mask + 1) * sizeof *bpe->merge, "merges");
    for (uint64_t i = 0; i <= bpe->merge_mask; i++) bpe->merge[i].rank = NO_RANK;
    bpe->cache = mem_alloc(sizeof *bpe->cache << CACHE_BITS, "encoded pieces");
    return bpe;
}

void bpe_free(struct bpe *bpe)
{
    if (!bpe) return;
    free(bpe->heap);
    free(bpe->symbol);
    free(bpe->whole);
    mem_free(bpe->cache);
    mem_free(bpe->merge);
    mem_free(bpe);
}

/* Where the pair is, or would be. */
static struct merge *find_merge(const struct bpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    for (h ^= h >> 32;; h++) {
        struct merge *m = &bpe->merge[h & bpe->merge_mask];
        if (m->rank == NO_RANK || (m->left == left && m->right == right)) return m;
    }
}

void bpe_add_merge(struct bpe *bpe, uint32_t left, uint32_t right, uint32_t id)
{
    CHECK(2 * (uint64_t)bpe->n_ranks <= bpe->merge_mask, "more merges than were announced");
    *find_merge(bpe, left, right) = (struct merge){left, right, bpe->n_ranks++, id};
}

static struct whole *find_whole(const struct bpe *bpe, const char *text, int64_t n)
{
    for (uint64_t h = XXH64(text, (size_t)n, 0);; h++) {
        struct whole *w = &bpe->whole[h & bpe->whole_mask];
        if (!w->text || (w->n == n && memcmp(w->text, text, (size_t)n) == 0)) return w;
    }
}

void bpe_add_whole(struct bpe *bpe, const char *text, int64_t n, uint32_t id)
{
    if (!bpe->whole || 2 * (uint64_t)bpe->n_whole > bpe->whole_mask) {
        struct whole *old = bpe->whole;
        const uint64_t n_old = old ? bpe->whole_mask + 1 : 0;
        bpe->whole_mask = table_mask(2 * bpe->n_whole);
        bpe->whole = grow(NULL, (bpe->whole_mask + 1) * sizeof *bpe->whole);
        memset(bpe->whole, 0, (bpe->whole_mask + 1) * sizeof *bpe->whole);
        for (uint64_t i = 0; i < n_old; i++)
            if (old[i].text) *find_whole(bpe, old[i].text, old[i].n) = old[i];
        free(old);
    }
    bpe->n_whole++;
    *find_whole(bpe, text, n) = (struct whole){text, n, id};
}

static void heap_push(struct bpe *bpe, uint64_t x)
{
    uint64_t *heap = bpe->heap;
    int64_t i = bpe->n_heap++;
    for (; i > 0 && heap[(i - 1) / 2] > x; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

static uint64_t heap_pop(struct bpe *bpe)
{
    uint64_t *heap = bpe->heap;
    const uint64_t least = heap[0], last = heap[--bpe->n_heap];
    int64_t i = 0;

    for (int64_t child = 1; child < bpe->n_heap; child = 2 * i + 1) {
        if (child + 1 < bpe->n_heap && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return least;
}

/* Notes the pair that begins at place, if it is one. */
static void note_pair(struct bpe *bpe, int32_t place)
{
    const struct symbol *s = bpe->symbol;
    if (place == NOWHERE || s[place].after == NOWHERE) return;
    const struct merge *m = find_merge(bpe, s[place].id, s[s[place].after].id);
    if (m->rank != NO_RANK) heap_push(bpe, (uint64_t)m->rank << 32 | (uint32_t)place);
}

static void begin_piece(struct bpe *bpe, const char *piece, int64_t n)
{
    if (n > bpe->cap) {
        bpe->cap = n > 1024 ? n : 1024;
        bpe->symbol = grow(bpe->symbol, (size_t)bpe->cap * sizeof *bpe->symbol);
        /* a pair for each symbol at first, and two more for each of at most n - 1 merges */
        bpe->heap = grow(bpe->heap, 3 * (size_t)bpe->cap * sizeof *bpe->heap);
    }
    for (int64_t i = 0; i < n; i++)
        bpe->symbol[i] = (struct symbol){bpe->byte_id[(unsigned char)piece[i]], (int32_t)i - 1,
                                         i + 1 < n ? (int32_t)i + 1 : NOWHERE};
    bpe->n_heap = 0;
    for (int64_t i = 0; i < n; i++) note_pair(bpe, (int32_t)i);
}

/* Merges until no pair is left. A pair that has changed since it was noted is passed over: its
 * rank is no longer that of the symbols there. */
static void merge_all(struct bpe *bpe)
{
    struct symbol *s = bpe->symbol;

    while (bpe->n_heap > 0) {
        const uint64_t least = heap_pop(bpe);
        const int32_t place = (int32_t)(least & UINT32_MAX), right = s[place].after;
        if (s[place].before == place || right == NOWHERE) continue;
        const struct merge *m = find_merge(bpe, s[place].id, s[right].id);
        if (m->rank != least >> 32) continue;
        s[place].id = m->id;
        s[place].after = s[right].after;
        if (s[right].after != NOWHERE) s[s[right].after].before = place;
        s[right].before = right; /* gone */
        note_pair(bpe, s[place].before);
        note_pair(bpe, place);
    }
}

static void encode_new(struct bpe *bpe, const char *piece, int64_t n, struct id_list *out)
{
    uint32_t *id = id_list_reserve(out, n);
    const struct whole *whole = bpe->whole ? find_whole(bpe, piece, n) : NULL;

    CHECK(n <= INT32_MAX, "a piece of %ld bytes", (long)n);
    if (whole && whole->text) {
        *id = whole->id;
        out->n++;
        return;
    }
    begin_piece(bpe, piece, n);
    merge_all(bpe);
    for (int32_t i = 0; i != NOWHERE; i = bpe->symbol[i].after) {
        *id++ = bpe->symbol[i].id;
        out->n++;
    }
}

/* The first and the last 8 bytes of n <= 16, which overlap when n < 16; of fewer than 8 all. */
static void make_key(uint64_t key[2], const char *piece, int64_t n)
{
    uint32_t half[2];

    if (n >= 8) {
        memcpy(&key[0], piece, 8);
        memcpy(&key[1], piece + n - 8, 8);
    } else if (n >= 4) {
        memcpy(&half[0], piece, 4);
        memcpy(&half[1], piece + n - 4, 4);
        key[0] = half[0];
        key[1] = half[1];
    } else {
        key[0] = (unsigned char)piece[0];
        key[1] = (uint64_t)(unsigned char)piece[n / 2] << 8 | (unsigned char)piece[n - 1];
    }
}

static struct cached *cache_line(const struct bpe *bpe, const uint64_t key[2], int64_t n)
{
    uint64_t h = (key[0] ^ (uint64_t)n << 56) * UINT64_C(0x9e3779b97f4a7c15) ^
                 key[1] * UINT64_C(0xc2b2ae3d27d4eb4f);
    h = (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return &bpe->cache[h >> (64 - CACHE_BITS)];
}

void bpe_encode(struct bpe *bpe, const char *piece, int64_t n, struct id_list *out)
{
    uint64_t key[2];

    if (n > CACHED_BYTES) {
        encode_new(bpe, piece, n, out);
        return;
    }
    make_key(key, piece, n);
    struct cached *c = cache_line(bpe, key, n);
    if (c->key[0] == key[0] && c->key[1] == key[1] && c->n == n) {
        uint32_t *id = id_list_reserve(out, CACHED_IDS);
        for (int i = 0; i < CACHED_IDS && c->id[i] != NO_ID; i++, out->n++) id[i] = c->id[i];
        return;
    }
    const int64_t before = out->n;
    encode_new(bpe, piece, n, out);
    const int64_t n_ids = out->n - before;
    if (n_ids > CACHED_IDS) return;
    *c = (struct cached){.key = {key[0], key[1]}, .n = (uint32_t)n};
    for (int i = 0; i < CACHED_IDS; i++) c->id[i] = i < n_ids ? out->id[before + i] : NO_ID;
}
