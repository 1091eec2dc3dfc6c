/*
 * summary.c - rank 0's lines around the steps: before them what the run is going to do (model,
 * mesh, memory, data, steps, decay), after them the memory it has taken beside the plan.
 */
#include "base/mem.h"
#include "base/text.h"
#include "base/version.h"
#include "topo/cross_memory.h"
#include "topo/device.h"
#include "train/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

static void print_model(const struct run *run)
{
    const struct config_model *c = &run->cfg->model;
    printf("model   %lld parameters, %lld active a token; %d layer%s (%d dense), width %d, "
           "%d experts top-%d + %d shared, MTP depth %d\n",
           (long long)(run->counts.params_total + run->counts.mtp_params),
           (long long)run->counts.params_active, c->num_hidden_layers, text_s(c->num_hidden_layers),
           c->first_k_dense_replace, c->hidden_size, c->n_routed_experts, c->num_experts_per_tok,
           c->n_shared_experts, c->num_nextn_predict_layers);
}

static void print_threads(const struct run *run)
{
    const char *by;
    const int asked = mesh_threads_asked(run->cfg, &by), sharers = run->mesh.core_sharers;
    if (asked > run->threads)
        printf("warning %s %d lowered to %d: %d rank%s on %d core%s\n", by, asked, run->threads,
               sharers, text_s(sharers), mesh_cores(), text_s(mesh_cores()));
}

/* Nobody who has asked for a GPU shall learn from the bill that it was idle. */
static void print_idle_gpus(const struct run *run)
{
    const char *named = getenv("CUDA_VISIBLE_DEVICES");
    const int n = named && device_n_visible() == 0 ? 0 : device_n_present("");
    if (run->cfg->run.backend == RUN_BACKEND_AUTO && n > 0)
        printf("note    %d NVIDIA GPU%s here, not used: this version trains on CPUs only\n", n,
               text_s(n));
}

static void print_mesh(const struct run *run)
{
    const struct mesh *m = &run->mesh;
    printf("mesh    %d rank%s x %d thread%s on %d node%s: dp %d x tp %d, experts edp %d x ep %d, "
           "backend %s, %s\n",
           m->size, text_s(m->size), run->threads, text_s(run->threads), m->n_nodes,
           text_s(m->n_nodes), m->dp, m->tp, m->edp, m->ep, run->be->name,
           dtype_name(run->cfg->train.compute_dtype));
    if (run->peak_flops > 0)
        printf("peak    %.1f GFLOP/s (%s)\n", run->peak_flops * 1e-9, run->peak_source);
    else
        printf("peak    unknown: utilisation not reported\n");
    print_threads(run);
    print_idle_gpus(run);
    if (m->core_sharers > mesh_cores())
        printf("warning %d ranks share %d core%s; mpirun -np %d would be faster\n", m->core_sharers,
               mesh_cores(), text_s(mesh_cores()), m->size * mesh_cores() / m->core_sharers);
    const int used = m->machine_ranks * mesh_cores() / m->core_sharers;
    if (used < mesh_machine_cores())
        printf("warning the ranks may use %d of this machine's %d cores: mpirun has bound them; "
               "--bind-to none lifts that\n",
               used, mesh_machine_cores());
}

static void print_memory(const struct run *run)
{
    const struct memory *balanced = &run->plan.balanced, *worst = &run->plan.worst;
    printf("memory  %.1f MiB a rank:", mib(memory_total(balanced)));
    for (int i = 0; i < N_ROLES; i++) {
        printf("%s %s %.1f", i ? "," : "", memory_role_name(i), mib(balanced->role[i]));
        if (worst->role[i] > balanced->role[i])
            printf(" (up to %.1f if all tokens choose one rank)", mib(worst->role[i]));
    }
    char name[MEMORY_BOUND_NAME];
    const struct memory_fit *fit = &run->memory_fit;
    memory_bound_name(&fit->bound, name, "");
    printf("\nmemory  %.1f MiB for %d rank%s, of the %.1f MiB of %s\n", mib(fit->bytes), fit->n,
           text_s(fit->n), mib(fit->bound.bytes), name);
}

/* How often the run goes through the source, what it has read before included. */
static double epochs_in_all(const struct run *run, int source)
{
    const struct dataset *ds = run->train_data;
    return (double)dataset_taken(ds, source, run_end_samples(run)) /
           (double)dataset_source_info(ds, source).n_samples;
}

