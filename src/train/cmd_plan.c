/* cmd_plan.c - `dsv3 plan`. The numbers come from plan.h; this file shows them. */
#include "train/commands.h"

#include "base/text.h"
#include "model/count.h"
#include "optim/schedule.h"
#include "train/command_line.h"
#include "train/plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

static const char help[] =
    "usage: dsv3 plan FILE --ranks N [section.key=value ...] [--json]\n"
    "\n"
    "Prints what a run on N ranks takes: bytes of memory of a rank by role, and bytes it sends in "
    "a\n"
    "step. Runs the start-up and one step without allocating or sending, in a moment on any "
    "machine.\n"
    "Starts nothing, needs no MPI.\n"
    "\n"
    "Options:\n"
    "  --ranks N            the number of ranks\n"
    "  section.key=value    set a key, as dsv3 train does\n"
    "  --json               print a JSON object; docs/parallelism.md lists its keys\n"
    "  -h, --help           this page\n"
    "\n"
    "Example:\n"
    "  dsv3 plan configs/runs/moonlight-16b-8gpu.yaml --ranks 8 topology.ep=8\n";

/* When the configuration leaves to MPI what a node is: eight GPUs in a machine are common. */
enum { RANKS_PER_NODE = 8 };

struct job {
    const struct config *cfg;
    struct mesh_shape shape;
    struct mesh mesh; /* of rank 0 */
    int64_t params;   /* of the model, MTP included */
    int n_kinds;
    struct rank_kind *kind;
    /* The plans that the tables show: of the rank that takes the most memory, with either routing,
     * and of the one that sends the most. */
    const struct plan *fullest, *fullest_worst, *busiest;
};

static int64_t bytes_sent(const struct plan *plan)
{
    const struct comm_count sum = comm_counts_sum(&plan->sent);
    return sum.bytes_intra + sum.bytes_inter;
}

static void job_init(struct job *job, const struct config *cfg, int n_ranks)
{
    struct model_counts counts;
    const int asked = cfg->topology.ranks_per_node;
    const int per_node = asked ? asked : RANKS_PER_NODE;
    model_count(&counts, cfg);
    *job = (struct job){.cfg = cfg,
                        .params = counts.params_total + counts.mtp_params,
                        .shape = {.size = n_ranks,
                                  .tp = cfg->topology.tp,
                                  .ep = cfg->topology.ep,
                                  .ranks_per_node = per_node < n_ranks ? per_node : n_ranks}};
    mesh_plan(&job->mesh, &job->shape, 0);
    job->n_kinds = plan_job(&job->kind, cfg, &job->shape);
    job->fullest = job->fullest_worst = job->busiest = &job->kind[0].plan;
    for (int i = 1; i < job->n_kinds; i++) {
        const struct plan *p = &job->kind[i].plan;
        if (memory_total(&p->balanced) > memory_total(&job->fullest->balanced)) job->fullest = p;
        if (memory_total(&p->worst) > memory_total(&job->fullest_worst->worst))
            job->fullest_worst = p;
        if (bytes_sent(p) > bytes_sent(job->busiest)) job->busiest = p;
    }
}

static void job_free(struct job *job)
{
    free(job->kind);
    mesh_free(&job->mesh);
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

/* As metrics.jsonl counts: bytes_intra, bytes_inter of a step. */
static struct comm_count count_of_job(const struct job *job)
{
    struct comm_count sum = {0};
    for (int i = 0; i < job->n_kinds; i++) {
        const struct comm_count rank = comm_counts_sum(&job->kind[i].plan.sent);
        comm_count_add(&sum, &rank, job->kind[i].n_ranks);
    }
    return sum;
}

static void print_traffic(const struct job *job)
{
    const struct comm_count rank = comm_counts_sum(&job->busiest->sent), all = count_of_job(job);
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
    printf("\nranks of %d kinds; the tables above show those that take and send the most\n",
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

static void print_json(const struct job *job)
{
    const struct mesh *m = &job->mesh;
    const struct model_memory *a = &job->fullest->balanced.activations;
    const struct comm_count all = count_of_job(job);
    json_t *mesh =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "dp", m->dp, "tp", m->tp, "ep", m->ep, "edp",
                  m->edp, "nodes", m->n_nodes, "ranks_per_node", job->shape.ranks_per_node);
    json_t *o = json_pack(
        "{s:i, s:o, s:{s:I, s:I}, s:o, s:o, s:{s:I, s:I, s:I}, s:i, s:o, s:o, s:o}", "ranks",
        m->size, "mesh", mesh, "parameters", "total", (json_int_t)job->params, "held",
        (json_int_t)job->busiest->n_params, "per_rank_bytes", bytes_object(&job->fullest->balanced),
        "per_rank_bytes_worst", bytes_object(&job->fullest_worst->worst), "activation_bytes",
        "state", (json_int_t)a->state, "stack", (json_int_t)a->stack, "scratch",
        (json_int_t)a->scratch, "micro_batches_per_step", job->busiest->n_micro,
        "traffic_bytes_per_step", sent_object(job->busiest), "traffic_bytes_per_step_all_ranks",
        count_object(&all), "rank_kinds", kinds_array(job));
    CHECK(o, "Jansson: no memory for the plan");
    json_dumpf(o, stdout, JSON_INDENT(2)); /* failures: output_end */
    printf("\n");
    json_decref(o);
}

static void print_plan(const struct config *cfg, const struct command_line *cl)
{
    struct job job;
    job_init(&job, cfg, cl->n_ranks);
    if (cl->json) {
        print_json(&job);
    } else {
        print_job(&job);
        print_memory(&job);
        print_traffic(&job);
        print_kinds(&job);
    }
    job_free(&job);
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
        print_plan(&cfg, &cl);
        code = output_end();
    }
    config_free(&cfg);
    return code;
}

const struct command cmd_plan = {
    .name = "plan", .help = help, .options = OPTION_JSON | OPTION_RANKS, .run = run_plan};
