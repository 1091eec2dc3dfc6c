/*
 * run_rig.h - whole runs of the model of tests/tiny.yaml inside a test program, step by step, so
 * that a test can look between steps and compare layouts of the same job. Built on src/train/run.h.
 */
#pragma once

#include "test.h"
#include "train/run.h"

/* First line of main: MPI_Init, then run_rig_data. Returns the number of ranks. */
int run_rig_begin(int *argc, char ***argv);

/* The shards that every rig trains on: 64 sequences, written once by rank 0. Collective. */
void run_rig_data(void);

/* run.dir is NAME in the test's directory; overrides: words of the form section.key=value, parted
 * by spaces. The struct must not move. Collective. Free with run_rig_free. */
struct run_rig {
    struct config cfg;
    struct run run;
    long live_before; /* mem_live() before the run */
};
void run_rig_init(struct run_rig *rig, const char *name, const char *overrides);

/* One step of training; from then on nothing may be allocated. Collective. */
void run_rig_step(struct run_rig *rig);

/* Nothing may be left allocated. */
void run_rig_free(struct run_rig *rig);

/* The selection bias of every MoE layer; in host memory, as all of the CPU backend's. */
static inline void run_rig_set_bias(struct run_rig *rig, int expert, float bias)
{
    struct model *m = &rig->run.model;
    for (int l = 0; l < m->n_moe; l++) m->bias[(int64_t)l * m->E + expert] = bias;
}

/* The reports of two finished runs agree: see tests/compare_metrics. Collective. */
void run_rig_compare(const char *name, const char *other, const char *tolerance);

/* The meshes of a job of that many ranks. */
struct run_rig_mesh {
    int ranks, tp, ep;
};
static const struct run_rig_mesh run_rig_meshes[] = {{1, 1, 1}, {2, 2, 2}, {4, 1, 1}, {4, 1, 2},
                                                     {4, 1, 4}, {4, 2, 1}, {4, 2, 2}, {4, 2, 4},
                                                     {4, 4, 1}, {4, 4, 4}};
enum { RUN_RIG_N_MESHES = sizeof run_rig_meshes / sizeof *run_rig_meshes };
