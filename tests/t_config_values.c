/* What is written is what the run gets: numbers, texts, lists, stages, bases, overrides. */
// TEST ranks=1 timeout=30
#include "lib_config.h"
#include "test.h"

#include <string.h>

static void check_small(void)
{
    struct config c;
    config_must_load_text(&c, config_small_text, NULL);
    EXPECT(c.model.q_lora_rank == 32 && c.model.routed_scaling_factor == 2.5, "%d %g",
           c.model.q_lora_rank, c.model.routed_scaling_factor);
    EXPECT(c.data.train.n == 1 && !strcmp(c.data.train.at[0].path[0], "a.tok.zst"), "%d",
           c.data.train.n);
    /* defaults that follow the paper */
    EXPECT(c.model.rms_norm_eps == 1e-6 && c.model.initializer_range == 0.006, "norm, init");
    EXPECT(c.model.rope_type == ROPE_DEFAULT && !c.data.document_mask, "yarn, mask");
    EXPECT(c.train.balance_loss_alpha == 1e-4 && c.train.router_bias_speed == 0.001, "balance");
    EXPECT(c.train.mtp_loss_weight == 0.3 && c.model.mtp_hidden == MTP_HIDDEN_NORMED, "mtp");
    EXPECT(!c.train.router_bias_centred && !c.optimizer.decay_all, "centred, decay");
    EXPECT(c.optimizer.beta1 == 0.9 && c.optimizer.beta2 == 0.95 && c.optimizer.eps == 1e-8 &&
               c.optimizer.weight_decay == 0.1 && c.optimizer.clip == 1,
           "optimizer");
    EXPECT(c.model.scoring_func == SCORING_SIGMOID && c.model.topk_method == TOPK_NOAUX_TC &&
               c.model.norm_topk_prob,
           "router");
    config_free(&c);
}

static void check_spellings(void)
{
    char *const overrides[] = {"train.steps=1_000_000.",
                               "optimizer.warmup_steps=10_000",
                               "run.seed=9007199254740992",
                               "model.q_lora_rank=null",
                               "model.rope_theta=5e4",
                               "run.dir=no",
                               "data.train=[1e5, \"x y\", on]",
                               "data.heldout=only one",
                               "train.compute_dtype=bf16",
                               "optimizer.weight_decay=0.0",
                               "optimizer.lr=.0001",
                               "optimizer.clip=+1.",
                               "optimizer.eps=.5e-7",
                               "train.log_every=2.e1",
                               NULL};
    struct config c;
    config_must_load_text(&c, config_small_text, overrides);
    EXPECT(c.train.steps == 1000000, "steps %lld", (long long)c.train.steps);
    EXPECT(c.optimizer.warmup_steps == 10000, "warmup %lld", (long long)c.optimizer.warmup_steps);
    EXPECT(c.optimizer.lr == 1e-4 && c.optimizer.clip == 1 && c.optimizer.eps == 5e-8 &&
               c.train.log_every == 20,
           "%g %g %g %d", c.optimizer.lr, c.optimizer.clip, c.optimizer.eps, c.train.log_every);
    EXPECT(c.run.seed == (int64_t)1 << 53, "seed %lld", (long long)c.run.seed);
    EXPECT(c.model.q_lora_rank == 0, "null: %d", c.model.q_lora_rank);
    EXPECT(c.model.rope_theta == 50000, "theta %g", c.model.rope_theta);
    EXPECT(!strcmp(c.run.dir, "no"), "dir %s", c.run.dir);
    const struct data_source *train = &c.data.train.at[0], *heldout = &c.data.heldout.at[0];
    EXPECT(c.data.train.n == 1 && train->n_paths == 3 && !strcmp(train->path[0], "1e5") &&
               !strcmp(train->path[1], "x y") && !strcmp(train->path[2], "on"),
           "%d paths", train->n_paths);
    EXPECT(heldout->n_paths == 1 && !strcmp(heldout->path[0], "only one"), "%d paths",
           heldout->n_paths);
    EXPECT(c.train.compute_dtype == DTYPE_BF16, "dtype %d", (int)c.train.compute_dtype);
    config_free(&c);
}

static void check_stages(void)
{
    char *const overrides[] = {
        "optimizer.schedule=stages",
        "optimizer.lr_stages=[{until: 10e12, value: 2.2e-4}, "
        "{until: 1.43e13, value: 2.2e-5, shape: cosine}]",
        "train.global_batch_stages=[{until: 469e9, value: 40, shape: linear}]", NULL};
    struct config c;
    config_must_load_text(&c, config_small_text, overrides);
    const struct stages *lr = &c.optimizer.lr_stages, *batch = &c.train.global_batch_stages;
    EXPECT(lr->n == 2 && lr->at[0].until == 1e13 && lr->at[0].value == 2.2e-4 &&
               lr->at[0].shape == STAGE_HOLD && lr->at[1].until == 1.43e13 &&
               lr->at[1].value == 2.2e-5 && lr->at[1].shape == STAGE_COSINE,
           "%d stages", lr->n);
    EXPECT(batch->n == 1 && batch->at[0].value == 40 && batch->at[0].shape == STAGE_LINEAR,
           "%d stages", batch->n);
    config_free(&c);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *out = fopen(path, "wb");
    EXPECT(out && fputs(text, out) >= 0 && !fclose(out), "cannot write %s", path);
}

/* Defaults, then bases from left to right, then the file, then the command line; the last wins.
 * Keys that people copy from Hugging Face's config.json are accepted with their one right value. */
static void check_order(void)
{
    const char *dir = test_tmpdir();
    char *const overrides[] = {"optimizer.eps=4e-8", NULL};
    char path[600];
    struct config c;
    write_file(dir, "a.yaml", config_small_text);
    write_file(dir, "b.yaml",
               "optimizer: {lr: 2e-3, beta1: 0.8, beta2: 0.8, eps: 2e-8}\n"
               "train: {global_batch_stages: [{until: 5, value: 16}]}\n");
    write_file(dir, "c.yaml",
               "base: [a.yaml, b.yaml]\n"
               "optimizer: {beta2: 0.7, eps: 3e-8}\n"
               "train: {global_batch_stages: []}\n"
               "model: {hidden_act: silu, attention_bias: false, moe_layer_freq: 1,\n"
               "  attention_dropout: 0.0, tie_word_embeddings: false,\n"
               "  num_key_value_heads: 4}\n"
               "debug:\n");
    snprintf(path, sizeof path, "%s/c.yaml", dir);
    config_must_load(&c, path, overrides);
    const struct config_optimizer *o = &c.optimizer;
    EXPECT(o->weight_decay == 0.1 && o->lr == 2e-3 && o->beta1 == 0.8 && o->beta2 == 0.7 &&
               o->eps == 4e-8,
           "%g %g %g %g %g", o->weight_decay, o->lr, o->beta1, o->beta2, o->eps);
    EXPECT(c.train.global_batch_stages.n == 0, "a list is replaced, not added to");
    config_free(&c);
}

int main(void)
{
    check_small();
    check_spellings();
    check_stages();
    check_order();
    return test_end();
}
