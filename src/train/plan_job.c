/*
 * plan_job.c - the plans of all ranks of a job. Ranks hold equally much, but they may have more or
 * fewer members of an axis on their node, or exchange other rows with them; ranks that are equal in
 * this have the same plan, which is made once.
 */
#include "base/err.h"
#include "train/plan.h"

#include <stdlib.h>
#include <string.h>

/* All that a plan depends on beyond the configuration and the job's shape. */
struct signature {
    int64_t n_near[N_AXES];             /* members on the rank's own node */
    int64_t sent[2], received[2], kept; /* rows of a balanced exchange, of members [far, near] */
};

struct kind_list {
    const struct config *cfg;
    const struct mesh_shape *shape;
    int n;
    struct rank_kind *kind;
    struct signature *signature;
};

static struct signature sign(const struct config *cfg, const struct mesh *mesh)
{
    struct signature s = {0};
    for (int i = 0; i < N_AXES; i++)
        for (int r = 0; r < mesh->axis[i].size; r++) s.n_near[i] += mesh->axis[i].same_node[r];
    const struct mesh_axis *ep = &mesh->axis[AXIS_EP];
    int64_t *rows = malloc(2 * sizeof *rows * (size_t)ep->size);
    CHECK(rows, "no memory for the rows of %d ranks", ep->size);
    balanced_rows(cfg, mesh, rows, rows + ep->size);
    for (int r = 0; r < ep->size; r++) {
        if (r == ep->rank) {
            s.kept = rows[r];
        } else {
            s.sent[ep->same_node[r]] += rows[r];
            s.received[ep->same_node[r]] += rows[ep->size + r];
        }
    }
    free(rows);
    return s;
}

static void grow(struct kind_list *list)
{
    const size_t n = (size_t)++list->n;
    list->kind = realloc(list->kind, n * sizeof *list->kind);
    list->signature = realloc(list->signature, n * sizeof *list->signature);
    CHECK(list->kind && list->signature, "no memory for %zu kinds of rank", n);
}

/* n ranks, of which `rank` is the lowest. */
static void add_ranks(struct kind_list *list, int rank, int n)
{
    struct mesh mesh;
    mesh_plan(&mesh, list->shape, rank);
    const struct signature s = sign(list->cfg, &mesh);
    int i = 0;
    while (i < list->n && memcmp(&list->signature[i], &s, sizeof s) != 0) i++;
    if (i == list->n) {
        grow(list);
        list->signature[i] = s;
        list->kind[i] = (struct rank_kind){.first = rank};
        plan_rank(&list->kind[i].plan, list->cfg, &mesh);
    }
    list->kind[i].n_ranks += n;
    mesh_free(&mesh);
}

static int64_t least_common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y != 0) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* On full nodes the ranks repeat: this far on one sits at the same place of its node and groups. */
int plan_job(struct rank_kind **kinds, const struct config *cfg, const struct mesh_shape *shape)
{
    struct kind_list list = {.cfg = cfg, .shape = shape};
    const int per_node = shape->ranks_per_node, on_full = shape->size / per_node * per_node;
    const int64_t period =
        least_common_multiple(least_common_multiple(shape->tp, shape->ep), per_node);
    for (int r = 0; r < on_full && r < period; r++)
        add_ranks(&list, r, (int)((on_full - r + period - 1) / period));
    for (int r = on_full; r < shape->size; r++) add_ranks(&list, r, 1);
    free(list.signature);
    *kinds = list.kind;
    return list.n;
}
