/*
 * fuzz.h - what the fuzz targets share: libFuzzer calls LLVMFuzzerTestOneInput with mutated bytes;
 * a fault is a sanitizer's finding, a broken EXPECT, a hang or too much memory. See tests/fuzz/run.
 */
#pragma once
#define _GNU_SOURCE

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static char fuzz_dir[64];

static inline void fuzz_remove_dir(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf -- '%s'", fuzz_dir);
    if (system(command) != 0) fprintf(stderr, "left behind: %s\n", fuzz_dir);
}

/* The path of a file of that name that holds these bytes; the last four paths stay valid. */
static inline const char *fuzz_file(const char *name, const void *bytes, size_t n)
{
    static char path[4][sizeof fuzz_dir + 64];
    static int next;
    char *p = path[next++ % 4];
    if (!*fuzz_dir) {
        snprintf(fuzz_dir, sizeof fuzz_dir, "/tmp/dsv3-fuzz-XXXXXX");
        EXPECT(mkdtemp(fuzz_dir), "cannot make %s", fuzz_dir);
        atexit(fuzz_remove_dir);
    }
    snprintf(p, sizeof path[0], "%s/%.60s", fuzz_dir, name);
    const int fd = open(p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0, "cannot write %s", p);
    return p;
}
