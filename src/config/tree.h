/*
 * tree.h - YAML text as a tree of nodes that know where they stand, and messages that say so.
 * Scalars stay text: what they mean depends on the key (value.h). Anchors, aliases, tags and
 * further documents are refused by name, because libyaml passes merge keys through as ordinary
 * keys and an alias can blow a small file up without bound.
 */
#pragma once

#include "base/err.h"
#include "config/pool.h"

/* Where something was written. file NULL: the command line. line 0: the file as a whole. */
struct place {
    const char *file;
    int line, column; /* from 1 */
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP, NODE_REFUSED /* already reported */ };

struct node {
    enum node_kind kind;
    bool plain;       /* a scalar without quotes */
    const char *text; /* of a scalar; no NUL inside */
    struct place at;
    struct node *first, *last; /* children; those of a map are its keys */
    struct node *next;
    struct node *value; /* of a map's key; never NULL */
};

/* A plain null, ~ or nothing at all. */
bool node_is_null(const struct node *node);

/* What stands there, for messages: a short printable text in buf. */
enum { NODE_TEXT_BYTES = 96 };
const char *node_found(const struct node *node, char buf[NODE_TEXT_BYTES]);

/*
 * Parse n bytes of text. file names them in messages and must outlive the nodes, which belong to
 * pool. Returns the root; a null scalar for an empty text; NULL, with the reason in errs, when the
 * text is not YAML at all.
 */
struct node *tree_try_parse(struct pool *pool, const char *file, const char *text, size_t n,
                            struct err_list *errs);

/* Adds "file:line:column: message". A broken file can hold any number of faults: after MAX_FAULTS
 * they are no longer listed. */
enum { MAX_FAULTS = 100 };
void fault_add(struct err_list *errs, struct place at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
