/* TensorBoard's event files, byte for byte but for times: those of the fixture, which the package
 * itself has read (tests/golden/tensorboard); a second start tells which steps come again; a start
 * anew removes the first one's; a file that cannot be written ends nothing. */
// TEST ranks=1 timeout=20
#include "test.h"
#include "train/tensorboard.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { ROOM = 1 << 14, HEAD = 12, WALL_TIME = 9, FOOT = 4 };

static const char *const lines[] = {
    "{\"version\":\"1\"}",
    "{\"step\":1,\"loss\":2.5,\"grad_norm\":null,\"lr\":0.001,\"expert_load\":[1.25,2]}",
    "{\"step\":1,\"eval_loss\":3.25}", "{\"step\":2,\"sample\":\"Once\\nupon \\u00e9\"}",
    "{\"step\":300,\"loss\":2,\"tok_s\":4096,\"new_number\":7}"};
enum { N_LINES = sizeof lines / sizeof *lines };

static void run(const char *dir, bool goes_on)
{
    struct tensorboard *tb = tensorboard_open(dir, goes_on, 1);
    for (int i = 0; i < N_LINES; i++) {
        json_t *object = json_loads(lines[i], 0, NULL);
        EXPECT(object, "line %d is no JSON", i);
        tensorboard_add(tb, object);
        json_decref(object);
    }
    tensorboard_close(tb);
}

/* Event files in dir; the bytes of one of them in text. */
static int read_events(const char *dir, char text[ROOM], size_t *n)
{
    char path[700];
    int files = 0;
    *n = 0;
    snprintf(path, sizeof path, "%s/tensorboard", dir);
    DIR *d = opendir(path);
    for (const struct dirent *entry; d && (entry = readdir(d));) {
        if (strncmp(entry->d_name, "events.out.tfevents.", 20) != 0) continue;
        files++;
        snprintf(path, sizeof path, "%s/tensorboard/%.300s", dir, entry->d_name);
        FILE *f = fopen(path, "rb");
        *n = f ? fread(text, 1, ROOM, f) : 0;
        if (f) fclose(f);
    }
    if (d) closedir(d);
    return files;
}

/* CRC-32C of the data, masked: https://www.tensorflow.org/tutorials/load_data/tfrecord. */
static uint32_t checksum(const char *data, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n * 8; i++) {
        const uint32_t bit = (uint32_t)((unsigned char)data[i / 8] >> i % 8 & 1);
        crc = (crc ^ bit) & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    crc ^= 0xffffffffu;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The wall time of each record and the checksum that it is in become 0; returns how many. */
static int clear_times(char *text, size_t n)
{
    int records = 0;
    for (size_t at = 0; at + HEAD + FOOT < n; records++) {
        uint64_t bytes;
        memcpy(&bytes, text + at, sizeof bytes);
        if (bytes > n - at - HEAD - FOOT) return -1;
        uint32_t crc;
        memcpy(&crc, text + at + HEAD + bytes, sizeof crc);
        EXPECT(crc == 0 || crc == checksum(text + at + HEAD, bytes), "record %d: checksum",
               records);
        memset(text + at + HEAD + 1, 0, WALL_TIME - 1);
        memset(text + at + HEAD + bytes, 0, FOOT);
        at += HEAD + bytes + FOOT;
    }
    return records;
}

static void check_fixture(char *text, size_t n)
{
    static char want[ROOM];
    FILE *f = fopen("tests/golden/tensorboard/events", "rb");
    EXPECT(f, "no tests/golden/tensorboard/events");
    const size_t n_want = f ? fread(want, 1, sizeof want, f) : 0;
    if (f) fclose(f);
    clear_times(want, n_want);
    EXPECT(n == n_want && !memcmp(text, want, n), "%zu bytes differ from %zu", n, n_want);
}

int main(void)
{
    static char text[ROOM];
    char dir[600], path[700];
    size_t n;
    snprintf(dir, sizeof dir, "%s", test_tmpdir());
    run(dir, false);
    EXPECT(read_events(dir, text, &n) == 1, "not one file");
    EXPECT(clear_times(text, n) == 5, "%d records, expected 5", clear_times(text, n));
    check_fixture(text, n);
    sleep(1); /* a file is named by the second */
    run(dir, true);
    EXPECT(read_events(dir, text, &n) == 2, "a second start made no second file");
    run(dir, false);
    EXPECT(read_events(dir, text, &n) == 1, "a start anew has kept an older file");
    snprintf(path, sizeof path, "%s/file", dir);
    close(open(path, O_CREAT | O_WRONLY, 0666));
    run(path, false); /* a directory cannot be made in a file */
    return test_end();
}
