/* When more than train.max_nonfinite_steps steps in a row have a loss or gradient that is not
 * finite, the whole job ends with code 70; each of them has one line that names step, tensor or
 * loss, and the rank at fault. So does the first update that makes a weight or moment not finite,
 * and a save that finds one. */
// TEST ranks=1 timeout=60 cores=2
#include "tests/run_rig.h"
#include "train/save.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>

/* A run of this program on two ranks in which rank 1 has a weight that is NaN from step 2 on. */
static int train_with_bad_weight(const char *tensor)
{
    static struct run_rig rig;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    run_rig_data();
    run_rig_init(&rig, "run", "train.max_nonfinite_steps=2");
    run_rig_step(&rig);
    struct param *p = param_find(&rig.run.params, tensor);
    if (rig.run.mesh.rank == 1) ((float *)p->w)[p->n - 1] = NAN;
    while (rig.run.progress.step < rig.cfg.train.steps) run_rig_step(&rig);
    run_rig_free(&rig);
    return test_end();
}

/* A run in which a moment of rank 1 becomes NaN behind the optimizer's back: it is not saved, and
 * that is no matter of checkpoint.on_error. */
static int save_bad_moment(void)
{
    static struct run_rig rig;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    run_rig_data();
    run_rig_init(&rig, "run", "checkpoint.on_exit=true checkpoint.on_error=warn");
    run_rig_step(&rig);
    if (rig.run.mesh.rank == 1) ((float *)rig.run.optim.v[0])[0] = NAN;
    save_now(&rig.run);
    return 0;
}

static int count_lines(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++) n++;
    return n;
}

/* Steps in run.dir/metrics.jsonl. */
static int count_steps(void)
{
    char path[700], line[65536];
    int n = 0;
    snprintf(path, sizeof path, "%s/run/metrics.jsonl", test_tmpdir());
    FILE *in = fopen(path, "r");
    EXPECT(in, "no %s", path);
    while (in && fgets(line, sizeof line, in)) n += strstr(line, "\"loss\"") != NULL;
    if (in) fclose(in);
    return n;
}

/* The job skips n_skipped steps and ends with the next, last_step, whose line says words. */
static void expect_end(const char *program, int n_skipped, int last_step, const char *words)
{
    char command[2048], text[32768];
    snprintf(command, sizeof command,
             "rm -rf %s/run; timeout 60 mpirun -np 2 %s 2>&1 "
             "</dev/null",
             test_tmpdir(), program);
    FILE *out = popen(command, "r");
    const size_t n = fread(text, 1, sizeof text - 1, out);
    text[n] = '\0';
    const int status = pclose(out);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 70, "%s: status %#x, said: %s", program,
           (unsigned)status, text);
    EXPECT(count_lines(text, "fatal [rank 1/2 ") == 1 && count_lines(text, "fatal") == 1,
           "%s: not one line of rank 1 in: %s", program, text);
    EXPECT(count_lines(text, "warning [rank 1/2 ") == n_skipped &&
               count_lines(text, "step skipped") == n_skipped,
           "%s: not %d lines of skipped steps in: %s", program, n_skipped, text);
    EXPECT(strstr(text, words), "%s: '%s' is not in: %s", program, words, text);
    EXPECT(count_steps() == last_step - 1, "%s: %d steps reported, the job ended in step %d",
           program, count_steps(), last_step);
}

/* Zero steps may be skipped: the first ends the run. */
static void expect_bad_gradient(const char *tensor, const char *mesh)
{
    char program[1024], words[128];
    snprintf(program, sizeof program,
             "%s/dsv3 train tests/tiny.yaml run.dir=%s/run data.train=%s/train.tok.zst "
             "train.max_nonfinite_steps=0 debug.bad_grad_step=3 debug.bad_grad_rank=1 "
             "debug.bad_grad_param=%s %s",
             getenv("DSV3_BUILD"), test_tmpdir(), test_tmpdir(), tensor, mesh);
    snprintf(words, sizeof words, "step 3: the gradient of %s is not finite", tensor);
    expect_end(program, 0, 3, words);
}

static void expect_bad_loss(const char *self, const char *tensor, const char *words)
{
    char program[1024];
    snprintf(program, sizeof program, "%s %s", self, tensor);
    expect_end(program, 2, 4, words);
}

static void expect_bad_save(const char *self)
{
    char program[1024], path[700];
    snprintf(program, sizeof program, "%s save moment", self);
    snprintf(path, sizeof path, "%s/run/checkpoints/step-00000001", test_tmpdir());
    expect_end(program, 0, 2, "exp_avg_sq/");
    EXPECT(access(path, F_OK) != 0, "%s was published", path);
}

int main(int argc, char **argv)
{
    if (argc == 2) return train_with_bad_weight(argv[1]);
    if (argc == 3) return save_bad_moment();
    expect_bad_loss(argv[0], "lm_head.weight", "step 4: the loss of this rank's tokens");
    expect_bad_loss(argv[0], "model.layers.4.eh_proj.weight",
                    "step 4: the loss of MTP depth 1 of this rank's tokens");
    expect_bad_save(argv[0]);
    expect_bad_gradient("model.layers.1.mlp.experts.down_proj.weight", "topology.ep=2");
    expect_bad_gradient("model.layers.4.mlp.gate.weight", "topology.tp=2");
    return test_end();
}
