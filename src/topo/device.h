/*
 * device.h - which of the machine's GPUs a rank computes on. The number of GPUs that a process sees
 * is the scheduler's choice (CUDA_VISIBLE_DEVICES, control groups): all of its node, or its own.
 */
#pragma once

#include "topo/mesh.h"

/* The device of rank `local` of the n_local ranks of this machine, of n_visible that it sees:
 * the only one, or number `local` of at least n_local. -1 and a fault (CODE_CONFIG) with what can
 * be done about it: none, or fewer than ranks. Not collective. */
int device_try_choose(int local, int n_local, int n_visible, struct fault *fault);

/* As many as CUDA_VISIBLE_DEVICES names before its first invalid entry, as the driver reads it;
 * without the variable those of the machine (/dev/nvidia0, ...). */
int device_n_visible(void);

/* NVIDIA GPUs of this machine, usable or not: as many as there are device files, or as the driver
 * lists below /proc in a container without such files. root: "", or in a test what stands for /. */
int device_n_present(const char *root);

/* The device of this rank; fatal when there is none for one of them. Several ranks of a machine
 * that see one device each are warned once: the way from one to another may be slow. Collective
 * over MPI_COMM_WORLD. */
int device_choose(const struct mesh *mesh);
