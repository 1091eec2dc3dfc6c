/* thread.c - see thread.h. */
#include "base/thread.h"

#include "base/err.h"

#include <signal.h>
#include <string.h>

void thread_start(pthread_t *thread, void *(*run)(void *), void *arg, const char *purpose)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    CHECK(error == 0, "no thread for %s: %s", purpose, strerror(error));
}
