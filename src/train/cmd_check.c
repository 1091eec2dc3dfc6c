/* cmd_check.c - `dsv3 check`: prints the resolved configuration and the counts of its model. */
#include "train/commands.h"

#include "model/count.h"
#include "optim/schedule.h"
#include "train/command_line.h"

#include <inttypes.h>
#include <string.h>

static const char help[] =
    "usage: dsv3 check FILE [section.key=value ...] [--json] [--ranks N] | --reference\n"
    "\n"
    "Validates a run file or a model file and prints every resolved value with where it came "
    "from,\n"
    "and the parameters and FLOP of the model. All errors are listed, each with file, line and\n"
    "column, and the exit code is then 78. Starts nothing, needs no MPI.\n"
    "\n"
    "Options:\n"
    "  section.key=value    set a key, as dsv3 train does\n"
    "  --ranks N            also check what depends on the number of ranks; print the layout\n"
    "  --json               print the counts of the model as a JSON object, nothing else\n"
    "  --reference          print the page of all keys, configs/README.md; takes no FILE\n"
    "  -h, --help           this page\n"
    "\n"
    "Examples:\n"
    "  dsv3 check configs/runs/moonlight-16b-8gpu.yaml --ranks 8\n"
    "  dsv3 check configs/models/deepseek-v3-671b.yaml --json\n";

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
           t->global_batch, t->micro_batch, schedule_micro_batches(cfg, t->global_batch, dp), dp,
           (int64_t)t->global_batch * cfg->data.sequence_length);
}

static void print_report(const struct config *cfg, const struct command_line *cl)
{
    struct model_counts counts;
    model_count(&counts, cfg);
    if (cl->json) {
        model_counts_print_json(&counts, stdout);
        return;
    }
    config_print(cfg, stdout);
    printf("\nconfig hash %016" PRIx64 "\n\n", config_hash(cfg));
    model_counts_print(&counts, stdout);
    if (cl->n_ranks) print_layout(cfg, cl->n_ranks);
}

static int cmd_reference(void)
{
    config_print_reference(stdout);
    return output_end();
}

static int run_check(int argc, char **argv)
{
    struct command_line cl;
    if (argc == 1 && !strcmp(argv[0], "--reference")) return cmd_reference();
    if (!command_line_parse(&cl, &cmd_check, argc, argv)) return CODE_USAGE;
    struct config cfg;
    int code = command_line_load(&cl, &cfg);
    if (code == CODE_DONE) {
        print_report(&cfg, &cl);
        code = output_end();
    }
    config_free(&cfg);
    return code;
}

const struct command cmd_check = {
    .name = "check", .help = help, .options = OPTION_JSON | OPTION_RANKS, .run = run_check};
