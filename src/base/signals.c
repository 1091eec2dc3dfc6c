/*
 * signals.c - the last words of a rank, and notes of what it is asked; see signals.h. Everything
 * up to signals_install runs in signal handlers: no allocation, no stdio, only snprintf of numbers
 * and strings into the stack.
 */
#define _GNU_SOURCE /* gettid, tgkill */
#include "base/signals.h"

#include "base/err.h"
#include "base/place.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LOCAL = 1024, ENV_BYTES = 1 << 18, PATIENCE_S = 5 };
struct named_signal {
    int signal;
    const char *name;
};
/* Every signal that ends a process by default is among these, or ignored, or SIGALRM. */
static const struct named_signal crashes[] = {
    {SIGSEGV, "SIGSEGV"},     {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},
    {SIGABRT, "SIGABRT"},     {SIGSYS, "SIGSYS"},   {SIGTRAP, "SIGTRAP"}, {SIGQUIT, "SIGQUIT"},
    {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}, {SIGIO, "SIGIO"}};
static const struct named_signal stops[] = {
    {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGHUP, "SIGHUP"}, {SIGXCPU, "SIGXCPU"},
    {SIGPWR, "SIGPWR"},   {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}};
enum { N_CRASHES = sizeof crashes / sizeof *crashes, N_STOPS = sizeof stops / sizeof *stops };

/* A second one of these does not wait for the end of the step. */
static bool is_urgent(int sig)
{
    return sig == SIGTERM || sig == SIGINT;
}

static struct {
    bool watching; /* mpirun or its daemon is the parent and told this rank its number */
    bool speaks;   /* of stops; without mpirun's mark all ranks would */
    int size, local_rank, local_size;
} self;

static struct {
    enum signals_answer answer;
    volatile sig_atomic_t noted;  /* the first signal; 0: none */
    volatile sig_atomic_t urgent; /* one of them was, see is_urgent */
    volatile sig_atomic_t from_launcher;
} stop;

static const char *guarded_call;
static unsigned guarded_s;

enum sibling { GONE, RUNS, STOPPED };
static char sibling[MAX_LOCAL]; /* enum sibling, by local rank */

/* Bytes read, NUL-terminated; less than size. */
static int read_file(const char *path, char *text, int size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    int n = 0;
    for (ssize_t got = 1; fd >= 0 && got > 0 && n < size - 1; n += (int)got) {
        got = read(fd, text + n, (size_t)(size - 1 - n));
        if (got < 0) got = 0;
    }
    if (fd >= 0) close(fd);
    text[n] = '\0';
    return n;
}

/* The local rank that mpirun gave a process; -1: it is no rank, or has ended. */
static int local_rank_of(int pid)
{
    static const char name[] = "OMPI_COMM_WORLD_LOCAL_RANK=";
    static char env[ENV_BYTES];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    const char *end = env + read_file(path, env, sizeof env);
    for (const char *at = env; at < end; at += strlen(at) + 1)
        if (!strncmp(at, name, sizeof name - 1)) return atoi(at + sizeof name - 1);
    return -1;
}

static bool is_stopped(int pid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    read_file(path, text, sizeof text);
    const char *state = strrchr(text, ')');
    return state && state[1] && (state[2] == 'T' || state[2] == 't');
}

/* Fills sibling[] from the children of the launcher. */
static void look_around(void)
{
    static char pids[MAX_LOCAL * 12];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getppid(), (int)getppid());
    read_file(path, pids, sizeof pids);
    memset(sibling, GONE, sizeof sibling);
    char *at = pids;
    for (long pid; (pid = strtol(at, &at, 10)) > 0;) {
        const int r = local_rank_of((int)pid);
        if (r >= 0 && r < MAX_LOCAL) sibling[r] = is_stopped((int)pid) ? STOPPED : RUNS;
    }
}

