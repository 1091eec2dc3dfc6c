/* A used directory, a full disk or a file in the way end the run with its code and one line. */
// TEST ranks=1 timeout=20
#include "metrics_rig.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void plain_run(const struct config *cfg)
{
    metrics_run(cfg, 0);
}

/* Exit code of a run in a child; the first of its stderr to said. */
static int child_code(const struct config *cfg, void (*run)(const struct config *cfg),
                      char said[512])
{
    int ends[2];
    said[0] = '\0';
    if (pipe(ends) != 0) return -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        run(cfg);
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t more; n < 511 && (more = read(ends[0], said + n, 511 - n)) > 0;) n += (size_t)more;
    said[n] = '\0';
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_faults(const char *tmp)
{
    char dir[600], path[700], said[512];
    struct stat st;
    snprintf(dir, sizeof dir, "%s/used", tmp);
    snprintf(path, sizeof path, "%s/notes.txt", dir);
    mkdir(dir, 0777);
    close(open(path, O_CREAT | O_WRONLY, 0666));
    struct config cfg = metrics_config(dir);
    EXPECT(child_code(&cfg, plain_run, said) == CODE_CONFIG, "a used directory is accepted: %s",
           said);
    EXPECT(strstr(said, "run.overwrite") && strstr(said, dir), "%s", said);
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    EXPECT(stat(path, &st) != 0, "%s was written", path);
    EXPECT(symlink("/dev/full", path) == 0, "no link to /dev/full");
    cfg.run.overwrite = true;
    EXPECT(child_code(&cfg, plain_run, said) == CODE_IO, "a full disk goes unnoticed: %s", said);
    EXPECT(strstr(said, path) && strstr(said, "No space"), "%s", said);
    cfg.run.dir = path; /* not a directory */
    EXPECT(child_code(&cfg, plain_run, said) == CODE_IO, "a file as directory: %s", said);
}

/* A disk that takes half of the second line, and has room again after the third. */
static void fill_disk(const struct config *cfg)
{
    const struct mesh m = metrics_mesh(0);
    struct rlimit limit = {.rlim_max = RLIM_INFINITY};
    struct stat st;
    char path[700];
    metrics_begin(cfg, 0);
    struct metrics *mx = metrics_open(cfg, &m, &metrics_identity);
    snprintf(path, sizeof path, "%s/metrics.jsonl", cfg->run.dir);
    if (stat(path, &st) != 0) _exit(1);
    signal(SIGXFSZ, SIG_IGN);
    limit.rlim_cur = (rlim_t)st.st_size + 100;
    setrlimit(RLIMIT_FSIZE, &limit);
    metrics_step(mx, &metrics_report);
    metrics_param_hash(mx, 1, 0.5);
    metrics_step(mx, &metrics_report);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    metrics_step(mx, &metrics_report);
    metrics_close(mx);
}

/* Lines of the file, all of which have to be whole. */
static int whole_lines(const char *dir)
{
    char path[700], line[4096];
    int n = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    FILE *in = fopen(path, "r");
    for (; in && fgets(line, sizeof line, in); n++)
        EXPECT(line[0] == '{' && strstr(line, "}\n"), "half a line: %s", line);
    if (in) fclose(in);
    return n;
}

static void check_full_disk(const char *tmp)
{
    char dir[600], said[512];
    snprintf(dir, sizeof dir, "%s/full", tmp);
    struct config cfg = metrics_config(dir);
    EXPECT(child_code(&cfg, fill_disk, said) == CODE_IO, "it went on: %s", said);
    EXPECT(strstr(said, "full/metrics.jsonl: File too large"), "%s", said);
    EXPECT(whole_lines(dir) == 1, "stop: %d lines", whole_lines(dir));
    snprintf(dir, sizeof dir, "%s/goes-on", tmp);
    cfg.checkpoint.on_error = ON_ERROR_WARN;
    EXPECT(child_code(&cfg, fill_disk, said) == 0, "it did not go on: %s", said);
    EXPECT(whole_lines(dir) == 3, "warn: %d lines", whole_lines(dir)); /* the hash has room */
    EXPECT(strstr(said, "File too large; lines") && strstr(said, "lacks 2 lines"), "%s", said);
    EXPECT(strstr(said, "File too") == strrchr(said, 'F'), "told twice: %s", said);
}

int main(void)
{
    check_faults(test_tmpdir());
    check_full_disk(test_tmpdir());
    return test_end();
}
