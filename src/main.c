/*
 * main.c - dsv3: pretrains DeepSeek-V3 mixture-of-experts models.
 *
 * A run goes through the directories of src/ in this order: config -> topo -> model (its parameter
 * table) -> data -> train, which steps through data, model, comm and optim. docs/reading.md follows
 * one token; start with train/cmd_train.c.
 */
#include "base/err.h"
#include "train/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifndef DSV3_VERSION
#define DSV3_VERSION "unknown"
#endif

static const char usage[] =
    "usage: dsv3 train FILE [section.key=value ...]             train; start it with mpirun or "
    "srun\n"
    "       dsv3 plan FILE --ranks N [section.key=value ...] [--json]\n"
    "                                                           memory and traffic of a run\n"
    "       dsv3 check FILE [section.key=value ...] [--json] [--ranks N]\n"
    "                                                           every resolved value, and counts\n"
    "       dsv3 check --reference                              the page of all keys\n"
    "       dsv3 --version\n";

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (!strcmp(command, "train")) return cmd_train(argc - 2, argv + 2);
    if (!strcmp(command, "plan")) return cmd_plan(argc - 2, argv + 2);
    if (!strcmp(command, "check")) return cmd_check(argc - 2, argv + 2);
    if (!strcmp(command, "--version")) return printf("dsv3 %s\n", DSV3_VERSION) < 0;
    const bool asked = !strcmp(command, "--help") || !strcmp(command, "help");
    fputs(usage, asked ? stdout : stderr);
    return asked ? CODE_DONE : CODE_USAGE;
}
