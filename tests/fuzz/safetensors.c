/*
 * safetensors.c - fuzz target: weights of Hugging Face. The input is in turn a whole file; a
 * header, whose length is made right, before as many bytes as its tensors need; the index of two
 * good files; and a config.json.
 */
#include "fuzz.h"

#include "tools/ckpt/hf_config.h"
#include "tools/ckpt/safetensors.h"

#include <jansson.h>
#include <sys/stat.h>

enum { MAX_DATA = 1 << 16, PIECE = 100 };

/* A fault is one line that names the directory. */
static void check_fault(int bad, const char *why)
{
    EXPECT(!bad || (strstr(why, fuzz_dir) && !strchr(why, '\n')), "said %s", why);
}

static void read_all(struct safetensors *st, const struct st_tensor *t)
{
    struct fault fault = {0};
    float *x = malloc(PIECE * sizeof *x);
    for (int64_t at = 0; at < t->n && t->type->kind != ST_NO_WEIGHT; at += PIECE) {
        const int64_t n = t->n - at < PIECE ? t->n - at : PIECE;
        EXPECT(!safetensors_try_read_f32(st, t, at, n, x, &fault), "%s", fault.why);
    }
    free(x);
}

static void read_weights(void)
{
    struct safetensors st;
    struct fault fault = {0};
    const int bad = safetensors_try_open(&st, fuzz_dir, &fault);
    check_fault(bad, fault.why);
    for (int i = 0; !bad && i < st.n_tensors; i++) {
        const struct st_tensor *t = &st.tensor[i];
        EXPECT(safetensors_find(&st, t->name) == t, "%s is not found", t->name);
        read_all(&st, t);
    }
    safetensors_close(&st);
}

/* Where the last tensor of the header ends, as far as a file may have so many bytes. */
static size_t data_of(const uint8_t *bytes, size_t n)
{
    const char *name;
    json_t *tensor, *root = json_loadb((const char *)bytes, n, 0, NULL);
    json_int_t end = 0;
    json_object_foreach(root, name, tensor)
    {
        const json_t *offsets = json_object_get(tensor, "data_offsets");
        const json_int_t its = json_integer_value(json_array_get(offsets, 1));
        if (its > end && its <= MAX_DATA) end = its;
    }
    json_decref(root);
    return (size_t)end;
}

static void as_header(const uint8_t *bytes, size_t n)
{
    const uint64_t length = n;
    const size_t n_data = data_of(bytes, n);
    uint8_t *file = calloc(1, 8 + n + n_data);
    memcpy(file, &length, 8);
    memcpy(file + 8, bytes, n);
    const char *single = fuzz_file(ST_SINGLE, file, 8 + n + n_data);
    free(file);
    read_weights();
    unlink(single);
}

/* Header, data, and how many bytes of both together are data. */
static void make_part(const char *name, const char *text, size_t n_data)
{
    char file[200] = {0};
    const size_t n = strlen(text);
    file[0] = (char)(n - n_data);
    memcpy(file + 8, text, n);
    fuzz_file(name, file, 8 + n);
}

static void as_index(const uint8_t *bytes, size_t n)
{
    static bool made;
    const char *index = fuzz_file(ST_INDEX, bytes, n);
    if (!made) {
        make_part("1.safetensors",
                  "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}12345678", 8);
        make_part("2.safetensors",
                  "{\"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[0,2]}}12", 2);
        made = true;
    }
    read_weights();
    unlink(index);
}

static void as_config(const uint8_t *bytes, size_t n)
{
    struct config cfg, again;
    struct hf_settings set;
    struct err_list errs = {0};
    struct fault fault = {0};
    const int bad = hf_config_try_read(&cfg, &set, fuzz_file("config.json", bytes, n), &errs);
    EXPECT(bad == (errs.n ? -1 : 0), "returned %d with %d faults", bad, errs.n);
    hf_settings_free(&set);
    const struct config_model *m = &cfg.model;
    const struct hf_ids ids = {m->bos_token_id, m->eos_token_id, m->pad_token_id};
    char *text = bad ? NULL : hf_config_try_text(&cfg.model, true, ids, &fault);
    if (text) { /* what is written reads back as the same model */
        const char *path = fuzz_file("config.json", text, strlen(text));
        EXPECT(!hf_config_try_read(&again, &set, path, &errs), "%s from %s", errs.text, text);
        char *a = hf_config_yaml(&cfg), *b = hf_config_yaml(&again);
        EXPECT(!strcmp(a, b), "%s\nbecame\n%s", a, b);
        free(a);
        free(b);
        config_free(&again);
        hf_settings_free(&set);
        free(text);
    }
    config_free(&cfg);
    err_free(&errs);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n && *bytes == '{') {
        as_header(bytes, n);
        as_index(bytes, n);
        as_config(bytes, n);
    } else {
        const char *single = fuzz_file(ST_SINGLE, bytes, n);
        read_weights();
        unlink(single);
    }
    return 0;
}
