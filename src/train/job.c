/* job.c - see job.h. */
#include "train/job.h"

#include "base/err.h"
#include "model/count.h"

#include <stdlib.h>

/* When the configuration leaves to MPI what a node is: eight GPUs in a machine are common. */
enum { RANKS_PER_NODE = 8 };

static int64_t bytes_sent(const struct plan *plan)
{
    const struct comm_count sum = comm_counts_sum(&plan->sent);
    return sum.bytes_intra + sum.bytes_inter;
}

void job_init(struct job *job, const struct config *cfg, int n_ranks)
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

void job_free(struct job *job)
{
    free(job->kind);
    mesh_free(&job->mesh);
}

struct comm_count job_sent(const struct job *job)
{
    struct comm_count sum = {0};
    for (int i = 0; i < job->n_kinds; i++) {
        const struct comm_count rank = comm_counts_sum(&job->kind[i].plan.sent);
        comm_count_add(&sum, &rank, job->kind[i].n_ranks);
    }
    return sum;
}

enum memory_role job_largest_role(const struct job *job)
{
    const size_t *role = job->fullest->balanced.role;
    int largest = 0;
    for (int i = 1; i < N_ROLES; i++)
        if (role[i] > role[largest]) largest = i;
    return largest;
}

static bool is_allowed(const struct config *cfg, int n_ranks)
{
    struct err_list errs = {0};
    const bool allowed = config_try_check_ranks(cfg, n_ranks, &errs) == 0;
    err_free(&errs);
    return allowed;
}

static struct mesh_option plan_option(const struct config *cfg, int n_ranks)
{
    struct job job;
    job_init(&job, cfg, n_ranks);
    const struct mesh_option o = {.tp = cfg->topology.tp,
                                  .ep = cfg->topology.ep,
                                  .n_micro = job.busiest->n_micro,
                                  .bytes = memory_total(&job.fullest->balanced),
                                  .largest_role = job_largest_role(&job),
                                  .sent = comm_counts_sum(&job.busiest->sent)};
    job_free(&job);
    return o;
}

static int compare_options(const void *a, const void *b)
{
    const struct mesh_option *x = a, *y = b;
    const int64_t far = x->sent.bytes_inter - y->sent.bytes_inter;
    const int64_t near = x->sent.bytes_intra - y->sent.bytes_intra;
    if (far != 0) return far < 0 ? -1 : 1;
    if (near != 0) return near < 0 ? -1 : 1;
    return x->tp != y->tp ? x->tp - y->tp : x->ep - y->ep;
}

int job_find_meshes(struct mesh_option **options, const struct config *cfg, int n_ranks,
                    uint64_t max_bytes)
{
    struct config c = *cfg; /* borrows what cfg owns */
    int n = 0, *tp = &c.topology.tp, *ep = &c.topology.ep;
    *options = NULL;
    for (*tp = 1; *tp <= n_ranks && *tp <= c.model.num_attention_heads; ++*tp)
        for (*ep = 1; *ep <= n_ranks && *ep <= c.model.n_routed_experts; ++*ep) {
            if (n_ranks % *tp || n_ranks % *ep || !is_allowed(&c, n_ranks)) continue;
            const struct mesh_option o = plan_option(&c, n_ranks);
            if (o.bytes > max_bytes) continue;
            *options = realloc(*options, sizeof o * (size_t)(n + 1));
            CHECK(*options, "no memory for %d meshes", n + 1);
            (*options)[n++] = o;
        }
    if (n > 0) qsort(*options, (size_t)n, sizeof **options, compare_options);
    return n;
}
