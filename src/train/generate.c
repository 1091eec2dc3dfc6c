/* generate.c - see generate.h. */
#include "train/generate.h"

#include "base/err.h"
#include "base/mem.h"
#include "train/load.h"

#include <inttypes.h>
#include <string.h>

enum { BYTE_END = 256 }; /* dsv3-tokenize ends documents of bytes with it */

struct tokenizer *generate_try_tokenizer(const char *path, uint64_t hash, int vocab_size,
                                         struct fault *fault)
{
    uint64_t found = 0;
    for (int cut = 0; cut < (*path ? 2 : 1); cut++) {
        struct tokenizer *tok =
            *path ? tokenizer_try_load(path, cut ? vocab_size : 0, fault) : tokenizer_init_bytes();
        if (!tok) return NULL;
        const uint64_t got = tokenizer_hash(tok);
        if (hash == 0 || got == hash) return tok;
        if (cut == 0) found = got;
        tokenizer_free(tok);
    }
    fault_set(
        fault, CODE_CONFIG,
        "the model was trained on ids of the tokenizer %016" PRIx64 ", %s is %016" PRIx64 "%s",
        hash, *path ? path : "that of bytes", found, *path ? "" : ": its tokenizer.json is needed");
    return NULL;
}

int32_t generate_end(const struct tokenizer *tok)
{
    const int64_t end = tokenizer_eod(tok);
    if (end >= 0) return (int32_t)end;
    return tokenizer_vocab_size(tok) == BYTE_END + 1 ? BYTE_END : -1;
}

void generate_encode(struct tokenizer *tok, const char *text, struct id_list *ids)
{
    struct fault fault = {0};
    const int bad = tokenizer_try_encode(tok, text, (int64_t)strlen(text), ids, &fault);
    CHECK_CODE(fault.code, !bad, "prompt: %s", fault.why);
    const int32_t end = generate_end(tok);
    if (ids->n > 0 || end < 0) return;
    *id_list_reserve(ids, 1) = (uint32_t)end;
    ids->n++;
}

void generate_place(struct run *run, int cache_tokens)
{
    struct run dry = {.cfg = run->cfg, .mesh = run->mesh, .worst_routing = true};
    const int Na = run->cfg->train.micro_batch * run->cfg->data.sequence_length;
    run_place_model(&dry, NULL, cache_tokens);
    int32_t *ids = mem_alloc((size_t)Na * sizeof *ids, "tokens of a plan");
    model_decode(&dry.model, ids, Na < cache_tokens ? Na : cache_tokens, 0, NULL);
    const struct memory memory = run_memory(&dry);
    mem_free(ids);
    run_unplace(&dry);
    run_place_model(run, &memory, cache_tokens);
}

void generate_load(struct run *run, const struct manifest *m, const char *dir)
{
    struct fault fault = {0};
    const bool bad = load_try_compute(run, m, dir, &fault) != 0;
    CHECK_CODE(fault.code, !(bad && run->mesh.rank == 0), "%s", fault.why);
    AGREE(MPI_COMM_WORLD, !bad, CODE_DATA, "the weights could not be read");
}
