/*
 * cmd_check.h - dsv3 check: what a configuration resolves to and how large its model is. Starts
 * nothing, needs no MPI.
 */
#pragma once

/*
 * dsv3 check FILE [section.key=value ...] [--json] [--ranks N]. argv begins after the command's
 * name. Every fault goes to stderr. --ranks also checks what depends on the number of ranks.
 * dsv3 check --reference: the page configs/README.md. Returns the exit code.
 */
int cmd_check(int argc, char **argv);
