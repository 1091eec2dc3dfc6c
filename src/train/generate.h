/*
 * generate.h - text from a checkpoint: the model of a run without what training needs, and the
 * tokenizer of its data. cmd_generate.c and train.sample_every are its users.
 */
#pragma once

#include "ckpt/manifest.h"
#include "data/tokenizer.h"
#include "train/run.h"
#include "train/sample.h"

/* The tokenizer whose hash is `hash`: of bytes, or of the tokenizer.json at path, whole or cut to
 * vocab_size (dsv3-tokenize --max-vocab). hash 0: the data do not say, any will do. NULL with a
 * fault that has both hashes. Free with tokenizer_free. */
struct tokenizer *generate_try_tokenizer(const char *path, uint64_t hash, int vocab_size,
                                         struct fault *fault);

/* The id that ends documents; -1: none. */
int32_t generate_end(const struct tokenizer *tok);

/* Ids of the text, which ends the run if the tokenizer refuses it; of an empty one the end of the
 * document before it, if there is such an id. */
void generate_encode(struct tokenizer *tok, const char *text, struct id_list *ids);

/* Given run->cfg, mesh, be, stream and threads: memory for the weights and for sequences of so many
 * tokens, and the weights of the checkpoint. cfg->data.sequence_length x micro_batch tokens of a
 * prompt are taken at once. A fault ends the run. Collective; ends with run_unplace. */
void generate_place(struct run *run, int cache_tokens);
void generate_load(struct run *run, const struct manifest *m, const char *dir);
