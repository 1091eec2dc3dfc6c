/* A used directory, a full disk or a file in the way end the run with its code and one line. */
// TEST ranks=1 timeout=20
#include "metrics_rig.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Exit code of metrics_run() in a child; its last line of stderr to said. */
static int child_code(const struct config *cfg, char said[512])
{
    int ends[2];
    said[0] = '\0';
    if (pipe(ends) != 0) return -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        metrics_run(cfg, 0);
        _exit(0);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], said, 511);
    said[n > 0 ? n : 0] = '\0';
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
    EXPECT(child_code(&cfg, said) == CODE_CONFIG, "a used directory is accepted: %s", said);
    EXPECT(strstr(said, "run.overwrite") && strstr(said, dir), "%s", said);
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    EXPECT(stat(path, &st) != 0, "%s was written", path);
    EXPECT(symlink("/dev/full", path) == 0, "no link to /dev/full");
    cfg.run.overwrite = true;
    EXPECT(child_code(&cfg, said) == CODE_IO, "a full disk goes unnoticed: %s", said);
    EXPECT(strstr(said, path) && strstr(said, "No space"), "%s", said);
    cfg.run.dir = path; /* not a directory */
    EXPECT(child_code(&cfg, said) == CODE_IO, "a file as directory: %s", said);
}

int main(void)
{
    check_faults(test_tmpdir());
    return test_end();
}
