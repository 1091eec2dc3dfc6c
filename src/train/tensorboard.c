/* tensorboard.c - see tensorboard.h. */
#include "train/tensorboard.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "events.out.tfevents."

struct tensorboard {
    int fd; /* -1: it could not be written */
    char path[PATH_BYTES];
};

/* --- protocol buffers --- */

enum wire { WIRE_VARINT = 0, WIRE_F64 = 1, WIRE_BYTES = 2, WIRE_F32 = 5 };

/* A message that grows. */
struct message {
    char *at;
    size_t n, room;
};

static void put(struct message *m, const void *bytes, size_t n)
{
    if (m->n + n > m->room) {
        m->room = 2 * (m->n + n) + 64;
        m->at = realloc(m->at, m->room);
        CHECK(m->at, "no memory for an event of %zu bytes", m->room);
    }
    if (n > 0) memcpy(m->at + m->n, bytes, n); /* an empty message may be NULL */
    m->n += n;
}

static void put_varint(struct message *m, uint64_t x)
{
    unsigned char byte[10];
    size_t n = 0;
    for (; x > 127; x >>= 7) byte[n++] = (unsigned char)(x | 128);
    byte[n++] = (unsigned char)x;
    put(m, byte, n);
}

static void put_key(struct message *m, int field, enum wire wire)
{
    put_varint(m, (uint64_t)field << 3 | (uint64_t)wire);
}

static void put_int(struct message *m, int field, int64_t x)
{
    put_key(m, field, WIRE_VARINT);
    put_varint(m, (uint64_t)x);
}

static void put_f64(struct message *m, int field, double x)
{
    put_key(m, field, WIRE_F64);
    put(m, &x, sizeof x);
}

static void put_f32(struct message *m, int field, float x)
{
    put_key(m, field, WIRE_F32);
    put(m, &x, sizeof x);
}

static void put_bytes(struct message *m, int field, const void *bytes, size_t n)
{
    put_key(m, field, WIRE_BYTES);
    put_varint(m, n);
    put(m, bytes, n);
}

