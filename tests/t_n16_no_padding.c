/* Shards with padding are refused where it lies; a padding id that is also the end of a document is
 * text. */
// TEST ranks=1 timeout=20
#include "data_fixture.h"

enum { N = 70000, AT = 66000, PAD = 300, EOD = 256 };

static uint32_t with_pad(int64_t i)
{
    return i == AT ? PAD : (uint32_t)i % 256;
}

static const char *write_shard(const char *name, int32_t eod, int32_t pad, uint64_t vocab)
{
    const struct shard_kind kind = {.vocab_size = vocab,
                                    .tokenizer = "test",
                                    .bos_id = -1,
                                    .eod_id = eod,
                                    .pad_id = pad,
                                    .level = 1};
    const char *path = fixture_path(name);
    struct shard_writer *w = shard_writer_init(path, &kind);
    for (int64_t i = 0; i < N; i++) {
        const uint32_t id = with_pad(i);
        shard_writer_add(w, &id, 1);
    }
    shard_writer_finish(w);
    shard_writer_commit(w);
    return path;
}

int main(void)
{
    const char *words = "token 66000\0is 300\0padding\0";
    fixture_expect(fixture_read_it, write_shard("u16.tok.zst", EOD, PAD, FIXTURE_VOCAB), CODE_DATA,
                   words);
    fixture_expect(fixture_read_it, write_shard("u32.tok.zst", EOD, PAD, 1 << 20), CODE_DATA,
                   words);
    fixture_expect(fixture_read_it, write_shard("none.tok.zst", EOD, -1, FIXTURE_VOCAB), CODE_DONE,
                   "");
    fixture_expect(fixture_read_it, write_shard("eod.tok.zst", PAD, PAD, FIXTURE_VOCAB), CODE_DONE,
                   "");
    fixture_expect(fixture_read_it, write_shard("unused.tok.zst", EOD, 301, FIXTURE_VOCAB),
                   CODE_DONE, "");
    return test_end();
}
