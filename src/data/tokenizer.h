/*
 * tokenizer.h - text to token ids and back, for the programs that make and read shards: bytes, or
 * byte-level BPE from a Hugging Face tokenizer.json with the ids of PyPI's tokenizers
 * (Tokenizer.encode with add_special_tokens=False).
 *
 *     text -> added tokens cut out (tokenizer.c) -> pieces (pattern.h) -> merges (bpe.h) -> ids
 */
#pragma once

#include "data/bpe.h"
#include "data/shard.h"

struct tokenizer;

/* Ids 0 .. 255 are the bytes, 256 ends a document. */
struct tokenizer *tokenizer_init_bytes(void);

/*
 * Reads a tokenizer.json. Supported: model BPE over bytes, pre-tokenizers Sequence, Split by a
 * regular expression (isolated), Digits and ByteLevel, added tokens; normalizer NFC or none. What
 * the file asks for besides is refused by name: NULL with fault.
 *
 * max_vocab > 0: the tokenizer that is left when every token, merge and added token with an id of
 * max_vocab or more is struck out; what remains keeps its id. All 256 bytes must remain.
 */
struct tokenizer *tokenizer_try_load(const char *path, int64_t max_vocab, struct fault *fault);
void tokenizer_free(struct tokenizer *tok);

/* The largest id + 1. */
int64_t tokenizer_vocab_size(const struct tokenizer *tok);
/* Of what the tokenizer does, not of how its file is written. */
uint64_t tokenizer_hash(const struct tokenizer *tok);
/* Whether a document may be encoded in parts, with the same ids. */
bool tokenizer_is_local(const struct tokenizer *tok);

/* The added token with this text, or -1. */
int64_t tokenizer_find(const struct tokenizer *tok, const char *text);
/* The added token that ends documents in well-known vocabularies, or -1. */
int64_t tokenizer_eod(const struct tokenizer *tok);
/* The i-th special token of the file and its id; NULL behind the last. */
const char *tokenizer_special(const struct tokenizer *tok, int i, uint32_t *id);

/* Bytes of text that id stands for, borrowed; NULL: there is no such id. */
const char *tokenizer_text(const struct tokenizer *tok, uint32_t id, int64_t *n);

/*
 * Appends the ids of n bytes of text. Bytes that are no UTF-8 are kept: each counts as a character
 * of no category. -1 with fault, which begins with the place in the text: a regular expression of
 * the tokenizer needs very long for it. Not thread-safe.
 */
int tokenizer_try_encode(struct tokenizer *tok, const char *text, int64_t n, struct id_list *out,
                         struct fault *fault);
