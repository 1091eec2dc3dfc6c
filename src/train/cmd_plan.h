/*
 * cmd_plan.h - dsv3 plan: memory and traffic of a run, without starting it. Needs no MPI, no data
 * and little memory.
 */
#pragma once

/*
 * dsv3 plan FILE --ranks N [section.key=value ...] [--json]. argv begins after the command's name.
 * Every fault goes to stderr. Returns the exit code.
 */
int cmd_plan(int argc, char **argv);
