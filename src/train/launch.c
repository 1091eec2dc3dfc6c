/* launch.c - between the launcher and the run; see launch.h. */
#define _GNU_SOURCE /* pipe2 */
#include "train/launch.h"

#include "base/err.h"
#include "base/place.h"
#include "base/signals.h"
#include "topo/cross_memory.h"
#include "topo/wait.h"

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A failing MPI_Init leaves by _exit, which nothing in this process notices: another one waits
 * until the pipe says that MPI is there, or ends. */
static struct {
    pid_t pid;
    int pipe;
} watcher;

static _Noreturn void watch(int from)
{
    char all_well;
    for (int sig = SIGHUP; sig <= SIGTERM; sig++)
        if (sig != SIGKILL) signal(sig, SIG_IGN);
    signal(SIGCONT, SIG_DFL); /* this is no rank that looks for others */
    if (read(from, &all_well, 1) == 0 && err_speak_first())
        err_say("fatal", "this process ended in MPI_Init: do this launcher and this Open MPI "
                         "belong together? docs/batch.md has the command lines to start with");
    err_exit(CODE_DONE);
}

static void watcher_start(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    watcher.pid = fork();
    if (watcher.pid == 0) {
        close(ends[1]);
        watch(ends[0]);
    }
    close(ends[0]);
    watcher.pipe = ends[1];
}

static void watcher_end(void)
{
    if (watcher.pid <= 0) return;
    if (write(watcher.pipe, "", 1) == 1) waitpid(watcher.pid, NULL, 0);
    close(watcher.pipe);
}

void launch_bound_spinning(char **argv)
{
    static const char *const names[] = {"GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return;
    /* About 20 us with gcc's runtime, which has 300 times that: a core that others want as well was
     * spun away. Sleeping at once made small steps on idle cores slower by a quarter. */
    setenv(names[0], "1000", 1);
    setenv(names[1], "0", 1);
    execv("/proc/self/exe", argv);
}

void launch_begin(void)
{
    /* Ranks that wait must not take the cores from ranks that compute. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    setenv("OMPI_MCA_opal_signal", "", 0); /* our line instead of Open MPI's page */
    cross_memory_probe();
    place_at("MPI_Init");
    watcher_start();
    signals_guard("MPI_Init", wait_deadline_s());
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    signals_guard(NULL, 0);
    watcher_end();
}

void launch_end(void)
{
    signals_rest();
    signals_guard("MPI_Finalize", wait_deadline_s());
    MPI_Finalize();
}

/* Below mpirun, Slurm's variables speak of mpirun's daemons. */
bool launch_is_one_world(int size)
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
