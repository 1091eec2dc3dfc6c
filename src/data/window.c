/*
 * window.c - one sample of a dataset: T + 1 tokens cut out of decoded frames, across frames and
 * shards, and for every token where its document starts within the window.
 */
#include "data/dataset.h"

#include "base/mem.h"

#include <string.h>

/* Shuffled samples of a corpus far larger than the cache hit it never and need one or two frames
 * each; a small corpus (the demo) fits as a whole and is decoded once. */
enum { CACHE_BYTES = 16 << 20, ENDS_AT_ONCE = 32 };

struct frame_slot {
    int shard;
    int64_t frame;
    uint64_t used; /* when, in frames fetched; 0: empty */
};

struct window {
    const struct dataset *ds;
    struct shard_decoder decoder;
    int n_slots;
    size_t slot_bytes;
    struct frame_slot *slot;
    char *ids; /* [n_slots][slot_bytes] */
    uint64_t n_fetched;
    uint64_t end[ENDS_AT_ONCE];
};

struct window *window_init(const struct dataset *ds)
{
    uint32_t id_bytes = 2;
    int64_t n_frames = 0;
    for (int s = 0; s < ds->n_shards; s++) {
        if (ds->shard[s].info.id_bytes > id_bytes) id_bytes = ds->shard[s].info.id_bytes;
        n_frames += ds->shard[s].info.n_frames;
    }
    struct window *win = mem_alloc(sizeof *win, "window");
    win->ds = ds;
    win->slot_bytes = (size_t)SHARD_FRAME_TOKENS * id_bytes;
    win->n_slots = (int)(CACHE_BYTES / win->slot_bytes);
    if (n_frames < win->n_slots) win->n_slots = (int)n_frames;
    win->slot = mem_alloc((size_t)win->n_slots * sizeof *win->slot, "frame slots");
    win->ids = mem_alloc((size_t)win->n_slots * win->slot_bytes, "decoded frames");
    shard_decoder_init(&win->decoder);
    return win;
}

void window_free(struct window *win)
{
    if (!win) return;
    shard_decoder_free(&win->decoder);
    mem_free(win->ids);
    mem_free(win->slot);
    mem_free(win);
}

/* The decoded frame, from the cache or in place of the one not used for longest; NULL and fault. */
static const void *fetch(struct window *win, int shard, int64_t frame, struct fault *fault)
{
    int oldest = 0;

    for (int i = 0; i < win->n_slots; i++) {
        struct frame_slot *slot = &win->slot[i];
        if (slot->used && slot->shard == shard && slot->frame == frame) {
            slot->used = ++win->n_fetched;
            return win->ids + (size_t)i * win->slot_bytes;
        }
        if (slot->used < win->slot[oldest].used) oldest = i;
    }
    struct frame_slot *slot = &win->slot[oldest];
    void *ids = win->ids + (size_t)oldest * win->slot_bytes;
    slot->used = 0;
    if (shard_try_frame(&win->ds->shard[shard], frame, &win->decoder, ids, fault) != 0) return NULL;
    *slot = (struct frame_slot){shard, frame, ++win->n_fetched};
    return ids;
}

static void widen(int32_t *token, const void *ids, uint32_t id_bytes, int64_t from, int64_t n)
{
    if (id_bytes == 4) {
        memcpy(token, (const uint32_t *)ids + from, (size_t)n * sizeof *token);
        return;
    }
    const uint16_t *p = (const uint16_t *)ids + from;
    for (int64_t i = 0; i < n; i++) token[i] = p[i];
}

/* Tokens from .. from + n - 1 of a shard. */
static int read_tokens(struct window *win, int shard, int64_t from, int64_t n, int32_t *token,
                       struct fault *fault)
{
    while (n > 0) {
        const int64_t frame = from / SHARD_FRAME_TOKENS, skip = from % SHARD_FRAME_TOKENS;
        const int64_t piece = n < SHARD_FRAME_TOKENS - skip ? n : SHARD_FRAME_TOKENS - skip;
        const void *ids = fetch(win, shard, frame, fault);
        if (!ids) return -1;
        widen(token, ids, win->ds->shard[shard].info.id_bytes, skip, piece);
        token += piece;
        from += piece;
        n -= piece;
    }
    return 0;
}

/* Marks, with its own place, each token of the window that follows a document end in (from,
 * from + n] of the shard. The token from of the shard is place at of the window, which has T + 1.
 * The ends are searched in the file: they may be more than memory holds. */
static int mark_listed(struct window *win, int shard, int64_t from, int64_t n, int at,
                       int32_t *doc_start, struct fault *fault)
{
    const struct shard *sh = &win->ds->shard[shard];
    const int64_t n_ends = sh->info.n_documents;
    int64_t low = 0, high = n_ends; /* ends before low are <= from, those from high on > from */

    while (high - low > ENDS_AT_ONCE / 2) {
        const int64_t middle = low + (high - low) / 2;
        if (shard_try_document_ends(sh, middle, 1, win->end, fault) != 0) return -1;
        if ((int64_t)win->end[0] <= from)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < n_ends) {
        const int64_t count = n_ends - low < ENDS_AT_ONCE ? n_ends - low : ENDS_AT_ONCE;
        if (shard_try_document_ends(sh, low, count, win->end, fault) != 0) return -1;
        for (int64_t i = 0; i < count; i++) {
            const int64_t end = (int64_t)win->end[i];
            if (end > from + n) return 0;
            const int64_t place = at + end - from;
            if (end > from && place <= win->ds->T) doc_start[place] = (int32_t)place;
        }
        low += count;
    }
    return 0;
}

/* The same where only the ids tell: n of them from place at of the window on. */
static void mark_by_id(const struct window *win, const struct shard_info *info,
                       const int32_t *token, int at, int n, int32_t *doc_start)
{
    for (int t = at; t < at + n; t++) {
        if (info->bos_id >= 0 && token[t] == info->bos_id) doc_start[t] = t;
        if (info->eod_id >= 0 && token[t] == info->eod_id && t < win->ds->T)
            doc_start[t + 1] = t + 1;
    }
}

int window_try_read(struct window *win, int64_t sample, int32_t *token, int32_t *doc_start,
                    struct fault *fault)
{
    const struct dataset *ds = win->ds;
    const int n_all = ds->T + 1;
    const struct source *source = dataset_source_of(ds, sample);
    int64_t stream = source->first_token + (sample - source->first_sample) * ds->T;

    CHECK(sample >= 0 && sample < source->first_sample + source->n_samples, "%s sample %ld of %ld",
          ds->what, (long)sample, (long)(source->first_sample + source->n_samples));
    memset(doc_start, 0, (size_t)n_all * sizeof *doc_start);
    int s = dataset_shard_at(ds, stream);
    for (int at = 0; at < n_all; s++) {
        const int64_t from = stream - ds->first[s], left = ds->first[s + 1] - stream;
        const int n = left < n_all - at ? (int)left : n_all - at;
        if (read_tokens(win, s, from, n, token + at, fault) != 0 ||
            mark_listed(win, s, from, n, at, doc_start, fault) != 0)
            return -1;
        if (ds->shard[s].info.by_id) mark_by_id(win, &ds->shard[s].info, token, at, n, doc_start);
        at += n;
        stream += n;
    }
    for (int t = 1; t < n_all; t++)
        if (doc_start[t] == 0) doc_start[t] = doc_start[t - 1];
    return 0;
}
