/* When all ranks wait, but in different collectives, the line says who waits where. */
// TEST ranks=1 timeout=60
#include "job.h"

#include "topo/wait.h"

/* Ranks 1 and 2 come to the agreement, the others to a barrier. */
static int rank_main(void)
{
    const struct config cfg = {.topology = {1, 1, 0}};
    struct mesh mesh;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    mesh_init(&mesh, &cfg);
    wait_barrier("start");
    wait_set_deadline(2);
    if (mesh.rank == 1 || mesh.rank == 2) AGREE(mesh.axis[AXIS_DP].comm, true, CODE_DONE, "");
    wait_barrier("barrier of the test");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) return rank_main();
    const struct job job = job_run(argv[0], 4, "rank");
    job_expect(&job, CODE_INTERNAL,
               "ranks are in different collectives: ranks 0, 3 in barrier of "
               "the test #");
    EXPECT(strstr(job.said, "; ranks 1, 2 in agreement #"), "%s", job.said);
    return test_end();
}
