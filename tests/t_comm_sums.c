/* Reductions equal a serial sum in axis order bit for bit, in F32 with one rounding, whatever the
 * size and the axis; bytes are counted exactly, within a node and between nodes. */
// TEST ranks=1,4 timeout=60
#include "comm_rig.h"

#include <math.h>

/* None, one, ragged, and more than one piece of staging (2 Mi bytes a rank of four). */
static const int64_t sizes[] = {0, 1, 7, 1000, 3 * 524288 + 5};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* Element i summed serially over the members, number `row` of each one's rows of n. */
static float serial_sum(const struct mesh_axis *a, int64_t n, int row, int64_t i)
{
    float sum = comm_rig_value(a->world_rank[0], row * n + i);
    for (int r = 1; r < a->size; r++) sum += comm_rig_value(a->world_rank[r], row * n + i);
    return sum;
}

static void check_all_reduce(struct comm_rig *rig, enum axis axis, int64_t n)
{
    const struct mesh_axis *a = &rig->mesh.axis[axis];
    float *x = mem_alloc((size_t)(n + 1) * sizeof *x, "numbers");
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < n; i++) x[i] = comm_rig_value(rig->mesh.rank, i);
    x[n] = 42;
    comm_all_reduce(&rig->comm, axis, x, n, DTYPE_F32, REDUCE_SUM);
    for (int64_t i = 0; i < n; i++) n_wrong += x[i] != serial_sum(a, n, 0, i);
    EXPECT(n_wrong == 0 && x[n] == 42, "%s: %lld of %lld sums are wrong, or one too many",
           axis_name(axis), (long long)n_wrong, (long long)n);
    comm_rig_expect_even(rig, axis, n * (int64_t)sizeof *x, "all_reduce");
    mem_free(x);
}

/* in place: into this rank's row of the input, whose other rows must stay as they are. */
static void check_reduce_scatter(struct comm_rig *rig, enum axis axis, int64_t n, bool in_place)
{
    const struct mesh_axis *a = &rig->mesh.axis[axis];
    float *in = mem_alloc((size_t)(n * a->size + 1) * sizeof *in, "rows");
    float *separate = mem_alloc((size_t)(n + 1) * sizeof *in, "row");
    float *out = in_place ? in + a->rank * n : separate;
    int64_t n_wrong = 0, n_touched = 0;
    for (int64_t i = 0; i < n * a->size; i++) in[i] = comm_rig_value(rig->mesh.rank, i);
    comm_reduce_scatter(&rig->comm, axis, out, in, n, DTYPE_F32);
    for (int64_t i = 0; i < n; i++) n_wrong += out[i] != serial_sum(a, n, a->rank, i);
    for (int64_t i = 0; i < n * a->size; i++)
        if (!in_place || i / n != a->rank) n_touched += in[i] != comm_rig_value(rig->mesh.rank, i);
    EXPECT(n_wrong == 0 && n_touched == 0, "%s, %lld numbers: %lld wrong, %lld inputs changed",
           axis_name(axis), (long long)n, (long long)n_wrong, (long long)n_touched);
    comm_rig_expect_even(rig, axis, n * (int64_t)sizeof *in, "reduce_scatter");
    mem_free(separate);
    mem_free(in);
}

/* BF16 inputs are added in F32 and rounded once. */
static void check_bf16(struct comm_rig *rig, enum axis axis)
{
    enum { N = 777 };
    static bf16 in[4 * N], out[N];
    const struct mesh_axis *a = &rig->mesh.axis[axis];
    int n_wrong = 0;
    for (int i = 0; i < a->size * N; i++) in[i] = f32_to_bf16(comm_rig_value(rig->mesh.rank, i));
    comm_reduce_scatter(&rig->comm, axis, out, in, N, DTYPE_BF16);
    for (int i = 0; i < N; i++) {
        float sum = 0;
        for (int r = 0; r < a->size; r++)
            sum += bf16_to_f32(f32_to_bf16(comm_rig_value(a->world_rank[r], a->rank * N + i)));
        n_wrong += out[i] != f32_to_bf16(sum);
    }
    EXPECT(n_wrong == 0, "%s: %d of %d BF16 sums are wrong", axis_name(axis), n_wrong, N);
    comm_rig_expect_even(rig, axis, N * 2, "BF16 reduce_scatter");
}

