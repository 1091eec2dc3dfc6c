/*
 * comm.h - collectives on one mesh axis. Every call is counted by kind and axis: calls, bytes this
 * rank sends to ranks on its node and to ranks on other nodes, and seconds. Sums run over the
 * members in axis order, in F32 (F64 and integers in their own type), and are rounded once: the
 * same run gives the same bits. Buffers are backend memory; a call is enqueued on the stream the
 * struct was made with, on the MPI transport it is finished on return. With one member on the axis
 * a call copies (or does nothing in place) and counts nothing.
 */
#pragma once

#include "base/arena.h"
#include "kernels/backend.h"
#include "topo/mesh.h"

enum comm_kind {
    COMM_ALL_REDUCE,
    COMM_ALL_REDUCE_HOST,
    COMM_REDUCE_SCATTER,
    COMM_ALL_GATHER,
    COMM_ALL_TO_ALL,
    COMM_ALL_TO_ALL_ROWS,
    N_COMM_KINDS
};

struct comm_count {
    int64_t calls;
    int64_t bytes_intra, bytes_inter; /* sent by this rank, within its node and to other nodes */
    double seconds;
};
struct comm_counts {
    struct comm_count of[N_COMM_KINDS][N_AXES];
};

struct comm {
    const struct mesh *mesh;
    const struct backend *be; /* NULL: a plan pass, calls only count and size the staging */
    struct stream *stream;
    struct arena *staging;     /* borrowed; pushed and popped within each call */
    bool check_rows;           /* debug.check_exchange: compare counts before moving rows */
    double *host_all;          /* owned: a few numbers of every rank */
    struct comm_counts counts; /* since they were last taken */
};

enum reduce_op { REDUCE_SUM, REDUCE_MAX };

void comm_init(struct comm *comm, const struct mesh *mesh, const struct backend *be,
               struct stream *stream, struct arena *staging);
void comm_free(struct comm *comm);

const char *comm_kind_name(enum comm_kind kind); /* "all_reduce", ... */

/* buf [n] becomes the sum or maximum over the axis, on every member. F32, I32, I64; F64 sums. */
void comm_all_reduce(struct comm *comm, enum axis axis, void *buf, int64_t n, enum dtype dt,
                     enum reduce_op op);

/* The same for up to 64 F64 numbers in host memory. */
void comm_all_reduce_host(struct comm *comm, enum axis axis, double *x, int n, enum reduce_op op);

/* The sum over all ranks modulo 2^64, exact in any order: of hashes. */
uint64_t comm_sum_hash(struct comm *comm, uint64_t mine);

/* The lowest world rank that says true; the number of ranks when none does. */
int comm_lowest_rank(struct comm *comm, bool mine);

/* in [size, n] -> out [n]: member r gets the sum over members of row r. F32, BF16. out may be row
 * `rank` of in; the other rows are left as they are. */
void comm_reduce_scatter(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                         enum dtype dt);

/* in [n] -> out [size, n], rows in axis order. in may be row `rank` of out. */
void comm_all_gather(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                     enum dtype dt);

/* in [size, n] -> out [size, n]: row r goes to member r, row r comes from member r. */
void comm_all_to_all(struct comm *comm, enum axis axis, void *out, const void *in, int64_t n,
                     enum dtype dt);

/* Rows of row_bytes bytes: send_rows[r] go to member r, recv_rows[r] come from member r, both
 * packed in axis order. Counts are host memory; zero is fine. */
void comm_all_to_all_rows(struct comm *comm, enum axis axis, void *out, const int64_t *recv_rows,
                          const void *in, const int64_t *send_rows, size_t row_bytes);

/* sum += times * c */
void comm_count_add(struct comm_count *sum, const struct comm_count *c, int64_t times);

/* Over all kinds and axes. */
struct comm_count comm_counts_sum(const struct comm_counts *counts);

/* comm_counts_sum since the last call; resets. */
struct comm_count comm_take_count(struct comm *comm);