/* "rank 2" or "ranks 2, 3" of this machine in that state; false: none, or nothing can be told. */
static bool name_siblings(enum sibling state, char *text, int size)
{
    const bool world = self.size == self.local_size; /* then local ranks are world ranks */
    if (!self.watching) return false;
    look_around();
    if (sibling[self.local_rank] == GONE) return false; /* /proc does not show the ranks */
    int found = 0, n = snprintf(text, (size_t)size, world ? "rank" : "local rank");
    for (int r = 0; r < self.local_size && n < size - 16; r++)
        if (sibling[r] == (char)state)
            n += snprintf(text + n, (size_t)(size - n), "%s %d", found++ ? "," : "", r);
    return found > 0;
}

/* The end of a line: where this rank is. */
static const char *here(void)
{
    static char text[128];
    place_text(text, sizeof text);
    return text;
}

static void wait_for_kill(void)
{
    for (int s = 0; s < PATIENCE_S; s++) sleep(1);
}

static const char *stop_name(int sig)
{
    int i = 0;
    while (i < N_STOPS - 1 && stops[i].signal != sig) i++;
    return stops[i].name;
}

/* The whole job gets the signal, or learns of it from this rank at the end of the step, or from
 * its launcher when this rank ends now. */
static void on_stop(int sig)
{
    const bool again = stop.urgent && is_urgent(sig);
    if (stop.answer == SIGNALS_NOTE && !again) {
        if (is_urgent(sig)) stop.urgent = 1;
        if (!stop.noted) stop.noted = sig;
        return;
    }
    const bool speaks = err_speak_first() && self.speaks;
    if (stop.answer == SIGNALS_LEAVE) {
        if (speaks) err_say("stopped", "by %s before the first step; %s", stop_name(sig), here());
        err_exit(CODE_REQUEUE);
    }
    if (speaks) err_say("stopped", "at once by a second %s; %s", stop_name(sig), here());
    signal(sig, SIG_DFL);
    raise(sig);
}

/* mpirun ends a job by SIGCONT, SIGTERM and SIGKILL, a second apart: when a rank died, and when it
 * was asked to end itself. Only in the second case are all ranks of this machine alive at the first
 * signal and has nobody spoken; then SIGTERM is a wish like others, and what can be done within a
 * second is done. In the first case all ranks wait here for the end, so that those missing are the
 * ones that died before; only when all is said the second signal is enough. A SIGCONT by itself
 * means nothing. The main thread must wait, or it meets the ends of others and MPI complains. */
static void on_end(int sig, siginfo_t *info, void *context)
{
    (void)context;
    char who[256];
    if (info->si_pid == getppid()) stop.from_launcher = 1;
    if (gettid() != getpid()) {
        tgkill(getpid(), getpid(), sig);
        return;
    }
    const bool died = name_siblings(GONE, who, sizeof who);
    if (died && err_speak_first())
        err_say("fatal", "%s of this machine died: killed (out of memory?)%s or crashed; %s", who,
                strcmp(place_doing(), "MPI_Init") ? "" : ", stopped by Open MPI (docs/batch.md)",
                here());
    const bool well = !died && !err_spoken();
    if (well && sig == SIGCONT) return;
    if (well &&
        (stop.answer == SIGNALS_NOTE || (stop.answer == SIGNALS_LEAVE && !stop.from_launcher))) {
        on_stop(sig);
        return;
    }
    if (sig == SIGCONT || !err_spoken()) wait_for_kill();
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
    (void)context;
    int i = 0;
    while (i < N_CRASHES - 1 && crashes[i].signal != sig) i++;
    const bool has_address = sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL;
    if (!err_speak_first())
        wait_for_kill();
    else if (info->si_code > 0 && has_address)
        err_say("fatal", "%s at address %p; %s", crashes[i].name, info->si_addr, here());
    else if (info->si_code > 0)
        err_say("fatal", "%s sent by the system; %s", crashes[i].name, here());
    else
        err_say("fatal", "%s sent by process %d; %s", crashes[i].name, (int)info->si_pid, here());
    raise(sig); /* SA_RESETHAND: now it has its default */
}

