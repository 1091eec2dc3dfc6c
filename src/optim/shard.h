/* shard.h - what optim.c and weights.c share and nobody else needs. */
#pragma once

#include "optim/optim.h"

enum { OPTIM_CHUNK = 1 << 16 }; /* floats: weights are made and hashed in pieces of this size */

/* norm_parts to h_norm_parts; finished on return. */
void optim_fetch_parts(struct optim *opt);
