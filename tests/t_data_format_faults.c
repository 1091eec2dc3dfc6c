/* What can be wrong with files of other programs is one line with file, offset, found and expected,
 * and the right exit code, before a token of it is used. */
// TEST ranks=1 timeout=60
#include "format_files.h"

enum { IDX_LENGTHS = 34, IDX_BYTES = 54, IDX_MARKS = 94 };

static void make(char which)
{
    static const char npy[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (70000,), }\n";
    switch (which) {
    case 'm': format_megatron("m", 8, 2); break;
    case 'l': format_megatron("l", 5, 8); break;
    case 'd': format_datatrove("d.ds", "t|2\n70000\n", 2); break;
    case 'g': format_llmc("g.bin", 20240520, 1, 2); break;
    case 'r': format_raw("r.u16", 2, NO_MARKS); break;
    case 'w': format_raw("w.u16", 4, NO_MARKS); break;
    case 'v': format_raw("v.u32", 4, NO_MARKS); break;
    default: format_npy("n.npy", 1, npy, 2);
    }
}

/* In fresh files: width bytes of value at offset of the file, or with width 0 the file
 * cut to offset bytes, or removed when offset is -1; then opening says words. */
static const struct {
    const char *open, *file;
    int64_t offset;
    int width;
    uint64_t value;
    const char *words; /* each ended by \0 */
} cases[] = {
    {"m.bin", "m.idx", 0, 1, 'X', "m.idx: bytes 0 .. 8 are \"XMIDIDX\"\0expected\0"},
    {"m.bin", "m.idx", 9, 8, 2, "version at byte 9 is 2\0expected 1\0"},
    {"m.bin", "m.idx", 17, 1, 7, "byte 17 is 7 (floats), expected 1 .. 5 or 8\0"},
    {"m.bin", "m.idx", 17, 1, 9, "byte 17 is 9, expected 1 .. 5 or 8\0"},
    {"m.bin", "m.idx", 17, 1, 4, "m.bin: truncated or altered: 140000 bytes found\0"},
    {"m.bin", "m.idx", 18, 8, 0, "0 sequences (byte 18)\0expected at least 1\0"},
    {"m.bin", "m.idx", 18, 8, 6, "134 bytes found, expected 146 for 6 sequences\0"},
    {"m.bin", "m.idx", 18, 8, -UINT64_C(1), "18446744073709551615 sequences\0"},
    {"m.bin", "m.idx", 26, 8, 1, "1 document marks (byte 26)\0at least 1 and 2\0"},
    {"m.bin", "m.idx", 26, 8, 6, "134 bytes found, expected 142\0"},
    {"m.bin", "m.idx", 133, 0, 0, "133 bytes found, expected 134\0"},
    {"m.bin", "m.idx", 20, 0, 0, "20 bytes found, expected at least 34\0"},
    {"m.bin", "m.idx", 139, 1, 0, "140 bytes found\0expected 134\0"},
    {"m.bin", "m.idx", 138, 1, 0, "139 bytes found, expected 134: there is a mode for each\0"},
    {"m.bin", "m.bin", 139998, 0, 0, "139998 bytes found, expected 140000\0"},
    {"m.bin", "m.bin", 140000, 2, 1, "140002 bytes found, expected 140000\0"},
    {"m.bin", "m.bin", 139997, 0, 0, "139997 bytes found, expected 140000\0"},
    {"m.bin", "m.idx", IDX_LENGTHS + 4, 4, 0, "sequence 1 at byte 38 has 0 tokens\0"},
    {"m.bin", "m.idx", IDX_LENGTHS, 4, 12344, "place of a sequence at byte 62 is 24690\0 24688\0"},
    {"m.bin", "m.idx", IDX_LENGTHS + 16, 4, 1, "m.bin: truncated or altered: 140000 bytes found\0"},
    {"m.bin", "m.idx", IDX_BYTES + 32, 8, 3, "from byte 3 of the .bin\0multiple of 2\0"},
    {"m.bin", "m.idx", IDX_BYTES + 8, 8, 24692, "byte 62 is 24692\0expected 24690\0"},
    {"m.bin", "m.idx", IDX_MARKS, 8, 1, "first document mark at byte 94 is 1\0expected 0\0"},
    {"m.bin", "m.idx", IDX_MARKS + 32, 8, 4, "last document mark at byte 126 is 4\0expected 5\0"},
    {"m.bin", "m.idx", IDX_MARKS + 8, 8, 4, "document mark 2 at byte 110 is 3, expected 4 .. 5\0"},
    {"m.bin", "m.idx", IDX_MARKS + 16, 8, 9, "document mark 2 at byte 110 is 9, expected 2 .. 5\0"},
    {"m.bin", "m.bin", 0, 2, 512, "m.bin: token 0 (at byte 0) is id 512, vocabulary 512\0"},
    {"l.bin", "l.bin", 559992, 8, -UINT64_C(3), "token 69999 (at byte 559992) is id -3\0"},
    {"l.bin", "l.bin", 8, 8, UINT64_C(1) << 32, "token 1 (at byte 8) is id 4294967296\0"},

    {"d.ds", "d.ds", 139999, 0, 0,
     "d.ds: truncated or altered: 139999 bytes found, expected 140000\0"},
    {"d.ds", "d.ds", 0, 0, 0, "0 bytes found, expected 140000\0"},
    {"d.ds", "d.ds", 10, 2, 600, "token 5 (at byte 10) is id 600, vocabulary 512\0"},
    {"d.ds", "d.ds.index", 31, 0, 0, "d.ds.index: truncated or altered: 31 bytes found\0"},
    {"d.ds", "d.ds.index", 0, 0, 0, "0 bytes found, expected a multiple of 8, at least 8\0"},
    {"d.ds", "d.ds.index", 24, 8, 69999, "last document end at byte 24 is 69999\0expected 70000\0"},
    {"d.ds", "d.ds.index", 8, 8, 29999,
     "document end 1 at byte 8 is token 29999, expected 30000\0"},
    {"d.ds", "d.ds.index", 8, 8, 70001, "document end 1 at byte 8 is token 70001, expected\0"},
    {"d.ds", "d.ds.metadata", 2, 1, '3', "d.ds.metadata: line 1 ends in \"|3\", expected |2\0"},
    {"d.ds", "d.ds.metadata", 4, 1, 'x', "line 2 is \"x0000\", expected the number of ids\0"},
    {"d.ds", "d.ds.metadata", 4, 1, '8', "140000 bytes found, expected 160000: 80000 ids of 2\0"},
    {"d.ds", "d.ds.loss", 0, 1, 1, "d.ds.loss: a mask of the loss, which is not supported\0"},

    {"g.bin", "g.bin", 0, 4, 20240522, "magic at byte 0 is 20240522\0multiple-choice\0"},
    {"g.bin", "g.bin", 0, 4, 20240999, "magic at byte 0 is 20240999, expected 20240520 or\0"},
    {"g.bin", "g.bin", 4, 4, 7, "version at byte 4 is 7\0expected 1\0"},
    {"g.bin", "g.bin", 8, 4, 80000, "141024 bytes found, expected 161024: 80000 ids\0"},
    {"g.bin", "g.bin", 8, 4, -UINT64_C(1), "byte 8 is -1, expected more than 0\0"},
    {"g.bin", "g.bin", 8, 4, 0, "0 tokens found, a shard has\0"},
    {"g.bin", "g.bin", 141021, 0, 0, "141021 bytes found, expected 141024\0"},
    {"g.bin", "g.bin", 1000, 0, 0, "1000 bytes found, expected 141024\0"},
    {"g.bin", "g.bin", 1026, 2, 50257, "token 1 (at byte 1026) is id 50257, vocabulary 512\0"},

    {"r.u16", "r.u16", 139999, 0, 0, "139999 bytes found, expected a multiple of the 2 bytes\0"},
    {"r.u16", "r.u16", 0, 0, 0, "0 tokens found, a shard has\0"},
    {"w.u16", "w.u16", 0, 1, 7, "frame 0 is at most 0, the others reach 498: these are 4-byte\0"},
    {"v.u32", "v.u32", 279996, 4, -UINT64_C(1), "token 69999 (at byte 279996) is id 4294967295\0"},

    {"n.npy", "n.npy", 6, 1, 4, "version at byte 6 is 4, expected 1, 2 or 3\0"},
    {"n.npy", "n.npy", 8, 2, 5000, "header length at byte 8 is 5000, expected at most 4096\0"},
    {"n.npy", "n.npy", 21, 1, '>', "descr is no little-endian integer\0"},
    {"n.npy", "n.npy", 22, 1, 'f', "descr is no little-endian integer\0"},
    {"n.npy", "n.npy", 44, 1, 'T', "fortran_order is not False\0"},
    {"n.npy", "n.npy", 61, 1, 'x', "shape is not understood\0"},
    {"n.npy", "n.npy", 100, 0, 0, "100 bytes found, expected 140072: 70000 ids of 2 bytes\0"},
    {"n.npy", "n.npy", 0, 1, 'x', "neither name nor contents tell the format\0"},
};

