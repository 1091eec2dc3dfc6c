/* err.c - the one place where the program ends early. */
#include "base/err.h"

#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
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

/* A file in mpirun's directory of this job and machine, which mpirun removes; false: there is none.
 */
static bool name_mark(char path[512])
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *dir = getenv("PMIX_SERVER_TMPDIR");
    return rank && dir && snprintf(path, 512, "%s/dsv3-fatal", dir) < 512;
}

bool err_spoken(void)
{
    char path[512];
    return name_mark(path) && access(path, F_OK) == 0;
}

bool err_speak_first(void)
{
    char path[512];
    if (!name_mark(path)) return true;
    const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0 || errno != EEXIST;
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

void err_printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (*c < ' ' || *c == 0x7f) *c = '?';
}

/* In one write. */
static void say(const char *kind, const char *fmt, va_list args)
{
    char line[LINE_BYTES];
    int n = put_speaker(line, kind);
    n += vsnprintf(line + n, (size_t)(LINE_BYTES - n), fmt, args);
    if (n > LINE_BYTES - 2) n = LINE_BYTES - 2; /* n may be what did not fit */
    err_printable(line);
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0) { /* nowhere left to say it */
    }
}

_Noreturn void err_exit(enum exit_code code)
{
    _exit((int)code);
}

void err_say(const char *kind, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(kind, fmt, args);
    va_end(args);
}

_Noreturn void die_at(enum exit_code code, const char *file, int line, const char *call,
                      const char *fmt, ...)
{
    /* Standard output that nobody reads and MPI_Abort have been seen to hang; the alarm ends the
     * process whatever they do. */
    exit_code_at_deadline = (int)code;
    signal(SIGALRM, leave_now);
    alarm(ABORT_DEADLINE_S);
    char why[LINE_BYTES], place[128] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    if (place_in_step() && !strstr(why, "step ")) place_text(place, sizeof place);
    while (!err_speak_first()) pause(); /* the first speaker's abort ends this process */
    fflush(stdout);
    char source[512] = "";
    if (code == CODE_INTERNAL)
        snprintf(source, sizeof source, "%s:%d: %.200s%s", file, line, call ? call : "",
                 call ? ": " : "");
    err_say("fatal", "%s%s%s%s", source, why, *place ? "; " : "", place);
    if (mpi_is_up()) MPI_Abort(MPI_COMM_WORLD, (int)code);
    err_exit(code);
}

void warn_line(const char *fmt, ...)
{
    fflush(stdout);
    va_list args;
    va_start(args, fmt);
    say("warning", fmt, args);
    va_end(args);
}

enum exit_code output_end(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return CODE_DONE;
    err_say("fatal", "writing to standard output: %s", strerror(errno));
    return CODE_IO;
}

_Noreturn void die_mpi_at(const char *file, int line, const char *call, int mpi_error)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(mpi_error, why, &n);
    die_at(CODE_INTERNAL, file, line, call, "%s", why);
}

int fault_set(struct fault *fault, enum exit_code code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault->why, sizeof fault->why, fmt, args);
    va_end(args);
    err_printable(fault->why);
    fault->code = code;
    return -1;
}

/* Bytes allocated for a list of so many: twice as much when it grows. */
static size_t list_room(size_t n_bytes)
{
    size_t room = 1024;
    while (room < n_bytes) room *= 2;
    return room;
}

/* Writes a line of n bytes, its newline included, behind the messages. */
static void put_line(struct err_list *errs, const char *line, size_t n)
{
    const size_t room = list_room(errs->n_bytes + n + 1);
    if (!errs->text || room > list_room(errs->n_bytes + 1)) {
        errs->text = realloc(errs->text, room);
        CHECK(errs->text, "no memory for an error message of %zu bytes", n);
    }
    memcpy(errs->text + errs->n_bytes, line, n);
    errs->text[errs->n_bytes + n] = '\0';
}

void err_add(struct err_list *errs, const char *fmt, ...)
{
    char text[LINE_BYTES];
    if (errs->n++ >= ERR_LIST_MAX) { /* replaces the count that stands there */
        const int n = snprintf(text, sizeof text, "... and %d more\n", errs->n - ERR_LIST_MAX);
        put_line(errs, text, (size_t)n);
        return;
    }
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text - 1, fmt, args);
    va_end(args);
    if (n > (int)sizeof text - 2) n = (int)sizeof text - 2;
    err_printable(text);
    text[n++] = '\n';
    put_line(errs, text, (size_t)n);
    errs->n_bytes += (size_t)n;
}

void err_free(struct err_list *errs)
{
    free(errs->text);
    memset(errs, 0, sizeof *errs);
}

void warn_list(struct err_list *warnings)
{
    for (char *line = warnings->text, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        warn_line("%.*s", (int)(end - line), line);
    }
    err_free(warnings);
}
