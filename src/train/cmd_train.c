/* cmd_train.c - `dsv3 train`: read the config on rank 0, hand it to all ranks, run. */
#include "train/commands.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/place.h"
#include "topo/wait.h"
#include "train/launch.h"
#include "train/run.h"
#include "train/stop.h"

#include <stdio.h>
#include <stdlib.h>

/* The config's text on every rank, or NULL after rank 0 has printed what is wrong with it. */
static char *read_config(int rank, int size, int argc, char **argv)
{
    char *text = NULL;
    if (rank == 0) {
        struct config cfg;
        struct err_list errs = {0}, warnings = {0};
        config_try_load(&cfg, argv[0], argc - 1, argv + 1, &errs);
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

static int train(int argc, char **argv)
{
    int rank, size;
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (!launch_is_one_world(size)) return CODE_USAGE;
    if (argc < 1) {
        if (rank == 0) fprintf(stderr, "usage: dsv3 train FILE [section.key=value ...]\n");
        return CODE_USAGE;
    }
    place_at("configuration");
    char *text = read_config(rank, size, argc, argv);
    if (!text) return CODE_CONFIG;
    struct config cfg;
    struct run run;
    config_from_text(&cfg, text);
    free(text);
    wait_set_deadline(cfg.run.deadline_s);
    run_init(&run, &cfg);
    const enum exit_code code = run_loop(&run);
    run_free(&run);
    config_free(&cfg);
    CHECK(mem_live() == 0, "%ld blocks of memory were not given back", mem_live());
    return code;
}

int cmd_train(int argc, char **argv)
{
    stop_begin();
    launch_begin();
    const int code = train(argc, argv);
    launch_end();
    return code;
}
