/* read.c - checking shards, and their text; see tokenize.h. */
#include "tokenize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Each frame in turn is given to see(arg, ids, n), which returns 0 to go on. */
static int try_each_frame(const struct shard *shard,
                          int (*see)(void *arg, const struct shard *shard, const void *ids,
                                     int64_t n, struct shard_fault *fault),
                          void *arg, struct shard_fault *fault)
{
    const struct shard_header *h = &shard->header;
    void *ids = malloc((size_t)SHARD_FRAME_TOKENS * h->id_bytes);
    struct shard_decoder dec;
    int bad = 0;

    CHECK(ids, "no memory for a frame");
    shard_decoder_init(&dec);
    for (int64_t frame = 0; frame < h->n_frames && !bad; frame++)
        bad = shard_try_frame(shard, frame, &dec, ids, fault) != 0 ||
              see(arg, shard, ids, shard_frame_tokens(shard, frame), fault) != 0;
    shard_decoder_free(&dec);
    free(ids);
    return bad ? -1 : 0;
}

struct summary {
    XXH64_state_t *hash;
    uint32_t max;
};

static int add_to_summary(void *arg, const struct shard *shard, const void *ids, int64_t n,
                          struct shard_fault *fault)
{
    struct summary *sum = arg;
    const uint32_t id_bytes = shard->header.id_bytes;

    (void)fault;
    for (int64_t i = 0; i < n; i++)
        if (shard_id(ids, id_bytes, i) > sum->max) sum->max = shard_id(ids, id_bytes, i);
    XXH64_update(sum->hash, ids, (size_t)n * id_bytes);
    return 0;
}

/* Every frame, its ids, and the hash of all. */
static int try_verify_frames(const struct shard *shard, struct shard_fault *fault)
{
    const struct shard_header *h = &shard->header;
    struct summary sum = {XXH64_createState(), 0};

    CHECK(sum.hash, "no memory for a hash");
    XXH64_reset(sum.hash, 0);
    const int bad = try_each_frame(shard, add_to_summary, &sum, fault);
    const uint64_t found = XXH64_digest(sum.hash);
    XXH64_freeState(sum.hash);
    if (bad) return -1;
    if (found == h->content_hash && sum.max == h->max_id) return 0;
    return shard_fault_set(fault, CODE_DATA,
                           "%s: hash of all ids is 0x%016lx, expected 0x%016lx; largest id %u, "
                           "expected %u",
                           shard->path, (unsigned long)found, (unsigned long)h->content_hash,
                           sum.max, h->max_id);
}

int verify_shards(const struct options *o)
{
    uint64_t fingerprint = 0, n_tokens = 0, n_documents = 0;
    int code = CODE_DONE;

    for (int i = 0; i < o->n_paths; i++) {
        struct shard_fault fault;
        struct shard shard = {0};
        const struct shard_header *h = &shard.header;
        if (shard_try_open(&shard, o->path[i], &fault) != 0 ||
            shard_try_check_index(&shard, &fault) != 0 || try_verify_frames(&shard, &fault) != 0) {
            fprintf(stderr, "%s\n", fault.why);
            if (code == CODE_DONE) code = fault.code;
            shard_close(&shard);
            continue;
        }
        printf("%s: %lu tokens, %lu documents, u%u, vocabulary %lu, largest id %u, tokenizer %s "
               "(0x%016lx), %.2f bits a token\n",
               shard.path, (unsigned long)h->n_tokens, (unsigned long)h->n_documents,
               8 * h->id_bytes, (unsigned long)h->vocab_size, h->max_id, h->tokenizer,
               (unsigned long)h->tokenizer_hash, 8.0 * (double)h->file_bytes / (double)h->n_tokens);
        fingerprint = shard_fingerprint(h, fingerprint);
        n_tokens += h->n_tokens;
        n_documents += h->n_documents;
        shard_close(&shard);
    }
    if (code == CODE_DONE)
        printf("%d shard%s: %lu tokens, %lu documents, fingerprint 0x%016lx\n", o->n_paths,
               o->n_paths > 1 ? "s" : "", (unsigned long)n_tokens, (unsigned long)n_documents,
               (unsigned long)fingerprint);
    return code;
}

struct printer {
    const struct tokenizer *tok;
    const char *separator;
    bool after_newline;
};

static void print(struct printer *to, const char *text, int64_t n)
{
    if (n == 0) return;
    CHECK_CODE(CODE_IO, fwrite(text, 1, (size_t)n, stdout) == (size_t)n,
               "standard output cannot be written");
    to->after_newline = text[n - 1] == '\n';
}

static int print_ids(void *arg, const struct shard *shard, const void *ids, int64_t n,
                     struct shard_fault *fault)
{
    const struct shard_header *h = &shard->header;
    struct printer *to = arg;
    int64_t bytes;

    for (int64_t i = 0; i < n; i++) {
        const uint32_t id = shard_id(ids, h->id_bytes, i);
        const char *text = tokenizer_text(to->tok, id, &bytes);
        if (!text)
            return shard_fault_set(fault, CODE_DATA, "%s: the tokenizer has no id %u", shard->path,
                                   id);
        if (!to->separator || h->eod_id < 0 || id != (uint32_t)h->eod_id) {
            print(to, text, bytes);
            continue;
        }
        if (!to->after_newline) print(to, "\n", 1);
        print(to, to->separator, (int64_t)strlen(to->separator));
        print(to, "\n", 1);
    }
    return 0;
}

int decode_shards(const struct options *o)
{
    struct printer to = {options_tokenizer(o), o->separator, true};

    for (int i = 0; i < o->n_paths; i++) {
        struct shard_fault fault = {0};
        struct shard shard = {0};
        const struct shard_header *h = &shard.header;
        CHECK_CODE(fault.code, shard_try_open(&shard, o->path[i], &fault) == 0, "%s", fault.why);
        CHECK_CODE(CODE_DATA, h->tokenizer_hash == tokenizer_hash(to.tok),
                   "%s: made with tokenizer %s (0x%016lx), not with %s (0x%016lx)%s", shard.path,
                   h->tokenizer, (unsigned long)h->tokenizer_hash,
                   o->tokenizer ? o->tokenizer : "bytes", (unsigned long)tokenizer_hash(to.tok),
                   o->tokenizer ? ", --max-vocab as given" : "; --tokenizer names its file");
        const int bad = try_each_frame(&shard, print_ids, &to, &fault);
        CHECK_CODE(fault.code, !bad, "%s", fault.why);
        shard_close(&shard);
    }
    CHECK_CODE(CODE_IO, fflush(stdout) == 0, "standard output cannot be written");
    tokenizer_free((struct tokenizer *)to.tok);
    return CODE_DONE;
}
