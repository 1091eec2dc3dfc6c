/*
 * wait.c - polling, and finding out who is missing; see wait.h.
 *
 * At its deadline a rank sends a report of what it waits for to the leaders, the lowest ranks. A
 * leader that gets one asks all ranks, and those that wait answer with their own. Ranks that have
 * not answered after a grace are missing. Leader i speaks i graces later, in case the leaders
 * before it are the ones that stopped; the others after them.
 */
#include "topo/wait.h"

#include "base/clock.h"
#include "base/place.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_LEADERS = 3, TAG = 32749, POLLS = 64, PEER_PAUSE_S = 5 };
enum { LIST_BYTES = 256, LIST_MAX = 16 }; /* a list of ranks in a message */
#define LOOK_EVERY_S 0.05
#define GRACE_S 2.0

struct report {
    int rank; /* -1: has not answered; in a message: a question */
    enum axis axis;
    int64_t number;          /* of the rank's collectives on this axis */
    double seconds, begin_s; /* waited so far; since when, by this rank's clock */
    char op[40], place[128];
};

static double deadline_s;
static const struct mesh *mesh;
static int64_t n_calls[N_AXES];

static struct {
    enum axis axis;
    const char *op;
    double begin_s, look_s;
} call;

static struct {
    double since_s;        /* 0: all is well */
    int rank, size;        /* in MPI_COMM_WORLD */
    struct report *report; /* [size] */
} late;

void wait_set_deadline(double seconds)
{
    deadline_s = seconds;
}

double wait_deadline_s(void)
{
    if (deadline_s <= 0) {
        const char *text = getenv("DSV3_DEADLINE_S");
        deadline_s = text && atof(text) > 0 ? atof(text) : 600;
    }
    return deadline_s;
}

void wait_set_mesh(const struct mesh *of)
{
    mesh = of;
}

/* Small enough to leave without the receiver's help; nobody looks whether it arrives. */
static void post(int to, const struct report *r)
{
    MPI_Request request;
    MPI_CHECK(MPI_Isend(r, sizeof *r, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &request));
    MPI_CHECK(MPI_Request_free(&request));
}

static void report_to_leaders(double time_s)
{
    struct report *own = &late.report[late.rank];
    *own = (struct report){.rank = late.rank,
                           .axis = call.axis,
                           .number = n_calls[call.axis],
                           .seconds = time_s - call.begin_s,
                           .begin_s = call.begin_s};
    snprintf(own->op, sizeof own->op, "%s", call.op);
    place_text(own->place, sizeof own->place);
    for (int r = 0; r < N_LEADERS && r < late.size; r++)
        if (r != late.rank) post(r, own);
}

/* Once: from here on the job ends, and the question is only who is to blame. */
static void become_late(double time_s)
{
    static const struct report question = {.rank = -1};
    late.since_s = time_s;
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &late.rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &late.size));
    late.report = malloc(sizeof *late.report * (size_t)late.size);
    CHECK(late.report, "no memory for %d reports", late.size);
    for (int r = 0; r < late.size; r++) late.report[r] = question;
    report_to_leaders(time_s);
    for (int r = 0; late.rank < N_LEADERS && r < late.size; r++)
        if (r != late.rank) post(r, &question);
}

static void read_reports(double time_s)
{
    for (int there = 1; there;) {
        struct report r;
        MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
        if (!there) return;
        MPI_CHECK(MPI_Recv(&r, sizeof r, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE));
        if (late.since_s == 0) become_late(time_s);
        r.begin_s = time_s - r.seconds;
        if (r.rank >= 0) late.report[r.rank] = r;
    }
}

/* Whether ranks r and s are in one group of the axis. Before the mesh is known all are in one. */
static bool together(enum axis axis, int r, int s)
{
    if (!mesh || axis == AXIS_WORLD) return true;
    if (axis == AXIS_DP) return r % mesh->tp == s % mesh->tp;
    if (axis == AXIS_TP) return r / mesh->tp == s / mesh->tp;
    if (axis == AXIS_EP) return r / mesh->ep == s / mesh->ep;
    return r % mesh->ep == s % mesh->ep;
}

static bool missing_from(const struct report *at, int r)
{
    return late.report[r].rank < 0 && together(at->axis, r, at->rank);
}

static bool waits_at(const struct report *at, int r)
{
    const struct report *other = &late.report[r];
    return other->rank >= 0 && other->axis == at->axis && other->number == at->number &&
           !strcmp(other->op, at->op) && together(at->axis, r, at->rank);
}

