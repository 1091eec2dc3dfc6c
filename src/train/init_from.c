/* init_from.c - see init_from.h; load.c reads the tensors. */
#include "train/init_from.h"

#include "base/err.h"
#include "train/load.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NAMES = 8 }; /* lines of a list; a large model has 90,000 tensors */

static void print_list(FILE *out, const char *prefix, const struct err_list *list)
{
    const char *line = list->text;
    for (int i = 0; i < list->n && i < MAX_NAMES; i++) {
        const int n = (int)strcspn(line, "\n");
        fprintf(out, "init    %s%.*s\n", prefix, n, line);
        line += n + 1;
    }
    if (list->n > MAX_NAMES) fprintf(out, "init    ... and %d more\n", list->n - MAX_NAMES);
}

/* MTP modules are numbered behind the layers: with another number of layers one would get the name
 * of the other. */
static void check_layers(const struct init_from *init, const struct config *cfg)
{
    struct config then;
    struct err_list unknown = {0};
    config_try_read(&then, CKPT_MANIFEST, init->m.config, &unknown);
    err_free(&unknown);
    const struct config_model *a = &then.model, *b = &cfg->model;
    CHECK_CODE(
        CODE_CONFIG,
        a->num_hidden_layers == b->num_hidden_layers ||
            (a->num_nextn_predict_layers == 0 && b->num_nextn_predict_layers == 0),
        "run.init_from: %s has %d layers and MTP depth %d, this model %d and %d: MTP modules "
        "are numbered behind the layers, so that one would be confused with the other "
        "(model.num_hidden_layers, model.num_nextn_predict_layers)",
        init->dir, a->num_hidden_layers, a->num_nextn_predict_layers, b->num_hidden_layers,
        b->num_nextn_predict_layers);
    config_free(&then);
}

/* Rank 0: what is taken, or why the run ends. */
static void check_fit(const struct init_from *init, const struct run *run)
{
    struct err_list differ = {0}, missing = {0}, unused = {0};
    const bool partial = run->cfg->run.init_from_partial;
    check_layers(init, run->cfg);
    config_compare_model(init->m.config, run->cfg, &differ);
    if (differ.n > 0) printf("settings that differ from those of %s:\n%s", init->dir, differ.text);
    const int n = load_match_weights(run, &init->m, &missing, &unused);
    const bool good = n > 0 && (missing.n == 0 || partial);
    if (!good) print_list(stderr, "not loaded: ", &missing);
    CHECK_CODE(CODE_CONFIG, good, "run.init_from: %s has %d of the %d tensors of this model%s",
               init->dir, n, n + missing.n,
               n == 0 ? ""
                      : "; run.init_from_partial: true loads these and starts the others with "
                        "random values");
    printf("init    %d of the %d tensors of this model from %s\n", n, n + missing.n, init->dir);
    print_list(stdout, "random: ", &missing);
    print_list(stdout, "not used: ", &unused);
    fflush(stdout);
    err_free(&differ);
    err_free(&missing);
    err_free(&unused);
}

void init_from_open(struct init_from *init, const struct run *run)
{
    const char *path = run->cfg->run.init_from;
    const bool first = run->mesh.rank == 0;
    struct fault fault = {0}, why = {0};
    *init = (struct init_from){0};
    if (!*path || (run->resumed && !first)) return;
    store_resolve(init->dir, path);
    const bool bad = manifest_try_read(&init->m, init->dir, &fault) != 0;
    if (run->resumed && bad)
        warn_line("run.init_from: %s; ignored, as the run resumes from step %lld", fault.why,
                  (long long)run->progress.step);
    else if (run->resumed)
        printf("init    run.init_from %s is ignored: the run resumes from step %lld\n", path,
               (long long)run->progress.step);
    if (run->resumed) return;
    fault_set(&why, fault.code, "run.init_from: %.900s", fault.why);
    AGREE(MPI_COMM_WORLD, !bad, why.code, why.why);
    if (first) check_fit(init, run);
    init->used = true;
}

void init_from_load(struct init_from *init, struct run *run)
{
    struct fault fault = {0};
    if (!init->used) return;
    const int bad = load_try_weights(run, &init->m, init->dir, &fault);
    AGREE(MPI_COMM_WORLD, !bad, fault.code, fault.why);
}

void init_from_close(struct init_from *init)
{
    manifest_free(&init->m);
}
