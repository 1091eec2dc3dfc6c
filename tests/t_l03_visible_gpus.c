/* A rank takes the GPU of its own number, or the only one it sees; what cannot work is refused. */
// TEST ranks=1 timeout=10
#include "test.h"

#include "topo/device.h"

#include <stdlib.h>
#include <string.h>

static void takes(int local, int n_local, int n_visible, int want)
{
    struct fault fault = {0};
    const int got = device_try_choose(local, n_local, n_visible, &fault);
    EXPECT(got == want && fault.code == CODE_DONE, "rank %d of %d sees %d: device %d, expected %d",
           local, n_local, n_visible, got, want);
}

static void refuses(int local, int n_local, int n_visible, const char *advice)
{
    struct fault fault = {0};
    const int got = device_try_choose(local, n_local, n_visible, &fault);
    EXPECT(got == -1 && fault.code == CODE_CONFIG && strstr(fault.why, advice),
           "rank %d of %d sees %d: device %d, '%s'", local, n_local, n_visible, got, fault.why);
}

static void counts(const char *named, int want)
{
    setenv("CUDA_VISIBLE_DEVICES", named, 1);
    const int got = device_n_visible();
    EXPECT(got == want, "CUDA_VISIBLE_DEVICES='%s': %d devices, expected %d", named, got, want);
}

/* How many there are below a directory that stands for /. */
static void finds(const char *command, int want)
{
    char line[1400];
    snprintf(line, sizeof line, "cd '%s' && %s", test_tmpdir(), command);
    EXPECT(system(line) == 0, "%s", line);
    const int got = device_n_present(test_tmpdir());
    EXPECT(got == want, "%s: %d devices, expected %d", command, got, want);
}

int main(void)
{
    for (int r = 0; r < 4; r++) {
        takes(r, 4, 4, r);
        takes(r, 4, 1, 0); /* its own, or that of all */
        takes(r, 4, 8, r);
        refuses(r, 4, 2, "--gpu-bind=none");
        refuses(r, 4, 3, "one rank a GPU");
        refuses(r, 4, 0, "CUDA_VISIBLE_DEVICES");
    }
    takes(0, 1, 1, 0);
    takes(0, 1, 8, 0);

    counts("", 0);
    counts("0", 1);
    counts("3", 1);
    counts("0,1,2,3", 4);
    counts("0,-1,2", 1);
    counts("-1", 0);
    counts("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,MIG-1f2e", 2);

    finds("mkdir dev && touch dev/nvidiactl dev/nvidia-uvm dev/null", 0);
    /* A container without device files. */
    finds("mkdir -p proc/driver/nvidia/gpus/0000:3b:00.0", 1);
    finds("touch dev/nvidia0 dev/nvidia1 dev/nvidia10", 3);
    return test_end();
}
