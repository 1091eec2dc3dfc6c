/* owner.c - see owner.h. */
#include "train/owner.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "ckpt/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME "owner"

enum { BEAT_S = 2, HERE_S = 3 * BEAT_S, LOOK_MS = 100 };
enum { CARD_BYTES = 640, ID_BYTES = 3 + 16, BEAT_AT = ID_BYTES + 6, BEAT_DIGITS = 10 };

/* What the file says: "id ID beat COUNT pid PID started TICKS machine MACHINE job JOB host HOST".
 */
struct card {
    char text[CARD_BYTES];
    uint64_t id;
    int pid;
    unsigned long long started; /* process ids come again, with another of these */
    char machine[96];           /* this boot of it, and whose process ids; "-": unknown */
    char job[64], host[256];
};

struct owner {
    char path[PATH_BYTES];
    struct card me;
    unsigned beats;
    pthread_t heart;
    pthread_mutex_t lock; /* of beats and stop */
    pthread_cond_t wake;
    bool stop;
};

/* The state and the start time of a process, as /proc has them; false: it does not show it. */
static bool read_process(int pid, char *state, unsigned long long *started)
{
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *in = fopen(path, "r");
    const char *at = in && fgets(text, sizeof text, in) ? strrchr(text, ')') : NULL;
    if (in) fclose(in);
    /* After the name come the state, 18 numbers, and the start time. */
    return at && sscanf(at,
                        ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %llu",
                        state, started) == 2;
}

static void find_machine(char machine[96])
{
    char boot[64] = "", pids[32];
    FILE *in = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (in && fscanf(in, "%63s", boot) != 1) *boot = '\0';
    if (in) fclose(in);
    const ssize_t n = readlink("/proc/self/ns/pid", pids, sizeof pids - 1);
    snprintf(machine, 96, *boot && n > 0 ? "%s+%.*s" : "-", boot, (int)n, pids);
}

static const char *job_of_this(void)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *job = getenv(names[i]);
        if (job && *job && strlen(job) < 64 && !strpbrk(job, " \n")) return job;
    }
    return "-";
}

static void make_card(struct card *c)
{
    char state;
    *c = (struct card){.pid = (int)getpid()};
    CHECK(getrandom(&c->id, sizeof c->id, 0) == (ssize_t)sizeof c->id, "no random number");
    read_process(c->pid, &state, &c->started);
    find_machine(c->machine);
    gethostname(c->host, sizeof c->host - 1);
    snprintf(c->job, sizeof c->job, "%s", job_of_this());
    snprintf(c->text, sizeof c->text,
             "id %016" PRIx64 " beat %0*d pid %d started %llu machine %s job %s host %s\n", c->id,
             BEAT_DIGITS, 0, c->pid, c->started, c->machine, c->job, c->host);
}

/* A file without the right words, as one that is just being made, is somebody's: it may become
 * right. */
static void read_open_card(int fd, struct card *c)
{
    struct stat st;
    *c = (struct card){.machine = "-", .host = "an unknown machine"};
    if (fd >= 0 && fstat(fd, &st) == 0) c->id = (uint64_t)st.st_ino;
    const ssize_t n = fd >= 0 ? pread(fd, c->text, sizeof c->text - 1, 0) : 0;
    c->text[n > 0 ? n : 0] = '\0';
    sscanf(c->text, "id %" SCNx64 " beat %*s pid %d started %llu machine %95s job %63s host %255s",
           &c->id, &c->pid, &c->started, c->machine, c->job, c->host);
}

/* False: there is none. */
static bool read_card(const char *path, struct card *c)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return false;
    read_open_card(fd, c);
    if (fd >= 0) close(fd);
    return true;
}

/* Of a process of this machine. */
static bool is_running(const struct card *c)
{
    char state;
    unsigned long long started;
    if (kill(c->pid, 0) != 0 && errno == ESRCH) return false;
    if (!read_process(c->pid, &state, &started)) return true; /* and hidden */
    return started == c->started && state != 'Z' && state != 'X';
}

enum life { LIFE_NONE, LIFE_DEAD, LIFE_BEATS };

/* Whether the run beats whose card lies at path; c becomes its card. */
static enum life judge(const char *path, const struct card *me, double patience_s, struct card *c)
{
    static const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    bool told = false;
    if (!read_card(path, c)) return LIFE_NONE;
    for (double since = clock_s();; nanosleep(&pause, NULL)) {
        struct card now;
        const bool here = !strcmp(c->machine, me->machine) && strcmp(me->machine, "-") != 0;
        const double waited = clock_s() - since;
        if (here && !is_running(c)) return LIFE_DEAD;
        if (here && waited > HERE_S) return LIFE_BEATS; /* it stands still, and may go on */
        if (!here && waited > patience_s) return LIFE_DEAD;
        if (!here && waited > BEAT_S && !told) {
            told = true;
            warn_line("%s is of process %d on %s: waiting %.0f s for a sign of life", path, c->pid,
                      c->host, patience_s);
        }
        if (!read_card(path, &now)) return LIFE_NONE;
        if (!strcmp(now.text, c->text)) continue;
        if (now.id == c->id) return LIFE_BEATS;
        *c = now;
        since = clock_s();
    }
}

