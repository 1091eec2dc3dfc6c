/*
 * ckpt.c - dsv3-ckpt: what lies in a directory of checkpoints, whether it is whole, and weights to
 * and from Hugging Face's files. It needs no MPI and no accelerator. Its parts are in tools/ckpt/.
 */
#include "base/std_files.h"
#include "ckpt/commands.h"

#include "base/version.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dsv3-ckpt COMMAND ...\n"
    "       dsv3-ckpt --help | --version\n"
    "\n"
    "  list DIR               the checkpoints of a run: step, tokens, loss, size, valid?\n"
    "  verify DIR|STEPDIR     read everything and compare every checksum\n"
    "  show STEPDIR [PATTERN] state and tensors: dtype, shape, L2 norm; of names that contain\n"
    "                         PATTERN, or that match it when it has one of *?[\n"
    "  diff STEPDIR STEPDIR   state, settings and tensors that differ; exit code 1 if any\n"
    "  prune DIR --keep-last N [--keep-every N] [--dry-run]\n"
    "                         remove all but the newest N, and those of steps that N divides\n"
    "  export STEPDIR OUT     weights as Hugging Face has them: OUT/model-*.safetensors, their\n"
    "                         index and config.json\n"
    "    --dtype bf16|f32     of the weights: bf16; selection biases stay F32\n"
    "    --shard-bytes N      bytes of a file at most, if one tensor is not larger: 5000000000\n"
    "    --tokenizer FILE     a tokenizer.json to put beside them; models of bytes need none\n"
    "    --max-vocab N        only its ids below N, as given to dsv3-tokenize\n"
    "  import HFDIR OUT       weights of Hugging Face (F32, F16, BF16, FP8 with scales of blocks)\n"
    "                         as checkpoint OUT/step-00000000, and its model as OUT/model.yaml\n"
    "    --model YAML         the model, instead of what HFDIR/config.json says\n"
    "  model CONFIG.JSON      the model of a config.json as YAML, without any weights\n"
    "\n"
    "A DIR is a run's directory or the checkpoints in it, a STEPDIR one of its step-NNNNNNNN, or\n"
    "DIR for its newest whole one.\n";

static const struct command {
    const char *name;
    int min_args, max_args;
    int (*run)(const struct options *o);
} commands[] = {
    {"list", 1, 1, cmd_list},     {"verify", 1, 1, cmd_verify}, {"show", 1, 2, cmd_show},
    {"diff", 2, 2, cmd_diff},     {"prune", 1, 1, cmd_prune},   {"export", 2, 2, cmd_export},
    {"import", 2, 2, cmd_import}, {"model", 1, 1, cmd_model},   {NULL, 0, 0, NULL}};

int main(int argc, char **argv)
{
    std_files_open();
    struct options o;
    if (options_parse(&o, argc, argv) != 0) return CODE_USAGE;
    if (o.help) {
        fputs(usage, stdout);
        return output_end();
    }
    if (o.version) return version_print("dsv3-ckpt");
    const struct command *c = commands;
    while (c->name && strcmp(c->name, o.command) != 0) c++;
    if (!c->name) return usage_error("%s is no command", o.command);
    if (o.n_args < c->min_args || o.n_args > c->max_args)
        return usage_error("wrong number of paths for %s", o.command);
    const int code = c->run(&o);
    return code == CODE_DONE ? (int)output_end() : code;
}
