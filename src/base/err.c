/* err.c - the one place where the program ends early. */
#include "base/err.h"

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, ABORT_DEADLINE_S = 10 };

static bool mpi_is_up(void)
{
    int up = 0, down = 0;
    return MPI_Initialized(&up) == MPI_SUCCESS && up && MPI_Finalized(&down) == MPI_SUCCESS &&
           !down;
}

static int exit_code_at_deadline;
static void leave_now(int sig)
{
    (void)sig;
    _exit(exit_code_at_deadline);
}

/* MPI_Abort has been seen to hang; an alarm ends the process whatever it does. */
static _Noreturn void leave(enum exit_code code)
{
    exit_code_at_deadline = (int)code;
    signal(SIGALRM, leave_now);
    alarm(ABORT_DEADLINE_S);
    if (mpi_is_up()) MPI_Abort(MPI_COMM_WORLD, (int)code);
    _exit((int)code);
}

/* "fatal [rank 2/4 host] ", or without ranks before MPI is up. */
static int put_speaker(char *line, const char *kind)
{
    if (mpi_is_up()) {
        int rank = -1, size = -1;
        char host[256] = "?";
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        gethostname(host, sizeof host - 1);
        return snprintf(line, LINE_BYTES, "%s [rank %d/%d %s] ", kind, rank, size, host);
    }
    return snprintf(line, LINE_BYTES, "%s ", kind);
}

static int put_place(char *line, const char *file, int at, const char *call)
{
    int n = put_speaker(line, "fatal");
    n += snprintf(line + n, (size_t)(LINE_BYTES - n), "%s:%d: ", file, at);
    if (call && n < LINE_BYTES) n += snprintf(line + n, (size_t)(LINE_BYTES - n), "%.200s: ", call);
    return n < LINE_BYTES ? n : LINE_BYTES - 1;
}

/* n may be what did not fit. In one write, after what this process has said before. */
static void write_line(char *text, int n)
{
    if (n > LINE_BYTES - 2) n = LINE_BYTES - 2;
    text[n++] = '\n';
    fflush(stdout);
    if (write(STDERR_FILENO, text, (size_t)n) < 0) { /* nowhere left to say it */
    }
}

_Noreturn void die_at(enum exit_code code, const char *file, int line, const char *call,
                      const char *fmt, ...)
{
    char text[LINE_BYTES];
    int n = put_place(text, file, line, call);
    va_list args;
    va_start(args, fmt);
    n += vsnprintf(text + n, (size_t)(LINE_BYTES - n), fmt, args);
    va_end(args);
    write_line(text, n);
    leave(code);
}

void warn_line(const char *fmt, ...)
{
    char text[LINE_BYTES];
    int n = put_speaker(text, "warning");
    va_list args;
    va_start(args, fmt);
    n += vsnprintf(text + n, (size_t)(LINE_BYTES - n), fmt, args);
    va_end(args);
    write_line(text, n);
}

_Noreturn void die_mpi_at(const char *file, int line, const char *call, int mpi_error)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(mpi_error, why, &n);
    die_at(CODE_INTERNAL, file, line, call, "%s", why);
}

void err_add(struct err_list *errs, const char *fmt, ...)
{
    char text[LINE_BYTES];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text - 1, fmt, args);
    va_end(args);
    if (n > (int)sizeof text - 2) n = (int)sizeof text - 2;
    text[n++] = '\n';
    char *grown = realloc(errs->text, errs->n_bytes + (size_t)n + 1);
    CHECK(grown, "no memory for an error message of %d bytes", n);
    memcpy(grown + errs->n_bytes, text, (size_t)n);
    errs->n_bytes += (size_t)n;
    grown[errs->n_bytes] = '\0';
    errs->text = grown;
    errs->n++;
}

void err_free(struct err_list *errs)
{
    free(errs->text);
    memset(errs, 0, sizeof *errs);
}