static int refuse(const char *path, const struct card *c, struct fault *fault)
{
    const bool job = *c->job && strcmp(c->job, "-") != 0;
    return fault_set(fault, CODE_CONFIG,
                     "run.dir: another run is at work there: process %d on %s%s%s (%s); wait for "
                     "its end, or name another directory",
                     c->pid, c->host, job ? ", job " : "", job ? c->job : "", path);
}

int owner_try_look(const char *dir, double patience_s, struct fault *fault)
{
    char path[PATH_BYTES];
    struct card me, found;
    make_card(&me);
    path_print(path, "%s/" NAME, dir);
    const enum life life = judge(path, &me, patience_s, &found);
    return life == LIFE_BEATS ? refuse(path, &found, fault) : 0;
}

/* 1: there is one. */
static int try_create(const char *path, const struct card *me, struct fault *fault)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return errno == EEXIST ? 1 : io_fault(fault, "create", path);
    int bad = io_try_write(fd, path, me->text, (int64_t)strlen(me->text), 0, fault);
    if (close(fd) != 0 && !bad) bad = io_fault(fault, "close", path);
    if (bad) unlink(path);
    return bad;
}

static int try_take(struct owner *o, const char *path, double patience_s, struct fault *fault);

/* The dead one's file is replaced by whoever has made the one that comes after it, which is taken
 * as the first is: while somebody has that, nobody else replaces. 1: it was not dead, or another
 * has replaced it. */
static int try_succeed(struct owner *o, const char *path, const struct card *dead,
                       double patience_s, struct fault *fault)
{
    char after[PATH_BYTES];
    struct card now;
    path_print(after, "%s.after-%016" PRIx64, o->path, dead->id);
    if (try_take(o, after, patience_s, fault)) return -1;
    const bool still = read_card(path, &now) && !strcmp(now.text, dead->text);
    if (still && rename(after, path) == 0) return 0;
    if (still) io_fault(fault, "rename to its name", after);
    unlink(after);
    return still ? -1 : 1;
}

static int try_take(struct owner *o, const char *path, double patience_s, struct fault *fault)
{
    for (;;) {
        struct card found;
        int taken = try_create(path, &o->me, fault);
        if (taken <= 0) return taken;
        const enum life life = judge(path, &o->me, patience_s, &found);
        if (life == LIFE_BEATS) return refuse(path, &found, fault);
        if (life == LIFE_NONE) continue;
        taken = try_succeed(o, path, &found, patience_s, fault);
        if (taken <= 0) return taken;
    }
}

/* Whether the file is this run's, whose count goes up. One that somebody has removed is made again;
 * one that cannot be read is believed to be as it was. */
static bool beat(struct owner *o, struct card *other)
{
    char digits[BEAT_DIGITS + 1];
    struct fault fault;
    const int fd = open(o->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) try_create(o->path, &o->me, &fault);
    if (fd < 0) return true;
    read_open_card(fd, other);
    const bool mine = other->id == o->me.id;
    snprintf(digits, sizeof digits, "%0*u", BEAT_DIGITS, ++o->beats);
    if (mine && pwrite(fd, digits, BEAT_DIGITS, BEAT_AT) < 0) errno = 0; /* the next one may do */
    close(fd); /* and other machines see it */
    return mine || !*other->text;
}

void owner_check(struct owner *o)
{
    struct card other;
    if (!o) return;
    pthread_mutex_lock(&o->lock);
    const bool mine = beat(o, &other);
    pthread_mutex_unlock(&o->lock);
    if (!mine)
        DIE(CODE_IO,
            "run.dir: %s is of process %d on %s now, which took this run for dead: it ends and "
            "writes nothing more",
            o->path, other.pid, other.host);
}

static bool rest(struct owner *o)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += BEAT_S;
    pthread_mutex_lock(&o->lock);
    int waited = 0;
    while (!o->stop && waited == 0) waited = pthread_cond_timedwait(&o->wake, &o->lock, &until);
    const bool stop = o->stop;
    pthread_mutex_unlock(&o->lock);
    return !stop;
}

static void *heart(void *arg)
{
    while (rest(arg)) owner_check(arg);
    return NULL;
}

struct owner *owner_try_claim(const char *dir, double patience_s, struct fault *fault)
{
    struct owner *o = mem_alloc(sizeof *o, "the owner of run.dir");
    path_print(o->path, "%s/" NAME, dir);
    make_card(&o->me);
    if (try_take(o, o->path, patience_s, fault)) {
        mem_free(o);
        return NULL;
    }
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC); /* the other may be set back */
    pthread_cond_init(&o->wake, &how);
    pthread_condattr_destroy(&how);
    thread_start(&o->heart, heart, o, "the heart of run.dir");
    return o;
}

void owner_free(struct owner *o)
{
    struct card now;
    if (!o) return;
    pthread_mutex_lock(&o->lock);
    o->stop = true;
    pthread_cond_signal(&o->wake);
    pthread_mutex_unlock(&o->lock);
    pthread_join(o->heart, NULL);
    if (read_card(o->path, &now) && now.id == o->me.id) unlink(o->path);
    pthread_cond_destroy(&o->wake);
    pthread_mutex_destroy(&o->lock);
    mem_free(o);
}

bool owner_is_name(const char *name)
{
    return !strcmp(name, NAME) || !strncmp(name, NAME ".after-", strlen(NAME ".after-"));
}
