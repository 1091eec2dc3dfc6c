/* A rank that ends on an error is gone in bounded time with its exit code, and the job with it,
 * even when MPI_Abort hangs, a thread of it is blocked in a receive, or its peers are. */
// TEST ranks=1 timeout=90
#include "job.h"

#include "base/err.h"

#include <pthread.h>

enum { LONGEST_S = 20 }; /* on an idle machine */
static bool abort_hangs;

/* Instead of the library's (MPI's profiling interface). */
int MPI_Abort(MPI_Comm comm, int code)
{
    while (abort_hangs) pause();
    return PMPI_Abort(comm, code);
}

static void *receive_for_ever(void *arg)
{
    int x;
    (void)arg;
    MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return NULL;
}

/* What each rank does: rank 0 fails, the other waits for it. */
static int rank_main(const char *mode)
{
    int rank, level, x = 0;
    pthread_t thread;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    abort_hangs = !strcmp(mode, "abort");
    if (!strcmp(mode, "thread")) pthread_create(&thread, NULL, receive_for_ever, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) DIE(CODE_DATA, "the first and only cause");
    MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"abort", "thread", "peer"};
    if (argc > 1) return rank_main(argv[1]);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const struct job job = job_run(argv[0], 2, modes[i]);
        job_expect(&job, CODE_DATA, "fatal [rank 0/2 ");
        EXPECT(job.seconds < test_patience_s(LONGEST_S), "%s: took %.1f s", modes[i], job.seconds);
    }
    return test_end();
}
