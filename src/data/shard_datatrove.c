/*
 * shard_datatrove.c - datatrove's NAME.ds: ids and nothing else. Beside it NAME.ds.metadata, lines
 * of text: the tokenizer's name (perhaps "|" and the bytes of an id), the number of ids; and
 * NAME.ds.index, u64 document_end[] in tokens.
 */
#include "data/shard_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { METADATA_BYTES = 4096, CHUNK = 2048 };

static void close_beside(struct shard *shard)
{
    close(shard->index_fd);
    shard->index_fd = -1;
}

/* The two first lines, NUL-terminated each; the first goes to info.tokenizer. */
static int read_metadata(struct shard *shard, uint64_t *n_tokens, uint64_t *width,
                         struct fault *fault)
{
    char text[METADATA_BYTES + 1] = {0}, *end;
    uint64_t bytes;

    const int found = shard_try_open_beside(shard, 0, ".metadata", &bytes, fault);
    if (found > 0)
        return fault_set(fault, CODE_NO_INPUT,
                         "%s: not there, so the width of the ids is not known; state format "
                         "u16 or u32 with eod_id",
                         shard->index_path);
    if (found < 0) return -1;
    if (bytes > METADATA_BYTES) bytes = METADATA_BYTES;
    if (shard_try_read(shard, true, text, bytes, 0, fault) != 0) return -1;
    close_beside(shard);
    char *second = strchr(text, '\n');
    if (second) *second++ = '\0';
    *n_tokens = second ? strtoull(second, &end, 10) : 0;
    if (!second || end == second || (*end != '\n' && *end != '\0'))
        return fault_set(fault, CODE_DATA, "%s: line 2 is \"%.*s\", expected the number of ids",
                         shard->index_path, second ? (int)strcspn(second, "\n") : 0,
                         second ? second : "");
    char *bar = strrchr(text, '|');
    *width = bar ? strtoull(bar + 1, &end, 10) : 0;
    if (bar && *width != 2 && *width != 4)
        return fault_set(fault, CODE_DATA,
                         "%s: line 1 ends in \"%.20s\", expected |2 or |4, bytes of an id",
                         shard->index_path, bar);
    if (bar) *bar = '\0';
    snprintf(shard->info.tokenizer, sizeof shard->info.tokenizer, "%.60s", text);
    return 0;
}

/* Documents, when the index is there. */
static int open_index(struct shard *shard, const struct data_source *as, struct fault *fault)
{
    struct shard_info *info = &shard->info;
    uint64_t bytes, last;

    const int found = shard_try_open_beside(shard, 0, ".index", &bytes, fault);
    if (found > 0) {
        flat_set_documents(shard, as, -1, -1);
        return 0;
    }
    if (found < 0) return -1;
    if (bytes == 0 || bytes % 8 != 0)
        return fault_set(fault, CODE_DATA,
                         "%s: truncated or altered: %lu bytes found, expected a multiple of "
                         "8, at least 8",
                         shard->index_path, (unsigned long)bytes);
    info->n_documents = (int64_t)(bytes / 8);
    if (shard_try_read(shard, true, &last, 8, bytes - 8, fault) != 0 ||
        shard_try_expect(shard->index_path, "the last document end", bytes - 8, last,
                         (uint64_t)info->n_tokens, fault) != 0)
        return -1;
    return shard_try_sample_hash(shard, true, bytes, &info->document_hash, fault);
}

/* A mask of the loss that is not read would change what is trained. */
static int refuse_loss_mask(struct shard *shard, struct fault *fault)
{
    uint64_t bytes;
    const int found = shard_try_open_beside(shard, 0, ".loss", &bytes, fault);
    if (found > 0) return 0;
    return fault_set(fault, CODE_DATA, "%s: a mask of the loss, which is not supported",
                     shard->index_path);
}

static int datatrove_try_open(struct shard *shard, const struct data_source *as,
                              struct fault *fault)
{
    uint64_t n_tokens, width;

    if (refuse_loss_mask(shard, fault) != 0 || read_metadata(shard, &n_tokens, &width, fault) != 0)
        return -1;
    /* The older files do not tell the width; their count does. */
    if (width == 0) width = n_tokens * 4 == shard->info.file_bytes ? 4 : 2;
    if (flat_try_init(shard, 0, width == 2 ? ID_U16 : ID_U32, n_tokens, fault) != 0) return -1;
    return open_index(shard, as, fault);
}

static int datatrove_try_document_ends(const struct shard *shard, int64_t first, int64_t n,
                                       uint64_t *end, struct fault *fault)
{
    const uint64_t at = 8 * (uint64_t)first;
    uint64_t before = 0;

    if (shard_try_read(shard, true, end, 8 * (size_t)n, at, fault) != 0) return -1;
    for (int64_t i = 0; i < n; i++) {
        if (end[i] < before || end[i] > (uint64_t)shard->info.n_tokens)
            return fault_set(fault, CODE_DATA,
                             "%s: document end %ld at byte %lu is token %lu, expected %lu .. "
                             "%ld",
                             shard->index_path, (long)(first + i),
                             (unsigned long)(at + 8 * (uint64_t)i), (unsigned long)end[i],
                             (unsigned long)before, (long)shard->info.n_tokens);
        before = end[i];
    }
    return 0;
}

/* Each piece begins with the last end of the one before, so that those two are compared too. */
static int datatrove_try_check_index(const struct shard *shard, struct fault *fault)
{
    const int64_t n_documents = shard->info.n_documents;
    uint64_t end[CHUNK + 1];

    for (int64_t first = 0; first < n_documents; first += CHUNK) {
        const int64_t from = first > 0 ? first - 1 : 0;
        const int64_t n = n_documents - from < CHUNK ? n_documents - from : CHUNK + 1;
        if (datatrove_try_document_ends(shard, from, n, end, fault) != 0) return -1;
    }
    return 0;
}

const struct shard_format shard_datatrove = {"datatrove", datatrove_try_open,
                                             datatrove_try_check_index, datatrove_try_document_ends,
                                             flat_try_frame};
