/*
 * bigram.c - dsv3-bigram: how well the byte before predicts a byte, as a floor that a language
 * model has to pass. Counts pairs in the training shards and prints the mean of -ln p(b | a) over
 * the held-out shards, in nats a token, which for byte shards is nats a byte.
 *
 * Smoothing: p(b | a) = (count(a, b) + 0.01) / (count(a) + 0.01 V), V the training shards'
 * vocabulary. Pairs across documents count like all others, as they do in the training loss.
 */
#include "base/mem.h"
#include "base/std_files.h"
#include "base/version.h"
#include "data/dataset.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VOCAB = 4096 }; /* the table of pairs has the square of it */
#define SMOOTHING 0.01

/* Calls of visit for every pair of neighbours. */
struct table {
    int V;
    double *pair, *single; /* [V, V], [V] */
    double nats;           /* summed over the pairs scored */
};

static void count_pair(struct table *t, uint32_t a, uint32_t b)
{
    t->pair[(int64_t)a * t->V + b]++;
    t->single[a]++;
}

static void score_pair(struct table *t, uint32_t a, uint32_t b)
{
    const double p =
        (t->pair[(int64_t)a * t->V + b] + SMOOTHING) / (t->single[a] + SMOOTHING * (double)t->V);
    t->nats -= log(p);
}

static void for_each_pair(const struct dataset *ds, struct table *t,
                          void (*visit)(struct table *t, uint32_t a, uint32_t b))
{
    void *ids = mem_alloc((size_t)SHARD_FRAME_TOKENS * sizeof(uint32_t), "decoded frame");
    struct shard_decoder dec;
    struct fault fault;
    int64_t n_seen = 0;
    uint32_t before = 0;

    shard_decoder_init(&dec);
    for (int s = 0; s < ds->n_shards; s++) {
        const struct shard *shard = &ds->shard[s];
        for (int64_t frame = 0; frame < shard->info.n_frames; frame++) {
            if (shard_try_frame(shard, frame, &dec, ids, &fault) != 0)
                DIE(fault.code, "%s", fault.why);
            for (int64_t i = 0; i < shard_frame_tokens(shard, frame); i++) {
                const uint32_t id = shard_id(ids, shard->info.id_bytes, i);
                if (n_seen++ > 0) visit(t, before, id);
                before = id;
            }
        }
    }
    shard_decoder_free(&dec);
    mem_free(ids);
}

static const char usage[] =
    "usage: dsv3-bigram TRAIN HELDOUT\n"
    "       dsv3-bigram --help | --version\n"
    "\n"
    "Prints how well the token before predicts a token, in nats a token (for bytes: a byte):\n"
    "pairs are counted in TRAIN, and the mean of -ln p is that over HELDOUT. Both are a shard\n"
    "or a directory of shards, with a vocabulary of at most 4096.\n";

int main(int argc, char **argv)
{
    std_files_open();
    const char *first = argc > 1 ? argv[1] : "";
    if (!strcmp(first, "--help") || !strcmp(first, "-h")) {
        fputs(usage, stdout);
        return output_end();
    }
    if (!strcmp(first, "--version")) return version_print("dsv3-bigram");
    if (argc != 3 || argv[1][0] == '-' || argv[2][0] == '-') {
        fprintf(stderr, "dsv3-bigram: expected TRAIN and HELDOUT; see dsv3-bigram --help\n");
        return CODE_USAGE;
    }
    const struct data_sources train_source = data_source_at(argv[1]);
    const struct data_sources heldout_source = data_source_at(argv[2]);
    struct dataset *train = dataset_open(&train_source, "train", 1, MAX_VOCAB, false, NULL);
    const uint64_t told = train->shard[0].info.vocab_size, V = told ? told : MAX_VOCAB;
    CHECK_CODE(CODE_DATA, V <= MAX_VOCAB, "%s: vocabulary %lu, at most %d", argv[1],
               (unsigned long)V, MAX_VOCAB);
    struct dataset *heldout = dataset_open(&heldout_source, "heldout", 1, (int)V, false, NULL);

    struct table t = {.V = (int)V};
    t.pair = mem_alloc(V * V * sizeof *t.pair, "pairs");
    t.single = mem_alloc(V * sizeof *t.single, "singles");
    for_each_pair(train, &t, count_pair);
    for_each_pair(heldout, &t, score_pair);
    fprintf(stderr, "bigram entropy in nats a token, counts from %ld tokens, measured on %ld:\n",
            (long)dataset_tokens(train), (long)dataset_tokens(heldout));
    printf("%.4f\n", t.nats / (double)(dataset_tokens(heldout) - 1));
    mem_free(t.single);
    mem_free(t.pair);
    dataset_close(heldout);
    dataset_close(train);
    return output_end();
}
