/* layout.c - see layout.h. The only file that knows HDF5. */
#include "ckpt/layout.h"

#include "base/mem.h"
#include "ckpt/io.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* Headers lie together in blocks, so that tensors lie side by side and there are few writes. */
enum { HEADER_BLOCK = 16384 };

/* Bytes of headers, at most. */
enum { FILE_OVERHEAD = 3 * HEADER_BLOCK, TENSOR_OVERHEAD = 2048 };

static const char *const groups[] = {"model", "exp_avg", "exp_avg_sq"};

/* HDF5's innermost message says what the system said, and of which file. */
static herr_t take_first(unsigned n, const H5E_error2_t *error, void *why)
{
    if (n == 0) snprintf(why, 400, "%s", error->desc);
    return 0;
}

static void h5_check(int64_t result, const char *what, int line)
{
    char why[400] = "no reason given";
    if (result >= 0) return;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, why);
    die_at(CODE_IO, __FILE__, line, NULL, "checkpoints: %s: %s", what, why);
}
#define H5_CHECK(call) h5_check((call), "HDF5", __LINE__)

static hid_t h5_open(hid_t id)
{
    H5_CHECK(id);
    return id;
}

/* BF16 as HDF5 knows it: a float of 16 bits with 8 bits of exponent. h5py reads it as F32. */
static hid_t element_type(enum dtype dtype)
{
    const hid_t type = h5_open(H5Tcopy(H5T_IEEE_F32LE));
    if (dtype == DTYPE_F32) return type;
    CHECK(dtype == DTYPE_BF16, "tensors of %s", dtype_name(dtype));
    H5_CHECK(H5Tset_fields(type, 15, 7, 8, 0, 7));
    H5_CHECK(H5Tset_precision(type, 16));
    H5_CHECK(H5Tset_size(type, 2));
    return type;
}

static void create_dataset(hid_t file, hid_t how, struct ckpt_tensor *t)
{
    const hsize_t dim[2] = {(hsize_t)t->dim[0], (hsize_t)t->dim[1]};
    const hid_t space = h5_open(H5Screate_simple(t->n_dims, dim, NULL));
    const hid_t type = element_type(t->dtype);
    const hid_t set =
        h5_open(H5Dcreate2(file, t->name, type, space, H5P_DEFAULT, how, H5P_DEFAULT));
    t->offset = (int64_t)H5Dget_offset(set);
    CHECK(t->offset > 0, "%s: offset %lld", t->name, (long long)t->offset);
    H5_CHECK(H5Dclose(set));
    H5_CHECK(H5Tclose(type));
    H5_CHECK(H5Sclose(space));
}

/* The newest format that HDF5 1.10 writes; what is large aligned; nothing that a clock shows in. */
static hid_t create_file(const char *path)
{
    const hid_t how = h5_open(H5Pcreate(H5P_FILE_CREATE));
    const hid_t access = h5_open(H5Pcreate(H5P_FILE_ACCESS));
    H5_CHECK(H5Pset_obj_track_times(how, false));
    H5_CHECK(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110));
    H5_CHECK(H5Pset_alignment(access, CKPT_ALIGN, CKPT_ALIGN));
    H5_CHECK(H5Pset_meta_block_size(access, HEADER_BLOCK));
    H5_CHECK(H5Pset_small_data_block_size(access, 0));
#if H5_VERSION_GE(1, 10, 7)
    H5_CHECK(H5Pset_file_locking(access, false, true)); /* network file systems may refuse it */
#endif
    H5_CHECK(H5Pset_fclose_degree(access, H5F_CLOSE_SEMI)); /* an object left open is an error */
    const hid_t file = h5_open(H5Fcreate(path, H5F_ACC_TRUNC, how, access));
    H5_CHECK(H5Pclose(access));
    H5_CHECK(H5Pclose(how));
    return file;
}

/* The file of tensors [0, n) in the memory behind path. */
static void create_layout(const char *path, struct ckpt_tensor *tensor, int n)
{
    const hid_t file = create_file(path);
    const hid_t group = h5_open(H5Pcreate(H5P_GROUP_CREATE));
    const hid_t set = h5_open(H5Pcreate(H5P_DATASET_CREATE));
    H5_CHECK(H5Pset_obj_track_times(group, false));
    H5_CHECK(H5Pset_obj_track_times(set, false));
    H5_CHECK(H5Pset_layout(set, H5D_CONTIGUOUS));
    H5_CHECK(H5Pset_alloc_time(set, H5D_ALLOC_TIME_EARLY));
    H5_CHECK(H5Pset_fill_time(set, H5D_FILL_TIME_NEVER));
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        H5_CHECK(H5Gclose(h5_open(H5Gcreate2(file, groups[i], H5P_DEFAULT, group, H5P_DEFAULT))));
    for (int i = 0; i < n; i++) create_dataset(file, set, &tensor[i]);
    H5_CHECK(H5Pclose(set));
    H5_CHECK(H5Pclose(group));
    h5_check(H5Fclose(file), path, __LINE__);
}

