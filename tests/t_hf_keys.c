/* Every key of a config.json, left out, null, and at several values: transformers' model, or none.
 */
// TEST ranks=1 timeout=120
/*
 * tests/golden/hf/keys.json has the changes of a config.json and the loss that transformers
 * computes with each; where that refuses, dsv3-ckpt must, too. "refused_here": it may compute
 * something, and dsv3-ckpt must refuse.
 */
#include "tests/imported.h"
#include "tests/test.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>

#define GOLDEN "tests/golden/hf/"

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    CHECK(root, "%s:%d: %s", path, error.line, error.text);
    return root;
}

/* NaN: the weights are not those of the model. */
static double loss_of(struct imported *w, const char *yaml)
{
    char *overrides[] = {"model.num_nextn_predict_layers=0",
                         "run.dir=x",
                         "data.train=x",
                         "data.sequence_length=24",
                         "train.steps=1",
                         "train.global_batch=4",
                         "train.micro_batch=4",
                         "optimizer.lr=1e-5",
                         "train.compute_dtype=f32"};
    struct golden_model gm = {0};
    struct err_list errs = {0};
    CHECK(!config_try_load(&gm.cfg, yaml, sizeof overrides / sizeof *overrides, overrides, &errs),
          "%s", errs.text);
    golden_model_build(&gm);
    double loss = NAN;
    if (imported_fill(w, &gm)) {
        golden_model_forward(&gm, w->token, NULL);
        loss = golden_model_stage_loss(&gm, 0);
    }
    golden_model_free(&gm);
    return loss;
}

static json_t *changed(const json_t *row)
{
    char path[100];
    json_t *only = json_object_get(row, "only"), *key;
    size_t i;
    if (only) return json_incref(only);
    snprintf(path, sizeof path, GOLDEN "keys_%s/config.json",
             json_string_value(json_object_get(row, "class")));
    json_t *config = load(path);
    json_array_foreach(json_object_get(row, "drop"), i, key)
        json_object_del(config, json_string_value(key));
    json_object_update(config, json_object_get(row, "set"));
    return config;
}

/* The values that the model of the file has to have. */
static void check_values(const json_t *row, const char *yaml)
{
    struct err_list errs = {0};
    struct config cfg;
    const char *key;
    json_t *value;
    char *overrides[] = {"run.dir=x",     "data.train=x",         "data.sequence_length=24",
                         "train.steps=1", "train.global_batch=4", "optimizer.lr=1e-5"};
    CHECK(!config_try_load(&cfg, yaml, sizeof overrides / sizeof *overrides, overrides, &errs),
          "%s", errs.text);
    char *text = config_to_text(&cfg);
    json_object_foreach(json_object_get(row, "value"), key, value)
    {
        char line[100], *number = json_dumps(value, JSON_ENCODE_ANY);
        const char *found;
        snprintf(line, sizeof line, "\n  %s: ", key);
        found = strstr(text, line);
        EXPECT(found &&
                   (json_is_number(value) ? atof(found + strlen(line)) == json_number_value(value)
                                          : !strncmp(found + strlen(line), number, strlen(number))),
               "%s: found %.40s, expected %s", key, found ? found + 1 : "nothing", number);
        free(number);
    }
    free(text);
    config_free(&cfg);
}

static void check_row(struct imported *w, const json_t *row)
{
    char path[700], command[2300];
    const json_t *want = json_object_get(row, "loss");
    char *text = json_dumps(row, 0);
    json_t *config = changed(row);
    snprintf(path, sizeof path, "%s/config.json", test_tmpdir());
    CHECK(!json_dump_file(config, path, 0), "cannot write %s", path);
    snprintf(command, sizeof command, "\"$DSV3_BUILD/dsv3-ckpt\" model %s >%s.yaml 2>%s.err", path,
             path, path);
    const int code = WEXITSTATUS(system(command));
    strcat(path, ".yaml");
    double loss = NAN;
    if (json_object_get(row, "value"))
        check_values(row, path);
    else if (code == CODE_DONE)
        loss = loss_of(w, path);
    if (want && !json_object_get(row, "refused_here"))
        EXPECT(fabs(loss - json_number_value(want)) < 1e-6 * loss, "loss %.9g, code %d: %s", loss,
               code, text);
    else if (!json_object_get(row, "value"))
        EXPECT(isnan(loss) && (code == CODE_DONE || code == CODE_CONFIG), "loss %.9g, code %d: %s",
               loss, code, text);
    json_decref(config);
    free(text);
}

int main(int argc, char **argv)
{
    static struct imported weights[2]; /* v3, v2 */
    json_t *rows = load(GOLDEN "keys.json"), *row;
    size_t i;
    MPI_Init(&argc, &argv);
    imported_init(&weights[0], "keys_v3");
    imported_init(&weights[1], "keys_v2");
    json_array_foreach(rows, i, row)
        check_row(&weights[!strcmp(json_string_value(json_object_get(row, "class")), "v2")], row);
    printf("%zu rows\n", i);
    for (int c = 0; c < 2; c++) imported_free(&weights[c]);
    json_decref(rows);
    return test_end();
}
