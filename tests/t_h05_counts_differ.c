/* debug.check_exchange: when a rank sends another number of rows than is expected, one line names
 * both ranks and both numbers before anything moves. */
// TEST ranks=1 timeout=60
#include "job.h"

#include "comm_rig.h"

/* Rank 2 means to send 5 rows to rank 1, which waits for 4; all else fits. */
static int rank_main(void)
{
    static struct comm_rig rig;
    char out[256], in[256] = "";
    int64_t send[4] = {3, 3, 3, 3}, recv[4] = {3, 3, 3, 3};
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    comm_rig_init(&rig, 1, 4, 0);
    rig.comm.check_rows = true;
    comm_all_to_all_rows(&rig.comm, AXIS_EP, out, recv, in, send, 4);
    if (rig.mesh.rank == 2) send[1] = 5;
    if (rig.mesh.rank == 1) recv[2] = 4;
    comm_all_to_all_rows(&rig.comm, AXIS_EP, out, recv, in, send, 4);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) return rank_main();
    const struct job job = job_run(argv[0], 4, "rank");
    job_expect(&job, CODE_INTERNAL, "rank 2 sends 5 rows to rank 1 over ep, which expects 4");
    return test_end();
}
