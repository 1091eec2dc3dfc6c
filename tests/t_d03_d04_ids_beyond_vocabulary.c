/* One id outside the model's vocabulary, however far outside and among however many, stops the run:
 * at open when the header tells, and when its frame is read otherwise. The line names file, place,
 * id and vocabulary, and is the same whether or not the embedding is split over ranks. */
// TEST ranks=1 timeout=100 cores=2
#include "data_fixture.h"

enum { N = 70000, PLACE = 66000, FEW = 2000, MANY = 10000000, MANY_T = 65536 };

static uint32_t odd_id;
static int64_t odd_place;
static uint32_t one_odd(int64_t i)
{
    return i == odd_place ? odd_id : (uint32_t)(i % 509);
}

static const char *make(const char *name, uint32_t id, int64_t place, int64_t n)
{
    odd_id = id;
    odd_place = place;
    return fixture_shard(name, id < 129280 ? 129280 : UINT64_C(1) << 32, one_odd, 0, n, NULL, 0);
}

/* A header with a right hash that promises less than the frames hold. */
static void hide(const char *path)
{
    struct shard_header h = fixture_header(path);
    h.max_id = FIXTURE_VOCAB - 1;
    fixture_set_header(path, h);
}

static void check_id(uint32_t id)
{
    const char *path = make("id.tok.zst", id, PLACE, N);
    char at_open[128], at_read[128];

    snprintf(at_open, sizeof at_open,
             "id.tok.zst: largest id %u %cvocabulary 512 (model.vocab_size)%c", id, 0, 0);
    fixture_expect(fixture_open_it, path, CODE_DATA, at_open);
    hide(path);
    snprintf(at_read, sizeof at_read, "id.tok.zst: token %d %cis id %u, vocabulary 512%c", PLACE, 0,
             id, 0);
    fixture_expect(fixture_read_it, path, CODE_DATA, at_read);
}

static void read_many(const char *path)
{
    struct dataset *ds = fixture_open(path, MANY_T);
    struct window *win = window_init(ds);
    static int32_t token[MANY_T + 1], doc_start[MANY_T + 1];
    struct fault fault;
    for (int64_t s = 0; s < dataset_samples(ds); s++)
        if (window_try_read(win, s, token, doc_start, &fault) != 0)
            DIE(fault.code, "%s", fault.why);
}
static void open_skipping(const char *path)
{
    const struct data_sources paths = data_source_at(path);
    dataset_open(&paths, "train", MANY_T, FIXTURE_VOCAB, true, NULL);
}

/* One id in ten million; leaving out broken shards does not let it pass either. */
static void check_many(void)
{
    const char *path = make("many.tok.zst", FIXTURE_VOCAB, MANY - 100000, MANY);
    fixture_expect(open_skipping, path, CODE_DATA, "largest id 512 \0vocabulary 512\0");
    hide(path);
    fixture_expect(read_many, path, CODE_DATA, "token 9900000 \0is id 512, vocabulary 512\0");
}

/* What `dsv3 train` on two ranks says from "train data" on; rank and host before it differ. */
static void train(const char *path, int tp, const char *overrides, int code, char said[2048])
{
    char command[2048], line[2048];

    snprintf(command, sizeof command,
             "timeout 60 mpirun -np 2 $DSV3_BUILD/dsv3 train "
             "tests/tiny.yaml run.dir=%s/run data.train=%s topology.tp=%d %s </dev/null 2>&1",
             test_tmpdir(), path, tp, overrides);
    FILE *out = popen(command, "r");
    EXPECT(out, "cannot start mpirun");
    *said = '\0';
    while (out && fgets(line, sizeof line, out)) {
        const char *fatal = strstr(line, "fatal"), *text = strstr(line, "train data: ");
        EXPECT(!strstr(line, "step: "), "tp %d trains: %s", tp, line);
        if (fatal) snprintf(said, 2048, "%s", text ? text : line);
    }
    const int status = out ? pclose(out) : 0;
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == code, "tp %d: status %#x, said: %s", tp,
           (unsigned)status, said);
}

static void check_ranks(uint32_t id)
{
    char split[2048], whole[2048], words[64];
    for (int hidden = 0; hidden < 2; hidden++) {
        const char *path = make("run.tok.zst", id, 1000, FEW);
        if (hidden) hide(path);
        train(path, 1, "", CODE_DATA, whole);
        train(path, 2, "", CODE_DATA, split);
        snprintf(words, sizeof words, "id %u", id);
        EXPECT(strstr(whole, words) && strstr(whole, "vocabulary 512"), "said: %s", whole);
        EXPECT(strcmp(whole, split) == 0, "tp 1: %stp 2: %s", whole, split);
    }
}

int main(void)
{
    check_id(FIXTURE_VOCAB);
    check_id(UINT32_C(1) << 31);
    check_id(UINT32_MAX);
    check_many();
    check_ranks(FIXTURE_VOCAB);
    check_ranks(UINT32_MAX);
    /* No rows are added to make the vocabulary even: there are no ids that only seem valid. */
    char said[2048];
    train(make("run.tok.zst", 1, 0, FEW), 2, "model.vocab_size=511", CODE_CONFIG, said);
    return test_end();
}
