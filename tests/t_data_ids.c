/* One id outside the model's vocabulary among many stops the run: at open when the header tells,
 * and when its frame is read otherwise; the line names file, place, id and vocabulary. */
// TEST ranks=1 timeout=30
#include "data_fixture.h"

#include <xxhash.h>

enum { N = 70000 };

static uint32_t vocab_id(int64_t i)
{
    return i == 66000 ? FIXTURE_VOCAB : 1;
}
static uint32_t high_id(int64_t i)
{
    return i == 66000 ? UINT32_C(1) << 31 : 1;
}
static uint32_t highest_id(int64_t i)
{
    return i == 66000 ? UINT32_MAX : 1;
}

/* Beside the header's promise, which is checked at open, every id is: here the header, with a right
 * hash, promises less than the frame holds. */
static void check_ids(uint32_t (*id)(int64_t), uint64_t vocab, const char *at_open,
                      const char *at_read)
{
    const char *path = fixture_shard("id.tok.zst", vocab, id, 0, N, NULL, 0);
    struct shard shard = {0};
    struct shard_fault fault;

    fixture_expect(fixture_open_it, path, CODE_DATA, at_open);
    EXPECT(shard_try_open(&shard, path, &fault) == 0, "%s", fault.why);
    struct shard_header h = shard.header;
    shard_close(&shard);
    h.max_id = FIXTURE_VOCAB - 1;
    h.header_hash = XXH64(&h, sizeof h - 8, 0);
    fixture_patch(path, 0, &h, sizeof h);
    fixture_expect(fixture_read_it, path, CODE_DATA, at_read);
}

int main(void)
{
    check_ids(vocab_id, 129280, "largest id 512\0vocabulary 512\0model.vocab_size\0",
              "token 66000\0id 512\0vocabulary 512\0");
    check_ids(high_id, UINT64_C(1) << 32, "largest id 2147483648\0", "id 2147483648\0");
    check_ids(highest_id, UINT64_C(1) << 32, "largest id 4294967295\0", "id 4294967295\0");
    return test_end();
}
