/* A checkpoint written by one process: HDF5 opens it and finds the same numbers under the same
 * names, the manifest survives the way to text and back, a flipped bit anywhere is found. */
// TEST timeout=30
#include "ckpt/io.h"
#include "ckpt/layout.h"
#include "ckpt/store.h"
#include "tests/test.h"

#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { N_TENSORS = 5, MOST = 6000 };
static struct ckpt_tensor tensor[N_TENSORS] = {
    {.name = "model/a.weight", .dtype = DTYPE_F32, .n_dims = 2, .dim = {60, 100}, .n = 6000},
    {.name = "exp_avg/a.weight", .dtype = DTYPE_BF16, .n_dims = 2, .dim = {60, 100}, .n = 6000},
    {.name = "model/one", .dtype = DTYPE_F32, .n_dims = 1, .dim = {1}, .n = 1},
    {.name = "model/b.weight", .dtype = DTYPE_F32, .n_dims = 1, .dim = {777}, .n = 777},
    {.name = "exp_avg_sq/b.weight", .dtype = DTYPE_BF16, .n_dims = 1, .dim = {777}, .n = 777}};
static struct ckpt_box box[2 * N_TENSORS];

static float value(int t, int64_t i)
{
    return (float)(t + 1) * 0.5f + (float)(i % 64) - 32; /* exact in BF16 */
}

/* A box a vector, two a matrix: 30 and 70 of each row of 100. */
static void write_tensor(int t, int fd, const char *path)
{
    static char inside[MOST * 4];
    struct fault fault = {0};
    struct ckpt_tensor *x = &tensor[t];
    const size_t size = dtype_bytes(x->dtype);
    x->first_box = 2 * t, x->n_boxes = x->n_dims;
    for (int k = 0; k < x->n_boxes; k++) {
        struct ckpt_box *b = &box[2 * t + k];
        *b = (struct ckpt_box){.tensor = t, .run = x->n, .stride = x->n, .count = x->n};
        if (x->n_dims == 2)
            *b = (struct ckpt_box){t, k * 30, 0, k ? 70 : 30, 100, 60 * (k ? 70 : 30), 0};
        for (int64_t j = 0; j < b->count; j++) {
            const float f = value(t, b->base + j / b->run * b->stride + j % b->run);
            const bf16 half = f32_to_bf16(f);
            memcpy(inside + (size_t)j * size, size == 4 ? (void *)&f : (void *)&half, size);
        }
        b->hash = XXH3_64bits(inside, (size_t)b->count * size);
        EXPECT(!io_try_box(fd, path, x, b, inside, true, &fault), "%s", fault.why);
    }
}

static void write_files(const char *dir, const struct layout *layout)
{
    char path[CKPT_PATH + 40];
    struct fault fault = {0};
    for (int i = 0; i < layout->n_files; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, layout->file[i].file.name);
        const int fd = io_try_create(path, O_WRONLY, &fault);
        EXPECT(!layout_try_write(&layout->file[i], fd, path, &fault), "%s", fault.why);
        for (int t = 0; t < N_TENSORS; t++)
            if (tensor[t].file == i) write_tensor(t, fd, path);
        close(fd);
    }
}

/* As h5py does it: by name, made F32 by HDF5. */
static void check_hdf5(const char *dir, const struct manifest *m)
{
    char path[CKPT_PATH + 40];
    static float x[MOST];
    for (int t = 0; t < m->n_tensors; t++) {
        const struct ckpt_tensor *want = &m->tensor[t];
        snprintf(path, sizeof path, "%s/%s", dir, m->file[want->file].name);
        const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
        const hid_t set = H5Dopen2(file, want->name, H5P_DEFAULT);
        hsize_t dim[2] = {0, 0};
        const int n_dims = H5Sget_simple_extent_dims(H5Dget_space(set), dim, NULL);
        EXPECT(n_dims == want->n_dims && (int64_t)dim[0] == want->dim[0], "%s: shape", want->name);
        EXPECT(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0, "%s",
               want->name);
        for (int64_t i = 0; i < want->n; i++)
            EXPECT(x[i] == value(t, i), "%s[%lld] is %g", want->name, (long long)i, (double)x[i]);
        H5Dclose(set), H5Fclose(file);
    }
}

static int verify(const char *dir, struct fault *fault)
{
    struct manifest m;
    struct ckpt_reader r;
    int bad = manifest_try_read(&m, dir, fault);
    if (!bad) {
        ckpt_reader_init(&r, &m, dir);
        bad = ckpt_try_verify_config(&r, fault);
        for (int i = 0; !bad && i < m.n_files; i++) bad = ckpt_try_verify_file(&r, i, fault);
        for (int i = 0; !bad && i < m.n_boxes; i++) bad = ckpt_try_verify_box(&r, i, fault);
        ckpt_reader_free(&r);
    }
    manifest_free(&m);
    return bad;
}

/* One bit of every 97th byte, and of the first and last. */
static void check_flips(const char *dir, const char *name)
{
    char path[CKPT_PATH + 40];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_RDWR);
    EXPECT(fd >= 0 && fstat(fd, &st) == 0, "no %s", path);
    for (off_t at = 0; at < st.st_size; at += at + 98 < st.st_size ? 97 : 1) {
        struct fault fault = {0};
        unsigned char byte, other;
        EXPECT(pread(fd, &byte, 1, at) == 1, "%s", path);
        other = byte ^ (unsigned char)(1 << at % 8);
        EXPECT(pwrite(fd, &other, 1, at) == 1, "%s", path);
        EXPECT(verify(dir, &fault) == -1 && strstr(fault.why, dir), "%s: bit of byte %lld: %s",
               name, (long long)at, fault.why);
        EXPECT(pwrite(fd, &byte, 1, at) == 1, "%s", path);
    }
    close(fd);
}

int main(void)
{
    char root[600], dir[CKPT_PATH];
    struct layout layout;
    struct fault fault = {0};
    struct manifest m = {.version = "test",
                         .state = {.step = 7, .tokens = 1 << 20, .loss = NAN, .ranks = 1},
                         .config = (char *)"a: \"b\"\nc: 1\n"};
    struct ckpt_file file[N_TENSORS];
    snprintf(root, sizeof root, "%s/checkpoints", test_tmpdir());
    layout_make(&layout, strcat(strcpy(dir, test_tmpdir()), "/scratch"), tensor, N_TENSORS,
                80000); /* two files */
    for (int i = 0; i < layout.n_files; i++) file[i] = layout.file[i].file;
    m.file = file, m.n_files = layout.n_files, m.tensor = tensor, m.n_tensors = N_TENSORS;
    m.box = box, m.n_boxes = 2 * N_TENSORS;
    EXPECT(!store_try_begin(root, 7, &fault), "%s", fault.why);
    write_files(store_tmp_path(dir, root, 7), &layout);
    EXPECT(!store_try_publish(root, &m, &fault), "%s", fault.why);
    check_hdf5(store_path(dir, root, 7), &m);
    for (int i = 0; i < layout.n_files; i++) check_flips(dir, file[i].name);
    check_flips(dir, "manifest.json");
    check_flips(dir, "config.yaml");
    EXPECT(!verify(dir, &fault), "%s", fault.why);
    return test_end();
}
