/*
 * wait.h - all waiting for other ranks happens here. Every collective is started in its
 * non-blocking form and polled; when it has not ended at the deadline (run.deadline_s), the ranks
 * that wait tell one another in what, and one of them prints which rank is missing from which
 * collective and ends the job with CODE_INTERNAL. Reports travel as messages over MPI_COMM_WORLD
 * with a tag of their own, so no rank has to cooperate that does not wait.
 */
#pragma once

#include "topo/mesh.h"

/* Until set: 600 s, or DSV3_DEADLINE_S. */
void wait_set_deadline(double seconds);
double wait_deadline_s(void);

/* Names of hosts and members of axes for the messages. Borrowed; NULL before mesh_free. */
void wait_set_mesh(const struct mesh *mesh);

/* Finish all n requests of one collective over this rank's group of the axis. op: its name for the
 * message; the members count their collectives, so every rank of a group must come to the same
 * calls in the same order. Sleeps only as MPI does (mpi_yield_when_idle). */
void wait_all(enum axis axis, const char *op, int n, MPI_Request *requests);

/* All ranks of MPI_COMM_WORLD have come here. */
void wait_barrier(const char *op);
