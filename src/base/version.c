/* version.c - see version.h. The one file that knows every library. */
#include "base/version.h"

#include <hdf5.h>
#include <jansson.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

#ifndef DSV3_VERSION
#define DSV3_VERSION "unknown"
#endif

/* The widest vectors that the compiler may use in all code, and that this processor has. */
#if defined(__AVX512F__)
#define VECTORS "AVX-512"
#elif defined(__AVX2__)
#define VECTORS "AVX2"
#elif defined(__AVX__)
#define VECTORS "AVX"
#elif defined(__SSE2__)
#define VECTORS "SSE2"
#elif defined(__ARM_FEATURE_SVE)
#define VECTORS "SVE"
#elif defined(__ARM_NEON)
#define VECTORS "NEON"
#else
#define VECTORS "no known vectors"
#endif

#if defined(__x86_64__)
#define PROCESSOR "x86-64"
static const char *vectors_here(void)
{
    if (__builtin_cpu_supports("avx512f")) return "AVX-512";
    if (__builtin_cpu_supports("avx2")) return "AVX2";
    return __builtin_cpu_supports("avx") ? "AVX" : "SSE2";
}
#else
#if defined(__aarch64__)
#define PROCESSOR "aarch64"
#else
#define PROCESSOR "this processor"
#endif
static const char *vectors_here(void)
{
    return VECTORS;
}
#endif

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

const char *version_commit(void)
{
    return DSV3_VERSION;
}

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2": what stands before the first comma or line break. */
static int mpi_name_length(char *text)
{
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' ';
    return (int)strcspn(text, ",\n");
}

const char *version_libraries(void)
{
    static char text[512];
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    unsigned major, minor, release;
    const unsigned xxhash = XXH_versionNumber();
    int n;
    MPI_CHECK(MPI_Get_library_version(mpi, &n)); /* may stand before MPI_Init */
    CHECK(H5get_libversion(&major, &minor, &release) >= 0, "HDF5 does not know its version");
    snprintf(text, sizeof text,
             "%.*s, HDF5 %u.%u.%u, zstd %s, zlib %s, libyaml %s, Jansson %s, xxHash %u.%u.%u",
             mpi_name_length(mpi), mpi, major, minor, release, ZSTD_versionString(), zlibVersion(),
             yaml_get_version_string(), JANSSON_VERSION, xxhash / 10000, xxhash / 100 % 100,
             xxhash % 100);
    return text;
}

/* What the system calls the processor; "" when it does not say. */
static void find_processor(char name[128])
{
    char line[256];
    FILE *in = fopen("/proc/cpuinfo", "r");
    *name = '\0';
    while (in && !*name && fgets(line, sizeof line, in))
        if (sscanf(line, "model name : %127[^\n]", name) != 1) *name = '\0';
    if (in) fclose(in);
}

enum exit_code version_print(const char *program)
{
    char processor[128];
    find_processor(processor);
    printf("%s %s\n", program, DSV3_VERSION);
    printf("libraries  %s\n", version_libraries());
    printf("built      for %s with %s, by %s\n", PROCESSOR, VECTORS, COMPILER);
    printf("here       %s%swith %s\n", processor, *processor ? ", " : "a processor ",
           vectors_here());
    return output_end();
}
