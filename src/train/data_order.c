/* data_order.c - see data_order.h. */
#include "train/data_order.h"

#include <inttypes.h>
#include <stdio.h>

/* The settings of the run that wrote m, as far as this program knows their keys. */
static void read_settings(struct config *then, const struct manifest *m)
{
    struct err_list unknown = {0};
    config_try_read(then, CKPT_MANIFEST, m->config, &unknown);
    err_free(&unknown);
}

static struct mix_start mix_of(const struct ckpt_state *s)
{
    struct mix_start start = {.g = s->mixed_from};
    for (int i = 0; i < s->n_sources; i++) start.taken[i] = s->source[i].taken;
    return start;
}

/* Ids that end and begin documents are contents where the files list none. */
static void compare_ids(const char *key, int source, int then, int now, struct err_list *refused)
{
    if (then != now)
        err_add(refused, "data.train: source %d, %s: %d in the checkpoint, %d now (-1: none)",
                source + 1, key, then, now);
}

/* Of the samples. before: what each source had given. */
static void compare_shares(const struct run *run, const struct data_sources *then,
                           const int64_t *before, struct err_list *taken)
{
    double sum = 0;
    for (int i = 0; i < then->n; i++) sum += then->at[i].weight;
    for (int i = 0; i < dataset_sources(run->train_data); i++) {
        const struct source_info source = dataset_source_info(run->train_data, i);
        if (i < then->n)
            err_add(taken,
                    "data.train: source %d, share %.4g in the checkpoint, %.4g now: %s continues "
                    "after the %" PRId64 " samples that it has given",
                    i + 1, then->at[i].weight / sum, source.share, source.path, before[i]);
        else
            err_add(taken,
                    "data.train: source %d, not in the checkpoint, share %.4g now: %s begins with "
                    "its first sample",
                    i + 1, source.share, source.path);
    }
}

/* The shards are the same, but stand in other sources; where numbers of samples can tell. */
static void compare_sizes(const struct run *run, const struct config_data *then,
                          const struct ckpt_state *s, struct err_list *refused)
{
    const struct config_data *now = &run->cfg->data;
    if (then->sequence_length != now->sequence_length || then->heldout_share != now->heldout_share)
        return;
    for (int i = 0; i < s->n_sources; i++) {
        const int64_t n = dataset_source_info(run->train_data, i).n_samples;
        if (n != s->source[i].samples)
            err_add(refused,
                    "data.train: source %d has %" PRId64 " samples in the checkpoint, %" PRId64
                    " now: its shards stand in other sources",
                    i + 1, s->source[i].samples, n);
    }
}

/* Further sources may stand behind those of the checkpoint, which must be there as they were. */
static void compare_contents(const struct run *run, const struct config_data *then,
                             const struct ckpt_state *s, struct err_list *refused)
{
    const int n = then->train.n;
    const uint64_t now = dataset_source_info(run->train_data, n - 1).fingerprint;
    if (s->train_fingerprint == now) {
        compare_sizes(run, then, s, refused);
        return;
    }
    err_add(refused,
            "data.train: fingerprint %016" PRIx64 " in the checkpoint, %016" PRIx64
            " now: other data, or a shard was added, left out or moved (new shards may form a "
            "source of their own at the end of data.train; run.init_from loads the weights alone)",
            s->train_fingerprint, now);
    for (int i = 0; i < n; i++) {
        const struct data_source *a = &then->train.at[i], *b = &run->cfg->data.train.at[i];
        compare_ids("eod_id", i, a->eod_id, b->eod_id, refused);
        compare_ids("bos_id", i, a->bos_id, b->bos_id, refused);
    }
}

/* What is to be passed over may have been read already. then: their settings. */
static void compare_skips(const struct run *run, const struct config_data *then,
                          const struct ckpt_state *s, struct err_list *taken)
{
    const struct ranges *now = &run->cfg->data.skip_samples;
    int64_t late = 0;
    for (int i = 0; i < now->n; i++) {
        const int64_t first = now->at[i].first;
        const int64_t end = now->at[i].end < s->samples ? now->at[i].end : s->samples;
        struct ranges passed = s->rollbacks.samples;
        for (int k = 0; k < then->skip_samples.n; k++)
            ranges_add(&passed, then->skip_samples.at[k].first, then->skip_samples.at[k].end);
        if (first < end) late += end - first - ranges_count(&passed, first, end);
    }
    if (late > 0)
        err_add(taken,
                "data.skip_samples: the checkpoint, of sample %" PRId64 ", was trained on %" PRId64
                " of these samples; an earlier one (run.resume) may be from before them",
                s->samples, late);
}

