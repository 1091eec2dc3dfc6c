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

#include <limits.h>
#include <string.h>

enum { HOST_MAX = 64 }; /* numbers in one host reduction */
/* A reduction goes through staging in pieces: this much over all members, but not less than a
 * message worth sending each. */
enum { STAGING_BYTES = 8 << 20, LEAST_PIECE_BYTES = 16 << 10 };

void comm_init(struct comm *comm, const struct mesh *mesh, const struct backend *be,
               struct stream *stream, struct arena *staging, bool counting)
{
    *comm = (struct comm){
        .mesh = mesh, .be = be, .stream = stream, .staging = staging, .counting = counting};
    if (!counting)
        comm->host_all = mem_alloc((size_t)mesh->size * HOST_MAX * sizeof(double), "host sums");
}

void comm_free(struct comm *comm)
{
    mem_free(comm->host_all);
    comm->host_all = NULL;
}

/* Around every collective: wait for the stream's data, time, count bytes sent to each member. */
static double begin(struct comm *comm)
{
    comm->be->stream_sync(comm->stream);
    return clock_s();
}

static void end(struct comm *comm, enum axis axis, double start)
{
    comm->count[axis].calls++;
    comm->count[axis].seconds += clock_s() - start;
}

static void count_even(struct comm *comm, enum axis axis, size_t bytes_each)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    for (int r = 0; r < a->size; r++) {
        if (r == a->rank) continue;
        *(a->same_node[r] ? &comm->count[axis].bytes_intra : &comm->count[axis].bytes_inter) +=
            (int64_t)bytes_each;
    }
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

void comm_all_reduce(struct comm *comm, enum axis axis, void *buf, int64_t n, enum dtype dt,
                     enum reduce_op op)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    if (a->size == 1 || n == 0) return;
    const size_t width = dtype_bytes(dt);
    const size_t mark = arena_mark(comm->staging);
    const int64_t piece = piece_of(a, n, dt);
    char *all = arena_push(comm->staging, (size_t)piece * width * (size_t)a->size);
    const void **row = arena_push(comm->staging, sizeof *row * (size_t)a->size);
    if (!comm->counting) {
        const double start = begin(comm);
        for (int64_t at = 0; at < n; at += piece) {
            const int64_t m = n - at < piece ? n - at : piece;
            char *here = (char *)buf + at * (int64_t)width;
            const int bytes = as_int(m * (int64_t)width);
            MPI_CHECK(MPI_Allgather(here, bytes, MPI_BYTE, all, bytes, MPI_BYTE, a->comm));
            for (int r = 0; r < a->size; r++) row[r] = all + (int64_t)r * bytes;
            reduce_rows(here, row, a->size, m, dt, op);
        }
        count_even(comm, axis, (size_t)n * width);
        end(comm, axis, start);
    }
    arena_pop(comm->staging, mark);
}

void comm_all_reduce_host(struct comm *comm, enum axis axis, double *x, int n, enum reduce_op op)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    if (a->size == 1 || comm->counting) return;
    CHECK(n <= HOST_MAX, "%d host numbers in one reduction, at most %d", n, HOST_MAX);
    const double start = clock_s();
    MPI_CHECK(MPI_Allgather(x, n, MPI_DOUBLE, comm->host_all, n, MPI_DOUBLE, a->comm));
    for (int i = 0; i < n; i++) {
        x[i] = comm->host_all[i];
        for (int r = 1; r < a->size; r++) {
            const double y = comm->host_all[(int64_t)r * n + i];
            if (op == REDUCE_SUM)
                x[i] += y;
            else if (y > x[i] || y != y)
                x[i] = y;
        }
    }
    count_even(comm, axis, (size_t)n * sizeof *x);
    end(comm, axis, start);
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
    MPI_CHECK(MPI_Waitall(n_requests, requests, MPI_STATUSES_IGNORE));
}

void comm_reduce_scatter(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                         enum dtype dt)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    const size_t width = dtype_bytes(dt), size = (size_t)a->size;
    if (a->size == 1) {
        if (out != in && !comm->counting) comm->be->copy(comm->stream, out, in, (size_t)n * width);
        return;
    }
    const int64_t piece = piece_of(a, n, dt);
    const size_t mark = arena_mark(comm->staging);
    char *recv = arena_push(comm->staging, (size_t)piece * width * size);
    const void **row = arena_push(comm->staging, sizeof *row * size);
    MPI_Request *requests = arena_push(comm->staging, sizeof *requests * 2 * size);
    if (!comm->counting) {
        const double start = begin(comm);
        for (int64_t at = 0; at < n; at += piece) {
            const int64_t m = n - at < piece ? n - at : piece;
            swap_pieces(a, row, recv, in, n, at, m, dt, requests);
            reduce_rows(elem(out, dt, at), row, a->size, m, dt, REDUCE_SUM);
        }
        count_even(comm, axis, (size_t)n * width);
        end(comm, axis, start);
    }
    arena_pop(comm->staging, mark);
}

