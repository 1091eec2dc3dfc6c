/* mem.c - counted start-up allocations; see mem.h. */
#include "base/mem.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/poison.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 }; /* pages are no smaller */

static atomic_long n_live;
static atomic_bool frozen;

/* The size lies in a header of one alignment unit before the block. mmap gives zeroed pages that
 * are committed when first touched, so a worst-case reservation costs nothing until it is needed.
 */
void *mem_alloc(size_t bytes, const char *what)
{
    CHECK(!atomic_load(&frozen), "%s: %zu bytes allocated after the first step", what, bytes);
    const size_t total = bytes + ARENA_ALIGN;
    char *p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    CHECK(p != MAP_FAILED, "%s: no memory for %zu bytes", what, bytes);
    if (total > (size_t)1 << 22) madvise(p, total, MADV_HUGEPAGE);
    *(size_t *)p = total;
    atomic_fetch_add(&n_live, 1);
    poison_forbid(p, ARENA_ALIGN);
    poison_forbid(p + total, -total % PAGE_BYTES);
    return p + ARENA_ALIGN;
}

void mem_free(void *p)
{
    if (!p) return;
    char *start = (char *)p - ARENA_ALIGN;
    poison_allow(start, ARENA_ALIGN);
    const size_t total = *(size_t *)start;
    poison_allow(start, total + -total % PAGE_BYTES);
    atomic_fetch_sub(&n_live, 1);
    munmap(start, total);
}

void mem_freeze(void)
{
    atomic_store(&frozen, true);
}
void mem_thaw(void)
{
    atomic_store(&frozen, false);
}
long mem_live(void)
{
    return atomic_load(&n_live);
}

size_t mem_physical(void)
{
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

size_t mem_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss << 10;
}