void data_order_check(const struct run *run, const struct manifest *m, struct err_list *refused,
                      struct err_list *taken)
{
    const struct data_sources *now = &run->cfg->data.train;
    const struct mix_start start = mix_of(&m->state);
    struct config then;
    read_settings(&then, m);
    const struct data_sources *old = &then.data.train;
    if (old->n < 1 || now->n < old->n) {
        err_add(refused,
                "data.train: %d sources in the checkpoint, %d now: sources may be added at the "
                "end, not removed (a weight of 1e-9 has the same effect)",
                old->n, now->n);
    } else {
        int64_t before[MAX_SOURCES];
        compare_contents(run, &then.data, &m->state, refused);
        data_sources_taken(old, &start, m->state.samples, before);
        compare_skips(run, &then.data, &m->state, taken);
        if (!data_sources_mix_equally(old, now)) compare_shares(run, old, before, taken);
    }
    config_free(&then);
}

/* A source's place when its sequences have become of another length: at the same token of the same
 * epoch, rounded down to a sequence. */
struct place_anew {
    int64_t k;     /* samples given, as if they had always been of the present length */
    int64_t again; /* tokens before it that were read already */
};

/* k samples of T tokens, S an epoch (0: not known), become samples of T_now tokens, S_now. */
static struct place_anew cut_anew(int64_t k, int64_t S, int T, int64_t S_now, int T_now)
{
    const int64_t epoch = S > 0 ? k / S : 0, read = (S > 0 ? k % S : k) * T, n = read / T_now;
    if (S > 0 && n >= S_now) return (struct place_anew){(epoch + 1) * S_now, 0};
    return (struct place_anew){epoch * S_now + n, read - n * T_now};
}

static void say_cut_anew(const struct run *run, int i, int T, const struct place_anew *at)
{
    const struct config_data *d = &run->cfg->data;
    const struct source_info source = dataset_source_info(run->train_data, i);
    const int64_t place = at->k % source.n_samples;
    const double done = (double)place / (double)source.n_samples;
    if (run->mesh.rank != 0) return;
    printf("resume  sequences of %d tokens in the checkpoint, %d now: %s continues with number "
           "%" PRId64 " of the %" PRId64 " of its epoch %" PRId64,
           T, d->sequence_length, source.path, place, source.n_samples, at->k / source.n_samples);
    if (d->shuffle && place > 0)
        printf(", which is cut and shuffled anew: about %.0f %% of its tokens come twice, as many "
               "not at all\n",
               100 * done * (1 - done));
    else
        printf("; %" PRId64 " tokens come twice\n", at->again);
}

/* Of each source what it has given in sequences of the present length; new ones: nothing. */
static struct mix_start mix_anew(const struct run *run, const struct config_data *then,
                                 const struct ckpt_state *s, const struct mix_start *before)
{
    const int T = run->cfg->data.sequence_length, T_then = then->sequence_length;
    struct mix_start start = {0};
    int64_t given[MAX_SOURCES];
    data_sources_taken(&then->train, before, s->samples, given);
    for (int i = 0; i < then->train.n; i++) {
        const int64_t S = dataset_source_info(run->train_data, i).n_samples;
        struct place_anew at = {given[i], 0};
        if (T != T_then) {
            at = cut_anew(given[i], s->source[i].samples, T_then, S, T);
            say_cut_anew(run, i, T_then, &at);
        }
        start.taken[i] = at.k;
        start.g += at.k;
    }
    return start;
}

bool data_order_resume(struct run *run, const struct manifest *m)
{
    const struct config_data *now = &run->cfg->data;
    struct mix_start start = mix_of(&m->state);
    struct config then;
    read_settings(&then, m);
    const bool renumbered = now->sequence_length != then.data.sequence_length ||
                            !data_sources_mix_equally(&then.data.train, &now->train);
    if (renumbered) {
        start = mix_anew(run, &then.data, &m->state, &start);
        run->progress.samples = start.g;
    }
    dataset_set_mix_start(run->train_data, &start);
    config_free(&then);
    return renumbered;
}
