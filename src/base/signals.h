/*
 * signals.h - the last words of a rank that is ended from outside. mpirun --quiet ends a job in
 * which a rank was killed without a word; so the ranks of the same machine, which it asks to end
 * first, look which of them is gone and one says so. A rank that crashes says so itself.
 */
#pragma once

/* Call once, before MPI_Init. The signals by which mpirun ends a job: look, perhaps speak, and wait
 * for the kill that follows within seconds; not below mpirun they keep their default. SIGSEGV and
 * its like: one line with the place, then the default. */
void signals_install(void);

/* Ranks may end now in any order: the signals of mpirun have their default again. */
void signals_rest(void);

/* Around a call of MPI that cannot be polled (MPI_Init, MPI_Comm_split, MPI_Finalize): when it has
 * not ended after so many seconds, one line names it and the ranks of this machine that are
 * stopped, and the process ends with CODE_INTERNAL. call NULL: it has ended. */
void signals_guard(const char *call, double seconds);
