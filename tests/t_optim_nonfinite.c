/* A NaN or Inf in one rank's gradient ends the job with code 70 and one line that names it. */
// TEST ranks=1 timeout=60
#include "optim_rig.h"
#include "test.h"

#include <math.h>
#include <sys/wait.h>

enum { RANKS = 4 };

/* One rank of the job: the value goes into the named tensor's last element on rank `at`. */
static int run_rank(char **argv)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    static struct rig rig;
    struct config cfg = rig_config();
    cfg.topology.tp = cfg.topology.ep = 2;
    rig_init(&rig, &cfg, false);
    rig_add_gradients(&rig, 1);
    struct param *p = param_find(&rig.params, argv[2]);
    if (rig.mesh.rank == atoi(argv[3])) p->grad[p->n - 1] = strtof(argv[4], NULL);
    optim_reduce_gradients(&rig.opt);
    const double norm = optim_grad_norm(&rig.opt);
    if (!isfinite(norm)) optim_die_nonfinite(&rig.opt, 7);
    MPI_Finalize();
    return 0;
}

static void check(const char *self, const char *tensor, int rank, const char *value)
{
    char command[1024], text[4096], want[200];
    snprintf(command, sizeof command,
             "mpirun --allow-run-as-root --oversubscribe --quiet -np %d %s rank %s %d %s 2>&1",
             RANKS, self, tensor, rank, value);
    FILE *out = popen(command, "r");
    const size_t n = fread(text, 1, sizeof text - 1, out);
    text[n] = '\0';
    const int status = pclose(out);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 70, "%s on rank %d: status %#x", tensor,
           rank, (unsigned)status);
    snprintf(want, sizeof want, "fatal [rank %d/%d ", rank, RANKS);
    const char *line = strstr(text, want);
    EXPECT(line, "no line of rank %d in: %s", rank, text);
    EXPECT(line && !strstr(line + 1, "fatal ["), "more than one line: %s", text);
    snprintf(want, sizeof want, "step 7: the gradient of %s is not finite", tensor);
    EXPECT(strstr(text, want), "\"%s\" is not in: %s", want, text);
}

int main(int argc, char **argv)
{
    if (argc == 5) return run_rank(argv);
    /* Reduced over the world, over dp and over edp; the rank is that of the gradient, not of the
     * shard, and the value may also lie in the rank's own shard. */
    check(argv[0], "model.norm.weight", 2, "nan");
    check(argv[0], "lm_head.weight", 1, "inf");
    check(argv[0], "lm_head.weight", 3, "-inf");
    check(argv[0], "model.layers.1.mlp.experts.down_proj.weight", 0, "nan");
    (void)argc;
    return test_end();
}
