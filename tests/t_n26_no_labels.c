/* Windows in which attention sees nothing but the token itself, or that have no label: one long run
 * of end-of-document tokens, documents of one token, a window that begins with them. Losses and
 * gradients stay finite, and without a label in the whole batch both are zero. */
// TEST ranks=1 timeout=60 cores=2
#include "window_runs.h"

enum { EOD = 256 };

/* Documents of one token are nothing but its end; the rest is text. */
static uint32_t run_of_eod(int64_t i)
{
    (void)i;
    return EOD;
}
static uint32_t eod_then_text(int64_t i)
{
    return i % FIXTURE_T < 5 ? EOD : fixture_id(i);
}

/* Every step has n and n_mtp labels and finite numbers, zero where nothing is to be learnt. */
static void check_steps(const char *run, int n, int n_mtp, bool zero_gradient)
{
    for (int s = 1; s <= 3; s++) {
        json_t *step = window_step(run, s);
        const double loss = window_number(step, "loss"), mtp = window_number(step, "mtp_loss"),
                     norm = window_number(step, "grad_norm");
        EXPECT(window_labels(step, 0) == n && window_labels(step, 1) == n_mtp,
               "%s: step %d has %d and %d labels, expected %d and %d", run, s,
               window_labels(step, 0), window_labels(step, 1), n, n_mtp);
        EXPECT(isfinite(loss) && isfinite(mtp) && isfinite(norm) &&
                   window_number(step, "skipped") == 0,
               "%s: step %d: loss %g, MTP loss %g, gradient norm %g", run, s, loss, mtp, norm);
        EXPECT((loss > 0) == (n > 0) && (mtp > 0) == (n_mtp > 0) && (norm > 0) == !zero_gradient,
               "%s: step %d: loss %g, MTP loss %g, gradient norm %g", run, s, loss, mtp, norm);
        json_decref(step);
    }
}

int main(void)
{
    static const char *const ones[] = {"1", "1"}, *const late[] = {"1 1 1 1 1 27", "1"},
                             *const pairs[] = {"2", "2"};
    const char *shard = window_shard("eod.tok.zst", run_of_eod, ones, 2);
    window_train("eod", shard, "np2", 2, "train.balance_loss_alpha=0");
    check_steps("eod-np2", 0, 0, true);
    window_train("eod", shard, "balanced", 1, "train.compute_dtype=bf16");
    check_steps("eod-balanced", 0, 0, false); /* the balance loss is over all tokens */
    window_train("eod", shard, "unmasked", 1, "data.document_mask=false");
    check_steps("eod-unmasked", 64, 62, false);

    shard = window_shard("late.tok.zst", eod_then_text, late, 2);
    window_train("late", shard, "tp2", 2, "topology.tp=2");
    check_steps("late-tp2", 26, 25, false);
    window_train("late", shard, "bf16", 2, "train.compute_dtype=bf16");
    check_steps("late-bf16", 26, 25, false);

    shard = window_shard("pairs.tok.zst", fixture_id, pairs, 2);
    window_train("pairs", shard, "np2", 2, "");
    check_steps("pairs-np2", 32, 0, false); /* labels, but none for the MTP module */
    return test_end();
}
