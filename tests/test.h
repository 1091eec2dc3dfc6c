/*
 * test.h - the few things every test program needs; header-only, with or without MPI_Init.
 *
 *     EXPECT(x == 3, "x is %d", x);     counts and prints a failure, and goes on
 *     const char *dir = test_tmpdir();  a directory of its own, shared by the ranks of one test
 *     return test_end();                last line of main: 0, or 1 when any rank saw a failure
 *     return test_skip("no GPU");       instead, when this machine cannot run the test
 *
 * tests/run starts the programs and reads how from their second line (see there).
 */
#pragma once
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEST_SKIPPED = 77, TEST_MAX_PRINTED = 20 };

/* A sanitizer's own memory and code are part of the process: how much it uses says nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TEST_SANITIZED = 1 };
#else
enum { TEST_SANITIZED = 0 };
#endif

static struct {
    int n_failed;
    char dir[512];
    bool dir_mine; /* made by this process, so removed by it */
} test_state;

#define EXPECT(cond, ...)                                                                          \
    do {                                                                                           \
        if (!(cond)) test_failed(__FILE__, __LINE__, #cond, __VA_ARGS__);                          \
    } while (0)

/* True between MPI_Init and MPI_Finalize. */
static inline bool test_mpi_is_up(void)
{
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    return begun && !ended;
}

/* How many seconds to wait for what takes at most so many on an idle machine: tests/run knows how
 * busy this one is and how the program was built. */
static inline int test_patience_s(int seconds)
{
    const char *scale = getenv("DSV3_TIMEOUT_SCALE");
    const int times = scale ? atoi(scale) : 1;
    return seconds * (times > 0 ? times : 1);
}

/* Count one failure of this rank and print it in one write; a flood is cut off. */
__attribute__((format(printf, 4, 5))) static inline void
test_failed(const char *file, int line, const char *cond, const char *fmt, ...)
{
    char why[1024];
    int rank = 0, size = 1;

    if (test_state.n_failed++ >= TEST_MAX_PRINTED) return;
    if (test_mpi_is_up()) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (size > 1)
        fprintf(stderr, "%s:%d: [rank %d/%d] %s: %s\n", file, line, rank, size, cond, why);
    else
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, cond, why);
}

/*
 * An empty directory for this test, the same on all ranks; made on the first call, which is
 * collective under MPI. tests/run provides and removes it; by hand test_end() removes it.
 */
static inline const char *test_tmpdir(void)
{
    const char *given = getenv("DSV3_TEST_TMP"), *base = getenv("TMPDIR");
    const bool mpi = test_mpi_is_up();
    char *dir = test_state.dir;
    int rank = 0;

    if (*dir) return dir;
    if (mpi) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (given) {
        snprintf(dir, sizeof test_state.dir, "%s", given);
    } else if (rank == 0) {
        snprintf(dir, sizeof test_state.dir, "%s/dsv3-test-XXXXXX", base ? base : "/tmp");
        test_state.dir_mine = mkdtemp(dir) != NULL;
        EXPECT(test_state.dir_mine, "cannot make %s", dir);
    }
    if (mpi && !given) MPI_Bcast(dir, sizeof test_state.dir, MPI_CHAR, 0, MPI_COMM_WORLD);
    return dir;
}

/* The exit code of this test. Collective under MPI; ends MPI when the program has not. */
static inline int test_end(void)
{
    int n_failed = test_state.n_failed;

    if (test_mpi_is_up()) {
        MPI_Allreduce(MPI_IN_PLACE, &n_failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Finalize();
    }
    if (test_state.n_failed > TEST_MAX_PRINTED)
        fprintf(stderr, "... and %d more failures\n", test_state.n_failed - TEST_MAX_PRINTED);
    if (test_state.dir_mine) {
        char command[600];
        snprintf(command, sizeof command, "rm -rf -- '%s'", test_state.dir);
        if (system(command) != 0) fprintf(stderr, "left behind: %s\n", test_state.dir);
    }
    return n_failed > 0;
}

/* Ends a test that does not apply here; the same on all ranks, called instead of test_end(). */
static inline int test_skip(const char *why)
{
    if (test_mpi_is_up()) MPI_Finalize();
    printf("skipped: %s\n", why);
    return TEST_SKIPPED;
}
