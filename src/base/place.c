/* place.c - where the run is; see place.h. */
#include "base/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *stage, *doing, *pass;
    int64_t step;
    int layer;
} here = {.stage = "start-up", .step = -1, .layer = -1};

static const char *fault_at;
static int fault_signal;

void place_text(char *text, size_t n)
{
    char step[24] = "", layer[24] = "";
    if (here.step >= 0) snprintf(step, sizeof step, " %lld", (long long)here.step);
    if (here.layer >= 0) snprintf(layer, sizeof layer, " of layer %d", here.layer);
    snprintf(text, n, "%s%s%s%s%s%s%s", here.stage, step, here.doing ? ", " : "",
             here.doing ? here.doing : "", here.pass ? " " : "", here.pass ? here.pass : "", layer);
}

const char *place_doing(void)
{
    return here.doing ? here.doing : "start";
}

bool place_in_step(void)
{
    return here.step >= 0;
}

/* Formats at every place, so only in a run that asks for a fault. */
static void fault_here(void)
{
    char text[128];
    place_text(text, sizeof text);
    if (strcmp(text, fault_at) != 0) return;
    fault_at = NULL; /* a rank that stops and is continued may come here again */
    if (fault_signal) raise(fault_signal);
    while (!fault_signal) pause();
}

void place_stage(const char *stage, int64_t step)
{
    here.stage = stage;
    here.step = step;
    place_at(NULL);
}

void place_in_layer(const char *doing, const char *pass, int layer)
{
    here.doing = doing;
    here.pass = pass;
    here.layer = layer;
    if (fault_at) fault_here();
}

void place_at(const char *doing)
{
    place_in_layer(doing, NULL, -1);
}

void place_fault(const char *at, int signal)
{
    fault_at = at;
    fault_signal = signal;
}
