/* cmd_plan.c - `dsv3 plan`. The numbers come from job.h; this file shows them. */
#include "train/commands.h"

#include "base/cgroup.h"
#include "base/err.h"
#include "base/text.h"
#include "optim/schedule.h"
#include "train/command_line.h"
#include "train/job.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "usage: dsv3 plan FILE --ranks N [--memory SIZE] [section.key=value ...] [--json]\n"
    "\n"
    "Prints what a run on N ranks needs: bytes of memory of a rank by role, and bytes it sends in "
    "a\n"
    "step. Runs the start-up and one step without allocating or sending, in a moment on any "
    "machine.\n"
    "Starts nothing, needs no MPI.\n"
    "\n"
    "Options:\n"
    "  --ranks N            the number of ranks\n"
    "  --memory SIZE        memory of a rank, as 80GiB, 141GB or 80e9: says whether the run fits "
    "(the\n"
    "                       exit code is 78 when it does not) and lists the meshes that do; "
    "without\n"
    "                       it the run is compared with this machine\n"
    "  section.key=value    set a key, as dsv3 train does\n"
    "  --json               print a JSON object; docs/parallelism.md lists its keys\n"
    "  -h, --help           this page\n"
    "\n"
    "Example:\n"
    "  dsv3 plan configs/runs/moonlight-16b-8gpu.yaml --ranks 8 --memory 80GB\n";

/* What the fullest rank is compared with. */
struct verdict {
    uint64_t have; /* bytes of a rank */
    bool fits;
    bool asked; /* --memory; otherwise a rank's share of this machine */
    char of[MEMORY_BOUND_NAME + 64];
    int n_meshes; /* that fit, when asked */
    struct mesh_option *mesh;
};

static void verdict_init(struct verdict *v, const struct job *job, uint64_t memory)
{
    *v = (struct verdict){.have = memory, .asked = memory > 0, .of = "--memory"};
    if (v->asked) {
        v->n_meshes = job_find_meshes(&v->mesh, job->cfg, job->shape.size, memory);
    } else {
        char name[MEMORY_BOUND_NAME];
        struct memory_claim all;
        struct memory_fit fit;
        const int n = job->shape.ranks_per_node;
        memory_claim_init(&all, 1, "");
        memory_fit_find(&fit, &all, 1, 0);
        memory_bound_name(&fit.bound, name, "");
        v->have = fit.bound.bytes / (uint64_t)n;
        snprintf(v->of, sizeof v->of, "%d rank%s of a node share %s", n, text_s(n), name);
    }
    v->fits = memory_total(&job->fullest->balanced) <= v->have;
}

/* --- for people --- */

static void print_job(const struct job *job)
{
    char text[TEXT_NUMBER], held[TEXT_NUMBER], tokens[TEXT_NUMBER];
    const struct mesh *m = &job->mesh;
    const struct config *c = job->cfg;
    const int batch = schedule_largest_batch(c);
    printf("mesh    %d rank%s on %d node%s of %d%s: dp %d x tp %d, experts edp %d x ep %d\n",
           m->size, text_s(m->size), m->n_nodes, text_s(m->n_nodes), job->shape.ranks_per_node,
           c->topology.ranks_per_node ? "" : " (assumed: topology.ranks_per_node is not set)",
           m->dp, m->tp, m->edp, m->ep);
    printf("model   %s parameters with MTP modules, %s of them on a rank\n",
           text_grouped(text, job->params), text_grouped(held, job->busiest->n_params));
    printf("step    %d sequence%s = micro-batch %d x %d accumulated x dp %d, %s tokens%s\n\n",
           batch, text_s(batch), c->train.micro_batch, job->busiest->n_micro, m->dp,
           text_grouped(tokens, (int64_t)batch * c->data.sequence_length),
           c->train.global_batch_stages.n ? " (the largest of the ramp)" : "");
}

static void print_bytes(const char *name, size_t balanced, size_t worst)
{
    char text[2][TEXT_NUMBER];
    printf("  %-22s %20s %20s\n", name, text_grouped(text[0], (int64_t)balanced),
           text_grouped(text[1], (int64_t)worst));
}

static void print_memory(const struct job *job)
{
    const struct memory *balanced = &job->fullest->balanced, *worst = &job->fullest_worst->worst;
    const double gib = 1 << 30;
    printf("bytes of a rank          balanced routing  all tokens to one rank\n");
    for (int i = 0; i < N_ROLES; i++)
        print_bytes(memory_role_name(i), balanced->role[i], worst->role[i]);
    print_bytes("total", memory_total(balanced), memory_total(worst));
    printf("  %-22s %20.2f %20.2f\n\n", "in GiB", (double)memory_total(balanced) / gib,
           (double)memory_total(worst) / gib);
}

static void print_count(const char *kind, const char *axis, const struct comm_count *c)
{
    char text[2][TEXT_NUMBER];
    printf("  %-16s %-5s %20s %20s\n", kind, axis, text_grouped(text[0], c->bytes_intra),
           text_grouped(text[1], c->bytes_inter));
}

