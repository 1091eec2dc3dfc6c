/* cmd_train.c - `dsv3 train`: read the config on rank 0, hand it to all ranks, run. */
#include "train/commands.h"

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/place.h"
#include "topo/wait.h"
#include "train/command_line.h"
#include "train/launch.h"
#include "train/run.h"
#include "train/stop.h"

#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "usage: dsv3 train FILE [section.key=value ...]\n"
    "\n"
    "Trains as FILE says, on the ranks that mpirun or srun starts, and writes everything to "
    "run.dir.\n"
    "Started again with the same command it resumes from the newest checkpoint there.\n"
    "\n"
    "Options:\n"
    "  section.key=value    set a key; it wins over the file\n"
    "  --verbose            print which ranks are on which node (run.verbose=true)\n"
    "  -h, --help           this page\n"
    "\n"
    "Examples:\n"
    "  mpirun --bind-to none -np 2 dsv3 train run.yaml\n"
    "  srun --mpi=pmix dsv3 train run.yaml optimizer.lr=1e-4\n"
    "\n"
    "Exit codes:\n"
    "  0    train.steps are done\n"
    "  75   saved before the end (signal, time limit): start the same command again\n"
    "  64   wrong command line, 78 wrong configuration, 65 bad data, 66 missing data\n"
    "  70   internal error, or too many steps that were not finite\n"
    "  74   reading or writing failed\n"
    "docs/batch.md has command lines for clusters, docs/failures.md what the messages mean.\n";

/* The config's text on every rank, or NULL after rank 0 has printed what is wrong with it. */
static char *read_config(int rank, int size, const struct command_line *cl)
{
    char *text = NULL;
    if (rank == 0) {
        struct config cfg;
        struct err_list errs = {0}, warnings = {0};
        config_try_load(&cfg, cl->file, cl->n_overrides, cl->overrides, &errs);
        config_try_check_ranks(&cfg, size, &errs);
        if (errs.n == 0)
            text = config_to_text(&cfg);
        else
            fputs(errs.text, stderr);
        if (errs.n == 0) schedule_warn(&cfg, &warnings);
        warn_list(&warnings);
        config_free(&cfg);
        err_free(&errs);
    }
    char *shared = mesh_broadcast_text(text ? text : "");
    free(text);
    if (*shared) return shared;
    free(shared);
    return NULL;
}

static int train(const struct command_line *cl)
{
    int rank, size;
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (!launch_is_one_world(size)) return CODE_USAGE;
    file_watch(wait_deadline_s());
    place_at("configuration");
    char *text = read_config(rank, size, cl);
    if (!text) return CODE_CONFIG;
    struct config cfg;
    struct run run;
    config_from_text(&cfg, text);
    free(text);
    wait_set_deadline(cfg.run.deadline_s);
    file_watch(wait_deadline_s());
    run_init(&run, &cfg);
    const enum exit_code code = run_loop(&run);
    run_free(&run);
    config_free(&cfg);
    CHECK(mem_live() == 0, "%ld blocks of memory were not given back", mem_live());
    return code;
}

static int run_train(int argc, char **argv)
{
    struct command_line cl;
    if (!command_line_parse(&cl, &cmd_train, argc, argv)) return CODE_USAGE;
    stop_begin();
    launch_begin();
    const int code = train(&cl);
    launch_end();
    return code;
}

const struct command cmd_train = {
    .name = "train", .help = help, .options = OPTION_VERBOSE, .run = run_train};