void comm_all_gather(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                     enum dtype dt)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    if (comm->counting) return;
    const size_t bytes = (size_t)n * dtype_bytes(dt);
    if (a->size == 1) {
        if (out != in) comm->be->copy(comm->stream, out, in, bytes);
        return;
    }
    const double start = begin(comm);
    const char *mine = elem(out, dt, (int64_t)a->rank * n);
    /* One call while the counts fit in an int, in whole elements of 8 bytes otherwise. */
    const bool wide = bytes > INT_MAX && bytes % 8 == 0;
    const int count = as_int((int64_t)(wide ? bytes / 8 : bytes));
    MPI_CHECK(MPI_Allgather(in == mine ? MPI_IN_PLACE : in, count, wide ? MPI_INT64_T : MPI_BYTE,
                            out, count, wide ? MPI_INT64_T : MPI_BYTE, a->comm));
    count_even(comm, axis, bytes);
    end(comm, axis, start);
}

void comm_all_to_all(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                     enum dtype dt)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    if (comm->counting) return;
    const size_t bytes = (size_t)n * dtype_bytes(dt);
    if (a->size == 1) {
        comm->be->copy(comm->stream, out, in, bytes);
        return;
    }
    const double start = begin(comm);
    MPI_CHECK(MPI_Alltoall(in, as_int((int64_t)bytes), MPI_BYTE, out, as_int((int64_t)bytes),
                           MPI_BYTE, a->comm));
    count_even(comm, axis, bytes);
    end(comm, axis, start);
}

void comm_all_to_all_rows(struct comm *comm, enum axis axis, void *out, const int64_t *recv_rows,
                          const void *in, const int64_t *send_rows, size_t row_bytes)
{
    const struct mesh_axis *a = &comm->mesh->axis[axis];
    if (a->size == 1) {
        if (!comm->counting)
            comm->be->copy(comm->stream, out, in, (size_t)send_rows[0] * row_bytes);
        return;
    }
    const size_t mark = arena_mark(comm->staging);
    MPI_Request *requests = arena_push(comm->staging, sizeof(MPI_Request) * 2 * (size_t)a->size);
    if (comm->counting) {
        arena_pop(comm->staging, mark);
        return;
    }
    const double start = begin(comm);
    MPI_Datatype row;
    MPI_CHECK(MPI_Type_contiguous(as_int((int64_t)row_bytes), MPI_BYTE, &row));
    MPI_CHECK(MPI_Type_commit(&row));
    int n = 0;
    char *to = out;
    const char *from = in;
    for (int r = 0; r < a->size; to += (size_t)recv_rows[r] * row_bytes, r++)
        if (recv_rows[r] && r != a->rank)
            MPI_CHECK(MPI_Irecv(to, as_int(recv_rows[r]), row, r, 0, a->comm, &requests[n++]));
    to = out;
    for (int r = 0; r < a->rank; r++) to += (size_t)recv_rows[r] * row_bytes;
    for (int r = 0; r < a->size; from += (size_t)send_rows[r] * row_bytes, r++) {
        const size_t bytes = (size_t)send_rows[r] * row_bytes;
        if (r == a->rank) {
            memcpy(to, from, bytes);
        } else if (bytes) {
            MPI_CHECK(MPI_Isend(from, as_int(send_rows[r]), row, r, 0, a->comm, &requests[n++]));
            *(a->same_node[r] ? &comm->count[axis].bytes_intra : &comm->count[axis].bytes_inter) +=
                (int64_t)bytes;
        }
    }
    MPI_CHECK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    MPI_CHECK(MPI_Type_free(&row));
    arena_pop(comm->staging, mark);
    end(comm, axis, start);
}

double comm_seconds(const struct comm *comm)
{
    double sum = 0;
    for (int a = 0; a < N_AXES; a++) sum += comm->count[a].seconds;
    return sum;
}

struct comm_count comm_take_count(struct comm *comm)
{
    struct comm_count sum = {0};
    for (int a = 0; a < N_AXES; a++) {
        sum.calls += comm->count[a].calls;
        sum.bytes_intra += comm->count[a].bytes_intra;
        sum.bytes_inter += comm->count[a].bytes_inter;
        sum.seconds += comm->count[a].seconds;
        comm->count[a] = (struct comm_count){0};
    }
    return sum;
}
