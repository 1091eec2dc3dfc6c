/*
 * labels.c - from a window of T + 1 tokens to inputs and labels. Stage k (0: main model, k: MTP
 * depth k) predicts at position t the token t + 1 + k; module k also embeds token t + k. With
 * data.document_mask neither crosses into another document. A window does not look into the next
 * one, so depth k has k labels less a window than the main model. Positions without a label have
 * -1, inputs that do not exist embed to zeros; both lie at the end of their window or document,
 * where no labelled position sees them.
 */
#include "base/err.h"
#include "model/model.h"

/* Token t + ahead of a window as seen from position t; -1 when it is out of reach. doc_start: of
 * the window's T + 1 tokens, or NULL. */
static int32_t token_ahead(const int32_t *token, const int32_t *doc_start, int T, int t, int ahead)
{
    if (t + ahead > T) return -1;
    if (doc_start && doc_start[t + ahead] > t) return -1;
    return token[t + ahead];
}

/* out [B * T]: for every position the token `ahead` places on. */
static void look_ahead(const struct model *m, int32_t *out, const int32_t *token,
                       const int32_t *doc_start, const bool *valid, int ahead)
{
    const struct flow *f = &m->flow;
    for (int b = 0; b < f->B; b++) {
        const int64_t window = (int64_t)b * (f->T + 1);
        const int32_t *docs = doc_start ? doc_start + window : NULL;
        for (int t = 0; t < f->T; t++)
            out[(int64_t)b * f->T + t] =
                valid && !valid[b] ? -1 : token_ahead(token + window, docs, f->T, t, ahead);
    }
}

void model_load(struct model *m, const int32_t *token, const int32_t *doc_start, const bool *valid)
{
    struct flow *f = &m->flow;
    const size_t bytes = (size_t)f->Na * sizeof(int32_t);
    const int32_t *docs = m->cfg->data.document_mask ? doc_start : NULL;
    if (docs) {
        for (int b = 0; b < f->B; b++)
            for (int t = 0; t < f->T; t++)
                m->h_label[(int64_t)b * f->T + t] = docs[(int64_t)b * (f->T + 1) + t];
        RUN(m, copy, f->doc_buffer, m->h_label, bytes);
    }
    f->doc_start = docs ? f->doc_buffer : NULL;
    for (int k = 0; k <= m->n_mtp; k++) {
        look_ahead(m, m->h_label, token, docs, valid, k + 1);
        RUN(m, copy, f->label[k], m->h_label, bytes);
        look_ahead(m, m->h_label, token, docs, NULL, k);
        RUN(m, copy, f->input[k], m->h_label, bytes);
    }
}

void model_count_labels(const struct model *m, const int32_t *token, const int32_t *doc_start,
                        const bool *valid, int64_t *n_label)
{
    const struct flow *f = &m->flow;
    const int32_t *docs = m->cfg->data.document_mask ? doc_start : NULL;
    for (int k = 0; k <= m->n_mtp; k++) {
        look_ahead(m, m->h_label, token, docs, valid, k + 1);
        for (int64_t i = 0; i < f->Na; i++) n_label[k] += m->h_label[i] >= 0;
    }
}