/* Maxima keep NaN; integers beyond 2^53 are exact; host numbers as in backend memory. */
static void check_others(struct comm_rig *rig, enum axis axis)
{
    const struct mesh_axis *a = &rig->mesh.axis[axis];
    const float low = (float)a->rank, high = a->rank == a->size / 2 ? NAN : 0.0f;
    float most[3] = {low, -low, high};
    comm_all_reduce(&rig->comm, axis, most, 3, DTYPE_F32, REDUCE_MAX);
    EXPECT(most[0] == (float)(a->size - 1) && most[1] == 0 && isnan(most[2]),
           "%s: maxima %g, %g, %g", axis_name(axis), most[0], most[1], most[2]);
    const int64_t big = ((int64_t)1 << 60) + 1;
    int64_t count = big + a->rank;
    comm_all_reduce(&rig->comm, axis, &count, 1, DTYPE_I64, REDUCE_SUM);
    EXPECT(count == big * a->size + a->size * (a->size - 1) / 2, "%s: I64 sum %lld",
           axis_name(axis), (long long)count);
    double wide = 0.1 * (a->rank + 1), want = 0.1;
    for (int r = 1; r < a->size; r++) want += 0.1 * (r + 1);
    comm_all_reduce(&rig->comm, axis, &wide, 1, DTYPE_F64, REDUCE_SUM);
    EXPECT(wide == want, "%s: F64 sum %.17g, expected %.17g", axis_name(axis), wide, want);
    int32_t small[2] = {a->rank + 1, -a->rank};
    comm_all_reduce(&rig->comm, axis, small, 2, DTYPE_I32, REDUCE_SUM);
    EXPECT(small[0] + small[1] == a->size, "%s: I32 sums %d, %d", axis_name(axis), small[0],
           small[1]);
    comm_take_count(&rig->comm);

    double host[3] = {0.1 * (a->rank + 1), high, 1e300};
    comm_all_reduce_host(&rig->comm, axis, host, 3, REDUCE_SUM);
    EXPECT(host[0] == want && isnan(host[1]), "%s: host sums %.17g, %g", axis_name(axis), host[0],
           host[1]);
    comm_rig_expect_even(rig, axis, 24, "host sum");
    double highest = a->rank == a->size / 2 ? NAN : a->rank;
    comm_all_reduce_host(&rig->comm, axis, &highest, 1, REDUCE_MAX);
    EXPECT(isnan(highest), "%s: host maximum %g, a NaN was lost", axis_name(axis), highest);
    comm_take_count(&rig->comm);
}

static void check_mesh(int tp, int ep, int ranks_per_node)
{
    static struct comm_rig rig;
    comm_rig_init(&rig, tp, ep, ranks_per_node);
    for (enum axis axis = 0; axis < N_AXES; axis++) {
        /* The large size on one axis only: making its numbers is what takes the time. */
        const int n_sizes = axis == AXIS_WORLD && tp == 1 ? N_SIZES : N_SIZES - 1;
        for (int i = 0; i < n_sizes; i++) {
            check_all_reduce(&rig, axis, sizes[i]);
            check_reduce_scatter(&rig, axis, sizes[i], false);
            check_reduce_scatter(&rig, axis, sizes[i], true);
        }
        check_bf16(&rig, axis);
        check_others(&rig, axis);
    }
    comm_rig_free(&rig);
}

int main(int argc, char **argv)
{
    int n_ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    check_mesh(1, 1, 0);
    if (n_ranks == 4) check_mesh(2, 2, 2);
    return test_end();
}
