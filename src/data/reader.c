/*
 * reader.c - reads ahead of the training step on a thread of its own. Requests are numbered; batch
 * k lies in slot k % (depth + 1), so that one more than the outstanding ones stays valid: the batch
 * that the caller is working on. The thread touches only slots that were requested and not read.
 */
#include "data/dataset.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "topo/wait.h"

#include <math.h>
#include <string.h>
#include <time.h>

struct slot {
    struct batch batch;
    int64_t *g; /* [max_n] */
};

struct reader {
    const struct dataset *ds;
    struct window *window;
    uint64_t seed;
    bool shuffle;
    int max_n, depth;
    struct slot *slot; /* [depth + 1] */
    pthread_t thread;
    pthread_mutex_t lock; /* what follows is read and written under it */
    pthread_cond_t work, ready;
    int64_t n_requested, n_read, n_taken;
    bool stop, failed;
    struct fault fault;
};

static int read_slot(struct reader *rd, struct slot *slot, struct fault *fault)
{
    struct batch *b = &slot->batch;
    for (int i = 0; i < b->n; i++) {
        const int64_t place = (int64_t)i * (b->T + 1);
        b->sample[i] = dataset_sample_at(rd->ds, rd->seed, rd->shuffle, slot->g[i]);
        if (window_try_read(rd->window, b->sample[i], b->token + place, b->doc_start + place,
                            fault) != 0)
            return -1;
    }
    return 0;
}

/* The thread does not end the job itself: MPI may be called from the main thread only. */
static void *read_ahead(void *arg)
{
    struct reader *rd = arg;
    struct fault fault;

    pthread_mutex_lock(&rd->lock);
    for (;;) {
        while (!rd->stop && rd->n_read == rd->n_requested) pthread_cond_wait(&rd->work, &rd->lock);
        if (rd->stop) break;
        struct slot *slot = &rd->slot[rd->n_read % (rd->depth + 1)];
        pthread_mutex_unlock(&rd->lock);
        const int bad = read_slot(rd, slot, &fault);
        pthread_mutex_lock(&rd->lock);
        if (bad) {
            rd->failed = true;
            fault_set(&rd->fault, fault.code, "%s data: %s", rd->ds->what, fault.why);
            pthread_cond_signal(&rd->ready);
            break;
        }
        rd->n_read++;
        pthread_cond_signal(&rd->ready);
    }
    pthread_mutex_unlock(&rd->lock);
    return NULL;
}

struct reader *reader_init(const struct dataset *ds, uint64_t seed, bool shuffle, int max_n,
                           int depth)
{
    const size_t row = (size_t)max_n * (size_t)(ds->T + 1);
    CHECK(max_n >= 1 && depth >= 1, "%d samples a request, %d requests", max_n, depth);
    struct reader *rd = mem_alloc(sizeof *rd, "reader");

    rd->ds = ds;
    rd->window = window_init(ds);
    rd->seed = seed;
    rd->shuffle = shuffle;
    rd->max_n = max_n;
    rd->depth = depth;
    rd->slot = mem_alloc((size_t)(depth + 1) * sizeof *rd->slot, "batches");
    for (int i = 0; i <= depth; i++) {
        struct batch *b = &rd->slot[i].batch;
        b->T = ds->T;
        b->token = mem_alloc(row * sizeof *b->token, "batch tokens");
        b->doc_start = mem_alloc(row * sizeof *b->doc_start, "batch document starts");
        b->sample = mem_alloc((size_t)max_n * sizeof *b->sample, "batch samples");
        rd->slot[i].g = mem_alloc((size_t)max_n * sizeof *rd->slot[i].g, "batch numbers");
    }
    pthread_mutex_init(&rd->lock, NULL);
    pthread_cond_init(&rd->work, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&rd->ready, &monotonic);
    pthread_condattr_destroy(&monotonic);
    thread_start(&rd->thread, read_ahead, rd, "reading ahead");
    return rd;
}

void reader_free(struct reader *rd)
{
    if (!rd) return;
    pthread_mutex_lock(&rd->lock);
    rd->stop = true;
    pthread_cond_signal(&rd->work);
    pthread_mutex_unlock(&rd->lock);
    pthread_join(rd->thread, NULL);
    pthread_cond_destroy(&rd->ready);
    pthread_cond_destroy(&rd->work);
    pthread_mutex_destroy(&rd->lock);
    for (int i = rd->depth; i >= 0; i--) {
        mem_free(rd->slot[i].g);
        mem_free(rd->slot[i].batch.sample);
        mem_free(rd->slot[i].batch.doc_start);
        mem_free(rd->slot[i].batch.token);
    }
    mem_free(rd->slot);
    window_free(rd->window);
    mem_free(rd);
}

void reader_request(struct reader *rd, const int64_t *g, int n)
{
    CHECK(n >= 0 && n <= rd->max_n, "%d samples requested, at most %d", n, rd->max_n);
    pthread_mutex_lock(&rd->lock);
    CHECK(rd->n_requested - rd->n_taken < rd->depth, "more than %d requests outstanding",
          rd->depth);
    struct slot *slot = &rd->slot[rd->n_requested % (rd->depth + 1)];
    slot->batch.n = n;
    memcpy(slot->g, g, (size_t)n * sizeof *g);
    rd->n_requested++;
    pthread_cond_signal(&rd->work);
    pthread_mutex_unlock(&rd->lock);
}

/* Sooner than the ranks that wait for this one lose patience, as this one knows more; later than
 * file_watch, which knows still more when a single call is kept. */
static struct timespec patience(double seconds)
{
    const double until = clock_s() + 0.9 * seconds;
    return (struct timespec){(time_t)until, (long)(1e9 * (until - floor(until)))};
}

const struct batch *reader_try_wait(struct reader *rd, struct fault *fault)
{
    const double limit_s = wait_deadline_s() < 1e9 ? wait_deadline_s() : 1e9;
    const struct timespec until = patience(limit_s);
    const struct batch *batch = NULL;
    int late = 0;
    pthread_mutex_lock(&rd->lock);
    CHECK(rd->n_taken < rd->n_requested, "waiting for batch %ld, which nobody requested",
          (long)rd->n_taken);
    while (!rd->failed && !late && rd->n_read <= rd->n_taken)
        late = pthread_cond_timedwait(&rd->ready, &rd->lock, &until);
    if (rd->n_read > rd->n_taken)
        batch = &rd->slot[rd->n_taken++ % (rd->depth + 1)].batch;
    else if (rd->failed)
        *fault = rd->fault;
    else
        fault_set(fault, CODE_IO,
                  "%s data: samples have not been read after 0.9 x %g s (run.deadline_s)",
                  rd->ds->what, limit_s);
    pthread_mutex_unlock(&rd->lock);
    return batch;
}
