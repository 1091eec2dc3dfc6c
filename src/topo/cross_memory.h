/*
 * cross_memory.h - whether ranks of a machine may read one another's memory (process_vm_readv).
 * Containers without the ptrace capability forbid it; Open MPI's and UCX's transports within a
 * machine take it for granted, and print a line for every message that has to go another way.
 */
#pragma once

#include <stdbool.h>

/* Tries it, and where it is forbidden tells Open MPI 4 and 5 and UCX by their environment variables
 * to copy through shared memory instead; those that are set already stay. Before MPI_Init. */
void cross_memory_probe(void);

bool cross_memory_forbidden(void); /* what the probe found */
