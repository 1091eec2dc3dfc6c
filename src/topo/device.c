/* device.c - which of the machine's GPUs a rank computes on; see device.h. */
#include "topo/device.h"

#include "base/path.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

int device_try_choose(int local, int n_local, int n_visible, struct fault *fault)
{
    if (n_visible == 1) return 0; /* its own, or that of all */
    if (n_visible >= n_local) return local;
    if (n_visible == 0)
        return fault_set(fault, CODE_CONFIG,
                         "run.backend cuda: local rank %d sees no GPU; look at "
                         "CUDA_VISIBLE_DEVICES, with Slurm ask for some: --gpus-per-node=%d",
                         local, n_local);
    return fault_set(fault, CODE_CONFIG,
                     "run.backend cuda: %d ranks on this machine, local rank %d sees %d GPUs; "
                     "start one rank a GPU, and let each see all of them (srun --gpu-bind=none)",
                     n_local, local, n_visible);
}

/* Indices and UUIDs; an empty entry and a negative index are invalid. */
static int count_named(const char *list)
{
    int n = 0;
    while (*list && *list != ',' && *list != '-') {
        n++;
        list += strcspn(list, ",");
        if (*list == ',') list++;
    }
    return n;
}

/* Entries of a directory that are called prefix and then anything of these characters. */
static int count_entries(const char *root, const char *dir, const char *prefix, const char *chars)
{
    char path[PATH_BYTES];
    const size_t n_prefix = strlen(prefix);
    int n = 0;
    DIR *open = opendir(path_print(path, "%s%s", root, dir));
    for (const struct dirent *e; open && (e = readdir(open));) {
        const char *rest = e->d_name + n_prefix;
        if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, n_prefix) != 0) continue;
        n += *rest && !rest[strspn(rest, chars)];
    }
    if (open) closedir(open);
    return n;
}

static int count_device_files(const char *root)
{
    return count_entries(root, "/dev", "nvidia", "0123456789");
}

int device_n_visible(void)
{
    const char *named = getenv("CUDA_VISIBLE_DEVICES");
    return named ? count_named(named) : count_device_files("");
}

int device_n_present(const char *root)
{
    const int n_files = count_device_files(root);
    /* PCI addresses: 0000:3b:00.0 */
    const int n_driver = count_entries(root, "/proc/driver/nvidia/gpus", "", "0123456789abcdef:.");
    return n_files > n_driver ? n_files : n_driver;
}

int device_choose(const struct mesh *mesh)
{
    struct fault fault = {0};
    const int n_visible = device_n_visible();
    const int device =
        device_try_choose(mesh->machine_rank, mesh->machine_ranks, n_visible, &fault);
    AGREE(MPI_COMM_WORLD, device >= 0, CODE_CONFIG, fault.why);
    if (mesh->rank == 0 && mesh->machine_ranks > 1 && n_visible == 1)
        warn_line("%d ranks on this machine, and this one sees 1 GPU: if each has its own, they "
                  "may not reach one another directly (srun --gpu-bind=none shows all to all)",
                  mesh->machine_ranks);
    return device;
}
