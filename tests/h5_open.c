/*
 * h5_open FILE ... - for tests: opens files as any program with HDF5 would, visits every object,
 * and prints how many datasets each has; the first that cannot be read ends it with exit code 1.
 */
#include <hdf5.h>
#include <stdio.h>

static herr_t visit(hid_t id, const char *name, const H5L_info_t *link, void *n)
{
    (void)link;
    const hid_t object = H5Oopen(id, name, H5P_DEFAULT);
    if (object < 0) return -1;
    if (H5Iget_type(object) == H5I_DATASET) {
        const hid_t space = H5Dget_space(object);
        if (space < 0 || H5Sclose(space) < 0) return -1;
        ++*(int *)n;
    }
    return H5Oclose(object);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int n = 0;
        const hid_t file = H5Fopen(argv[i], H5F_ACC_RDONLY, H5P_DEFAULT);
        if (file < 0 || H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, visit, &n) < 0) return 1;
        printf("%s: %d datasets, %d objects left open\n", argv[i], n,
               (int)H5Fget_obj_count(file, H5F_OBJ_ALL) - 1);
        if (H5Fclose(file) < 0) return 1;
    }
    return 0;
}
