/* range.c - see range.h. */
#include "base/range.h"

#include <string.h>

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool ranges_add(struct ranges *set, int64_t first, int64_t end)
{
    struct range *at = set->at;
    int from = 0, to; /* ranges from .. to - 1 become part of the new one */
    while (from < set->n && at[from].end < first) from++;
    for (to = from; to < set->n && at[to].first <= end; to++) {
        first = min(first, at[to].first);
        end = max(end, at[to].end);
    }
    if (from == to && set->n == MAX_RANGES) return false;
    memmove(at + from + 1, at + to, sizeof *at * (size_t)(set->n - to));
    at[from] = (struct range){first, end};
    set->n += 1 - (to - from);
    return true;
}

int64_t ranges_count(const struct ranges *set, int64_t first, int64_t end)
{
    int64_t count = 0;
    for (int i = 0; i < set->n; i++)
        count += max(0, min(end, set->at[i].end) - max(first, set->at[i].first));
    return count;
}

int64_t ranges_after(const struct ranges *set, int64_t from, int64_t n)
{
    int64_t at = from;
    if (n > INT64_MAX - from) return INT64_MAX;
    for (int i = 0; i < set->n && n > 0; i++) {
        const struct range *r = &set->at[i];
        if (r->end <= at) continue;
        const int64_t before = max(0, r->first - at);
        if (n <= before) break;
        n -= before;
        at = r->end;
    }
    return n > INT64_MAX - at ? INT64_MAX : at + n;
}
