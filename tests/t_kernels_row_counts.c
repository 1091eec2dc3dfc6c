/* Products whose row counts are new in every call generate no code and take no memory for them. */
// TEST ranks=1 timeout=30
#include "kernel_case.h"

#include <sys/resource.h>

enum { GROUPS = 8, MAX_ROWS = 600, IN = 48, OUT = 40, CALLS = 100 };

/* KB of executable memory of this process: the library maps each function that it generates. */
static long code_kb(void)
{
    FILE *const f = fopen("/proc/self/maps", "r");
    char line[1024], flags[8];
    unsigned long begin, end;
    long kb = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, flags) == 3 && flags[2] == 'x')
            kb += (long)((end - begin) / 1024);
    if (f) fclose(f);
    return kb;
}

static long max_resident_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

struct operands {
    struct stream *s;
    enum dtype dt;
    void *x, *y, *w;
    float *dw;
};

/* Forward and backward of groups of rows that follow from the call's number. */
static void call(const struct operands *o, uint64_t number)
{
    int64_t offset[GROUPS + 1] = {0};
    for (uint64_t g = 0; g < GROUPS; g++)
        offset[g + 1] = offset[g] + (int64_t)(rng_u64(number, g) % MAX_ROWS);
    const struct grouped_shape shape = {GROUPS, offset, IN, OUT};
    backend_cpu.grouped_fwd(o->s, o->y, o->x, o->w, o->dt, &shape);
    backend_cpu.grouped_bwd_x(o->s, o->x, o->y, o->w, o->dt, &shape, false);
    backend_cpu.grouped_bwd_w(o->s, o->dw, o->y, o->x, o->dt, &shape);
}

static void check(enum dtype dt)
{
    struct operands o = {.s = backend_cpu.stream_create(1), .dt = dt};
    o.x = case_random(dt, (int64_t)GROUPS * MAX_ROWS * IN, 1);
    o.y = case_random(dt, (int64_t)GROUPS * MAX_ROWS * OUT, 2);
    o.w = case_random(dt, (int64_t)GROUPS * IN * OUT, 3);
    o.dw = case_random(DTYPE_F32, (int64_t)GROUPS * IN * OUT, 4);
    for (uint64_t i = 0; i < 20; i++) call(&o, i);
    mem_freeze();
    const long code = code_kb();
    const long memory = max_resident_kb();
    for (uint64_t i = 0; i < CALLS; i++) call(&o, 1000 + i);
    mem_thaw();
    /* A function takes 256 KB of addresses in oneDNN 2.6. A few paths may be met for the first
     * time, as for a single row; a function for every shape would be 600 MB. */
    const long new_code = code_kb() - code;
    EXPECT(code > 0 && new_code < 4096, "%s: %ld + %ld KB of code", dtype_name(dt), code, new_code);
    const long new_memory = max_resident_kb() - memory;
    EXPECT(TEST_SANITIZED || new_memory < 4096, "%s: %ld KB more", dtype_name(dt),
           new_memory); /* heap's edges */
    mem_free(o.x);
    mem_free(o.y);
    mem_free(o.w);
    mem_free(o.dw);
    backend_cpu.stream_destroy(o.s);
}

int main(void)
{
    check(DTYPE_F32);
    check(DTYPE_BF16);
    return test_end();
}
