/* samples.c - see samples.h. */
#include "train/samples.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/rng.h"
#include "data/unicode.h"
#include "train/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ids of the prompt, on rank 0. */
static void make_prompt(struct run *run)
{
    const struct config *cfg = run->cfg;
    const int room = cfg->data.sequence_length;
    struct id_list ids = {0};
    struct fault fault = {0};
    run->tokenizer =
        generate_try_tokenizer(cfg->train.sample_tokenizer, dataset_tokenizer(run->train_data),
                               cfg->model.vocab_size, &fault);
    CHECK_CODE(fault.code, run->tokenizer, "train.sample_tokenizer: %s", fault.why);
    generate_encode(run->tokenizer, cfg->train.sample_prompt, &ids);
    CHECK_CODE(CODE_CONFIG, ids.n > 0 && ids.n < room,
               "train.sample_prompt: %lld tokens, expected 1 to %d (data.sequence_length - 1)",
               (long long)ids.n, room - 1);
    run->n_sample_prompt = (int)ids.n;
    run->sample_prompt = mem_alloc((size_t)ids.n * sizeof *run->sample_prompt, "prompt");
    for (int i = 0; i < run->n_sample_prompt; i++) {
        CHECK_CODE(CODE_CONFIG, ids.id[i] < (uint32_t)cfg->model.vocab_size,
                   "train.sample_prompt: id %u is beyond model.vocab_size %d", ids.id[i],
                   cfg->model.vocab_size);
        run->sample_prompt[i] = (int32_t)ids.id[i];
    }
    free(ids.id);
}

void samples_init(struct run *run)
{
    if (run->cfg->train.sample_every == 0) return;
    if (run->mesh.rank == 0) make_prompt(run);
    mesh_broadcast(&run->n_sample_prompt, sizeof run->n_sample_prompt, "broadcast of a length");
    const size_t bytes = (size_t)run->n_sample_prompt * sizeof *run->sample_prompt;
    if (run->mesh.rank != 0) run->sample_prompt = mem_alloc(bytes, "prompt");
    mesh_broadcast(run->sample_prompt, bytes, "broadcast of a prompt");
    run->sampler = sampler_init(&run->model);
}

void samples_free(struct run *run)
{
    sampler_free(run->sampler);
    if (run->tokenizer) tokenizer_free(run->tokenizer);
    mem_free(run->sample_prompt);
}

struct text {
    const struct tokenizer *tok;
    FILE *out;
};

static void add_token(void *to, int32_t id)
{
    const struct text *t = to;
    int64_t n = 0;
    const char *text = tokenizer_text(t->tok, (uint32_t)id, &n);
    if (text) fwrite(text, 1, (size_t)n, t->out);
}

/* What is no UTF-8 or a control character other than a line break becomes '?'. */
static void make_printable(char *text, size_t n)
{
    int bytes = 1;
    for (size_t i = 0; i < n; i += (size_t)bytes) {
        const uint32_t c = unicode_decode(text + i, (int64_t)(n - i), &bytes);
        if (c == UNICODE_CODE_POINTS || (c < ' ' && c != '\n') || c == 0x7f) text[i] = '?';
    }
}

void samples_take(struct run *run)
{
    const struct config_train *c = &run->cfg->train;
    const int64_t step = run->progress.step;
    if (!run->sampler || step % c->sample_every != 0) return;
    place_stage("sample after step", step);
    const struct tokenizer *tok = run->tokenizer;
    struct sampling how = {.temperature = c->sample_temperature,
                           .top_p = c->sample_top_p,
                           .key = rng_key((uint64_t)run->cfg->run.seed, "sample") + (uint64_t)step,
                           .max_tokens = c->sample_tokens,
                           .n_ids = run->cfg->model.vocab_size,
                           .end = tok ? generate_end(tok) : -1};
    if (tok && tokenizer_vocab_size(tok) < how.n_ids) how.n_ids = (int)tokenizer_vocab_size(tok);
    mesh_broadcast(&how, sizeof how, "broadcast of settings");
    char *text = NULL;
    size_t n = 0;
    struct text to = {.tok = tok, .out = tok ? open_memstream(&text, &n) : NULL};
    CHECK(!tok || to.out, "no memory for a sample");
    for (int i = 0; tok && i < run->n_sample_prompt; i++) add_token(&to, run->sample_prompt[i]);
    sampler_run(run->sampler, run->sample_prompt, run->n_sample_prompt, &how, add_token, &to);
    if (tok) {
        CHECK(fclose(to.out) == 0, "no memory for a sample");
        make_printable(text, n);
        metrics_sample(run->metrics, step, text);
    }
    free(text);
    comm_take_count(&run->comm); /* not part of any step */
}
