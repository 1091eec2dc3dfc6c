/*
 * ckpt_spoil DIR TENSOR - for tests: the first element of a checkpoint's tensor becomes infinite,
 * under right checksums, as a program that does not look would have written it.
 */
#include "base/mem.h"
#include "ckpt/io.h"
#include "ckpt/store.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* F32 values only. */
static void spoil(const char *path, const struct ckpt_tensor *t, struct ckpt_box *box)
{
    struct fault fault = {0};
    const size_t bytes = (size_t)box->count * sizeof(float);
    float *x = mem_alloc(bytes, "a box");
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    int bad = io_try_box(fd, path, t, box, x, false, &fault);
    x[0] = INFINITY;
    box->hash = XXH3_64bits(x, bytes);
    if (!bad) bad = io_try_box(fd, path, t, box, x, true, &fault);
    CHECK(!bad, "%s", fault.why);
    close(fd);
    mem_free(x);
}

int main(int argc, char **argv)
{
    struct manifest m;
    struct fault fault = {0};
    char path[CKPT_PATH];
    if (argc != 3) return CODE_USAGE;
    int bad = manifest_try_read(&m, argv[1], &fault);
    CHECK(!bad, "%s", fault.why);
    const struct ckpt_tensor *t = manifest_find(&m, argv[2]);
    CHECK(t && t->dtype == DTYPE_F32, "%s: no F32 tensor %s", argv[1], argv[2]);
    spoil(path_print(path, "%s/%s", argv[1], m.file[t->file].name), t, &m.box[t->first_box]);
    char *text = manifest_to_text(&m);
    bad = io_try_write_file(path_print(path, "%s/" CKPT_MANIFEST, argv[1]), text,
                            (int64_t)strlen(text), &fault);
    CHECK(!bad, "%s", fault.why);
    free(text);
    manifest_free(&m);
    return 0;
}
