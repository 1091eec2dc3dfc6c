/* cut.c - which text is held out; see tokenize.h. */
#include "tokenize.h"

#include <stdlib.h>
#include <string.h>

/* A list that grows. */
static void *room_for_one(void *list, int64_t n, size_t bytes)
{
    if (n & (n - 1)) return list; /* grown at the powers of two */
    list = realloc(list, (n ? 2 * (size_t)n : 1) * bytes);
    CHECK(list, "no memory for the ends of %ld documents", (long)n + 1);
    return list;
}

void outline_add_bytes(struct outline *text, int file, int64_t n)
{
    if (text->n_files == 0 || text->file[text->n_files - 1].number != file) {
        text->file = room_for_one(text->file, text->n_files, sizeof *text->file);
        text->file[text->n_files++] = (struct file_text){file, text->n_bytes, text->n_bytes};
    }
    text->n_bytes += n;
    text->file[text->n_files - 1].end = text->n_bytes;
}

void outline_end_document(struct outline *text)
{
    text->document_end = room_for_one(text->document_end, text->n_documents, sizeof(int64_t));
    text->document_end[text->n_documents++] = text->n_bytes;
}

void outline_free(struct outline *text)
{
    free(text->document_end);
    free(text->file);
}

/* The two places between documents of a file around a place in it: whole files may be held out or
 * not, unless there is only one. -1: none. document: the first of the file's, set to the next's. */
static void find_neighbours(const struct outline *text, const struct file_text *file, int64_t place,
                            int64_t *document, int64_t *before, int64_t *after)
{
    const bool whole = text->n_files > 1;

    *before = whole ? file->begin : -1;
    *after = -1;
    while (*document < text->n_documents && text->document_end[*document] <= file->end) {
        const int64_t end = text->document_end[(*document)++];
        if (end <= file->begin || (end == file->end && !whole)) continue;
        if (end <= place) *before = end;
        if (end > place && *after < 0) *after = end;
    }
    if (whole && *after < 0) *after = file->end;
}

/* Where the last bytes of a file begin; part: bytes to be held out of all text. */
static struct cut cut_file(const struct outline *text, const struct file_text *file, int64_t bytes,
                           int64_t part, double fraction, int64_t *document)
{
    const int64_t place = file->end - bytes > file->begin ? file->end - bytes : file->begin;
    const int64_t share = (int64_t)(fraction * (double)(file->end - file->begin));
    int64_t before, after;

    find_neighbours(text, file, place, document, &before, &after);
    const int64_t near =
        before < 0 || (after >= 0 && after - place < place - before) ? after : before;
    const bool is_short = before >= 0 && after >= 0 && after - before <= part;
    if (near >= 0 && (llabs(near - place) <= share / 2 || (is_short && text->n_files > 1)))
        return (struct cut){near, file->end, false};
    return (struct cut){place, file->end, true};
}

struct cut *outline_cut(const struct outline *text, double fraction)
{
    struct cut *cut = calloc((size_t)text->n_files + 1, sizeof *cut);
    const int64_t part = (int64_t)(fraction * (double)text->n_bytes);
    int64_t held = 0, document = 0;

    CHECK(cut, "no memory for %d files", text->n_files);
    for (int f = 0; f < text->n_files; f++) {
        const struct file_text *file = &text->file[f];
        const int64_t bytes = (int64_t)(fraction * (double)file->end) - held;
        cut[f] = cut_file(text, file, bytes > 0 ? bytes : 0, part, fraction, &document);
        held += file->end - cut[f].at;
    }
    cut[text->n_files].at = cut[text->n_files].end = INT64_MAX;
    return cut;
}

int64_t cut_before(const struct cut *cut, const char *bytes, int64_t n, int64_t place)
{
    if (place + n < cut->at) return n;
    if (!cut->after_line) return cut->at > place ? cut->at - place : 0;
    const int64_t from = cut->at - 1 > place ? cut->at - 1 - place : 0;
    const char *newline = memchr(bytes + from, '\n', (size_t)(n - from));
    return newline ? newline + 1 - bytes : n;
}
