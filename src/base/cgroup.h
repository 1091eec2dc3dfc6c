/*
 * cgroup.h - how much memory this process may use, with whom: the machine's, and what the control
 * groups that it runs in allow (Slurm, Docker, Kubernetes, systemd; versions 1 and 2). Beyond such
 * a limit the kernel kills, however much the machine has left.
 */
#pragma once

#include "base/path.h"

#include <stdint.h>

/* What a group of processes may use together. Equal group numbers are the same group of processes,
 * also when two processes see it under different names, as containers do. */
struct memory_bound {
    uint64_t group[2]; /* device and inode of the control group; 0, 0: the machine */
    uint64_t bytes;
};

/* A process that will use `bytes`, and all it is bound by. */
enum { MAX_MEMORY_BOUNDS = 16 };
struct memory_claim {
    uint64_t bytes;
    int n; /* at least 1: the machine is the first */
    struct memory_bound bound[MAX_MEMORY_BOUNDS];
};

/* The bounds of this process. Limits above the machine's memory are none. root: "", or in a test
 * the directory that stands for / (its proc/self/cgroup, proc/self/mountinfo, sys/fs/cgroup). What
 * cannot be read does not limit. */
void memory_claim_init(struct memory_claim *claim, uint64_t bytes, const char *root);

/* How n processes of a machine fit: the bound of claim[me] that they leave least of, or exceed. */
struct memory_fit {
    uint64_t bytes; /* that they use together */
    int n;          /* how many of them it bounds */
    struct memory_bound bound;
};
void memory_fit_find(struct memory_fit *fit, const struct memory_claim *claim, int n, int me);

/* For messages: "this machine", or "the cgroup limit /sys/fs/cgroup/job_7/memory.max". */
enum { MEMORY_BOUND_NAME = PATH_BYTES + 32 };
void memory_bound_name(const struct memory_bound *bound, char name[MEMORY_BOUND_NAME],
                       const char *root);
