/*
 * fuzz.h - what the fuzz targets share: libFuzzer calls LLVMFuzzerTestOneInput with mutated bytes;
 * a fault is a sanitizer's finding, a broken EXPECT, a hang or too much memory. tests/README.md.
 */
#pragma once
#define _GNU_SOURCE

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define EXPECT(cond, ...)                                                                          \
    do {                                                                                           \
        if (cond) break;                                                                           \
        fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);                                 \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        abort();                                                                                   \
    } while (0)

/* A file in memory that holds these bytes, the same one in every call; its path. */
static inline const char *fuzz_file(const void *bytes, size_t n)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    EXPECT(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n,
           "no file of %zu bytes", n);
    return path;
}
