/* dataset_check.c - whether a dataset is what the run takes it for: documents that can be told
 * apart, held-out data of the same tokenizer that is not trained on. The manual is data.h. */
#include "data/dataset.h"

#include "base/mem.h"
#include "topo/wait.h"

#include <string.h>
#include <sys/stat.h>

/* Frames of a shard that are looked at for an id, at most. */
enum { MAX_LOOKS = 64 };

/* An id that begins or ends documents of a source. */
struct mark {
    const char *key;
    int id; /* -1: none */
    bool stated;
};

/* Of the first shard whose documents are told by ids. False: the source has none. */
static bool find_marks(const struct dataset *ds, int s, const struct data_source *stated,
                       struct mark mark[2])
{
    int i = 0;
    while (i < ds->n_shards && !(ds->source_of[i] == s && ds->shard[i].info.by_id)) i++;
    if (i == ds->n_shards) return false;
    mark[0] = (struct mark){"eod_id", ds->shard[i].info.eod_id, stated->eod_id >= 0};
    mark[1] = (struct mark){"bos_id", ds->shard[i].info.bos_id, stated->bos_id >= 0};
    return true;
}

/* Which of the marks are in the shard: bit m for mark m. Frames are spread over the shard, the
 * first one first; -1 with fault. */
static int try_find_ids(const struct shard *shard, const struct mark mark[2], int wanted,
                        struct fault *fault)
{
    const int64_t n_frames = shard->info.n_frames, n = n_frames < MAX_LOOKS ? n_frames : MAX_LOOKS;
    struct shard_decoder dec;
    void *ids = mem_alloc((size_t)SHARD_FRAME_TOKENS * sizeof(uint32_t), "frame of ids");
    int found = 0;

    shard_decoder_init(&dec);
    for (int64_t k = 0; k < n && found >= 0 && (found & wanted) != wanted; k++) {
        const int64_t frame = k * n_frames / n;
        const int bad = shard_try_frame(shard, frame, &dec, ids, fault);
        for (int64_t i = 0; !bad && i < shard_frame_tokens(shard, frame); i++) {
            const int64_t id = shard_id(ids, shard->info.id_bytes, i);
            found |= (id == mark[0].id) | (id == mark[1].id) << 1;
        }
        if (bad) found = -1;
    }
    shard_decoder_free(&dec);
    mem_free(ids);
    return found;
}

/* Every n-th shard is this rank's, n being the number of ranks. */
static int try_find_marks(const struct dataset *ds, int s, const struct mark mark[2], int wanted,
                          const struct mesh *mesh, struct fault *fault)
{
    const int rank = mesh ? mesh->rank : 0, size = mesh ? mesh->size : 1;
    int found = 0;

    for (int i = rank; i < ds->n_shards && (found & wanted) != wanted; i += size) {
        if (ds->source_of[i] != s || !ds->shard[i].info.by_id) continue;
        const int here = try_find_ids(&ds->shard[i], mark, wanted, fault);
        if (here < 0) return -1;
        found |= here;
    }
    return found;
}

/* Ids that are stated, and with masked those that a format has, come in the data. */
static void check_marks(const struct dataset *ds, int s, const struct data_source *stated,
                        bool masked, const struct mesh *mesh)
{
    struct fault fault = {0};
    struct mark mark[2];
    if (!find_marks(ds, s, stated, mark)) return;
    int wanted = 0;
    for (int m = 0; m < 2; m++)
        if (mark[m].id >= 0 && (mark[m].stated || masked)) wanted |= 1 << m;
    int found = try_find_marks(ds, s, mark, wanted, mesh, &fault);
    dataset_agree(ds, mesh, found >= 0, &fault);
    if (mesh) mesh_combine(&found, 1, MPI_BOR, "ids that end documents");
    for (int m = 0; m < 2; m++)
        if (wanted & ~found & 1 << m)
            fault_set(&fault, CODE_DATA,
                      "%s: %s %d is not among its ids (up to %d x %d of each shard were looked "
                      "at), so it %s no document; expected the tokenizer's",
                      dataset_source_info(ds, s).path, mark[m].key, mark[m].id, MAX_LOOKS,
                      SHARD_FRAME_TOKENS, m == 0 ? "ends" : "begins");
    dataset_agree(ds, mesh, fault.code == CODE_DONE, &fault);
}