/* What lies between two tensors: into the hash, and, if it is not zero, into a part. */
static void keep_part(struct layout_file *f, XXH3_state_t *hash, int fd, int64_t from, int64_t to)
{
    if (from == to) return;
    CHECK(from < to, "tensors overlap at byte %lld", (long long)to);
    struct fault fault = {0};
    char *data = mem_alloc((size_t)(to - from), "headers of a checkpoint");
    const int bad = io_try_read(fd, f->file.name, data, to - from, from, &fault);
    CHECK_CODE(fault.code, !bad, "%s", fault.why);
    XXH3_64bits_update(hash, data, (size_t)(to - from));
    int64_t n = to - from;
    while (n > 0 && data[n - 1] == 0) n--;
    if (n == 0) {
        mem_free(data);
        return;
    }
    f->part[f->n_parts++] = (struct layout_part){from, n, data};
}

static void keep_headers(struct layout_file *f, int fd, const struct ckpt_tensor *tensor, int n)
{
    struct stat st;
    XXH3_state_t *hash = XXH3_createState();
    CHECK(hash && fstat(fd, &st) == 0, "no memory, or no headers: %s", strerror(errno));
    XXH3_64bits_reset(hash);
    f->file.bytes = st.st_size;
    f->part = mem_alloc(sizeof *f->part * (size_t)(n + 1), "headers of a checkpoint");
    const struct ckpt_tensor **in = ckpt_by_offset(tensor, n, tensor->file);
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        keep_part(f, hash, fd, at, in[i]->offset);
        at = in[i]->offset + in[i]->n * (int64_t)dtype_bytes(in[i]->dtype);
    }
    free((void *)in);
    keep_part(f, hash, fd, at, f->file.bytes);
    f->file.hash = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
}

static void make_file(struct layout *layout, const char *scratch, struct ckpt_tensor *tensor, int n)
{
    struct layout_file *f = &layout->file[layout->n_files];
    *f = (struct layout_file){0};
    snprintf(f->file.name, sizeof f->file.name, "tensors-%05d.h5", layout->n_files);
    for (int i = 0; i < n; i++) tensor[i].file = layout->n_files;
    layout->n_files++;
    create_layout(scratch, tensor, n);
    const int fd = open(scratch, O_RDONLY | O_CLOEXEC);
    CHECK_CODE(CODE_IO, fd >= 0 && unlink(scratch) == 0, "%s: %s", scratch, strerror(errno));
    keep_headers(f, fd, tensor, n);
    close(fd);
}

/* How many of the n tensors go into one file. */
static int fit(const struct ckpt_tensor *tensor, int n, int64_t file_bytes)
{
    int64_t sum = FILE_OVERHEAD;
    for (int i = 0; i < n; i++) {
        const int64_t data = tensor[i].n * (int64_t)dtype_bytes(tensor[i].dtype);
        const int64_t bytes = (data / CKPT_ALIGN + 1) * CKPT_ALIGN + TENSOR_OVERHEAD;
        if (i > 0 && sum + bytes > file_bytes) return i;
        sum += bytes;
    }
    return n;
}

void layout_make(struct layout *layout, const char *scratch, struct ckpt_tensor *tensor,
                 int n_tensors, int64_t file_bytes)
{
    int n_files = 0;
    H5_CHECK(H5Eset_auto2(H5E_DEFAULT, NULL, NULL)); /* one line is enough */
    for (int i = 0; i < n_tensors; i += fit(tensor + i, n_tensors - i, file_bytes)) n_files++;
    *layout = (struct layout){0};
    layout->file = mem_alloc(sizeof *layout->file * (size_t)n_files, "headers of a checkpoint");
    for (int i = 0, n; i < n_tensors; i += n) {
        n = fit(tensor + i, n_tensors - i, file_bytes);
        make_file(layout, scratch, tensor + i, n);
    }
    H5_CHECK(H5close()); /* nothing of it lives on */
}

void layout_free(struct layout *layout)
{
    for (int i = 0; i < layout->n_files; i++) {
        for (int p = 0; p < layout->file[i].n_parts; p++)
            mem_free((void *)layout->file[i].part[p].data);
        mem_free(layout->file[i].part);
    }
    mem_free(layout->file);
    *layout = (struct layout){0};
}

int layout_try_write(const struct layout_file *f, int fd, const char *path, struct fault *fault)
{
    int bad = ftruncate(fd, f->file.bytes) != 0 ? io_fault(fault, "enlarge", path) : 0;
    for (int p = 0; !bad && p < f->n_parts; p++)
        bad = io_try_write(fd, path, f->part[p].data, f->part[p].bytes, f->part[p].offset, fault);
    return bad;
}
