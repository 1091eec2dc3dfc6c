/*
 * main.c - dsv3: pretrains DeepSeek-V3 mixture-of-experts models.
 *
 * A run goes through the directories of src/ in this order: config -> topo -> model (its parameter
 * table) -> data -> train, which steps through data, model, comm and optim. docs/reading.md follows
 * one token; start with train/cmd_train.c.
 */
#include "base/std_files.h"
#include "base/version.h"
#include "train/commands.h"
#include "train/launch.h"

#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {&cmd_train, &cmd_plan, &cmd_check, &cmd_generate,
                                                 &cmd_report};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const char usage[] = "usage: dsv3 train|plan|check FILE ...\n"
                            "       dsv3 generate|report RUN ...\n"
                            "       dsv3 --help | COMMAND --help | --version\n";

static const char help[] =
    "usage: dsv3 COMMAND FILE [section.key=value ...] [options]\n"
    "\n"
    "dsv3 pretrains DeepSeek-V3 mixture-of-experts models on the ranks that mpirun or srun "
    "starts.\n"
    "FILE is a run file in YAML; any of its keys can be set on the command line.\n"
    "\n"
    "Commands:\n"
    "  train         train, or resume from the newest checkpoint\n"
    "  plan          memory and traffic of a run on any number of ranks, before it starts\n"
    "  check         validate a run file; print every resolved value and the size of the model\n"
    "  generate      a checkpoint continues a text\n"
    "  report        pictures of the numbers of runs, one HTML page\n"
    "\n"
    "Options:\n"
    "  -h, --help    this page; dsv3 COMMAND --help: that of a command\n"
    "  --version     the program's commit, libraries and instruction set\n"
    "\n"
    "Examples:\n"
    "  dsv3 check configs/runs/demo.yaml\n"
    "  dsv3 plan configs/runs/demo.yaml --ranks 8\n"
    "  mpirun --bind-to none -np 2 dsv3 train run.yaml\n"
    "\n"
    "Exit codes:\n"
    "  0 done               64 wrong command line    65 bad data         66 missing data\n"
    "  70 internal error    74 I/O error             75 saved, run again 78 wrong configuration\n"
    "\n"
    "All keys: dsv3 check --reference, or configs/README.md.\n";

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (!strcmp(commands[i]->name, name)) return commands[i];
    return NULL;
}

static bool is_help(const char *argument)
{
    return !strcmp(argument, "--help") || !strcmp(argument, "-h");
}

static int print_help(const struct command *command)
{
    fputs(command ? command->help : help, stdout);
    return output_end();
}

int main(int argc, char **argv)
{
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
    if (command == &cmd_train || command == &cmd_generate) launch_bound_spinning(argv);
    std_files_open();
    if (argc < 2) return fputs(usage, stderr), CODE_USAGE;
    if (is_help(argv[1])) return print_help(NULL);
    if (!strcmp(argv[1], "help")) return print_help(argc > 2 ? find_command(argv[2]) : NULL);
    if (!strcmp(argv[1], "--version")) return version_print("dsv3");
    if (!command) {
        fprintf(stderr,
                "dsv3: no command %s; expected train, plan, check, generate or report; see dsv3 "
                "--help\n",
                argv[1]);
        return CODE_USAGE;
    }
    for (int i = 2; i < argc; i++)
        if (is_help(argv[i])) return print_help(command);
    return command->run(argc - 2, argv + 2);
}
