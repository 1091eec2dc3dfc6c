/* read.c - checking shards, and their text; see tokenize.h. */
#include "tokenize.h"

#include "base/text.h"
#include "data/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Each frame in turn is given to see(arg, ids, n), which returns 0 to go on. */
static int try_each_frame(const struct shard *shard,
                          int (*see)(void *arg, const struct shard *shard, const void *ids,
                                     int64_t n, struct fault *fault),
                          void *arg, struct fault *fault)
{
    const struct shard_info *h = &shard->info;
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
                          struct fault *fault)
{
    struct summary *sum = arg;
    const uint32_t id_bytes = shard->info.id_bytes;

    (void)fault;
    for (int64_t i = 0; i < n; i++)
        if (shard_id(ids, id_bytes, i) > sum->max) sum->max = shard_id(ids, id_bytes, i);
    XXH64_update(sum->hash, ids, (size_t)n * id_bytes);
    return 0;
}

/* Every frame and its ids; in our own shards the hash of all and the largest id, too. */
static int try_verify_frames(const struct shard *shard, struct summary *sum, struct fault *fault)
{
    const struct shard_info *info = &shard->info;

    sum->max = 0;
    XXH64_reset(sum->hash, 0);
    if (try_each_frame(shard, add_to_summary, sum, fault) != 0) return -1;
    const uint64_t found = XXH64_digest(sum->hash);
    if (info->max_id < 0 || (found == info->content_hash && sum->max == info->max_id)) return 0;
    return fault_set(fault, CODE_DATA,
                     "%s: hash of all ids is 0x%016lx, expected 0x%016lx; largest id %u, "
                     "expected %ld",
                     shard->path, (unsigned long)found, (unsigned long)info->content_hash, sum->max,
                     (long)info->max_id);
}

static void print_info(const struct shard *shard, uint32_t max)
{
    const struct shard_info *i = &shard->info;

    printf("%s: %ld tokens, ", shard->path, (long)i->n_tokens);
    if (i->by_id)
        printf("documents by id, ");
    else
        printf("%ld document%s, ", (long)i->n_documents, text_s(i->n_documents));
    printf("u%u, vocabulary %lu, largest id %u, ", 8 * i->id_bytes, (unsigned long)i->vocab_size,
           max);
    if (i->max_id >= 0)
        printf("tokenizer %s (0x%016lx), ", i->tokenizer, (unsigned long)i->tokenizer_hash);
    else
        printf("format %s, ", shard_format_name(shard));
    printf("%.2f bits a token\n", 8.0 * (double)i->file_bytes / (double)i->n_tokens);
}

/* What has been found of all shards. */
struct total {
    int n_shards;
    uint64_t fingerprint, n_tokens, n_documents;
};

static int try_verify(const char *path, const struct options *o, struct summary *sum,
                      struct total *total, struct fault *fault)
{
    struct shard shard = {0};
    const int bad = shard_try_open(&shard, path, &o->as, fault) != 0 ||
                    shard_try_check_index(&shard, fault) != 0 ||
                    shard_try_check_ids(&shard, fault) != 0 ||
                    try_verify_frames(&shard, sum, fault) != 0;

    if (!bad) {
        print_info(&shard, sum->max);
        total->n_shards++;
        total->fingerprint = shard_fingerprint(&shard, total->fingerprint);
        total->n_tokens += (uint64_t)shard.info.n_tokens;
        total->n_documents += (uint64_t)shard.info.n_documents;
    }
    shard_close(&shard);
    return bad;
}

/* Says what is wrong; the code of the first fault stays. */
static void report(const struct fault *fault, enum exit_code *code)
{
    fprintf(stderr, "%s\n", fault->why);
    if (*code == CODE_DONE) *code = fault->code;
}

/* The shards that the paths given stand for, as training takes them. */
static struct names list_shards(const struct options *o, enum exit_code *code)
{
    struct names names = {0};
    struct fault fault;

    for (int i = 0; i < o->n_paths; i++)
        if (names_try_add(&names, o->path[i], o->as.format, &fault) != 0) report(&fault, code);
    return names;
}

int verify_shards(const struct options *o)
{
    enum exit_code code = CODE_DONE;
    struct names names = list_shards(o, &code);
    struct total total = {0};
    struct summary sum = {XXH64_createState(), 0};
    struct fault fault;

    CHECK(sum.hash, "no memory for a hash");
    for (int i = 0; i < names.n; i++)
        if (try_verify(names.at[i], o, &sum, &total, &fault) != 0) report(&fault, &code);
    XXH64_freeState(sum.hash);
    names_free(&names);
    if (code == CODE_DONE)
        printf("%d shard%s: %lu tokens, %lu document%s, fingerprint 0x%016lx\n", total.n_shards,
               text_s(total.n_shards), (unsigned long)total.n_tokens,
               (unsigned long)total.n_documents, text_s((int64_t)total.n_documents),
               (unsigned long)total.fingerprint);
    return (int)code;
}

struct printer {
    const struct tokenizer *tok;
    const char *separator;
    bool after_newline;
};

static void print(struct printer *to, const char *text, int64_t n)
{
    if (n == 0) return;
    fwrite(text, 1, (size_t)n, stdout); /* failures: output_end */
    to->after_newline = text[n - 1] == '\n';
}

static int print_ids(void *arg, const struct shard *shard, const void *ids, int64_t n,
                     struct fault *fault)
{
    const struct shard_info *h = &shard->info;
    struct printer *to = arg;
    int64_t bytes;

    for (int64_t i = 0; i < n; i++) {
        const uint32_t id = shard_id(ids, h->id_bytes, i);
        const char *text = tokenizer_text(to->tok, id, &bytes);
        if (!text)
            return fault_set(fault, CODE_DATA, "%s: the tokenizer has no id %u", shard->path, id);
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
    enum exit_code code = CODE_DONE;
    struct names names = list_shards(o, &code);

    for (int i = 0; i < names.n; i++) {
        struct fault fault = {0};
        struct shard shard = {0};
        const struct shard_info *h = &shard.info;
        CHECK_CODE(fault.code, shard_try_open(&shard, names.at[i], &o->as, &fault) == 0, "%s",
                   fault.why);
        CHECK_CODE(CODE_DATA, h->tokenizer_hash == 0 || h->tokenizer_hash == tokenizer_hash(to.tok),
                   "%s: made with tokenizer %s (0x%016lx), not with %s (0x%016lx)%s", shard.path,
                   h->tokenizer, (unsigned long)h->tokenizer_hash,
                   o->tokenizer ? o->tokenizer : "bytes", (unsigned long)tokenizer_hash(to.tok),
                   o->tokenizer ? ", --max-vocab as given" : "; --tokenizer names its file");
        const int bad = try_each_frame(&shard, print_ids, &to, &fault);
        CHECK_CODE(fault.code, !bad, "%s", fault.why);
        shard_close(&shard);
    }
    names_free(&names);
    tokenizer_free((struct tokenizer *)to.tok);
    return (int)code;
}
