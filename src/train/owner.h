/*
 * owner.h - one run at a time in run.dir. The run that is at work there has its name in the file
 * run.dir/owner, made with O_EXCL, and a thread that counts up in it every two seconds: its heart.
 * Another start reads the file and refuses while that beats. A run that was killed leaves the file
 * behind: it is dead at once when its process is gone from this machine, and, wherever it was, when
 * the count has not moved for a while as the newcomer sees it; clocks of machines are not compared
 * and nothing is locked. Then the newcomer puts its own file in the place of the dead one's. Of
 * several newcomers one does, and any of them may be killed at any moment.
 *
 * A run that finds another's name in its place (it stood still for long, and was taken for dead)
 * ends at once with CODE_IO and writes nothing more.
 *
 * Only rank 0 calls these.
 */
#pragma once

#include "base/err.h"
#include "base/path.h"

struct owner;

enum { OWNER_PATIENCE_S = 30 };

/* CODE_CONFIG when another run is at work in dir, which has to make no sign of life for patience_s
 * before it counts as dead. Writes nothing. */
int owner_try_look(const char *dir, double patience_s, struct fault *fault);

/* dir, which is there, is this run's from here on; faults as before. NULL after a fault. The heart
 * begins to beat; free with owner_free. */
struct owner *owner_try_claim(const char *dir, double patience_s, struct fault *fault);

/* Returns when dir is still this run's, and ends the run when it is not. Any thread; owner may be
 * NULL. */
void owner_check(struct owner *owner);

/* The run is over: dir is nobody's. */
void owner_free(struct owner *owner);

/* Whether a file of that name in run.dir is one of these. */
bool owner_is_name(const char *name);
