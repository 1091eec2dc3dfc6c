/* cmd_check.c - see cmd_check.h. */
#include "train/cmd_check.h"

#include "config/config.h"
#include "model/count.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: dsv3 check FILE [section.key=value ...] [--json] [--ranks N]\n"
                            "       dsv3 check --reference\n";

struct request {
    const char *file;
    int n_overrides;
    char **overrides; /* a part of argv, compacted */
    bool json, reference;
    int n_ranks; /* 0: not asked */
};

static bool parse_ranks(struct request *rq, const char *text)
{
    char *end;
    const long n = text ? strtol(text, &end, 10) : 0;
    if (!text || *end || n < 1 || n > 1 << 24) {
        fprintf(stderr, "dsv3 check: --ranks: found %s, expected a number of ranks\n",
                text ? text : "nothing");
        return false;
    }
    rq->n_ranks = (int)n;
    return true;
}

static bool parse_arguments(struct request *rq, int argc, char **argv)
{
    *rq = (struct request){.overrides = argv};
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            rq->json = true;
        else if (!strcmp(argv[i], "--reference"))
            rq->reference = true;
        else if (!strcmp(argv[i], "--ranks")) {
            if (!parse_ranks(rq, i + 1 < argc ? argv[i + 1] : NULL)) return false;
            i++;
        } else if (*argv[i] == '-') {
            fprintf(stderr, "dsv3 check: unknown option %s\n%s", argv[i], usage);
            return false;
        } else if (!rq->file)
            rq->file = argv[i];
        else
            rq->overrides[rq->n_overrides++] = argv[i];
    }
    if (rq->reference != !rq->file) {
        fputs(usage, stderr);
        return false;
    }
    return true;
}

/* How the ranks share the work, with the batch equation written out. */
static void print_layout(const struct config *cfg, int n_ranks)
{
    const struct config_train *t = &cfg->train;
    const int tp = cfg->topology.tp, ep = cfg->topology.ep, dp = n_ranks / tp;
    printf("layout for --ranks %d\n", n_ranks);
    printf("  dp %d x tp %d; experts: edp %d x ep %d, %d a rank and layer\n", dp, tp, n_ranks / ep,
           ep, cfg->model.n_routed_experts / ep);
    printf("  global_batch %d = micro_batch %d x accumulation %d x dp %d; %" PRId64
           " tokens a step\n",
           t->global_batch, t->micro_batch, t->global_batch / (t->micro_batch * dp), dp,
           (int64_t)t->global_batch * cfg->data.sequence_length);
}

static void print_report(const struct config *cfg, const struct request *rq)
{
    struct model_counts counts;
    model_count(&counts, cfg);
    if (rq->json) {
        model_counts_print_json(&counts, stdout);
        return;
    }
    config_print(cfg, stdout);
    printf("\nconfig hash %016" PRIx64 "\n\n", config_hash(cfg));
    model_counts_print(&counts, stdout);
    if (rq->n_ranks) print_layout(cfg, rq->n_ranks);
}

int cmd_reference(void)
{
    config_print_reference(stdout);
    return fflush(stdout) ? CODE_IO : CODE_DONE;
}

int cmd_check(int argc, char **argv)
{
    struct request rq;
    if (!parse_arguments(&rq, argc, argv)) return CODE_USAGE;
    if (rq.reference) return cmd_reference();

    struct config cfg;
    struct err_list errs = {0};
    int code = CODE_CONFIG;
    config_try_load(&cfg, rq.file, rq.n_overrides, rq.overrides, &errs);
    if (rq.n_ranks) config_try_check_ranks(&cfg, rq.n_ranks, &errs);
    if (errs.n == 0) {
        print_report(&cfg, &rq);
        code = fflush(stdout) ? CODE_IO : CODE_DONE;
    } else {
        fputs(errs.text, stderr);
        fprintf(stderr, "%d fault%s in the configuration\n", errs.n, errs.n == 1 ? "" : "s");
    }
    err_free(&errs);
    config_free(&cfg);
    return code;
}
