/*
 * commands.h - what `dsv3` can be asked for, a function a command. argv begins after the command's
 * name. Faults go to stderr. Returns the exit code of the program.
 */
#pragma once

/* dsv3 train FILE [section.key=value ...]: a training run, on the ranks of MPI_COMM_WORLD. */
int cmd_train(int argc, char **argv);

/*
 * dsv3 plan FILE --ranks N [section.key=value ...] [--json]: what a run takes: bytes of memory of a
 * rank by role, and bytes it sends in a step. Starts nothing, needs no MPI.
 */
int cmd_plan(int argc, char **argv);

/*
 * dsv3 check FILE [section.key=value ...] [--json] [--ranks N]: what a configuration resolves to
 * and how large its model is. --ranks also checks what depends on the number of ranks.
 * dsv3 check --reference: the page configs/README.md. Starts nothing, needs no MPI.
 */
int cmd_check(int argc, char **argv);
