/*
 * comm_mpi.c - the MPI transport of comm.h. Sums are made here, not by MPI: every member receives
 * the others' pieces and adds them in axis order, so the bits do not depend on the library's choice
 * of algorithm. Large reductions go through staging in pieces of bounded size.
 */
#include "comm/comm.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "comm/reduce.h"
#include "topo/wait.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { HOST_MAX = 64 }; /* numbers in one host reduction */
/* A reduction goes through staging in pieces: this much over all members, but not less than a
 * message worth sending each. */
enum { STAGING_BYTES = 8 << 20, LEAST_PIECE_BYTES = 16 << 10 };

void comm_init(struct comm *comm, const struct mesh *mesh, const struct backend *be,
               struct stream *stream, struct arena *staging)
{
    *comm = (struct comm){.mesh = mesh, .be = be, .stream = stream, .staging = staging};
    if (be) comm->host_all = mem_alloc((size_t)mesh->size * HOST_MAX * sizeof(double), "host sums");
}

void comm_free(struct comm *comm)
{
    mem_free(comm->host_all);
    comm->host_all = NULL;
}

const char *comm_kind_name(enum comm_kind kind)
{
    static const char *const names[N_COMM_KINDS] = {"all_reduce",     "all_reduce_host",
                                                    "reduce_scatter", "all_gather",
                                                    "all_to_all",     "all_to_all_rows"};
    return names[kind];
}

/* Around every collective, also in a plan pass: what is not moved is counted all the same. */
static double begin(struct comm *comm)
{
    if (!comm->be) return 0;
    comm->be->stream_sync(comm->stream); /* the data must be there */
    return clock_s();
}

static void end(struct comm *comm, enum comm_kind kind, enum axis axis, double start)
{
    struct comm_count *count = &comm->counts.of[kind][axis];
    count->calls++;
    if (comm->be) count->seconds += clock_s() - start;
}

static void count_sent(struct comm *comm, enum comm_kind kind, enum axis axis, int to, size_t bytes)
{
    struct comm_count *count = &comm->counts.of[kind][axis];
    const bool near = comm->mesh->axis[axis].same_node[to];
    *(near ? &count->bytes_intra : &count->bytes_inter) += (int64_t)bytes;
}

/* end() of a collective that sends the same number of bytes to every other member. */
static void end_even(struct comm *comm, enum comm_kind kind, enum axis axis, double start,
                     size_t bytes_each)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    for (int r = 0; r < a->size; r++)
        if (r != a->rank) count_sent(comm, kind, axis, r, bytes_each);
    end(comm, kind, axis, start);
}

static void wait_for(const struct mesh_axis *a, enum comm_kind kind, int n, MPI_Request *requests)
{
    wait_all(a->axis, comm_kind_name(kind), n, requests);
}

static int as_int(int64_t n)
{
    CHECK(n >= 0 && n <= INT_MAX, "message of %lld elements, MPI counts to %d", (long long)n,
          INT_MAX);
    return (int)n;
}

/* Elements of each member in one piece of a reduction of n. */
static int64_t piece_of(const struct mesh_axis *a, int64_t n, enum dtype dt)
{
    const int64_t share = STAGING_BYTES / a->size;
    const int64_t bytes = share > LEAST_PIECE_BYTES ? share : LEAST_PIECE_BYTES;
    const int64_t piece = bytes / (int64_t)dtype_bytes(dt);
    return n < piece ? n : piece;
}

/* all [size, piece] and row [size] are staging. */
static void reduce_pieces(const struct mesh_axis *a, char *buf, char *all, const void **row,
                          int64_t n, int64_t piece, enum dtype dt, enum reduce_op op)
{
    const int64_t width = (int64_t)dtype_bytes(dt);
    for (int64_t at = 0; at < n; at += piece) {
        const int64_t m = n - at < piece ? n - at : piece;
        char *here = buf + at * width;
        const int bytes = as_int(m * width);
        MPI_Request request;
        MPI_CHECK(MPI_Iallgather(here, bytes, MPI_BYTE, all, bytes, MPI_BYTE, a->comm, &request));
        wait_for(a, COMM_ALL_REDUCE, 1, &request);
        for (int r = 0; r < a->size; r++) row[r] = all + (int64_t)r * bytes;
        reduce_rows(here, row, a->size, m, dt, op);
    }
}

