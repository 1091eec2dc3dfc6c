/* A number that is not finite, under the right checksums, makes a checkpoint one that is refused:
 * the fault names tensor and first such element, in F32 and BF16, whatever the box. */
// TEST timeout=30
#include "ckpt/io.h"
#include "ckpt/store.h"
#include "tests/test.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

enum { ROWS = 60, COLS = 100, N = ROWS * COLS };

/* One tensor in two boxes, 30 and 70 of each row; its bytes are all of the file. */
static void write_checkpoint(const char *root, enum dtype dt, int64_t odd, float value)
{
    static char inside[N * 4];
    char dir[CKPT_PATH], path[CKPT_PATH];
    struct fault fault = {0};
    const size_t size = dtype_bytes(dt);
    struct ckpt_tensor t = {"model/a", dt, 2, {ROWS, COLS}, N, 0, 0, 0, 2};
    struct ckpt_box box[2];
    struct ckpt_file file = {"tensors-00000.h5", (int64_t)(N * size), XXH3_64bits("", 0)};
    const struct manifest m = {.version = "test",
                               .state = {.step = 7, .loss = NAN, .ranks = 1},
                               .config = (char *)"a: 1\n",
                               .n_files = 1,
                               .n_tensors = 1,
                               .n_boxes = 2,
                               .file = &file,
                               .tensor = &t,
                               .box = box};
    EXPECT(!store_try_begin(root, 7, &fault), "%s", fault.why);
    path_print(path, "%s/%s", store_tmp_path(dir, root, 7), file.name);
    const int fd = io_try_create(path, O_WRONLY, &fault);
    for (int k = 0; k < 2; k++) {
        const int64_t n = k ? 70 : 30;
        struct ckpt_box *b = &box[k];
        *b = (struct ckpt_box){0, k * 30, 0, n, COLS, ROWS * n, 0};
        for (int64_t j = 0; j < b->count; j++) {
            const int64_t i = b->base + j / n * COLS + j % n;
            const float f = i == odd ? value : 1;
            const bf16 half = f32_to_bf16(f);
            memcpy(inside + (size_t)j * size, size == 4 ? (void *)&f : (void *)&half, size);
        }
        b->hash = XXH3_64bits(inside, (size_t)b->count * size);
        EXPECT(!io_try_box(fd, path, &t, b, inside, true, &fault), "%s", fault.why);
    }
    close(fd);
    EXPECT(!store_try_publish(root, &m, &fault), "%s", fault.why);
}

/* dsv3-ckpt verify ends with this code and says words. */
static void expect_verify(const char *root, int code, const char *words)
{
    char command[1500], said[2048];
    snprintf(command, sizeof command, "%s/dsv3-ckpt verify %s 2>&1", getenv("DSV3_BUILD"), root);
    FILE *out = popen(command, "r");
    said[fread(said, 1, sizeof said - 1, out)] = '\0';
    const int status = pclose(out);
    EXPECT(status == code * 256 && strstr(said, words), "'%s' with %d: %#x, %s", words, code,
           (unsigned)status, said);
}

int main(void)
{
    static const struct {
        enum dtype dt;
        int64_t odd;
        float value;
        const char *said;
    } cases[] = {{DTYPE_F32, 0, NAN, "model/a: element 0 is nan"},
                 {DTYPE_F32, N - 1, INFINITY, "model/a: element 5999 is inf"},
                 {DTYPE_BF16, 4130, -INFINITY, "model/a: element 4130 is -inf"}};
    char root[600];
    snprintf(root, sizeof root, "%s/checkpoints", test_tmpdir());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_checkpoint(root, cases[i].dt, -1, 0);
        expect_verify(root, 0, ": good");
        write_checkpoint(root, cases[i].dt, cases[i].odd, cases[i].value);
        expect_verify(root, 65, cases[i].said);
    }
    write_checkpoint(root, DTYPE_F32, 17, 3.4e38f);
    expect_verify(root, 0, ": good");
    return test_end();
}
