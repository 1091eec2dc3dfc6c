/* thread.h - threads beside the main one. */
#pragma once

#include <pthread.h>

/* Starts run(arg) with all signals blocked: they are for the main thread, which knows what to do
 * with them. Fatal when there is no thread; purpose: for that message. */
void thread_start(pthread_t *thread, void *(*run)(void *), void *arg, const char *purpose);
