/* Shards that are cut, altered, empty, unreadable or missing stop the run at once, before anything
 * of them is used, with the right exit code and one line that names file, place, found and
 * expected. */
// TEST ranks=1 timeout=30
#include "data_fixture.h"

enum { T = FIXTURE_T, N = 70000 };

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : -1;
}

static const char *make(const char *name)
{
    const int length[] = {30000, 30000, 10000};
    return fixture_shard(name, FIXTURE_VOCAB, fixture_id, 0, N, length, 3);
}

/* Changes one byte, which is then certainly another one. */
static void flip(const char *path, int64_t at)
{
    unsigned char byte = 0;
    const int fd = open(path, O_RDONLY);
    EXPECT(pread(fd, &byte, 1, at) == 1, "cannot read %s", path);
    close(fd);
    byte ^= 0x10;
    fixture_patch(path, at, &byte, 1);
}

static void check_cut_and_altered(void)
{
    const char *path = make("cut.tok.zst");
    const int64_t size = size_of(path);
    char words[128];

    snprintf(words, sizeof words, "cut.tok.zst%c%ld bytes found%cexpected %ld%c", 0, (long)size - 3,
             0, (long)size, 0);
    EXPECT(truncate(path, size - 3) == 0, "truncate");
    fixture_expect(fixture_open_it, path, CODE_DATA, words);
    EXPECT(truncate(path, 100) == 0, "truncate");
    fixture_expect(fixture_open_it, path, CODE_DATA, "100 bytes found\0at least 256\0");
    EXPECT(truncate(path, 0) == 0, "truncate");
    fixture_expect(fixture_open_it, path, CODE_DATA, "0 bytes found\0");

    flip(make("a.tok.zst"), 24); /* the number of tokens: the header's hash does not fit it */
    fixture_expect(fixture_open_it, fixture_path("a.tok.zst"), CODE_DATA,
                   "header_hash\0at byte 248\0");
    flip(make("b.tok.zst"), 600); /* in the first frame: found when it is read, before it is used */
    fixture_expect(fixture_read_it, fixture_path("b.tok.zst"), CODE_DATA,
                   "frame 0 at byte 256\0altered\0expected 131072 bytes of ids\n\0");
    make("c.tok.zst"); /* the last document end and the seek table: found at open */
    const int64_t ends = size - 17 - 8 * 4 - 8;
    flip(fixture_path("c.tok.zst"), ends);
    fixture_expect(fixture_open_it, fixture_path("c.tok.zst"), CODE_DATA, "document end\0");
    flip(make("d.tok.zst"), size - 17 - 8);
    fixture_expect(fixture_open_it, fixture_path("d.tok.zst"), CODE_DATA, "seek table\0");
    fixture_patch(make("e.tok.zst"), 0, "PK\3\4", 4);
    fixture_expect(fixture_open_it, fixture_path("e.tok.zst"), CODE_DATA, "not a token shard\0");
}

/* A right header that promises 1000 tokens in front of 900. */
static void check_claims(void)
{
    const char *path = fixture_shard("claim.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 900, NULL, 0);
    struct shard_header h = fixture_header(path);
    h.n_tokens = 1000;
    fixture_set_header(path, h);
    fixture_expect(fixture_open_it, path, CODE_DATA,
                   "claim.tok.zst: bytes of ids in the seek table\0is 1800\0expected 2000\0");
}

static void open_as_nobody(const char *path)
{
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(1); /* root may read everything */
    fixture_open_it(path);
}

static void check_missing(void)
{
    mkdir(fixture_path("empty"), 0755);
    fixture_expect(fixture_open_it, fixture_path("none.tok.zst"), CODE_NO_INPUT,
                   "none.tok.zst\0No such\0");
    fixture_expect(fixture_open_it, fixture_path("empty"), CODE_NO_INPUT, "no *.tok.zst\0");
    EXPECT(chmod(make("secret.tok.zst"), 0) == 0, "chmod");
    fixture_expect(open_as_nobody, fixture_path("secret.tok.zst"), CODE_NO_INPUT,
                   "secret.tok.zst\0Permission denied\0");
    mkdir(fixture_path("empty/d.tok.zst"), 0755);
    fixture_expect(fixture_open_it, fixture_path("empty"), CODE_NO_INPUT, "not a regular file\0");
    fixture_expect(fixture_read_it,
                   fixture_shard("none.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 0, NULL, 0),
                   CODE_DATA, "0 tokens found, a shard has\0");
}

static void check_short_and_twice(void)
{
    const char *path = fixture_shard("short.tok.zst", FIXTURE_VOCAB, fixture_id, 0, T, NULL, 0);
    fixture_expect(fixture_open_it, path, CODE_DATA, "32 tokens\0needs 33\0sequence_length\0");
    /* One token more is a sample. */
    path = fixture_shard("short.tok.zst", FIXTURE_VOCAB, fixture_id, 0, T + 1, NULL, 0);
    fixture_expect(fixture_read_it, path, CODE_DONE, "\0");
    mkdir(fixture_path("twice"), 0755);
    EXPECT(symlink("../short.tok.zst", fixture_path("twice/a.tok.zst")) == 0, "symlink");
    EXPECT(symlink("../short.tok.zst", fixture_path("twice/b.tok.zst")) == 0, "symlink");
    fixture_expect(fixture_open_it, fixture_path("twice"), CODE_DATA, "are the same file\0");
}

int main(void)
{
    check_cut_and_altered();
    check_claims();
    check_missing();
    check_short_and_twice();
    return test_end();
}
