/*
 * launch.h - between the launcher and the run: MPI is started and ended here, and a launcher that
 * MPI does not know is found out. docs/batch.md has command lines that work.
 */
#pragma once

#include <stdbool.h>

/* Makes threads that wait for one another sleep soon: OpenMP's runtime reads how long they spin
 * when it is loaded, so the program starts itself again, in the same process, unless the
 * environment says something of it already. argv: main's own. Returns where that was so or was not
 * possible. */
void launch_bound_spinning(char **argv);

/* MPI_Init for one thread a rank that calls MPI. Where it fails Open MPI ends the process; then a
 * line says what to look at. */
void launch_begin(void);
void launch_end(void);

/* A scheduler that started several tasks without giving them an MPI world would have every task
 * train alone over the same files: false, and a line. size: of MPI_COMM_WORLD. */
bool launch_is_one_world(int size);
