/* cross_memory.c - see cross_memory.h. */
#define _GNU_SOURCE /* process_vm_readv */
#include "topo/cross_memory.h"

#include "base/err.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static bool forbidden;

/* A child reads its parent, which allows that to everybody, as Open MPI's ranks do. */
static bool child_can_read(void)
{
    static const char value = 42;
    char copy = 0;
    const struct iovec to = {&copy, 1}, from = {(void *)&value, 1};
    int status = 0;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        const bool good = process_vm_readv(parent, &to, 1, &from, 1, 0) == 1 && copy == value;
        err_exit(good ? CODE_DONE : CODE_INTERNAL);
    }
    const bool asked = child > 0 && waitpid(child, &status, 0) == child;
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    return !asked || status == 0;
}

void cross_memory_probe(void)
{
    forbidden = !child_can_read();
    if (!forbidden) return;
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0); /* Open MPI 4 */
    setenv("OMPI_MCA_smsc", "^cma", 0);                            /* Open MPI 5 */
    setenv("UCX_TLS", "^cma", 0);
}

bool cross_memory_forbidden(void)
{
    return forbidden;
}