static void print_traffic(const struct job *job)
{
    const struct comm_count rank = comm_counts_sum(&job->busiest->sent), all = job_sent(job);
    printf("bytes sent in a step      within the node       to other nodes\n");
    for (int k = 0; k < N_COMM_KINDS; k++)
        for (int a = 0; a < N_AXES; a++)
            if (job->busiest->sent.of[k][a].calls)
                print_count(comm_kind_name(k), axis_name(a), &job->busiest->sent.of[k][a]);
    print_count("total", "", &rank);
    print_count("all ranks", "", &all);
}

static void print_kinds(const struct job *job)
{
    if (job->n_kinds == 1) return;
    printf("\nranks of %d kinds; the tables above show those that use and send the most\n",
           job->n_kinds);
    printf("  ranks   first  bytes balanced    to one rank   within the node     to other nodes\n");
    for (int i = 0; i < job->n_kinds; i++) {
        const struct rank_kind *kind = &job->kind[i];
        const struct comm_count sent = comm_counts_sum(&kind->plan.sent);
        printf("  %5d  %6d  %14zu %14zu %17" PRId64 "  %17" PRId64 "\n", kind->n_ranks, kind->first,
               memory_total(&kind->plan.balanced), memory_total(&kind->plan.worst),
               sent.bytes_intra, sent.bytes_inter);
    }
}

/* --- JSON --- */

static void print_meshes(const struct job *job, const struct verdict *v)
{
    enum { SHOWN = 12 };
    const double gb = 1e9;
    if (v->n_meshes == 0) {
        printf("no mesh of %d rank%s fits; try a smaller train.micro_batch, "
               "data.sequence_length or\ntrain.loss_chunk_tokens, bf16 as train.compute_dtype and "
               "optimizer.moments_dtype, or more ranks\n",
               job->shape.size, text_s(job->shape.size));
        return;
    }
    printf("\nmeshes that fit, least traffic between nodes first (%d of %d)\n",
           v->n_meshes < SHOWN ? v->n_meshes : SHOWN, v->n_meshes);
    printf(
        "     tp     ep     dp    edp  GiB a rank  largest role  GB a rank sends: in the node  to "
        "others\n");
    for (int i = 0; i < v->n_meshes && i < SHOWN; i++) {
        const struct mesh_option *m = &v->mesh[i];
        printf("  %5d  %5d  %5d  %5d  %10.2f  %-12s  %28.2f  %9.2f\n", m->tp, m->ep,
               job->shape.size / m->tp, job->shape.size / m->ep, (double)m->bytes / (1 << 30),
               memory_role_name(m->largest_role), (double)m->sent.bytes_intra / gb,
               (double)m->sent.bytes_inter / gb);
    }
}

static void print_verdict(const struct job *job, const struct verdict *v)
{
    const double gib = 1 << 30;
    const size_t need = memory_total(&job->fullest->balanced);
    const size_t worst = memory_total(&job->fullest_worst->worst);
    const enum memory_role role = job_largest_role(job);
    printf("\n%s: %.2f of %.2f GiB a rank (%s), largest role %s %.2f GiB",
           v->fits ? "fits" : "does not fit", (double)need / gib, (double)v->have / gib, v->of,
           memory_role_name(role), (double)job->fullest->balanced.role[role] / gib);
    if (v->fits && worst > v->have)
        printf("; %.2f GiB if all tokens choose one rank", (double)worst / gib);
    printf("\n");
    if (v->asked) print_meshes(job, v);
}

static json_t *bytes_object(const struct memory *memory)
{
    json_t *o = json_object();
    for (int i = 0; i < N_ROLES; i++)
        json_object_set_new(o, memory_role_name(i), json_integer((json_int_t)memory->role[i]));
    json_object_set_new(o, "total", json_integer((json_int_t)memory_total(memory)));
    return o;
}

static json_t *count_object(const struct comm_count *c)
{
    return json_pack("{s:I, s:I}", "intra", (json_int_t)c->bytes_intra, "inter",
                     (json_int_t)c->bytes_inter);
}

/* Per kind of collective the sum over axes, and each axis that it runs on. */
static json_t *sent_object(const struct plan *plan)
{
    json_t *o = json_object();
    for (int k = 0; k < N_COMM_KINDS; k++) {
        struct comm_count sum = {0};
        json_t *axes = json_object();
        for (int a = 0; a < N_AXES; a++) {
            const struct comm_count *c = &plan->sent.of[k][a];
            comm_count_add(&sum, c, 1);
            if (c->calls) json_object_set_new(axes, axis_name(a), count_object(c));
        }
        json_t *kind = count_object(&sum);
        json_object_set_new(kind, "axes", axes);
        json_object_set_new(o, comm_kind_name(k), kind);
    }
    const struct comm_count total = comm_counts_sum(&plan->sent);
    json_object_set_new(o, "total", count_object(&total));
    return o;
}

