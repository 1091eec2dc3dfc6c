/* No dead keys: every key has its own field; changing it changes the printed text and the hash,
 * and the text reads back to the same values. */
// TEST ranks=1 timeout=60
#include "config/value.h"
#include "lib_config.h"
#include "test.h"

#include <string.h>

/* YAML of a value that differs from the one key has and lies in its range; false: there is none. */
static bool other_value(const struct config *cfg, const struct key *key, char *buf, size_t n)
{
    const char *field = (const char *)cfg + key->offset;
    int choice = 0, whole = 0;
    switch (key->type) {
    case KEY_INT:
        whole = *(const int *)field;
        snprintf(buf, n, "%d", whole < key->max ? whole + 1 : whole - 1);
        return true;
    case KEY_INT64: snprintf(buf, n, "%lld", *(const long long *)field + 1); return true;
    case KEY_NUMBER: snprintf(buf, n, "%.17g", *(const double *)field * 0.75 + 1e-3); return true;
    case KEY_BOOL: snprintf(buf, n, "%s", *(const bool *)field ? "false" : "true"); return true;
    case KEY_CHOICE:
        choice = *(const int *)field;
        snprintf(buf, n, "%s", key->choices[choice ? 0 : 1]);
        return true;
    case KEY_TEXT: snprintf(buf, n, "\"other: 'text' \\\\ \\\"#\""); return true;
    case KEY_SOURCES: snprintf(buf, n, "[other, no, \"1\", a b]"); return true;
    case KEY_STAGES: snprintf(buf, n, "[{until: 7e11, value: 1, shape: linear}]"); return true;
    case KEY_RANGES: snprintf(buf, n, "[[7, 9], [3, 5]]"); return true;
    case KEY_FIXED:
    case KEY_SAME: return false;
    }
    return false;
}

/* Reading the text of cfg gives the same text and hash again. */
static void check_round_trip(const struct config *cfg, const char *what)
{
    struct config again;
    char *text = config_to_text(cfg);
    config_from_text(&again, text);
    char *text_again = config_to_text(&again);
    EXPECT(!strcmp(text, text_again), "%s: text changes on reading back", what);
    EXPECT(config_hash(cfg) == config_hash(&again), "%s: hash changes on reading back", what);
    struct config_train train = cfg->train; /* its texts are compared above */
    train.sample_prompt = again.train.sample_prompt;
    train.sample_tokenizer = again.train.sample_tokenizer;
    EXPECT(!memcmp(&cfg->model, &again.model, sizeof cfg->model) &&
               !memcmp(&train, &again.train, sizeof train) &&
               !memcmp(&cfg->optimizer, &again.optimizer, sizeof cfg->optimizer),
           "%s: values change on reading back", what);
    free(text);
    free(text_again);
    config_free(&again);
}

static void change(struct config *cfg, const struct key *key, const char *yaml)
{
    struct err_list errs = {0};
    struct pool *pool = &cfg->source->pool;
    const struct node *node = tree_try_parse(pool, "sweep", yaml, strlen(yaml), &errs);
    const int bad = node ? value_try_set(cfg, key, node, pool, &errs) : -1;
    EXPECT(!bad, "%s: %s is refused: %s", key->name, yaml, errs.text ? errs.text : "");
    err_free(&errs);
}

static void check_key(const struct key *key, uint64_t seen[], int *n_seen)
{
    struct config cfg;
    char yaml[128], leaf[64];
    config_must_load_text(&cfg, config_small_text, NULL);
    char *before = config_to_text(&cfg);
    const uint64_t hash_before = config_hash(&cfg);
    if (other_value(&cfg, key, yaml, sizeof yaml)) {
        change(&cfg, key, yaml);
        char *after = config_to_text(&cfg);
        const uint64_t hash = config_hash(&cfg);
        EXPECT(strcmp(before, after), "%s: %s does not change the text", key->name, yaml);
        EXPECT(hash != hash_before, "%s: %s does not change the hash", key->name, yaml);
        for (int i = 0; i < *n_seen; i++)
            EXPECT(seen[i] != hash, "%s: the same hash as another change", key->name);
        seen[(*n_seen)++] = hash;
        check_round_trip(&cfg, key->name);
        free(after);
    }
    snprintf(leaf, sizeof leaf, "%s:", strrchr(key->name, '.') + 1);
    EXPECT(strstr(before, leaf), "%s is not printed", key->name);
    free(before);
    config_free(&cfg);
}

static void check_fields_apart(void)
{
    for (int i = 0; i < n_config_keys; i++)
        for (int j = 0; j < i; j++) {
            const struct key *a = &config_keys[i], *b = &config_keys[j];
            const bool fields = a->type < KEY_FIXED && b->type < KEY_FIXED;
            EXPECT(!fields || a->offset != b->offset, "%s and %s share a field", a->name, b->name);
            EXPECT(strcmp(a->name, b->name), "%s stands twice", a->name);
        }
}

int main(void)
{
    static const char *const ready[] = {
        "configs/runs/demo.yaml", "configs/runs/deepseek-v3-671b-2048gpu.yaml",
        "configs/runs/moonlight-16b-8gpu.yaml", "configs/runs/moonlight-16b-1gpu.yaml"};
    uint64_t seen[256];
    int n_seen = 0;
    check_fields_apart();
    EXPECT(n_config_keys <= 256, "%d keys: enlarge seen", n_config_keys);
    for (int i = 0; i < n_config_keys; i++) check_key(&config_keys[i], seen, &n_seen);
    for (size_t i = 0; i < sizeof ready / sizeof *ready; i++) {
        struct config cfg;
        config_must_load(&cfg, ready[i], NULL);
        check_round_trip(&cfg, ready[i]);
        config_free(&cfg);
    }
    return test_end();
}
