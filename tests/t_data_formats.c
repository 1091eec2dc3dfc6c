/* Files of other programs give the ids and the documents that were put into them, whatever their
 * format, width, and the way it is told. */
// TEST ranks=1 timeout=60
#include "format_files.h"

enum { T = 1000 };

static struct data_sources stated(const char *path, enum data_format format, int bos, int eod)
{
    struct data_sources s = data_source_at(path);
    s.at[0].format = format;
    s.at[0].bos_id = bos;
    s.at[0].eod_id = eod;
    return s;
}

static void check_ends(const struct shard *shard)
{
    uint64_t end[N_DOCUMENTS], expected = 0;
    struct fault fault;

    EXPECT(shard_try_document_ends(shard, 0, N_DOCUMENTS, end, &fault) == 0, "%s", fault.why);
    for (int d = 0; d < N_DOCUMENTS; d++) {
        expected += (uint64_t)format_length[d];
        EXPECT(end[d] == expected, "%s: document %d ends at %lu", shard->path, d, (long)end[d]);
    }
}

/* documents: whether their boundaries are known. */
static void check_read(const struct data_sources *sources, enum marks marks, bool documents,
                       const char *format)
{
    const char *path = sources->at[0].path[0];
    struct dataset *ds = dataset_open(sources, "train", T, FIXTURE_VOCAB, false, NULL);
    struct window *win = window_init(ds);
    struct fault fault;
    int32_t token[T + 1], doc_start[T + 1];

    EXPECT(!strcmp(shard_format_name(&ds->shard[0]), format), "%s: read as %s", path,
           shard_format_name(&ds->shard[0]));
    EXPECT(dataset_tokens(ds) == N_IDS && dataset_samples(ds) == (N_IDS - 1) / T, "%s: %ld tokens",
           path, (long)dataset_tokens(ds));
    if (documents && marks == NO_MARKS) check_ends(&ds->shard[0]);
    for (int64_t s = 0; s < dataset_samples(ds); s++) {
        int n_wrong = 0, begin = 0, d = 0;
        EXPECT(window_try_read(win, s, token, doc_start, &fault) == 0, "%s", fault.why);
        for (int t = 0; t <= T; t++) {
            const int64_t i = s * T + t;
            while (documents && i >= begin + format_length[d]) begin += format_length[d++];
            const int64_t place = begin - s * T;
            n_wrong += token[t] != (int32_t)marked_id(i, marks);
            n_wrong += doc_start[t] != (place > 0 ? place : 0);
        }
        EXPECT(n_wrong == 0, "%s sample %ld: %d wrong tokens or documents", path, (long)s, n_wrong);
    }
    window_free(win);
    dataset_close(ds);
}

static void check_told(const char *path, enum marks marks, bool documents, const char *format)
{
    const struct data_sources s = data_source_at(path);
    check_read(&s, marks, documents, format);
}

static void check_stated(const char *path, enum data_format format, enum marks marks,
                         const char *name)
{
    const struct data_sources s =
        stated(path, format, marks == BEGINS ? DOCUMENT_ID : -1, marks == ENDS ? DOCUMENT_ID : -1);
    check_read(&s, marks, marks != NO_MARKS, name);
}

static void check_flat(void)
{
    check_told(format_raw("a.u16", 2, NO_MARKS), NO_MARKS, false, "u16");
    check_told(format_raw("a.u32", 4, NO_MARKS), NO_MARKS, false, "u32");
    check_stated(format_raw("b.bin", 2, ENDS), DATA_FORMAT_U16, ENDS, "u16");
    check_stated(format_raw("c.bin", 4, BEGINS), DATA_FORMAT_U32, BEGINS, "u32");
    check_stated(format_raw("d.npy", 4, ENDS), DATA_FORMAT_U32, ENDS, "u32");

    /* Documents of llm.c begin with ids beyond this vocabulary, unless another is stated. */
    check_told(format_llmc("e.bin", 20240520, 1, 2), BEGINS, false, "llmc");
    check_stated(format_llmc("e.bin", 20240520, 1, 2), DATA_FORMAT_AUTO, BEGINS, "llmc");
    check_stated(format_llmc("f.bin", 20240801, 7, 4), DATA_FORMAT_LLMC, BEGINS, "llmc");

    check_told(format_npy("g.npy", 1,
                          "{'descr': '<u2', 'fortran_order': False, 'shape': (70000,), }\n", 2),
               NO_MARKS, false, "npy");
    check_told(format_npy("h.npy", 2,
                          "{'descr': '<i8', 'fortran_order': False, 'shape': (7, 10000), }\n", 8),
               NO_MARKS, false, "npy");
    check_told(
        format_npy("i", 3, "{'descr': '<i4', 'fortran_order': False, 'shape': (70000,)}\n", 4),
        NO_MARKS, false, "npy");
}

static void check_indexed(void)
{
    char prefix[1024];

    check_told(format_megatron("m2", 8, 2), NO_MARKS, true, "megatron");
    check_told(format_megatron("m4", 4, 4), NO_MARKS, true, "megatron");
    check_told(format_megatron("m8", 5, 8), NO_MARKS, true, "megatron");
    check_told(format_megatron("mi", 3, 2), NO_MARKS, true, "megatron");
    snprintf(prefix, sizeof prefix, "%s", fixture_path("m4"));
    check_told(prefix, NO_MARKS, true, "megatron");

    check_told(format_datatrove("a.ds", "some/tokenizer|2\n70000\n70 kT", 2), NO_MARKS, true,
               "datatrove");
    check_told(format_datatrove("b.ds", "some/tokenizer|4\n70000\n70 kT\n", 4), NO_MARKS, true,
               "datatrove");
    check_told(format_datatrove("c.ds", "older\n70000\n", 4), NO_MARKS, true, "datatrove");
    unlink(fixture_path("c.ds.index")); /* then the ids tell */
    format_raw("c.ds", 4, ENDS);
    check_stated(fixture_path("c.ds"), DATA_FORMAT_AUTO, ENDS, "datatrove");
}

/* A directory stands for its shards of any format, or of the one stated; beside them may be more.
 */
static void check_directory(void)
{
    mkdir(fixture_path("dir"), 0755);
    format_megatron("dir/a", 8, 2);
    format_datatrove("dir/b.ds", "t|2\n70000\n", 2);
    format_raw("dir/c.u32", 4, NO_MARKS);
    format_write("dir/README.txt", "text", 4);
    struct data_sources s = stated(fixture_path("dir"), DATA_FORMAT_AUTO, -1, -1);
    struct dataset *ds = dataset_open(&s, "train", T, FIXTURE_VOCAB, false, NULL);
    EXPECT(ds->n_shards == 3 && dataset_tokens(ds) == 3 * N_IDS, "%d shards", ds->n_shards);
    dataset_close(ds);
    s.at[0].format = DATA_FORMAT_MEGATRON;
    ds = dataset_open(&s, "train", T, FIXTURE_VOCAB, false, NULL);
    EXPECT(ds->n_shards == 1 && dataset_documents(ds) == N_DOCUMENTS, "%d shards", ds->n_shards);
    dataset_close(ds);
}

int main(void)
{
    check_flat();
    check_indexed();
    check_directory();
    return test_end();
}