static void on_alarm(int sig)
{
    char who[256];
    (void)sig;
    if (!guarded_call) return; /* somebody else's alarm */
    const bool stopped = name_siblings(STOPPED, who, sizeof who);
    if (err_speak_first())
        err_say("fatal", "%s has not ended after %u s%s%s; %s", guarded_call, guarded_s,
                stopped ? ", stopped: " : "", stopped ? who : "", here());
    else
        wait_for_kill();
    err_exit(CODE_INTERNAL);
}

static int env_number(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

static bool parent_is_launcher(void)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun",
                                        "orted",  "prterun", "prted"};
    char path[64], comm[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)getppid());
    const int n = read_file(path, comm, sizeof comm);
    if (n > 0 && comm[n - 1] == '\n') comm[n - 1] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(comm, names[i])) return true;
    return false;
}

void signals_install(void)
{
    self.size = env_number("OMPI_COMM_WORLD_SIZE");
    self.local_rank = env_number("OMPI_COMM_WORLD_LOCAL_RANK");
    self.local_size = env_number("OMPI_COMM_WORLD_LOCAL_SIZE");
    self.watching = self.local_rank >= 0 && self.local_rank < self.local_size &&
                    self.local_size <= MAX_LOCAL && parent_is_launcher();
    self.speaks = self.watching || env_number("PMIX_RANK") <= 0;
    signals_answer(SIGNALS_LEAVE);
    const struct sigaction end = {.sa_sigaction = on_end, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (int i = 0; self.watching && i < 2; i++) sigaction(i ? SIGTERM : SIGCONT, &end, NULL);
    signal(SIGXFSZ, SIG_IGN); /* writing beyond a limit is an error like a full disk */
    signal(SIGPIPE, SIG_IGN); /* so is writing to a reader that has gone */
    signal(SIGALRM, on_alarm);
    for (int i = 0; i < N_CRASHES; i++) {
        struct sigaction act = {.sa_sigaction = on_crash,
                                .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER};
        struct sigaction before;
        sigaction(crashes[i].signal, NULL, &before); /* a sanitizer's handler knows more */
        if (before.sa_handler == SIG_DFL) sigaction(crashes[i].signal, &act, NULL);
    }
}

void signals_answer(enum signals_answer answer)
{
    const struct sigaction act = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    struct sigaction before;
    stop.answer = answer;
    for (int i = 0; i < N_STOPS; i++) {
        const int sig = stops[i].signal;
        if (sig == SIGTERM && self.watching) continue; /* on_end's */
        sigaction(sig, NULL, &before);
        if (before.sa_handler == SIG_IGN)
            continue; /* by a shell for its background job, by nohup */
        if (answer == SIGNALS_DIE)
            signal(sig, SIG_DFL);
        else
            sigaction(sig, &act, NULL);
    }
}

const char *signals_noted(void)
{
    return stop.noted ? stop_name(stop.noted) : NULL;
}

double signals_launcher_patience(void)
{
    const char *given = getenv("OMPI_MCA_odls_base_sigkill_timeout"); /* mpirun hands it on */
    if (!self.watching || getenv("DSV3_STOPS_BY_USR1")) return -1;
    return given ? atof(given) : 1;
}

void signals_rest(void)
{
    signal(SIGCONT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    for (int i = 0; i < N_STOPS; i++) /* too late: the exit code is known */
        if (!is_urgent(stops[i].signal)) signal(stops[i].signal, SIG_IGN);
}

void signals_guard(const char *call, double seconds)
{
    guarded_call = call;
    guarded_s = seconds < 1 ? 1 : seconds > 1e9 ? 1000000000u : (unsigned)seconds;
    alarm(0);
    if (call) alarm(guarded_s);
}
