/* Gathers and even exchanges bring every row to its place on every axis and count exactly the bytes
 * that leave a rank (t_h05_exchange_counts.c: rows of any number). */
// TEST ranks=1,4 timeout=60
#include "comm_rig.h"

enum { MAX_RANKS = 4, GUARD = 0x5a };

static void check_all_gather(struct comm_rig *rig, enum axis axis, int n, bool in_place)
{
    const struct mesh_axis *a = &rig->mesh.axis[axis];
    static float out[MAX_RANKS * 1000 + 1], separate[1000];
    float *in = in_place ? out + a->rank * n : separate;
    int n_wrong = 0;
    memset(out, GUARD, sizeof out);
    for (int i = 0; i < n; i++) in[i] = comm_rig_value(rig->mesh.rank, i);
    comm_all_gather(&rig->comm, axis, out, in, n, DTYPE_F32);
    for (int i = 0; i < n * a->size; i++)
        n_wrong += out[i] != comm_rig_value(a->world_rank[i / n], i % n);
    EXPECT(n_wrong == 0, "%s, %d each: %d are wrong", axis_name(axis), n, n_wrong);
    EXPECT(*(char *)(out + n * a->size) == GUARD, "%s: written beyond the end", axis_name(axis));
    comm_rig_expect_even(rig, axis, 4 * n, "all_gather");
}

static void check_all_to_all(struct comm_rig *rig, enum axis axis, int n)
{
    const struct mesh_axis *a = &rig->mesh.axis[axis];
    static int64_t in[MAX_RANKS * 100], out[MAX_RANKS * 100];
    int n_wrong = 0;
    for (int i = 0; i < n * a->size; i++) in[i] = rig->mesh.rank * 1000000 + i;
    comm_all_to_all(&rig->comm, axis, out, in, n, DTYPE_I64);
    for (int i = 0; i < n * a->size; i++)
        n_wrong += out[i] != a->world_rank[i / n] * 1000000 + a->rank * n + i % n;
    EXPECT(n_wrong == 0, "%s, %d each: %d are wrong", axis_name(axis), n, n_wrong);
    comm_rig_expect_even(rig, axis, 8 * n, "all_to_all");
}

static void check_mesh(int tp, int ep, int ranks_per_node)
{
    static struct comm_rig rig;
    comm_rig_init(&rig, tp, ep, ranks_per_node);
    for (enum axis axis = 0; axis < N_AXES; axis++) {
        for (int n = 0; n <= 1000; n = n * 10 + 1) {
            check_all_gather(&rig, axis, n, false);
            check_all_gather(&rig, axis, n, true);
        }
        for (int n = 0; n <= 100; n = n * 10 + 1) check_all_to_all(&rig, axis, n);
    }
    comm_rig_free(&rig);
}

int main(int argc, char **argv)
{
    int n_ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    check_mesh(1, 1, 0);
    if (n_ranks == 4) {
        check_mesh(1, 4, 1);
        check_mesh(2, 2, 2);
    }
    return test_end();
}
