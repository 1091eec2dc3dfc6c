/*
 * commands.h - what `dsv3` can be asked for: a row a command. Errors go to standard error.
 */
#pragma once

/* What a command takes beside FILE and overrides. */
enum command_option { OPTION_JSON = 1, OPTION_RANKS = 2, OPTION_VERBOSE = 4, OPTION_MEMORY = 8 };

struct command {
    const char *name;
    const char *help;                  /* all of `dsv3 NAME --help`; its first line is the usage */
    int options;                       /* of enum command_option */
    int (*run)(int argc, char **argv); /* argv begins after the name; returns the exit code */
};

extern const struct command cmd_train;    /* a training run, on the ranks of MPI_COMM_WORLD */
extern const struct command cmd_generate; /* text from a checkpoint, on any ranks */
extern const struct command cmd_report;   /* pictures of runs (src/report) */
extern const struct command cmd_plan;     /* what a run takes; starts nothing, needs no MPI */
extern const struct command cmd_check;    /* what a configuration resolves to; likewise */
