/* sample.c - see sample.h. */
#include "train/sample.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

struct candidate {
    float logit;
    int32_t id;
};

struct sampler {
    struct model *m;
    float *logits;            /* [V] */
    struct candidate *sorted; /* [V] */
};

struct sampler *sampler_init(struct model *m)
{
    const size_t V = (size_t)m->cfg->model.vocab_size;
    struct sampler *s = mem_alloc(sizeof *s, "sampler");
    s->m = m;
    s->logits = mem_alloc(V * sizeof *s->logits, "logits");
    s->sorted = mem_alloc(V * sizeof *s->sorted, "candidates");
    return s;
}

void sampler_free(struct sampler *s)
{
    if (!s) return;
    mem_free(s->sorted);
    mem_free(s->logits);
    mem_free(s);
}

static int most_likely_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int32_t greedy(const float *logits, int n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* The first of the sorted candidates at which their probabilities add up to `share` of the whole.
 * Probabilities relative to the first one's; never beyond the last. */
static int find_share(const struct candidate *c, int n, double temperature, double share)
{
    double sum = 0;
    int i = 0;
    for (; i < n; i++) {
        sum += exp(((double)c[i].logit - c[0].logit) / temperature);
        if (sum >= share) break;
    }
    return i < n ? i : n - 1;
}

static double sum_of(const struct candidate *c, int n, double temperature)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp(((double)c[i].logit - c[0].logit) / temperature);
    return sum;
}

int32_t sampler_choose(struct sampler *s, const float *logits, const struct sampling *how,
                       int64_t number)
{
    for (int i = 0; i < how->n_ids; i++)
        CHECK(isfinite(logits[i]), "the logit of token %d is %g: the weights are not usable", i,
              (double)logits[i]);
    if (how->temperature == 0) return greedy(logits, how->n_ids);
    struct candidate *c = s->sorted;
    for (int32_t i = 0; i < how->n_ids; i++) c[i] = (struct candidate){logits[i], i};
    qsort(c, (size_t)how->n_ids, sizeof *c, most_likely_first);
    const double T = how->temperature, u = (double)(rng_u64(how->key, (uint64_t)number) >> 11);
    const int n = 1 + find_share(c, how->n_ids, T, how->top_p * sum_of(c, how->n_ids, T));
    return c[find_share(c, n, T, u * 0x1p-53 * sum_of(c, n, T))].id;
}

/* All ranks have the logits, but ranks that add up in another order may see another best one. */
static int32_t choose_for_all(struct sampler *s, const struct sampling *how, int number)
{
    int32_t id = 0;
    if (s->m->mesh->rank == 0) id = sampler_choose(s, s->logits, how, number);
    mesh_broadcast(&id, sizeof id, "broadcast of a token");
    return id;
}

int sampler_run(struct sampler *s, const int32_t *prompt, int n, const struct sampling *how,
                void (*emit)(void *to, int32_t id), void *to)
{
    struct model *m = s->m;
    const int at_once = (int)m->flow.Na, room = m->cache.capacity;
    CHECK(n > 0 && n <= room, "a prompt of %d tokens, the cache takes 1 to %d", n, room);
    for (int past = 0; past < n; past += at_once)
        model_decode(m, prompt + past, n - past < at_once ? n - past : at_once, past, s->logits);
    int done = 0;
    while (done < how->max_tokens) {
        const int32_t id = choose_for_all(s, how, done);
        if (m->mesh->rank == 0) emit(to, id);
        done++;
        if (id == how->end || done == how->max_tokens || n + done > room) break;
        model_decode(m, &id, 1, n + done - 1, s->logits);
    }
    return done;
}