/* Nothing would be masked, and nobody would know. */
static int try_check_ends(const struct dataset *ds, int s, struct fault *fault)
{
    int64_t n_listed = 0;
    bool by_id = false;
    int untold = -1;

    for (int i = 0; i < ds->n_shards; i++) {
        const struct shard *shard = &ds->shard[i];
        if (ds->source_of[i] != s) continue;
        n_listed += shard->info.n_documents;
        by_id |= shard->info.by_id;
        /* one of our own may lie within one long document */
        if (!shard->info.by_id && shard->info.n_documents == 0 &&
            strcmp(shard_format_name(shard), "native") != 0)
            untold = i;
    }
    if (untold >= 0)
        return fault_set(fault, CODE_DATA,
                         "%s: data.document_mask is true, but nothing tells where its documents "
                         "end; state {path: ..., eod_id: N} with the tokenizer's end-of-document "
                         "id",
                         ds->shard[untold].path);
    if (n_listed > 0 || by_id) return 0;
    return fault_set(fault, CODE_DATA,
                     "%s: data.document_mask is true, but no shard of this source has the end of a "
                     "document: there is nothing to mask",
                     dataset_source_info(ds, s).path);
}

void dataset_check_documents(const struct dataset *ds, const struct data_sources *sources,
                             bool masked, const struct mesh *mesh)
{
    struct fault fault = {0};
    for (int s = 0; s < ds->n_sources; s++) {
        const bool ok = !masked || try_check_ends(ds, s, &fault) == 0;
        dataset_agree(ds, mesh, ok, &fault);
        check_marks(ds, s, &sources->at[s], masked, mesh);
    }
}

static int try_one_tokenizer(const struct dataset *train, const struct dataset *heldout,
                             struct fault *fault)
{
    const struct shard *a = dataset_known_tokenizer(train, train->n_shards);
    const struct shard *b = dataset_known_tokenizer(heldout, heldout->n_shards);

    if (!a || !b || a->info.tokenizer_hash == b->info.tokenizer_hash) return 0;
    return fault_set(fault, CODE_DATA,
                     "%s: tokenizer \"%s\" (0x%016lx), but %s of train has \"%s\" "
                     "(0x%016lx)",
                     b->path, b->info.tokenizer, (unsigned long)b->info.tokenizer_hash, a->path,
                     a->info.tokenizer, (unsigned long)a->info.tokenizer_hash);
}

/* The same file by another name, or a copy. */
static bool are_same(const struct shard *a, const struct shard *b)
{
    struct stat at, bt;
    if (a->info.n_tokens != b->info.n_tokens || a->info.file_bytes != b->info.file_bytes)
        return false;
    return a->info.content_hash == b->info.content_hash ||
           (fstat(a->fd, &at) == 0 && fstat(b->fd, &bt) == 0 && at.st_dev == bt.st_dev &&
            at.st_ino == bt.st_ino);
}

static int try_apart(const struct dataset *train, const struct dataset *heldout,
                     struct fault *fault)
{
    for (int i = 0; i < heldout->n_shards; i++)
        for (int k = 0; k < train->n_shards; k++)
            if (are_same(&heldout->shard[i], &train->shard[k]))
                return fault_set(fault, CODE_DATA,
                                 "%s is also trained on, as %s; expected data of its own, or "
                                 "data.heldout_share",
                                 heldout->shard[i].path, train->shard[k].path);
    return 0;
}

void dataset_check_heldout(const struct dataset *train, const struct dataset *heldout,
                           const struct mesh *mesh)
{
    struct fault fault = {0};
    const bool ok =
        try_one_tokenizer(train, heldout, &fault) == 0 && try_apart(train, heldout, &fault) == 0;
    dataset_agree(heldout, mesh, ok, &fault);
}
