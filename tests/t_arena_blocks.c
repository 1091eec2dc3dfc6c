/* Blocks of an arena: aligned, poisoned when fresh, given back in reverse order; counting without
 * memory gives the same sizes. The address sanitizer is told of every byte that is not handed out.
 */
// TEST ranks=1 timeout=10
#include "base/arena.h"
#include "base/mem.h"
#include "test.h"

#include <stdint.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

static void expect_forbidden(const char *what, void *p, bool forbidden)
{
#ifdef __SANITIZE_ADDRESS__
    EXPECT(!!__asan_address_is_poisoned(p) == forbidden, "%s", what);
#else
    (void)what, (void)p, (void)forbidden;
#endif
}

static const size_t sizes[] = {1, ARENA_ALIGN, ARENA_ALIGN - 1, 5 * ARENA_ALIGN + 24, 0, 100};
enum { N_BLOCKS = sizeof sizes / sizeof *sizes };

static void push_all(struct arena *arena, char *block[N_BLOCKS])
{
    for (int i = 0; i < N_BLOCKS; i++) block[i] = arena_push(arena, sizes[i]);
}

static void check_blocks(char *const block[N_BLOCKS])
{
    for (int i = 0; i < N_BLOCKS; i++) {
        int n_fresh = 0;
        for (size_t b = 0; b < sizes[i]; b++) n_fresh += block[i][b] == '\xff';
        EXPECT(n_fresh == (int)sizes[i], "block %d: %d of %zu bytes poisoned", i, n_fresh,
               sizes[i]);
        EXPECT((uintptr_t)block[i] % ARENA_ALIGN == 0, "block %d at %p", i, (void *)block[i]);
        expect_forbidden("behind a block", block[i] + sizes[i], true);
        if (sizes[i]) expect_forbidden("a block's last byte", block[i] + sizes[i] - 1, false);
        memset(block[i], 0, sizes[i]);
    }
}

int main(void)
{
    struct arena counting, arena;
    char *block[N_BLOCKS], *again[N_BLOCKS];
    arena_init(&counting, "test", NULL, 0, false);
    push_all(&counting, block);

    char *memory = mem_alloc(counting.peak, "test");
    expect_forbidden("before an allocation", memory - 1, true);
    expect_forbidden("behind an allocation", memory + counting.peak, true);
    arena_init(&arena, "test", memory, counting.peak, true);
    expect_forbidden("an arena's memory", memory, true);
    push_all(&arena, block);
    EXPECT(arena.used == counting.used && arena.peak == counting.peak, "%zu bytes, counted %zu",
           arena.used, counting.used);
    check_blocks(block);
    arena_pop(&arena, 0);
    expect_forbidden("a block given back", block[0], true);
    push_all(&arena, again);
    EXPECT(!memcmp(block, again, sizeof block), "blocks lie elsewhere the second time");
    check_blocks(again);
    mem_free(memory);
    EXPECT(mem_live() == 0, "%ld blocks left", mem_live());
    return test_end();
}
