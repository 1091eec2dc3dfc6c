/*
 * job.h - a test that starts itself again under mpirun, to see how a job of several ranks ends.
 */
#pragma once

#include "base/clock.h"
#include "test.h"

#include <string.h>
#include <sys/wait.h>

struct job {
    int code; /* exit code of mpirun */
    double seconds;
    char said[4096]; /* on both outputs */
};

/* Run `program mode` on n ranks. */
static inline struct job job_run(const char *program, int n, const char *mode)
{
    struct job job = {.code = -1};
    char command[2048];
    const double start = clock_s();
    snprintf(command, sizeof command, "mpirun -np %d %s %s </dev/null 2>&1", n, program, mode);
    FILE *pipe = popen(command, "r");
    if (!pipe) return job;
    job.said[fread(job.said, 1, sizeof job.said - 1, pipe)] = '\0';
    const int status = pclose(pipe);
    job.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    job.seconds = clock_s() - start;
    return job;
}

/* The job ended with the code, and one line that has the words. */
static inline void job_expect(const struct job *job, int code, const char *words)
{
    EXPECT(job->code == code, "exit code %d, expected %d: %s", job->code, code, job->said);
    EXPECT(strstr(job->said, words), "'%s' is not in: %s", words, job->said);
    const char *end = strchr(job->said, '\n');
    EXPECT(end && end[1] == '\0', "not one line: %s", job->said);
}
