/* Data that cannot be what the run takes them for are refused: documents to be masked that nothing
 * tells apart, an eod_id that never comes, held-out data of another tokenizer or trained on. */
// TEST ranks=1 timeout=60
#include "format_files.h"

/* What is opened: the source, how its documents are told, whether they are to be masked. */
static struct {
    struct data_source source;
    bool masked;
    const char *heldout;
} ask;

static struct dataset *open_source(const char *path, const char *what)
{
    struct data_sources s = data_source_at(path);
    s.at[0].eod_id = ask.source.eod_id;
    s.at[0].bos_id = ask.source.bos_id;
    struct dataset *ds = dataset_open(&s, what, FIXTURE_T, FIXTURE_VOCAB, false, NULL);
    dataset_check_documents(ds, &s, ask.masked, NULL);
    return ds;
}

static void open_asked(const char *path)
{
    struct dataset *train = open_source(path, "train");
    if (!ask.heldout) return;
    ask.source.eod_id = ask.source.bos_id = -1;
    dataset_check_heldout(train, open_source(ask.heldout, "heldout"), NULL);
}

static void expect(const char *path, bool masked, int eod, int bos, const char *words)
{
    ask.masked = masked;
    ask.source.eod_id = eod;
    ask.source.bos_id = bos;
    fixture_expect(open_asked, path, *words ? CODE_DATA : CODE_DONE, words);
}

/* Another tokenizer than that of fixture_shard, which knows none. */
static const char *shard_of(const char *name, const char *tokenizer, uint64_t hash, int64_t first)
{
    static char path[8][1024];
    static int n;
    EXPECT(n < 8, "more shards than there are paths for");
    snprintf(path[n], sizeof path[n], "%s", fixture_path(name));
    const struct shard_kind kind = {
        .vocab_size = 512, .tokenizer = tokenizer, .tokenizer_hash = hash, .level = 1};
    struct shard_writer *w = shard_writer_init(path[n], &kind);
    for (uint32_t i = 0; i < 1000; i++) {
        const uint32_t id = fixture_id(first + i);
        shard_writer_add(w, &id, 1);
    }
    shard_writer_finish(w);
    shard_writer_commit(w);
    return path[n++];
}

static void check_documents(void)
{
    static const int length[] = {100};
    const char *raw = format_raw("raw.u16", 2, ENDS), *bare = format_raw("bare.u16", 2, NO_MARKS);
    const char *listed = fixture_shard("listed.tok.zst", 512, fixture_id, 0, 1000, length, 1);
    const char *endless = fixture_shard("endless.tok.zst", 512, fixture_id, 0, 1000, NULL, 0);

    expect(bare, false, -1, -1, "");
    expect(bare, true, -1, -1, "bare.u16: data.document_mask is true, but nothing tells\0eod_id\0");
    expect(raw, true, DOCUMENT_ID, -1, "");
    expect(raw, false, -1, DOCUMENT_ID, "");
    expect(bare, false, DOCUMENT_ID, -1, "bare.u16: eod_id 500 is not among its ids\0ends no\0");
    expect(raw, true, DOCUMENT_ID, 501, "raw.u16: bos_id 501 is not among its ids\0begins no\0");
    expect(listed, true, -1, -1, "");
    expect(endless, false, -1, -1, "");
    expect(endless, true, -1, -1, "endless.tok.zst: data.document_mask is true, but no shard of\0");
    expect(format_llmc("l.bin", 20240801, 7, 4), false, -1, -1, "");
    expect(fixture_path("l.bin"), true, -1, -1, "bos_id 128000 is not among its ids\0");

    /* the only one, in the last frame of 130 of which 64 are looked at, and in one that is not */
    static const uint16_t id = DOCUMENT_ID;
    const int64_t n = (int64_t)130 * SHARD_FRAME_TOKENS;
    uint16_t *ids = calloc((size_t)n, sizeof *ids);
    for (int64_t i = 0; i < n; i++) ids[i] = (uint16_t)fixture_id(i) % 499;
    const char *big = format_write("big.u16", ids, (size_t)n * sizeof *ids);
    free(ids);
    expect(big, true, DOCUMENT_ID, -1, "big.u16: eod_id 500 is not among its ids\0");
    fixture_patch(big, (63 * 130 / 64 * (int64_t)SHARD_FRAME_TOKENS + 77) * 2, &id, sizeof id);
    expect(big, true, DOCUMENT_ID, -1, "");
}

static void check_heldout(void)
{
    const char *one = shard_of("one.tok.zst", "bytes", 0x1111, 0);
    const char *copy = shard_of("copy.tok.zst", "bytes", 0x1111, 0);
    const char *more = shard_of("more.tok.zst", "bytes", 0x1111, 5000);
    const char *other = shard_of("other.tok.zst", "v3", 0x2222, 5000);
    const char *untold = shard_of("untold.tok.zst", "", 0, 5000);
    const char *link_path = fixture_path("link.tok.zst");
    EXPECT(symlink(one, link_path) == 0, "cannot link %s", link_path);

    ask.heldout = more;
    expect(one, false, -1, -1, "");
    ask.heldout = untold;
    expect(one, false, -1, -1, "");
    ask.heldout = other;
    expect(one, false, -1, -1,
           "heldout data: \0other.tok.zst: tokenizer \"v3\" (0x0000000000002222), but \0"
           "one.tok.zst\0\"bytes\" (0x0000000000001111)\0");
    ask.heldout = copy;
    expect(one, false, -1, -1, "copy.tok.zst is also trained on, as \0one.tok.zst\0");
    ask.heldout = link_path;
    expect(one, false, -1, -1, "link.tok.zst is also trained on\0");
}

static void open_both(const char *both)
{
    struct data_sources s = data_source_at(both);
    s.n = 2;
    s.at[1] = s.at[0];
    s.at[1].path[0] = ask.heldout;
    dataset_open(&s, "train", FIXTURE_T, FIXTURE_VOCAB, false, NULL);
}

/* Sources of a mixture are of one tokenizer, too. */
static void check_mixture(void)
{
    const char *one = shard_of("one.tok.zst", "bytes", 0x1111, 0);
    ask.heldout = shard_of("other.tok.zst", "v3", 0x2222, 5000);
    fixture_expect(open_both, one, CODE_DATA,
                   "other.tok.zst: tokenizer \"v3\" (0x0000000000002222), but \0one.tok.zst has\0");
}

int main(void)
{
    check_documents();
    check_heldout();
    check_mixture();
    return test_end();
}
