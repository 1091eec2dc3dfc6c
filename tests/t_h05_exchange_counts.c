/* Rows of any number between any ranks arrive intact on every axis, whatever the counts: many
 * zeros, all from or to one rank, none at all. Every byte is compared, and the bytes that leave a
 * rank are counted exactly. */
// TEST ranks=1,4 timeout=120
#include "comm_rig.h"

enum { MAX_RANKS = 4, MAX_ROWS = 40, ROW = 12, GUARD = 0x5a, N_MATRICES = 10000 };

/* Rows that member `from` sends to member `to` in matrix number k: a third are none; some matrices
 * are one full row, some one full column, one is empty. */
static int64_t rows_of(int k, int from, int to)
{
    const uint64_t x = rng_u64(5, (uint64_t)(k * 64 + from * 8 + to));
    if (k == 0) return 0;
    if (k % 5 == 1 && from != k % MAX_RANKS) return 0;
    if (k % 5 == 2 && to != k % MAX_RANKS) return 0;
    return x % 3 == 0 ? 0 : (int64_t)(x / 3 % MAX_ROWS);
}

static unsigned char byte_of(int k, int from, int to, int64_t at)
{
    return (unsigned char)(k * 7 + from * 31 + to * 17 + at);
}

/* Fill or check the rows between two members; the number of wrong bytes. */
static int visit(unsigned char *at, int k, int from, int to, bool fill)
{
    int n_wrong = 0;
    for (int64_t i = 0; i < rows_of(k, from, to) * ROW; i++) {
        if (fill)
            at[i] = byte_of(k, from, to, i);
        else
            n_wrong += at[i] != byte_of(k, from, to, i);
    }
    return n_wrong;
}

static void check_rows(struct comm_rig *rig, enum axis axis, int k)
{
    const struct mesh_axis *a = &rig->mesh.axis[axis];
    static unsigned char in[MAX_RANKS * MAX_ROWS * ROW + 1], out[sizeof in];
    int64_t send[MAX_RANKS], recv[MAX_RANKS], intra = 0, inter = 0;
    int n_wrong = 0;
    unsigned char *at = in;
    memset(out, GUARD, sizeof out);
    for (int r = 0; r < a->size; at += send[r++] * ROW) {
        send[r] = rows_of(k, a->rank, r);
        recv[r] = rows_of(k, r, a->rank);
        if (r != a->rank) *(a->same_node[r] ? &intra : &inter) += send[r] * ROW;
        visit(at, k, a->rank, r, true);
    }
    comm_all_to_all_rows(&rig->comm, axis, out, recv, in, send, ROW);
    at = out;
    for (int r = 0; r < a->size; at += recv[r++] * ROW) n_wrong += visit(at, k, r, a->rank, false);
    EXPECT(n_wrong == 0, "%s, matrix %d: %d bytes are wrong", axis_name(axis), k, n_wrong);
    EXPECT(*at == GUARD, "%s, matrix %d: written beyond the end", axis_name(axis), k);
    const struct comm_count got = comm_take_count(&rig->comm);
    EXPECT(got.bytes_intra == intra && got.bytes_inter == inter && got.calls == (a->size > 1),
           "%s, matrix %d: %lld + %lld bytes in %lld calls, expected %lld + %lld", axis_name(axis),
           k, (long long)got.bytes_intra, (long long)got.bytes_inter, (long long)got.calls,
           (long long)intra, (long long)inter);
}

/* checked: also by debug.check_exchange, which must find nothing wrong. */
static void check_mesh(int tp, int ep, int ranks_per_node, bool checked)
{
    static struct comm_rig rig;
    comm_rig_init(&rig, tp, ep, ranks_per_node);
    rig.comm.check_rows = checked;
    const int n = ep > 1 && !checked ? N_MATRICES : N_MATRICES / 100;
    for (int k = 0; k < n; k++) check_rows(&rig, AXIS_EP, k);
    for (enum axis axis = 0; axis < N_AXES; axis++)
        for (int k = 0; k < N_MATRICES / 100; k++) check_rows(&rig, axis, k);
    comm_rig_free(&rig);
}

int main(int argc, char **argv)
{
    int n_ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    check_mesh(1, 1, 0, false);
    if (n_ranks == 4) {
        check_mesh(1, 4, 1, false);
        check_mesh(2, 2, 2, true);
    }
    return test_end();
}
