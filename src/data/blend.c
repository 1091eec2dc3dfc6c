/*
 * blend.c - which sample comes when: the sources of a dataset mixed by their weights, each in an
 * order of its own every epoch. All of it is computed from the number of the sample; see data.h.
 */
#include "data/dataset.h"

#include "base/mem.h"
#include "base/rng.h"
#include "data/order.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#define WEIGHT_SUM (UINT64_C(1) << 31)

/* Of the first n samples that go to a source of this weight or to the others, of total weight with
 * it, how many go to it: its exact share, rounded to the nearest. */
static int64_t share_of(int64_t n, uint64_t weight, uint64_t total)
{
    const unsigned __int128 exact = (unsigned __int128)(uint64_t)n * weight + total / 2;
    return (int64_t)(exact / total);
}

static uint64_t weight_from(const struct dataset *ds, int source)
{
    uint64_t total = 0;
    for (int s = source; s < ds->n_sources; s++) total += ds->source[s].weight;
    return total;
}

/* The source of sample g and, in *k, how many of its samples came before. Each source in turn gets
 * its share of what the ones before it leave. */
static int choose_source(const struct dataset *ds, int64_t g, int64_t *k)
{
    uint64_t total = weight_from(ds, 0);
    int64_t n = g - ds->mix_start.g; /* that the present mixture has given before */
    int s = 0;

    for (; s + 1 < ds->n_sources; s++) {
        const int64_t before = share_of(n, ds->source[s].weight, total);
        const bool it_is = share_of(n + 1, ds->source[s].weight, total) > before;
        n = it_is ? before : n - before;
        if (it_is) break;
        total -= ds->source[s].weight;
    }
    *k = ds->mix_start.taken[s] + n;
    return s;
}

int64_t dataset_taken(const struct dataset *ds, int source, int64_t g)
{
    uint64_t total = weight_from(ds, 0);
    int64_t n = g - ds->mix_start.g;

    for (int s = 0; s < source; s++) {
        n -= share_of(n, ds->source[s].weight, total);
        total -= ds->source[s].weight;
    }
    if (source + 1 < ds->n_sources) n = share_of(n, ds->source[source].weight, total);
    return ds->mix_start.taken[source] + n;
}

int64_t dataset_number_of(const struct dataset *ds, int source, int64_t k)
{
    const int64_t from = ds->mix_start.g;
    int64_t low = from, high = from + 1; /* what has been taken before low is at most k */

    k += ds->mix_start.taken[source];
    while (dataset_taken(ds, source, high) <= k) high = from + 2 * (high - from);
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(dataset_taken(ds, source, middle) <= k ? &low : &high) = middle;
    }
    return low;
}

int64_t dataset_sample_at(const struct dataset *ds, uint64_t seed, bool shuffle, int64_t g)
{
    int64_t k;

    CHECK(g >= ds->mix_start.g, "sample number %ld, before the mixture's first %ld", (long)g,
          (long)ds->mix_start.g);
    const int s = choose_source(ds, g, &k);
    const struct source *source = &ds->source[s];
    const int64_t index = k % source->n, first = source->first_sample + source->from;
    if (!shuffle) return first + index;
    /* sources of equal size must not be visited in the same order */
    const uint64_t own = s == 0 ? seed : rng_u64(rng_key(seed, "source"), (uint64_t)s);
    return first + order_permute(own, k / source->n, source->n, index);
}

void dataset_set_weights(struct dataset *ds, const struct data_sources *sources)
{
    double sum = 0;
    for (int s = 0; s < ds->n_sources; s++) sum += sources->at[s].weight;
    for (int s = 0; s < ds->n_sources; s++) {
        const double weight = round(sources->at[s].weight / sum * (double)WEIGHT_SUM);
        ds->source[s].weight = weight < 1 ? 1 : (uint64_t)weight;
    }
}

void dataset_set_mix_start(struct dataset *ds, const struct mix_start *start)
{
    ds->mix_start = *start;
}

const struct mix_start *dataset_mix_start(const struct dataset *ds)
{
    return &ds->mix_start;
}

void data_sources_taken(const struct data_sources *sources, const struct mix_start *start,
                        int64_t g, int64_t taken[MAX_SOURCES])
{
    struct dataset ds = {.n_sources = sources->n, .mix_start = *start};
    dataset_set_weights(&ds, sources);
    for (int s = 0; s < sources->n; s++) taken[s] = dataset_taken(&ds, s, g);
}

bool data_sources_mix_equally(const struct data_sources *a, const struct data_sources *b)
{
    struct dataset x = {.n_sources = a->n}, y = {.n_sources = b->n};
    bool equal = a->n == b->n;
    dataset_set_weights(&x, a);
    dataset_set_weights(&y, b);
    for (int s = 0; equal && s < a->n; s++) equal = x.source[s].weight == y.source[s].weight;
    return equal;
}

void dataset_weigh_by_size(struct dataset *ds)
{
    for (int s = 0; s < ds->n_sources; s++) ds->source[s].weight = (uint64_t)ds->source[s].n;
}

struct dataset *dataset_try_cut(struct dataset *ds, const char *what, double share,
                                struct fault *fault)
{
    struct dataset *cut = mem_alloc(sizeof *cut, "dataset");
    int64_t n_tokens = 0;

    *cut = *ds;
    cut->what = what;
    cut->is_cut = true;
    for (int s = 0; s < ds->n_sources; s++) {
        struct source *from = &ds->source[s], *to = &cut->source[s];
        to->n = (int64_t)ceil(share * (double)from->n);
        if (to->n >= from->n) {
            fault_set(fault, CODE_DATA,
                      "%s data: %s has %ld samples, of which data.heldout_share %g leaves "
                      "none",
                      ds->what, dataset_source_info(ds, s).path, (long)from->n, share);
            dataset_close(cut);
            return NULL;
        }
        from->n -= to->n;
        to->from = from->from + from->n;
        n_tokens += to->n * ds->T;
        const uint64_t seen[] = {cut->fingerprint, (uint64_t)to->from, (uint64_t)to->n};
        cut->fingerprint = XXH64(seen, sizeof seen, 0);
    }
    cut->n_tokens = n_tokens;
    ds->n_tokens -= n_tokens;
    dataset_weigh_by_size(cut);
    return cut;
}

int dataset_sources(const struct dataset *ds)
{
    return ds->n_sources;
}

struct source_info dataset_source_info(const struct dataset *ds, int source)
{
    const struct source *s = &ds->source[source];
    int shard = 0;
    while (ds->source_of[shard] != source) shard++;
    return (struct source_info){ds->shard[shard].path, s->n,
                                (double)s->weight / (double)weight_from(ds, 0), s->fingerprint};
}

int64_t dataset_samples(const struct dataset *ds)
{
    int64_t n = 0;
    for (int s = 0; s < ds->n_sources; s++) n += ds->source[s].n;
    return n;
}

const struct source *dataset_source_of(const struct dataset *ds, int64_t i)
{
    int s = ds->n_sources - 1;
    while (s > 0 && i < ds->source[s].first_sample) s--;
    return &ds->source[s];
}
