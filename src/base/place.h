/*
 * place.h - where the run is, for the line that says why it cannot go on: "step 5, dispatch forward
 * of layer 3". The parts of the run say where they are as they go; that costs a few stores, the
 * words are put together only when somebody asks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "start-up", or "step" with its number (below 0: none). The strings are borrowed for ever. */
void place_stage(const char *stage, int64_t step);

/* What this stage is doing: a name; pass "forward", "backward" or NULL; layer below 0: none. */
void place_in_layer(const char *doing, const char *pass, int layer);
void place_at(const char *doing);

const char *place_doing(void); /* "start" before the first */

/* The words, NUL-terminated and cut off at n bytes. Allocates nothing, for signal handlers. */
void place_text(char *text, size_t n);

/* Whether the stage has a number. */
bool place_in_step(void);

/* debug.fault: the first time that the words are those of `at`, this process sends itself the
 * signal, or with signal 0 waits for ever. at is borrowed. */
void place_fault(const char *at, int signal);
