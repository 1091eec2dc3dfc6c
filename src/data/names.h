/*
 * names.h - which files the sources of a dataset are: the paths of the config in their order, a
 * directory standing for its shards by their names in bytewise order, hidden files left out. No
 * path is a pattern.
 */
#pragma once

#include "data/shard.h"

/* Zero it before the first use. */
struct names {
    char **at;
    int n, cap;
    int n_before[MAX_SOURCES + 1]; /* names of the sources before each */
};

/* What one path stands for, behind what is there. */
int names_try_add(struct names *names, const char *path, enum data_format format,
                  struct fault *fault);
int names_try_list(struct names *names, const struct data_sources *sources, struct fault *fault);
void names_free(struct names *names);
