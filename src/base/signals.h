/*
 * signals.h - what signals do to a rank. SIGUSR1, SIGUSR2, SIGHUP (the terminal has gone), SIGXCPU
 * (a limit of CPU time), SIGPWR, SIGTERM and SIGINT ask the run to stop. SIGTERM is also how mpirun
 * ends a job in which a rank was killed, which it does, told to be quiet, without a word: so the
 * ranks of the same machine look which of them is gone, and one says so. A rank that crashes, or
 * gets another signal that ends processes, says so itself. SIGPIPE and SIGXFSZ are ignored: the
 * write that they are about fails.
 */
#pragma once

enum signals_answer {
    SIGNALS_LEAVE, /* nothing is lost: the process ends with CODE_REQUEUE and one line */
    SIGNALS_NOTE,  /* the first is kept for signals_noted; SIGTERM or SIGINT again: end at once */
    SIGNALS_DIE    /* what signals do to any program */
};

/* Call once, before MPI_Init; the answer to stops is SIGNALS_LEAVE. SIGTERM by mpirun while a rank
 * of this machine is gone: perhaps speak, and wait for the kill that follows within seconds.
 * SIGSEGV and its like: one line with the place, then the default. What was ignored at the start
 * (nohup) stays so. */
void signals_install(void);

void signals_answer(enum signals_answer answer);

/* "SIGUSR1", ... of this process; NULL: none came. */
const char *signals_noted(void);

/* Seconds between mpirun's SIGTERM and its SIGKILL when mpirun itself is asked to end; below 0: it
 * is not the launcher, or scripts/mpirun.sh stands before it and asks the ranks instead. */
double signals_launcher_patience(void);

/* Ranks may end now in any order, and nothing can be stopped any more. */
void signals_rest(void);

/* Around a call of MPI that cannot be polled (MPI_Init, MPI_Comm_split, MPI_Finalize): when it has
 * not ended after so many seconds, one line names it and the ranks of this machine that are
 * stopped, and the process ends with CODE_INTERNAL. call NULL: it has ended. */
void signals_guard(const char *call, double seconds);