/* One source has its epochs in the first line, several a line each. */
static void print_data(const struct run *run)
{
    const struct dataset *t = run->train_data, *h = run->heldout_data;
    const int n = dataset_sources(t);
    printf("data    %lld tokens, %lld documents, %lld sequences of %d an epoch",
           (long long)dataset_tokens(t), (long long)dataset_documents(t),
           (long long)dataset_samples(t), run->cfg->data.sequence_length);
    if (n == 1) printf(", %.3g epochs in all", epochs_in_all(run, 0));
    if (h) printf("; held out %lld tokens", (long long)dataset_tokens(h));
    printf("\n");
    for (int s = 0; s < n && n > 1; s++) {
        const struct source_info source = dataset_source_info(t, s);
        printf("        %s: weight %.4g, %lld sequences, %.3g epochs in all\n", source.path,
               source.share, (long long)source.n_samples, epochs_in_all(run, s));
    }
}

static void print_steps(const struct run *run)
{
    const struct config *c = run->cfg;
    const struct progress start = {0};
    const int batch = schedule_global_batch(c, &start), dp = run->mesh.dp;
    printf("steps   %lld of %d sequence%s = micro-batch %d x %d accumulated x dp %d, %lld tokens\n",
           (long long)c->train.steps, batch, text_s(batch), c->train.micro_batch,
           schedule_micro_batches(c, batch, dp), dp, (long long)batch * c->data.sequence_length);
}

/* The name without "model.layers.N.". */
static const char *kind_of(const struct param *p)
{
    const char *kind = p->name;
    for (int dots = 0; p->layer >= 0 && dots < 3; dots++) kind = strchr(kind, '.') + 1;
    return kind;
}

/* Whether row i is the first of its kind, of those that do not decay. */
static bool is_news(const struct param_table *t, int i)
{
    if (t->param[i].decay) return false;
    for (int j = 0; j < i; j++)
        if (!t->param[j].decay && !strcmp(kind_of(&t->param[j]), kind_of(&t->param[i])))
            return false;
    return true;
}

/* All tensors decay but those named; selection biases are no tensors of the optimizer. */
static void print_decay(const struct run *run)
{
    const struct param_table *t = &run->params;
    const char *before = ", all but ";
    int n_decayed = 0;
    for (int i = 0; i < t->n_params; i++) n_decayed += t->param[i].decay;
    printf("decay   %g on %d of %d tensor%s", run->cfg->optimizer.weight_decay, n_decayed,
           t->n_params, text_s(t->n_params));
    for (int i = 0; i < t->n_params; i++) {
        if (!is_news(t, i)) continue;
        const char *kind = kind_of(&t->param[i]);
        printf("%s%.*s", before, (int)(strlen(kind) - strlen(".weight")), kind);
        before = ", ";
    }
    printf("\n");
}

void run_print_summary(const struct run *run)
{
    if (run->mesh.rank != 0) return;
    print_model(run);
    printf("with    %s\n", version_libraries());
    if (cross_memory_forbidden())
        printf("        ranks may not read each other's memory (a container without ptrace?): "
               "messages within a machine are copied twice\n");
    print_mesh(run);
    mesh_print_nodes(&run->mesh, stdout, run->cfg->run.verbose);
    print_memory(run);
    print_data(run);
    print_steps(run);
    print_decay(run);
    fflush(stdout);
}

/* Ranks differ by the rows that their experts have got: the most of any rank is told. */
void run_print_memory(struct run *run)
{
    const struct memory used = run_memory(run);
    double most[3 * N_ROLES];
    for (int i = 0; i < N_ROLES; i++) {
        most[3 * i] = (double)used.role[i];
        most[3 * i + 1] = (double)run->plan.balanced.role[i];
        most[3 * i + 2] = (double)run->plan.worst.role[i];
    }
    double resident = (double)mem_peak();
    comm_all_reduce_host(&run->comm, AXIS_WORLD, most, 3 * N_ROLES, REDUCE_MAX);
    comm_all_reduce_host(&run->comm, AXIS_WORLD, &resident, 1, REDUCE_SUM);
    if (run->mesh.rank != 0) return;
    printf("memory  bytes used of planned:");
    for (int i = 0; i < N_ROLES; i++) {
        const double *m = most + 3 * i;
        printf("%s %s %.0f of %.0f", i ? "," : "", memory_role_name(i), m[0], m[1]);
        if (m[2] > m[1]) printf(" (up to %.0f)", m[2]);
    }
    printf("\nmemory  %.0f MiB peak resident, all ranks together\n", resident / (1 << 20));
    fflush(stdout);
}
