/*
 * poison.h - tells the address sanitizer which bytes of the program's own reservations may be
 * touched: to it a mapping or an arena is one valid block. In other builds this does nothing.
 */
#pragma once

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISON_ON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON_ON 1
#endif
#endif

/* Bytes kept free behind each block handed out, so that overrunning it does not hit the next. */
#ifdef POISON_ON
enum { POISON_GAP = 64 };
#else
enum { POISON_GAP = 0 };
#endif

/* Host memory p[0 .. bytes): from here on touching it ends the program, or is allowed again (so for
 * a look at a whole arena with its gaps). */
void poison_forbid(void *p, size_t bytes);
void poison_allow(void *p, size_t bytes);
