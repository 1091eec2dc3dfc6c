/* Parameters and FLOP of the ready models: exact counts, and the GFLOP a token of the formulas
 * people compare with, to the digits they are published with. */
// TEST ranks=1 timeout=30
#include "lib_config.h"
#include "model/count.h"
#include "test.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct expected {
    const char *model;
    int64_t total, active, active_one, active_none, bias, mtp;
} expected[] = {
    {"deepseek-v3-671b", 671026404352, 37552282624, 36625603584, 35698924544, 14848, 11610067968},
    {"moonlight-16b", 15960108544, 2914774528, 2579230208, 2243685888, 1664, 0},
    {"deepseek-v2-lite-16b", 15706484224, 2661150208, 2451435008, 2241719808, 0, 0},
    /* totals: numel() of Hugging Face's model of these shapes; active: the formulas by hand */
    {"demo", 9859264, 3961024, 3829952, 3698880, 80, 0},
    {"small", 192075264, 77059584, 64476672, 51893760, 160, 0},
    {"wide", 734931968, 233188352, 199633920, 166079488, 64, 0},
};

/* GFLOP a token at 4,096 tokens; torchtitan's with MTP adds 6 x its active values. */
static const struct expected_flop {
    const char *model;
    int n_mtp;
    double exact, megatron, torchtitan;
} expected_flop[] = {
    {"deepseek-v3-671b", 0, 250.457, 249.812, 281.158},
    {"deepseek-v3-671b", 1, 260.649, 259.993, 281.158 + 6 * 0.688100352},
    {"deepseek-v2-lite-16b", 0, 16.407, 16.386, 18.106},
    {"deepseek-v2-lite-16b", 1, 18.277, 18.256, 18.106 + 6 * 0.091499008},
    {"moonlight-16b", 0, 17.174, 17.153, 18.873},
    {"moonlight-16b", 1, 19.799, 19.777, 18.873 + 6 * 0.091499008},
};

static void count(struct model_counts *counts, const char *model, char *const overrides[])
{
    char path[256];
    struct config cfg;
    snprintf(path, sizeof path, "configs/models/%s.yaml", model);
    config_must_load(&cfg, path, overrides);
    model_count(counts, &cfg);
    config_free(&cfg);
}

static void check_same(const char *model, const char *what, int64_t found, int64_t want)
{
    EXPECT(found == want, "%s: %s %" PRId64 ", expected %" PRId64, model, what, found, want);
}

static void check_params(const struct expected *e)
{
    struct model_counts c;
    count(&c, e->model, NULL);
    check_same(e->model, "total", c.params_total, e->total);
    check_same(e->model, "active", c.params_active, e->active);
    check_same(e->model, "active, one embedding", c.params_active_no_input_embedding,
               e->active_one);
    check_same(e->model, "active, no embedding", c.params_active_no_embeddings, e->active_none);
    check_same(e->model, "selection bias", c.router_bias, e->bias);
    check_same(e->model, "MTP", c.mtp_params, e->mtp);
    int64_t sum = 0;
    for (int part = 0; part < N_PARTS; part++) sum += c.part[part];
    check_same(e->model, "sum of parts", sum, e->total);
}

/* The released checkpoint: biases, the MTP layer and its copies of embedding and head included. */
static void check_released(void)
{
    struct model_counts c;
    count(&c, "deepseek-v3-671b", NULL);
    check_same("671b", "with biases", c.params_total + c.router_bias, 671026419200);
    check_same("671b", "MTP layer", c.mtp_params + c.mtp_router_bias, 11610068224);
    check_same("671b", "released tensors", c.released, 684489845504);
    check_same("671b", "routed experts", c.part[PART_ROUTED_EXPERTS], 653908770816);
    check_same("671b", "attention", c.part[PART_ATTENTION], 11413547008);
    check_same("671b", "norms", c.part[PART_NORM], 881664);
}

/* What `dsv3 check` prints of the ready file. */
static void check_printed(void)
{
    static const char *const lines[] = {
        "  total                                       671,026,404,352\n",
        "  selection-bias values (not trained)                  14,848\n",
        "  without the input embedding                  36,625,603,584\n",
        "  parameters                                   11,610,067,968\n",
        "  selection-bias values (not trained)                     256\n",
        "  values                                      684,489,845,504\n"};
    static char text[1 << 16];
    FILE *out = popen("$DSV3_BUILD/dsv3 check configs/models/deepseek-v3-671b.yaml", "r");
    EXPECT(out, "cannot start dsv3");
    if (out) text[fread(text, 1, sizeof text - 1, out)] = '\0';
    EXPECT(out && pclose(out) == 0, "dsv3 check fails");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        EXPECT(strstr(text, lines[i]), "not printed: %s", lines[i]);
}

static void check_flop(const struct expected_flop *e)
{
    struct model_counts c;
    char depth[64];
    char *const overrides[] = {depth, NULL};
    snprintf(depth, sizeof depth, "model.num_nextn_predict_layers=%d", e->n_mtp);
    count(&c, e->model, overrides);
    /* half a unit of the last published digit */
    EXPECT(fabs(c.flop_exact / 1e9 - e->exact) < 5.01e-4, "%s %d: exact %.4f", e->model, e->n_mtp,
           c.flop_exact / 1e9);
    EXPECT(fabs(c.flop_megatron / 1e9 - e->megatron) < 5.01e-4, "%s %d: Megatron %.4f", e->model,
           e->n_mtp, c.flop_megatron / 1e9);
    EXPECT(fabs(c.flop_torchtitan / 1e9 - e->torchtitan) < 5.01e-4, "%s %d: torchtitan %.4f",
           e->model, e->n_mtp, c.flop_torchtitan / 1e9);
}

int main(void)
{
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) check_params(&expected[i]);
    for (size_t i = 0; i < sizeof expected_flop / sizeof *expected_flop; i++)
        check_flop(&expected_flop[i]);
    check_released();
    check_printed();
    return test_end();
}
