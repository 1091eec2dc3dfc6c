/*
 * err.h - how the program stops. Fatal faults print one line and end the whole job (die_at);
 * faults that the caller can answer (bad YAML, a missing file) are collected in a struct err_list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of the program (sysexits.h). Scripts and schedulers rely on them. */
enum exit_code {
    CODE_DONE = 0,
    CODE_USAGE = 64,    /* the command line is wrong */
    CODE_DATA = 65,     /* the training data is bad */
    CODE_NO_INPUT = 66, /* the training data is missing or unreadable */
    CODE_INTERNAL = 70, /* a fault in the program, a library, or a number that is not finite */
    CODE_IO = 74,       /* reading or writing failed: disk full, permissions */
    CODE_REQUEUE = 75,  /* saved, run me again */
    CODE_CONFIG = 78    /* the configuration is wrong */
};

/*
 * Print one line to stderr in one write,
 *     fatal [rank 2/4 host] message                     of input, settings, the machine
 *     fatal [rank 2/4 host] file.c:11: CALL: message    CODE_INTERNAL, a fault of the program
 * (within a step with the place of the run behind it, see place.h) and end the job:
 * MPI_Abort(MPI_COMM_WORLD, code) between MPI_Init and MPI_Finalize, _exit(code) otherwise. Never
 * returns, never hangs: whatever has not ended after 10 s, _exit(code) ends. When another rank of
 * the machine has spoken before, this one is silent: the first cause stands alone. call may be
 * NULL.
 */
_Noreturn void die_at(enum exit_code code, const char *file, int line, const char *call,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* For signal handlers: a line like those of die_at, "KIND [rank 2/4 host] message", without place
 * and end. Allocates nothing. */
void err_say(const char *kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Also for signal handlers: end this process at once; mpirun ends the job. */
_Noreturn void err_exit(enum exit_code code);

/* True for the first caller among the ranks of this machine below mpirun, which may then say why
 * the job ends; always true elsewhere. */
bool err_speak_first(void);
bool err_spoken(void); /* somebody has been the first */

/* Stop unless cond holds; the message gives the numbers: found and expected. CHECK is for what the
 * program itself must have made so; whatever input, settings or the machine can make untrue has a
 * code of its own, and a message that needs no source to be understood. */
#define CHECK(cond, ...) CHECK_CODE(CODE_INTERNAL, cond, __VA_ARGS__)
#define CHECK_CODE(code, cond, ...)                                                                \
    do {                                                                                           \
        if (!(cond)) die_at(code, __FILE__, __LINE__, #cond, __VA_ARGS__);                         \
    } while (0)
#define DIE(code, ...) die_at(code, __FILE__, __LINE__, NULL, __VA_ARGS__)

/* Print one line to stderr in one write, "warning [rank 2/4 host] MESSAGE", and go on. */
void warn_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Control characters of a message become '?': names and bytes of files must not break it into lines
 * nor reach the terminal. Every message passes through it. */
void err_printable(char *text);

/* All that was printed to standard output is out: CODE_DONE, or CODE_IO after a line that says why
 * it is not. For the end of commands that print. */
enum exit_code output_end(void);

/* Every MPI call is wrapped in this. Include <mpi.h> where it is used. */
#define MPI_CHECK(call)                                                                            \
    do {                                                                                           \
        const int mpi_err_ = (call);                                                               \
        if (mpi_err_ != 0) die_mpi_at(__FILE__, __LINE__, #call, mpi_err_);                        \
    } while (0)
_Noreturn void die_mpi_at(const char *file, int line, const char *call, int mpi_error);

/* What stopped a function named *_try_*, and the exit code if the program ends on it. */
struct fault {
    enum exit_code code; /* CODE_DONE: nothing */
    char why[1024];
};
/* Fills fault and returns -1. */
int fault_set(struct fault *fault, enum exit_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A list of messages, one error each, for functions named *_try_*. A zeroed struct is empty. The
 * text keeps the first ERR_LIST_MAX; a last line, "... and N more", counts the others. */
enum { ERR_LIST_MAX = 50 };
struct err_list {
    char *text;     /* messages, each ended by a newline; NULL when there is none */
    size_t n_bytes; /* of the messages, without the last line */
    int n;          /* all errors, kept or only counted */
};
void err_add(struct err_list *errs, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void err_free(struct err_list *errs);
/* Each message by warn_line; then the list is freed. */
void warn_list(struct err_list *warnings);
