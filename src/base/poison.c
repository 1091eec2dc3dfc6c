/* poison.c - see poison.h. */
#include "base/poison.h"

#ifdef POISON_ON
#include <sanitizer/asan_interface.h>

void poison_forbid(void *p, size_t bytes)
{
    __asan_poison_memory_region(p, bytes);
}
void poison_allow(void *p, size_t bytes)
{
    __asan_unpoison_memory_region(p, bytes);
}

/* Libraries stay loaded: Open MPI closes its plugins at the end, and what they still point to would
 * be reported as lost by nobody. */
int dlclose(void *library);
int dlclose(void *library)
{
    (void)library;
    return 0;
}
#else
void poison_forbid(void *p, size_t bytes)
{
    (void)p;
    (void)bytes;
}
void poison_allow(void *p, size_t bytes)
{
    (void)p;
    (void)bytes;
}
#endif