void comm_all_reduce(struct comm *comm, enum axis axis, void *buf, int64_t n, enum dtype dt,
                     enum reduce_op op)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    if (a->size == 1 || n == 0) return;
    const size_t width = dtype_bytes(dt), mark = arena_mark(comm->staging);
    const int64_t piece = piece_of(a, n, dt);
    char *all = arena_push(comm->staging, (size_t)piece * width * (size_t)a->size);
    const void **row = arena_push(comm->staging, sizeof *row * (size_t)a->size);
    const double start = begin(comm);
    if (comm->be) reduce_pieces(a, buf, all, row, n, piece, dt, op);
    end_even(comm, COMM_ALL_REDUCE, axis, start, (size_t)n * width);
    arena_pop(comm->staging, mark);
}

/* x [n] and all [size, n]: every member's numbers. */
static void reduce_numbers(const struct mesh_axis *a, double *x, double *all, int n,
                           enum reduce_op op)
{
    MPI_Request request;
    MPI_CHECK(MPI_Iallgather(x, n, MPI_DOUBLE, all, n, MPI_DOUBLE, a->comm, &request));
    wait_for(a, COMM_ALL_REDUCE_HOST, 1, &request);
    for (int i = 0; i < n; i++) {
        x[i] = all[i];
        for (int r = 1; r < a->size; r++) {
            const double y = all[(int64_t)r * n + i];
            if (op == REDUCE_SUM)
                x[i] += y;
            else if (y > x[i] || y != y)
                x[i] = y;
        }
    }
}

void comm_all_reduce_host(struct comm *comm, enum axis axis, double *x, int n, enum reduce_op op)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    if (a->size == 1) return;
    CHECK(n <= HOST_MAX, "%d host numbers in one reduction, at most %d", n, HOST_MAX);
    const double start = clock_s();
    if (comm->be) reduce_numbers(a, x, comm->host_all, n, op);
    end_even(comm, COMM_ALL_REDUCE_HOST, axis, start, (size_t)n * sizeof *x);
}

/* Exchange the pieces [at, at + n) of every row: row[r] becomes what member r has for this one. */
static void swap_pieces(const struct mesh_axis *a, const void **row, char *recv, const void *in,
                        int64_t row_n, int64_t at, int64_t n, enum dtype dt, MPI_Request *requests)
{
    const int bytes = as_int(n * (int64_t)dtype_bytes(dt));
    int n_requests = 0;
    row[a->rank] = elem(in, dt, a->rank * row_n + at);
    for (int i = 1; i < a->size; i++) {
        const int from = (a->rank + i) % a->size;
        char *slot = recv + (int64_t)from * bytes;
        MPI_CHECK(MPI_Irecv(slot, bytes, MPI_BYTE, from, 0, a->comm, &requests[n_requests++]));
        row[from] = slot;
    }
    for (int i = 1; i < a->size; i++) {
        const int to = (a->rank + a->size - i) % a->size;
        const void *piece = elem(in, dt, to * row_n + at);
        MPI_CHECK(MPI_Isend(piece, bytes, MPI_BYTE, to, 0, a->comm, &requests[n_requests++]));
    }
    wait_for(a, COMM_REDUCE_SCATTER, n_requests, requests);
}

uint64_t comm_sum_hash(struct comm *comm, uint64_t mine)
{
    /* sums of halves are exact in F64 */
    double halves[2] = {(double)(mine >> 32), (double)(mine & 0xffffffffu)};
    comm_all_reduce_host(comm, AXIS_WORLD, halves, 2, REDUCE_SUM);
    return ((uint64_t)halves[0] << 32) + (uint64_t)halves[1];
}

