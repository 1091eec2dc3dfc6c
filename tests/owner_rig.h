/* owner_rig.h - for the tests of src/train/owner.c: processes that claim a directory. */
#pragma once

#include "test.h"
#include "train/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char path[PATH_BYTES]; /* of the file */

static inline void pause_ms(double ms)
{
    nanosleep(&(struct timespec){(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000}, NULL);
}

static inline const char *new_dir(const char *name)
{
    static char dir[PATH_BYTES];
    path_print(dir, "%s/%s", test_tmpdir(), name);
    path_print(path, "%s/owner", dir);
    mkdir(dir, 0777);
    return dir;
}

/* A process that claims dir, and when it has it keeps it for ever; said: what it reports, '+' or
 * '-'. Signals come when the test has ended. */
static inline pid_t spawn(const char *dir, double patience_s, int *said)
{
    int ends[2];
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        struct fault fault = {0};
        close(ends[0]);
        const struct owner *o = owner_try_claim(dir, patience_s, &fault);
        if (write(ends[1], o ? "+" : "-", 1) != 1) _exit(1);
        if (!o) _exit(strstr(fault.why, dir) && fault.code == CODE_CONFIG ? 0 : 1);
        alarm(50);
        for (;;) pause();
    }
    close(ends[1]);
    *said = ends[0];
    return child;
}

/* Whether it has dir, or has refused to; '!' when it was killed before. */
static inline char word_of(int said)
{
    char word = '!';
    if (read(said, &word, 1) < 0) word = '!';
    close(said);
    return word;
}

static inline int end(pid_t child, int signal)
{
    int status;
    if (signal) kill(child, signal);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
