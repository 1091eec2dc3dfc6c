/*
 * exchange.h - moving token rows to the ranks that own their experts and back, over the ep axis.
 * One interface for every algorithm; this one is flat: one all-to-all over the group. Rows travel
 * in the order of their expert ids, so a rank's block for another rank is contiguous.
 *
 *   sorted rows [N * K, D]   at the source, in expert order (struct layer_acts.order)
 *   grouped rows [M, D]      at the experts, by local expert, then by source rank
 *
 * With ep 1 the two are the same rows: nothing is to be moved, and only exchange_prepare is called.
 */
#pragma once

#include "model/model.h"

/* Plan pass: what the exchange of every layer will be, into m->expected: balanced, or (worst) with
 * everything that can arrive here - every token of the group with as many of its experts as this
 * rank has. Sends are balanced always: who sends more has no more memory. */
void exchange_expect(struct model *m, bool worst);

/* From count [E] (backend memory, rows this rank has for each expert): learn what arrives, M, and
 * the regrouping index. Pushes the struct's arrays on the stack. Collective over ep. */
void exchange_prepare(struct model *m, struct exchange *ex, const int64_t *count);

/* grouped [M, D] from sorted [N * K, D]. Collective over ep. Uses scratch. */
void exchange_to_experts(struct model *m, const struct exchange *ex, void *grouped,
                         const void *sorted);

/* The way back: sorted [N * K, D] from grouped [M, D]. Collective over ep. Uses scratch. */
void exchange_to_tokens(struct model *m, const struct exchange *ex, void *sorted,
                        const void *grouped);