int comm_lowest_rank(struct comm *comm, bool mine)
{
    const int size = comm->mesh->size;
    double negated = -(double)(mine ? comm->mesh->rank : size); /* minimum = - maximum of these */
    comm_all_reduce_host(comm, AXIS_WORLD, &negated, 1, REDUCE_MAX);
    return (int)-negated;
}

void comm_reduce_scatter(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                         enum dtype dt)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    const size_t width = dtype_bytes(dt), size = (size_t)a->size;
    if (a->size == 1) {
        if (out != in && comm->be) comm->be->copy(comm->stream, out, in, (size_t)n * width);
        return;
    }
    const int64_t piece = piece_of(a, n, dt);
    const size_t mark = arena_mark(comm->staging);
    char *recv = arena_push(comm->staging, (size_t)piece * width * size);
    const void **row = arena_push(comm->staging, sizeof *row * size);
    MPI_Request *requests = arena_push(comm->staging, sizeof *requests * 2 * size);
    const double start = begin(comm);
    for (int64_t at = 0; comm->be && at < n; at += piece) {
        const int64_t m = n - at < piece ? n - at : piece;
        swap_pieces(a, row, recv, in, n, at, m, dt, requests);
        reduce_rows(elem(out, dt, at), row, a->size, m, dt, REDUCE_SUM);
    }
    end_even(comm, COMM_REDUCE_SCATTER, axis, start, (size_t)n * width);
    arena_pop(comm->staging, mark);
}

/* One call while the counts fit in an int, in whole elements of 8 bytes otherwise. */
static void gather_rows(const struct mesh_axis *a, void *out, const void *in, const void *mine,
                        size_t bytes)
{
    const bool wide = bytes > INT_MAX && bytes % 8 == 0;
    const MPI_Datatype unit = wide ? MPI_INT64_T : MPI_BYTE;
    const int count = as_int((int64_t)(wide ? bytes / 8 : bytes));
    MPI_Request request;
    MPI_CHECK(MPI_Iallgather(in == mine ? MPI_IN_PLACE : in, count, unit, out, count, unit, a->comm,
                             &request));
    wait_for(a, COMM_ALL_GATHER, 1, &request);
}

void comm_all_gather(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                     enum dtype dt)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    const size_t bytes = (size_t)n * dtype_bytes(dt);
    if (a->size == 1) {
        if (out != in && comm->be) comm->be->copy(comm->stream, out, in, bytes);
        return;
    }
    const double start = begin(comm);
    if (comm->be) gather_rows(a, out, in, elem(out, dt, (int64_t)a->rank * n), bytes);
    end_even(comm, COMM_ALL_GATHER, axis, start, bytes);
}

/* in [size, bytes] -> out [size, bytes] */
static void swap_even(const struct mesh_axis *a, void *out, const void *in, size_t bytes)
{
    const int count = as_int((int64_t)bytes);
    MPI_Request request;
    MPI_CHECK(MPI_Ialltoall(in, count, MPI_BYTE, out, count, MPI_BYTE, a->comm, &request));
    wait_for(a, COMM_ALL_TO_ALL, 1, &request);
}

void comm_all_to_all(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                     enum dtype dt)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    const size_t bytes = (size_t)n * dtype_bytes(dt);
    if (a->size == 1) {
        if (comm->be) comm->be->copy(comm->stream, out, in, bytes);
        return;
    }
    const double start = begin(comm);
    if (comm->be) swap_even(a, out, in, bytes);
    end_even(comm, COMM_ALL_TO_ALL, axis, start, bytes);
}

