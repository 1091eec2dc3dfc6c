/*
 * mem.h - the few allocations the program makes: all at start-up, none after mem_freeze().
 * Backends allocate their device memory through their own table and count it here.
 */
#pragma once

#include <stddef.h>

/* Zeroed memory, ARENA_ALIGN-aligned; large blocks are reserved and committed on first touch.
 * what names the purpose in messages. Fatal when there is none. Free with mem_free. */
void *mem_alloc(size_t bytes, const char *what);
void mem_free(void *p); /* NULL is fine */

/* From here on mem_alloc is fatal and names its caller (what). mem_thaw ends that at shutdown. */
void mem_freeze(void);
void mem_thaw(void);

long mem_live(void); /* blocks not yet freed; zero at exit */

size_t mem_physical(void); /* bytes of memory this machine has */
size_t mem_peak(void);     /* bytes of memory this process has had at most, resident at once */
