/* The memory that ranks may use: the machine's, or the smallest limit of the control groups that
 * they are in, versions 1 and 2, nested, seen from a container or not; ranks of one group share it.
 */
// TEST ranks=1 timeout=10
#include "base/cgroup.h"
#include "base/mem.h"
#include "test.h"

#include <string.h>
#include <sys/stat.h>

static char root[600];
#define M ((uint64_t)1 << 20)

/* A file below root, with its directories. */
static void put(const char *path, const char *text)
{
    char full[1200];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(full, 0777);
    }
    FILE *out = fopen(full, "w");
    EXPECT(out && fputs(text, out) >= 0 && fclose(out) == 0, "writing %s", full);
}

/* A machine of its own, whose process is in these groups. */
static void machine(const char *name, const char *mountinfo, const char *groups)
{
    snprintf(root, sizeof root, "%s/%s", test_tmpdir(), name);
    mkdir(root, 0777);
    put("/proc/self/mountinfo", mountinfo);
    put("/proc/self/cgroup", groups);
}

static struct memory_claim claim(uint64_t bytes)
{
    struct memory_claim c;
    memory_claim_init(&c, bytes, root);
    return c;
}

/* One process: the limit it comes closest to. */
static void limits(uint64_t bytes, const char *file)
{
    struct memory_fit fit;
    char name[MEMORY_BOUND_NAME], want[MEMORY_BOUND_NAME] = "this machine";
    const struct memory_claim c = claim(M);
    memory_fit_find(&fit, &c, 1, 0);
    memory_bound_name(&fit.bound, name, root);
    if (file) snprintf(want, sizeof want, "the cgroup limit %s", file);
    EXPECT(fit.bound.bytes == bytes && !strcmp(name, want), "%s: %ju of %s, expected %ju of %s",
           root, (uintmax_t)fit.bound.bytes, name, (uintmax_t)bytes, want);
}

static const char v2[] = "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
static const char v1[] = "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n"
                         "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                         "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

static void alone(void)
{
    machine("bare", "22 1 0:21 / /proc rw - proc proc rw\n", "0::/\n");
    limits(mem_physical(), NULL);

    /* Slurm: the job's limit, above steps and tasks that have none. */
    machine("slurm", v2, "0::/slurm/job_7/step_0/task_1\n");
    put("/sys/fs/cgroup/slurm/job_7/memory.max", "104857600\n");
    put("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    put("/sys/fs/cgroup/slurm/job_7/step_0/task_1/memory.max", "max\n");
    limits(100 * M, "/sys/fs/cgroup/slurm/job_7/memory.max");
    put("/sys/fs/cgroup/slurm/memory.max", "52428800\n"); /* the smallest wins, wherever it is */
    limits(50 * M, "/sys/fs/cgroup/slurm/memory.max");
    put("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "1048576\n");
    limits(M, "/sys/fs/cgroup/slurm/job_7/step_0/memory.max");

    /* Docker: a namespace of its own (version 2), or the host's path and a part mounted (1). */
    machine("docker2", v2, "0::/\n");
    put("/sys/fs/cgroup/memory.max", "9437184\n");
    limits(9 * M, "/sys/fs/cgroup/memory.max");
    machine("docker1",
            "35 31 0:32 /docker/4f2a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            "5:cpuset:/docker/4f2a\n4:cpu,memory:/docker/4f2a/inner\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8388608\n");
    put("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "9223372036854771712\n");
    limits(8 * M, "/sys/fs/cgroup/memory/memory.limit_in_bytes");

    /* Version 1 beside an empty version 2; a limit beyond the machine's memory is none. */
    machine("hybrid", v1, "0::/\n12:memory:/user/job\n");
    put("/sys/fs/cgroup/memory/user/job/memory.limit_in_bytes", "9223372036854771712\n");
    limits(mem_physical(), NULL);
    put("/sys/fs/cgroup/memory/user/memory.limit_in_bytes", "7340032\n");
    limits(7 * M, "/sys/fs/cgroup/memory/user/memory.limit_in_bytes");
    machine("outside", v2, "0::/../other\n");
    put("/sys/fs/cgroup/memory.max", "junk\n");
    limits(mem_physical(), NULL);
}

/* Two ranks in a group of 100 MiB, of which one has 30 MiB for itself, and one outside. */
static void together(void)
{
    struct memory_claim c[3];
    struct memory_fit fit;
    machine("shared", v2, "0::/job/a\n");
    put("/sys/fs/cgroup/job/memory.max", "104857600\n");
    put("/sys/fs/cgroup/job/a/memory.max", "31457280\n");
    put("/sys/fs/cgroup/job/b/memory.max", "max\n");
    put("/sys/fs/cgroup/else/memory.max", "max\n");
    c[0] = claim(20 * M);
    put("/proc/self/cgroup", "0::/job/b\n");
    c[1] = claim(90 * M);
    put("/proc/self/cgroup", "0::/else\n");
    c[2] = claim(40 * M);
    memory_fit_find(&fit, c, 3, 0);
    EXPECT(fit.bound.bytes == 100 * M && fit.bytes == 110 * M && fit.n == 2, "%ju of %ju",
           (uintmax_t)fit.bytes, (uintmax_t)fit.bound.bytes);
    c[1].bytes = 20 * M; /* now its own limit is the closest */
    memory_fit_find(&fit, c, 3, 0);
    EXPECT(fit.bound.bytes == 30 * M && fit.bytes == 20 * M && fit.n == 1, "%ju of %ju",
           (uintmax_t)fit.bytes, (uintmax_t)fit.bound.bytes);
    memory_fit_find(&fit, c, 3, 2);
    EXPECT(fit.bound.bytes == mem_physical() && fit.bytes == 80 * M && fit.n == 3, "%ju of %ju",
           (uintmax_t)fit.bytes, (uintmax_t)fit.bound.bytes);
}

int main(void)
{
    alone();
    together();
    return test_end();
}
