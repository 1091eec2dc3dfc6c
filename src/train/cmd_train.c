/* cmd_train.c - `dsv3 train`: read the config on rank 0, hand it to all ranks, run. */
#include "train/commands.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/signals.h"
#include "topo/wait.h"
#include "train/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A scheduler that started several tasks without giving them an MPI world would have every task
 * train alone over the same files. (Below mpirun, Slurm's variables speak of mpirun's daemons.) */
static bool launched_as_one_world(int size)
{
    static const char *const names[] = {"SLURM_STEP_NUM_TASKS", "PMI_SIZE"};
    if (size > 1 || getenv("OMPI_COMM_WORLD_SIZE")) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (!text || atoi(text) <= 1) continue;
        fprintf(stderr,
                "the scheduler says %s tasks (%s), MPI says 1: this launcher and this MPI do not "
                "know each other; with Slurm check srun --mpi=pmix\n",
                text, names[i]);
        return false;
    }
    return true;
}

/* The config's text on every rank, or NULL after rank 0 has printed what is wrong with it. */
static char *read_config(int rank, int size, int argc, char **argv)
{
    char *text = NULL;
    if (rank == 0) {
        struct config cfg;
        struct err_list errs = {0};
        config_try_load(&cfg, argv[0], argc - 1, argv + 1, &errs);
        config_try_check_ranks(&cfg, size, &errs);
        if (errs.n == 0)
            text = config_to_text(&cfg);
        else
            fputs(errs.text, stderr);
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
    if (!launched_as_one_world(size)) return CODE_USAGE;
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
    run_loop(&run);
    run_free(&run);
    config_free(&cfg);
    CHECK(mem_live() == 0, "%ld blocks of memory were not given back", mem_live());
    return CODE_DONE;
}

int cmd_train(int argc, char **argv)
{
    /* Ranks that wait must not take the cores from ranks that compute. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    setenv("OMPI_MCA_opal_signal", "", 0); /* our line instead of Open MPI's page */
    signals_install();
    place_at("MPI_Init");
    signals_guard("MPI_Init", wait_deadline_s());
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    signals_guard(NULL, 0);
    const int code = train(argc, argv);
    signals_rest();
    signals_guard("MPI_Finalize", wait_deadline_s());
    MPI_Finalize();
    return code;
}
