/*
 * data_fixture.h - shards made to measure for the tests of the data stage, a dataset of them, and a
 * way to see how a fatal fault ends a process.
 */
#pragma once
#include "data/dataset.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <xxhash.h>

enum { FIXTURE_VOCAB = 512, FIXTURE_T = 32 };

static inline const char *fixture_path(const char *name)
{
    static char path[4][1024]; /* the last four stay valid */
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", test_tmpdir(), name);
    return p;
}

/* A shard of n tokens id(first), id(first + 1), ...; documents end after length[0], length[0] +
 * length[1], ... tokens; n_documents 0: one document that does not end here. */
static inline const char *fixture_shard(const char *name, uint64_t vocab, uint32_t (*id)(int64_t),
                                        int64_t first, int64_t n, const int *length,
                                        int n_documents)
{
    const struct shard_kind kind = {.vocab_size = vocab, .tokenizer = "test", .level = 1};
    const char *path = fixture_path(name);
    struct shard_writer *w = shard_writer_init(path, &kind);
    int64_t left = n_documents > 0 ? length[0] : -1;
    int document = 0;

    for (int64_t i = 0; i < n; i++) {
        const uint32_t x = id(first + i);
        shard_writer_add(w, &x, 1);
        if (--left == 0) {
            shard_writer_end_document(w);
            left = ++document < n_documents ? length[document] : -1;
        }
    }
    shard_writer_finish(w);
    shard_writer_commit(w);
    return path;
}

/* Ids that tell the place in the stream apart. */
static inline uint32_t fixture_id(int64_t i)
{
    return (uint32_t)(i * 7 + i / 509) % 509;
}

static inline struct dataset *fixture_open(const char *path, int T)
{
    const struct data_sources paths = data_source_at(path);
    return dataset_open(&paths, "train", T, FIXTURE_VOCAB, false, NULL);
}

/* Runs body(arg) in a child process. Returns its exit code; text gets what it wrote to stderr. */
static inline int fixture_die(void (*body)(const char *arg), const char *arg, char text[2048])
{
    int ends[2], status;
    ssize_t n;
    size_t used = 0;

    if (pipe(ends) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        alarm((unsigned)test_patience_s(10)); /* a fault that hangs is a failure too */
        body(arg);
        _exit(0);
    }
    close(ends[1]);
    while (used < 2047 && (n = read(ends[0], text + used, 2047 - used)) > 0) used += (size_t)n;
    text[used] = '\0';
    close(ends[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void fixture_open_it(const char *path)
{
    fixture_open(path, FIXTURE_T);
}

/* As training does: open, then read every sample. */
static inline void fixture_read_it(const char *path)
{
    struct dataset *ds = fixture_open(path, FIXTURE_T);
    struct reader *rd = reader_init(ds, 1, false, 1, 1);
    for (int64_t g = 0; g < dataset_samples(ds); g++) {
        struct fault fault;
        reader_request(rd, &g, 1);
        if (!reader_try_wait(rd, &fault)) DIE(fault.code, "%s", fault.why);
    }
}

/* The exit code, and words that the one line says, each ended by \\0 and all by an empty one. */
static inline void fixture_expect(void (*body)(const char *), const char *path, int code,
                                  const char *words)
{
    char text[2048];
    const int got = fixture_die(body, path, text);

    EXPECT(got == code, "%s: exit code %d, expected %d; said: %s", path, got, code, text);
    for (const char *w = words; *w; w += strlen(w) + 1) /* words end with an empty one */
        EXPECT(strstr(text, w), "%s: '%s' is not in: %s", path, w, text);
    EXPECT(code == CODE_DONE || strchr(text, '\n') == text + strlen(text) - 1,
           "more than one line: %s", text);
}

static inline void fixture_patch(const char *path, int64_t at, const void *bytes, size_t n)
{
    const int fd = open(path, O_WRONLY);
    EXPECT(fd >= 0 && pwrite(fd, bytes, n, at) == (ssize_t)n, "cannot patch %s", path);
    close(fd);
}

/* Another number of tokens, largest id, ... in the header, with its hash right again. */
static inline struct shard_header fixture_header(const char *path)
{
    struct shard shard = {0};
    struct fault fault;
    EXPECT(shard_try_open(&shard, path, NULL, &fault) == 0, "%s", fault.why);
    const struct shard_header h = shard.header;
    shard_close(&shard);
    return h;
}
static inline void fixture_set_header(const char *path, struct shard_header h)
{
    h.header_hash = XXH64(&h, sizeof h - sizeof h.header_hash, 0);
    fixture_patch(path, 0, &h, sizeof h);
}
