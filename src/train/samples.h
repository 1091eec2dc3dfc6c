/*
 * samples.h - text that the model makes while it is trained (train.sample_every): the same prompt
 * again and again shows what it has learnt. Nothing of training depends on it.
 */
#pragma once

#include "train/run.h"

/* Before the first step: the tokenizer, which must be that of the training data, and the prompt. A
 * fault ends the run. Collective. */
void samples_init(struct run *run);
void samples_free(struct run *run);

/* After a step: a sample, when one is due, into metrics and console. Collective. */
void samples_take(struct run *run);
