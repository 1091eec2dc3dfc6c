/* t_n20_yarn_scale.c - rotary frequencies and the softmax scale of the published models. */
// TEST ranks=1 timeout=10
/*
 * Expected numbers follow from the formulas in Hugging Face's yarn rope with rope dimension 64,
 * theta 1e4, context 4096, factor 40; the fault they guard against is a scale that is left out or
 * applied twice, which only shows at long range.
 */
#include "model/model.h"
#include "tests/test.h"

#include <math.h>

static struct config_model published(enum rope_type type, double mscale)
{
    return (struct config_model){.qk_nope_head_dim = 128,
                                 .qk_rope_head_dim = 64,
                                 .rope_theta = 1e4,
                                 .rope_type = type,
                                 .rope_factor = 40,
                                 .rope_beta_fast = 32,
                                 .rope_beta_slow = 1,
                                 .rope_mscale = mscale,
                                 .rope_mscale_all_dim = mscale,
                                 .rope_original_max_position_embeddings = 4096};
}

static void check_scale(enum rope_type type, double mscale, double want)
{
    const struct config_model c = published(type, mscale);
    const double scale = rope_softmax_scale(&c);
    /* The expected numbers are given to 8 digits. */
    EXPECT(fabs(scale - want) < 1e-8, "type %d, mscale %g: %.10f, expected %.8f", type, mscale,
           scale, want);
}

/* cos and sin at position 1 give the frequency; the amplitude is 1. */
static void check_table(enum rope_type type)
{
    enum { PAIRS = 32, T = 2 };
    static float table[T * PAIRS * 2];
    const struct config_model c = published(type, 1.0);
    rope_fill_table(table, &c, T);
    for (int i = 0; i < PAIRS; i++) {
        const double plain = pow(1e4, -i / 32.0);
        double want = plain;
        if (type == ROPE_YARN && i > 22) want = plain / 40;
        if (type == ROPE_YARN && i > 10 && i < 23)
            want = plain * (1 - (i - 10) / 13.0) + plain / 40 * ((i - 10) / 13.0);
        const double x = table[(PAIRS + i) * 2], y = table[(PAIRS + i) * 2 + 1];
        /* F32 table: half an ulp of a number below 1. */
        EXPECT(fabs(x - cos(want)) < 6e-8 && fabs(y - sin(want)) < 6e-8,
               "type %d, pair %d: (%.9g, %.9g), expected an angle of %.9g", type, i, x, y, want);
        EXPECT(table[i * 2] == 1 && table[i * 2 + 1] == 0, "position 0 is turned");
    }
}

int main(void)
{
    check_scale(ROPE_DEFAULT, 1.0, 0.07216878);
    check_scale(ROPE_YARN, 1.0, 0.13523378);
    check_scale(ROPE_YARN, 0.707, 0.11472139);
    check_scale(ROPE_YARN, 0.0, 0.07216878);
    check_table(ROPE_DEFAULT);
    check_table(ROPE_YARN);
    return test_end();
}
