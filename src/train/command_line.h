/*
 * command_line.h - the arguments of the commands: FILE [section.key=value ...] and options.
 */
#pragma once

#include "config/config.h"
#include "train/commands.h"

struct command_line {
    const char *file;
    int n_overrides;
    char **overrides; /* a part of argv, compacted */
    bool json;
    int n_ranks;     /* 0: not given */
    uint64_t memory; /* bytes of a rank; 0: not given */
};

/* argv begins after the command's name. False after one line that says what is wrong, or the usage.
 */
bool command_line_parse(struct command_line *cl, const struct command *command, int argc,
                        char **argv);

/* The configuration, checked for the number of ranks if one is given. CODE_CONFIG after every error
 * has been printed; warnings (schedule_warn) change nothing. Free cfg with config_free in any case.
 */
enum exit_code command_line_load(const struct command_line *cl, struct config *cfg);