static void put_text(struct message *m, int field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

/* A message within a message, which is done. */
static void put_message(struct message *m, int field, struct message *inner)
{
    put_bytes(m, field, inner->at, inner->n);
    free(inner->at);
    *inner = (struct message){0};
}

/* --- records --- */

/* CRC-32C (Castagnoli) bit by bit: events are small and few. Masked as TFRecord does, so that a
 * checksum of data with checksums in them is not always the same. */
static uint32_t masked_crc(const void *data, size_t n)
{
    const unsigned char *at = data;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void give_up(struct tensorboard *tb, const char *what)
{
    warn_line("%s %s: %s; TensorBoard output of this run stops here", what, tb->path,
              strerror(errno));
    if (tb->fd >= 0) close(tb->fd);
    tb->fd = -1;
}

/* One write a record: a run that is killed leaves whole ones. Frees the event. */
static void write_event(struct tensorboard *tb, struct message *event)
{
    struct message record = {0};
    const uint64_t n = event->n;
    const uint32_t crc_n = masked_crc(&n, sizeof n), crc = masked_crc(event->at, event->n);
    put(&record, &n, sizeof n);
    put(&record, &crc_n, sizeof crc_n);
    put(&record, event->at, event->n);
    put(&record, &crc, sizeof crc);
    const ssize_t written = tb->fd < 0 ? 0 : write(tb->fd, record.at, record.n);
    if (written >= 0 && written < (ssize_t)record.n) errno = ENOSPC;
    if (tb->fd >= 0 && written < (ssize_t)record.n) give_up(tb, "cannot write");
    free(record.at);
    free(event->at);
}

static struct message new_event(int64_t step)
{
    struct message event = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put_f64(&event, 1, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec); /* wall_time */
    if (step >= 0) put_int(&event, 2, step);
    return event;
}

/* --- what is shown --- */

/* Where a number stands among the charts, of arrays what stands before the index. Those that are
 * not here stand below "other". */
static const struct {
    const char *key, *tag;
} tags[] = {{"loss", "loss/train"},
            {"mtp_loss", "loss/mtp"},
            {"balance_loss", "loss/balance"},
            {"eval_loss", "loss/heldout"},
            {"eval_bits_per_byte", "loss/heldout_bits_per_byte"},
            {"grad_norm", "optimizer/grad_norm"},
            {"lr", "optimizer/learning_rate"},
            {"skipped", "optimizer/skipped_steps"},
            {"tok_s", "speed/tokens_per_second"},
            {"step_s", "speed/step_seconds"},
            {"compute_s", "speed/compute_seconds"},
            {"comm_s", "speed/communication_seconds"},
            {"memory_bytes", "speed/memory_bytes"},
            {"bytes_intra", "speed/bytes_within_nodes"},
            {"bytes_inter", "speed/bytes_between_nodes"},
            {"expert_load", "experts_load/moe_layer_"},
            {"expert_unused", "experts_unused/moe_layer_"},
            {"expert_entropy", "experts_entropy/moe_layer_"},
            {"bias_min", "experts/bias_min"},
            {"bias_max", "experts/bias_max"},
            {"expert_bias_min", "experts_bias_min/moe_layer_"},
            {"expert_bias_max", "experts_bias_max/moe_layer_"},
            {"labels", "other/labels_of_stage_"},
            {"epoch", "data/epoch_of_source_"},
            {"ckpt_bytes", "checkpoint/bytes"},
            {"ckpt_stall_s", "checkpoint/stall_seconds"},
            {"ckpt_write_s", "checkpoint/write_seconds"},
            {"sample", "sample"}};

static const char *tag_of(const char *key, char tag[128])
{
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (!strcmp(tags[i].key, key)) return tags[i].tag;
    snprintf(tag, 128, "other/%s", key);
    return tag;
}

static void add_value(struct message *summary, struct message *value)
{
    put_message(summary, 1, value);
}

static void add_scalar(struct message *summary, const char *tag, double x)
{
    struct message value = {0};
    put_text(&value, 1, tag);
    put_f32(&value, 2, (float)x);
    add_value(summary, &value);
}

/* A string tensor of the plugin for texts. */
static void add_text(struct message *summary, const char *tag, const char *text)
{
    enum { DT_STRING = 7 };
    struct message value = {0}, tensor = {0}, plugin = {0}, metadata = {0}, shape = {0};
    put_text(&plugin, 1, "text");
    put_message(&metadata, 1, &plugin);
    put_int(&tensor, 1, DT_STRING);
    put_message(&tensor, 2, &shape);
    put_text(&tensor, 8, text);
    put_text(&value, 1, tag);
    put_message(&value, 9, &metadata);
    put_message(&value, 8, &tensor);
    add_value(summary, &value);
}

static void add_layers(struct message *summary, const char *tag, const json_t *array)
{
    char of_layer[160];
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *x = json_array_get(array, i);
        if (!json_is_number(x)) continue;
        snprintf(of_layer, sizeof of_layer, "%s%02zu", tag, i);
        add_scalar(summary, of_layer, json_number_value(x));
    }
}

void tensorboard_add(struct tensorboard *tb, const json_t *object)
{
    const json_t *step = json_object_get(object, "step"), *value;
    const char *key;
    struct message summary = {0};
    if (!tb || tb->fd < 0 || !json_is_integer(step)) return;
    json_object_foreach((json_t *)object, key, value)
    {
        char buffer[128];
        const char *tag = tag_of(key, buffer);
        if (!strcmp(key, "step")) continue;
        if (json_is_number(value)) add_scalar(&summary, tag, json_number_value(value));
        if (json_is_array(value)) add_layers(&summary, tag, value);
        if (!strcmp(key, "sample")) add_text(&summary, tag, json_string_value(value));
    }
    struct message event = new_event(json_integer_value(step));
    put_message(&event, 5, &summary);
    write_event(tb, &event);
}

/* --- the file --- */

static void remove_events(const char *dir)
{
    char path[PATH_BYTES];
    DIR *d = opendir(dir);
    if (!d) return;
    for (const struct dirent *entry; (entry = readdir(d));)
        if (!strncmp(entry->d_name, FILE_NAME, strlen(FILE_NAME)))
            unlink(path_print(path, "%s/%s", dir, entry->d_name));
    closedir(d);
}

/* Later steps of earlier files do not count any more. */
static void write_start(struct tensorboard *tb, int64_t first_step)
{
    enum { SESSION_START = 1 };
    struct message event = new_event(first_step + 1), session = {0};
    put_int(&session, 1, SESSION_START);
    put_message(&event, 7, &session);
    write_event(tb, &event);
}

struct tensorboard *tensorboard_open(const char *run_dir, bool goes_on, int64_t first_step)
{
    char dir[PATH_BYTES], host[65] = "host";
    struct tensorboard *tb = mem_alloc(sizeof *tb, "TensorBoard");
    path_print(dir, "%s/tensorboard", run_dir);
    if (!goes_on) remove_events(dir);
    gethostname(host, sizeof host - 1);
    path_print(tb->path, "%s/" FILE_NAME "%010lld.%s.%d", dir, (long long)time(NULL), host,
               (int)getpid());
    const bool made = mkdir(dir, 0777) == 0 || errno == EEXIST;
    tb->fd = made ? open(tb->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (tb->fd < 0) give_up(tb, "cannot make");
    struct message event = new_event(-1);
    put_text(&event, 3, "brain.Event:2"); /* file_version, of the first record */
    write_event(tb, &event);
    if (goes_on) write_start(tb, first_step);
    return tb;
}

void tensorboard_close(struct tensorboard *tb)
{
    if (!tb) return;
    if (tb->fd >= 0 && close(tb->fd) != 0) {
        tb->fd = -1;
        give_up(tb, "cannot close");
    }
    mem_free(tb);
}
