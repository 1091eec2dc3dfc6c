/*
 * bpe.h - byte-pair merges: a piece of text (a pre-tokenizer cut it, pattern.h) to ids. A piece
 * begins as the ids of its bytes; the adjacent pair that was learnt first is merged, the leftmost
 * of equals, until no pair is known. Results of short pieces are remembered, since text repeats.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Grows as needed; zero it before the first use, free id with free(). */
struct id_list {
    uint32_t *id;
    int64_t n, cap;
};
/* Room for n more ids at the end. */
uint32_t *id_list_reserve(struct id_list *list, int64_t n);

struct bpe;

/* byte_id [256]: the id of each byte. n_merges: how many will be added. Free with bpe_free. */
struct bpe *bpe_init(const uint32_t *byte_id, int64_t n_merges);
void bpe_free(struct bpe *bpe);

/* The next merge, in the order in which they were learnt: left, right -> id. A pair that is there
 * already keeps its place in the order and gets the new id. */
void bpe_add_merge(struct bpe *bpe, uint32_t left, uint32_t right, uint32_t id);

/* A piece that is this text is id at once, whatever the merges give (ignore_merges). The text is
 * borrowed until bpe_free. */
void bpe_add_whole(struct bpe *bpe, const char *text, int64_t n, uint32_t id);

/* Appends the ids of a piece of n > 0 bytes to out. Not thread-safe: it uses the memory of bpe. */
void bpe_encode(struct bpe *bpe, const char *piece, int64_t n, struct id_list *out);