static void check_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(cases[i].open[0]);
        const char *file = fixture_path(cases[i].file);
        if (cases[i].width > 0 && access(file, F_OK) != 0) format_write(cases[i].file, "", 0);
        if (cases[i].width > 0)
            fixture_patch(file, cases[i].offset, &cases[i].value, (size_t)cases[i].width);
        else
            EXPECT(truncate(file, cases[i].offset) == 0, "cannot cut %s", file);
        fixture_expect(fixture_open_it, fixture_path(cases[i].open), CODE_DATA, cases[i].words);
    }
}

int main(void)
{
    check_cases();
    unlink(fixture_path("m.idx"));
    fixture_expect(fixture_open_it, fixture_path("m.bin"), CODE_DATA,
                   "tell the format\0npy, u16\0");
    unlink(fixture_path("d.ds.loss"));
    unlink(fixture_path("d.ds.metadata"));
    fixture_expect(fixture_open_it, fixture_path("d.ds"), CODE_NO_INPUT,
                   "d.ds.metadata: not there\0state format u16 or u32\0");
    /* An id that no sample of the file shows is found when its frame is read. */
    const uint32_t id = 512;
    char *text = malloc(1 << 20);
    memset(text, 0, 1 << 20);
    fixture_patch(format_write("big.u32", text, 1 << 20), 4 * 70000, &id, sizeof id);
    fixture_expect(fixture_read_it, fixture_path("big.u32"), CODE_DATA,
                   "token 70000 (at byte 280000) is id 512, vocabulary 512\0");
    free(text);
    return test_end();
}
