/* value_read.h - reading single values, shared by value.c and value_list.c. Private to src/config.
 */
#pragma once

#include "config/value.h"

/* Each true when the node is such a value within the key's limits. */
bool value_read_int(const struct key *key, const struct node *node, int64_t *value);
bool value_read_number(const struct key *key, const struct node *node, double *value);
bool value_read_choice(const char *const *choices, const struct node *node, int *value);
bool value_read_text(const struct key *key, const struct node *node, struct pool *pool,
                     const char **value);

/* Adds one fault about a value and returns -1; a refused node has had its own. */
int value_fault(struct err_list *errs, const struct node *node, const char *name,
                const char *expected);

int value_read_sources(const struct key *key, const struct node *node, struct pool *pool,
                       struct data_sources *to, struct err_list *errs);
int value_read_stages(const struct key *key, const struct node *node, struct stages *stages,
                      struct err_list *errs);
int value_read_ranges(const struct key *key, const struct node *node, struct ranges *ranges,
                      struct err_list *errs);