static void swap_rows(const struct mesh_axis *a, char *out, const int64_t *recv_rows,
                      const char *in, const int64_t *send_rows, size_t row_bytes,
                      MPI_Request *requests)
{
    MPI_Datatype row;
    MPI_CHECK(MPI_Type_contiguous(as_int((int64_t)row_bytes), MPI_BYTE, &row));
    MPI_CHECK(MPI_Type_commit(&row));
    int n = 0;
    char *own = out;
    for (int r = 0; r < a->size; out += (size_t)recv_rows[r] * row_bytes, r++) {
        if (r == a->rank)
            own = out;
        else if (recv_rows[r])
            MPI_CHECK(MPI_Irecv(out, as_int(recv_rows[r]), row, r, 0, a->comm, &requests[n++]));
    }
    for (int r = 0; r < a->size; in += (size_t)send_rows[r] * row_bytes, r++) {
        if (r == a->rank)
            memcpy(own, in, (size_t)send_rows[r] * row_bytes);
        else if (send_rows[r])
            MPI_CHECK(MPI_Isend(in, as_int(send_rows[r]), row, r, 0, a->comm, &requests[n++]));
    }
    wait_for(a, COMM_ALL_TO_ALL_ROWS, n, requests);
    MPI_CHECK(MPI_Type_free(&row));
}

/* A receive that does not fit the send hangs, or takes the rows of another call. told [size] is
 * staging. Collective over world. */
static void check_counts(const struct comm *comm, const struct mesh_axis *a, int64_t *told,
                         const int64_t *recv_rows, const int64_t *send_rows)
{
    char why[160] = "";
    int r = 0;
    swap_even(a, told, send_rows, sizeof *told);
    while (r < a->size && told[r] == recv_rows[r]) r++;
    if (r < a->size)
        snprintf(why, sizeof why, "rank %d sends %lld rows to rank %d over %s, which expects %lld",
                 a->world_rank[r], (long long)told[r], comm->mesh->rank, axis_name(a->axis),
                 (long long)recv_rows[r]);
    AGREE(MPI_COMM_WORLD, r == a->size, CODE_INTERNAL, why);
}

void comm_all_to_all_rows(struct comm *comm, enum axis axis, void *out, const int64_t *recv_rows,
                          const void *in, const int64_t *send_rows, size_t row_bytes)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    if (a->size == 1) {
        if (comm->be) comm->be->copy(comm->stream, out, in, (size_t)send_rows[0] * row_bytes);
        return;
    }
    const size_t mark = arena_mark(comm->staging);
    MPI_Request *requests = arena_push(comm->staging, sizeof(MPI_Request) * 2 * (size_t)a->size);
    int64_t *told = arena_push(comm->staging, sizeof *told * (size_t)a->size);
    const double start = begin(comm);
    if (comm->be && comm->check_rows) check_counts(comm, a, told, recv_rows, send_rows);
    if (comm->be) swap_rows(a, out, recv_rows, in, send_rows, row_bytes, requests);
    for (int r = 0; r < a->size; r++)
        if (r != a->rank)
            count_sent(comm, COMM_ALL_TO_ALL_ROWS, axis, r, (size_t)send_rows[r] * row_bytes);
    end(comm, COMM_ALL_TO_ALL_ROWS, axis, start);
    arena_pop(comm->staging, mark);
}

void comm_count_add(struct comm_count *sum, const struct comm_count *c, int64_t times)
{
    sum->calls += times * c->calls;
    sum->bytes_intra += times * c->bytes_intra;
    sum->bytes_inter += times * c->bytes_inter;
    sum->seconds += (double)times * c->seconds;
}

struct comm_count comm_counts_sum(const struct comm_counts *counts)
{
    struct comm_count sum = {0};
    for (int k = 0; k < N_COMM_KINDS; k++)
        for (int a = 0; a < N_AXES; a++) comm_count_add(&sum, &counts->of[k][a], 1);
    return sum;
}

struct comm_count comm_take_count(struct comm *comm)
{
    const struct comm_count sum = comm_counts_sum(&comm->counts);
    comm->counts = (struct comm_counts){0};
    return sum;
}