/* "rank 3 (host)", "ranks 1, 2 and 5 more": those of which `is` says so. */
static const char *list(char text[LIST_BYTES], bool (*is)(const struct report *, int),
                        const struct report *at, bool hosts)
{
    int n_all = 0, n_shown = 0, used = 0;
    for (int r = 0; r < late.size; r++) n_all += is(at, r);
    used = snprintf(text, LIST_BYTES, "rank%s", n_all == 1 ? "" : "s");
    for (int r = 0; r < late.size && n_shown < LIST_MAX && used < LIST_BYTES - 100; r++) {
        if (!is(at, r)) continue;
        const char *host = hosts && mesh ? mesh->host[r] : "";
        used += snprintf(text + used, (size_t)(LIST_BYTES - used), "%s %d%s%s%s",
                         n_shown++ ? "," : "", r, *host ? " (" : "", host, *host ? ")" : "");
    }
    if (n_shown < n_all)
        snprintf(text + used, (size_t)(LIST_BYTES - used), " and %d more", n_all - n_shown);
    return text;
}

static int group_size(const struct report *at)
{
    int n = 0;
    for (int r = 0; r < late.size; r++) n += together(at->axis, at->rank, r);
    return n;
}

/* Of the reports of those who wait for a missing rank, the first in the smallest group, which is
 * where the rank stopped: others go on until a larger group meets. NULL: nobody waits for one. */
static const struct report *first_wait(void)
{
    const struct report *best = NULL;
    for (int r = 0; r < late.size; r++) {
        const struct report *at = &late.report[r];
        bool misses = false;
        for (int s = 0; at->rank >= 0 && s < late.size; s++) misses |= missing_from(at, s);
        if (!misses) continue;
        const int closer = best ? group_size(best) - group_size(at) : 1;
        if (closer > 0 || (closer == 0 && at->begin_s < best->begin_s)) best = at;
    }
    return best;
}

/* All have answered, from different calls: a fault of the program. */
static _Noreturn void die_of_mismatch(void)
{
    char text[2048], who[LIST_BYTES];
    int used = 0;
    for (int r = 0; r < late.size && used < (int)sizeof text - 512; r++) {
        const struct report *at = &late.report[r];
        int first = 0;
        while (!waits_at(at, first)) first++;
        if (first < r) continue; /* reported with that one */
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s in %s #%lld on axis %s, %s",
                         used ? "; " : "", list(who, waits_at, at, false), at->op,
                         (long long)at->number, axis_name(at->axis), at->place);
    }
    DIE(CODE_INTERNAL, "collective timeout after %.0f s; ranks are in different collectives: %s",
        late.report[late.rank].seconds, text);
}

static _Noreturn void die_late(void)
{
    char missing[LIST_BYTES], waiting[LIST_BYTES];
    const struct report *at = first_wait();
    if (!at) die_of_mismatch();
    DIE(CODE_INTERNAL,
        "%s did not enter collective %s #%lld on axis %s, where %s waited for %.0f s; %s",
        list(missing, missing_from, at, true), at->op, (long long)at->number, axis_name(at->axis),
        list(waiting, waits_at, at, false), at->seconds, at->place);
}

/* Every few polls: the clock, and news of other ranks. */
static void look(void)
{
    const double time_s = clock_s();
    if (call.begin_s == 0) call.begin_s = call.look_s = time_s;
    if (time_s - call.look_s < LOOK_EVERY_S) return;
    call.look_s = time_s;
    if (late.since_s == 0 && time_s - call.begin_s > wait_deadline_s()) become_late(time_s);
    read_reports(time_s);
    if (late.since_s == 0) return;
    const int turn = late.rank < N_LEADERS ? late.rank : N_LEADERS;
    if (time_s - late.since_s > GRACE_S * (turn + 1)) die_late();
}

/* The peer that caused an error of the transport, or mpirun, shall speak first. */
static _Noreturn void die_of_transport(int mpi_error)
{
    sleep(PEER_PAUSE_S);
    die_mpi_at(__FILE__, __LINE__, call.op, mpi_error);
}

void wait_all(enum axis axis, const char *op, int n, MPI_Request *requests)
{
    int n_done = 0;
    call.axis = axis;
    call.op = op;
    call.begin_s = 0;
    n_calls[axis]++;
    for (int polls = 1; n_done < n; polls++) {
        int done; /* one of them at a time: MPI works on all, and an error is that one's own */
        const int error = MPI_Test(&requests[n_done], &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS) die_of_transport(error);
        n_done += done;
        if (polls % POLLS) continue;
        look();
        sched_yield(); /* Open MPI can be told to; MPICH would keep the core from who computes */
    }
}

void wait_barrier(const char *op)
{
    MPI_Request request;
    MPI_CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    wait_all(AXIS_WORLD, op, 1, &request);
}