static json_t *kinds_array(const struct job *job)
{
    json_t *kinds = json_array();
    for (int i = 0; i < job->n_kinds; i++) {
        const struct rank_kind *kind = &job->kind[i];
        json_array_append_new(
            kinds, json_pack("{s:i, s:i, s:o, s:o, s:o}", "ranks", kind->n_ranks, "first_rank",
                             kind->first, "per_rank_bytes", bytes_object(&kind->plan.balanced),
                             "per_rank_bytes_worst", bytes_object(&kind->plan.worst),
                             "traffic_bytes_per_step", sent_object(&kind->plan)));
    }
    return kinds;
}

static json_t *verdict_object(const struct job *job, const struct verdict *v)
{
    json_t *o = json_pack("{s:b, s:I, s:I, s:s, s:s}", "fits", v->fits, "per_rank_bytes",
                          (json_int_t)memory_total(&job->fullest->balanced), "memory_bytes",
                          (json_int_t)v->have, "memory_of", v->of, "largest_role",
                          memory_role_name(job_largest_role(job)));
    json_t *meshes = json_array();
    for (int i = 0; i < v->n_meshes; i++) {
        const struct mesh_option *m = &v->mesh[i];
        json_array_append_new(meshes,
                              json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:s, s:o}", "dp",
                                        job->shape.size / m->tp, "tp", m->tp, "ep", m->ep, "edp",
                                        job->shape.size / m->ep, "micro_batches_per_step",
                                        m->n_micro, "per_rank_bytes", (json_int_t)m->bytes,
                                        "largest_role", memory_role_name(m->largest_role),
                                        "traffic_bytes_per_step", count_object(&m->sent)));
    }
    if (v->asked)
        json_object_set_new(o, "meshes", meshes);
    else
        json_decref(meshes);
    return o;
}

static void print_json(const struct job *job, const struct verdict *v)
{
    const struct mesh *m = &job->mesh;
    const struct model_memory *a = &job->fullest->balanced.activations;
    const struct comm_count all = job_sent(job);
    json_t *mesh =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "dp", m->dp, "tp", m->tp, "ep", m->ep, "edp",
                  m->edp, "nodes", m->n_nodes, "ranks_per_node", job->shape.ranks_per_node);
    json_t *o = json_pack(
        "{s:i, s:o, s:{s:I, s:I}, s:o, s:o, s:{s:I, s:I, s:I}, s:i, s:o, s:o, s:o, s:o}", "ranks",
        m->size, "mesh", mesh, "parameters", "total", (json_int_t)job->params, "held",
        (json_int_t)job->busiest->n_params, "per_rank_bytes", bytes_object(&job->fullest->balanced),
        "per_rank_bytes_worst", bytes_object(&job->fullest_worst->worst), "activation_bytes",
        "state", (json_int_t)a->state, "stack", (json_int_t)a->stack, "scratch",
        (json_int_t)a->scratch, "micro_batches_per_step", job->busiest->n_micro,
        "traffic_bytes_per_step", sent_object(job->busiest), "traffic_bytes_per_step_all_ranks",
        count_object(&all), "rank_kinds", kinds_array(job), "verdict", verdict_object(job, v));
    CHECK(o, "Jansson: no memory for the plan");
    json_dumpf(o, stdout, JSON_INDENT(2)); /* failures: output_end */
    printf("\n");
    json_decref(o);
}

/* The run fits, or nobody has asked. */
static bool print_plan(const struct config *cfg, const struct command_line *cl)
{
    struct job job;
    struct verdict v;
    job_init(&job, cfg, cl->n_ranks);
    verdict_init(&v, &job, cl->memory);
    if (cl->json) {
        print_json(&job, &v);
    } else {
        print_job(&job);
        print_memory(&job);
        print_traffic(&job);
        print_kinds(&job);
        print_verdict(&job, &v);
    }
    const bool good = v.fits || !v.asked;
    free(v.mesh);
    job_free(&job);
    return good;
}

static int run_plan(int argc, char **argv)
{
    struct command_line cl;
    if (!command_line_parse(&cl, &cmd_plan, argc, argv)) return CODE_USAGE;
    if (!cl.n_ranks) {
        fprintf(stderr, "dsv3 plan: --ranks is missing; see dsv3 plan --help\n");
        return CODE_USAGE;
    }
    struct config cfg;
    int code = command_line_load(&cl, &cfg);
    if (code == CODE_DONE) {
        const bool good = print_plan(&cfg, &cl);
        code = output_end();
        if (code == CODE_DONE && !good) code = CODE_CONFIG;
    }
    config_free(&cfg);
    return code;
}

const struct command cmd_plan = {.name = "plan",
                                 .help = help,
                                 .options = OPTION_JSON | OPTION_RANKS | OPTION_MEMORY,
                                 .run = run_plan};
