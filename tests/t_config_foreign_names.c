/* Names that people bring from other trainers are answered with our key or with what there is
 * instead, however they spell them and in whatever section. */
// TEST ranks=1 timeout=10
#include "config/keys.h"
#include "test.h"

#include <ctype.h>
#include <string.h>

static void answers(const char *name, const char *words)
{
    char hint[KEY_HINT_BYTES];
    EXPECT(strstr(key_hint(name, hint), words), "%s: '%s' lacks '%s'", name, hint, words);
    EXPECT(strlen(hint) < KEY_HINT_BYTES - 1, "%s: '%s' is cut off", name, hint);
}

static bool is_own(const char *leaf)
{
    for (int i = 0; i < n_config_keys; i++) {
        const char *dot = strrchr(config_keys[i].name, '.');
        if (!strcmp(dot + 1, leaf)) return true;
    }
    return false;
}

/* As it stands, with dashes, in capitals, and below sections of ours and of others. */
static void check_row(const struct foreign *f)
{
    static const char *const sections[] = {"", "train.", "optimizer.", "model.", "parallelism."};
    char dashed[80], name[100];
    const char *words = f->key ? f->key : f->remark;
    const bool has_section = strchr(f->name, '.');
    EXPECT(!f->key || key_find(f->key, strlen(f->key)) >= 0 ||
               key_is_section(f->key, strlen(f->key)),
           "%s: %s is no key", f->name, f->key);
    EXPECT(f->key || f->remark, "%s: no answer", f->name);
    EXPECT(has_section || !is_own(f->name), "%s is a key of ours", f->name);
    snprintf(dashed, sizeof dashed, "%s", f->name);
    for (char *c = dashed; *c; c++) *c = *c == '_' ? '-' : (char)toupper((unsigned char)*c);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        if (has_section && i > 0) break;
        snprintf(name, sizeof name, "%s%s", sections[i], f->name);
        answers(name, words);
        snprintf(name, sizeof name, "%s%s", sections[i], dashed);
        answers(name, words);
    }
}

int main(void)
{
    static const char *const asked[][2] = {
        {"lr", "optimizer.lr"},
        {"min_lr", "optimizer.min_lr"},
        {"micro-batch-size", "train.micro_batch"},
        {"global-batch-size", "train.global_batch"},
        {"seq-length", "data.sequence_length"},
        {"bf16", "train.compute_dtype"},
        {"train.precision", "train.compute_dtype"},
        {"tensorboard-dir", "run.tensorboard"},
        {"run.wandb", "metrics.jsonl"},
        {"wandb.project", "metrics.jsonl"},
        {"checkpoint.interval", "checkpoint.every"},
        {"checkpoint.save-interval", "checkpoint.every"},
        {"tensor-model-parallel-size", "topology.tp"},
        {"expert-model-parallel-size", "topology.ep"},
        {"pipeline-model-parallel-size", "no pipeline parallelism"},
        {"training.recompute_granularity", "activations are kept"},
        {"activation_checkpoint.mode", "activations are kept"},
        {"compile.enable", "compiled"},
        {"gradient_accumulation_steps", "train.global_batch / (train.micro_batch x dp)"},
        {"micro_batch_sice", "train.micro_batch"}, /* both foreign and misspelt */
        {"train.stepz", "train.steps"},            /* ours, misspelt */
        {"lr_scheduler.warmup_steps", "optimizer.warmup_steps"},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) answers(asked[i][0], asked[i][1]);
    for (int i = 0; i < n_foreign_names; i++) {
        check_row(&foreign_names[i]);
        for (int j = 0; j < i; j++)
            EXPECT(strcmp(foreign_names[i].name, foreign_names[j].name) != 0, "%s stands twice",
                   foreign_names[i].name);
    }
    return test_end();
}
