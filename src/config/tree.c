/* tree.c - libyaml's events -> struct node; see tree.h. */
#include "config/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum {
    MAX_DEPTH = 32, /* the deepest key needs 4; a file that needs more is an attack */
    MAX_REFUSED = 8 /* anchors and aliases listed; whoever uses them uses many */
};

struct builder {
    struct pool *pool;
    struct err_list *errs;
    const char *file;
    struct node *root;
    int depth;
    struct node *open[MAX_DEPTH];
    struct node *key[MAX_DEPTH]; /* of an open map: the key that waits for its value */
    int n_documents, n_refused;
};

void fault_add(struct err_list *errs, struct place at, const char *fmt, ...)
{
    if (errs->n > MAX_FAULTS) return;
    if (errs->n == MAX_FAULTS) {
        err_add(errs, "more than %d errors: the rest is not listed", MAX_FAULTS);
        return;
    }
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (!at.file)
        err_add(errs, "command line: %s", text);
    else if (at.line == 0)
        err_add(errs, "%s: %s", at.file, text);
    else
        err_add(errs, "%s:%d:%d: %s", at.file, at.line, at.column, text);
}

bool node_is_null(const struct node *node)
{
    return node->kind == NODE_SCALAR && node->plain &&
           (!*node->text || !strcmp(node->text, "~") || !strcmp(node->text, "null"));
}

const char *node_found(const struct node *node, char buf[NODE_TEXT_BYTES])
{
    if (node->kind != NODE_SCALAR)
        return node->kind == NODE_LIST ? "a list" : node->kind == NODE_MAP ? "a mapping" : "?";
    if (node_is_null(node)) return *node->text ? node->text : "nothing (null)";
    const char *quote = node->plain ? "" : "\"";
    snprintf(buf, NODE_TEXT_BYTES, "%s%s%.60s%s%s", node->plain ? "" : "text ", quote, node->text,
             strlen(node->text) > 60 ? "..." : "", quote);
    err_printable(buf);
    return buf;
}

static struct place place_of(const struct builder *b, yaml_mark_t mark)
{
    return (struct place){b->file, (int)mark.line + 1, (int)mark.column + 1};
}

static struct node *node_new(struct builder *b, enum node_kind kind, const yaml_event_t *event)
{
    struct node *node = pool_take(b->pool, sizeof *node);
    node->kind = kind;
    node->at = place_of(b, event->start_mark);
    return node;
}

static void node_append(struct node *parent, struct node *child)
{
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
}

/* The node's place in the innermost open list or map, or the root. */
static void attach(struct builder *b, struct node *node)
{
    if (b->depth == 0) {
        b->root = node;
        return;
    }
    struct node *parent = b->open[b->depth - 1];
    struct node **key = &b->key[b->depth - 1];
    if (parent->kind == NODE_MAP && *key) {
        (*key)->value = node;
        *key = NULL;
        return;
    }
    node_append(parent, node);
    if (parent->kind == NODE_MAP) *key = node;
}

static void refuse(struct builder *b, struct place at, const char *what, const yaml_char_t *name)
{
    if (b->n_refused++ < MAX_REFUSED)
        fault_add(b->errs, at, "%s%s: anchors, aliases and merge keys are refused; use base: FILE",
                  what, (const char *)name);
}

static void refuse_extras(struct builder *b, struct place at, const yaml_char_t *anchor,
                          const yaml_char_t *tag)
{
    if (anchor) refuse(b, at, "anchor &", anchor);
    if (tag) fault_add(b->errs, at, "tag %s: tags are refused", (const char *)tag);
}

static void on_scalar(struct builder *b, const yaml_event_t *event)
{
    struct node *node = node_new(b, NODE_SCALAR, event);
    const char *text = (const char *)event->data.scalar.value;
    const size_t n = event->data.scalar.length;
    refuse_extras(b, node->at, event->data.scalar.anchor, event->data.scalar.tag);
    if (event->data.scalar.tag) node->kind = NODE_REFUSED;
    if (memchr(text, '\0', n)) {
        fault_add(b->errs, node->at, "a text with a NUL character is refused");
        node->kind = NODE_REFUSED;
    }
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = pool_text(b->pool, text, n);
    attach(b, node);
}

static bool on_start(struct builder *b, enum node_kind kind, const yaml_event_t *event)
{
    struct node *node = node_new(b, kind, event);
    if (kind == NODE_MAP)
        refuse_extras(b, node->at, event->data.mapping_start.anchor, event->data.mapping_start.tag);
    else
        refuse_extras(b, node->at, event->data.sequence_start.anchor,
                      event->data.sequence_start.tag);
    if (b->depth == MAX_DEPTH) {
        fault_add(b->errs, node->at, "nested deeper than %d levels", MAX_DEPTH);
        return false;
    }
    attach(b, node);
    b->open[b->depth] = node;
    b->key[b->depth++] = NULL;
    return true;
}

/* False: give up reading. */
static bool on_event(struct builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++b->n_documents == 1) return true;
        fault_add(b->errs, place_of(b, event->start_mark),
                  "a second document begins; expected one document in a file");
        return false;
    case YAML_ALIAS_EVENT:
        refuse(b, place_of(b, event->start_mark), "alias *", event->data.alias.anchor);
        attach(b, node_new(b, NODE_REFUSED, event));
        return true;
    case YAML_SCALAR_EVENT: on_scalar(b, event); return true;
    case YAML_SEQUENCE_START_EVENT: return on_start(b, NODE_LIST, event);
    case YAML_MAPPING_START_EVENT: return on_start(b, NODE_MAP, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: b->depth--; return true;
    default: return true;
    }
}

static void report_syntax(const struct builder *b, const yaml_parser_t *parser)
{
    const bool read = parser->error == YAML_READER_ERROR; /* bytes that are not text: no mark */
    const yaml_mark_t mark = read ? parser->mark : parser->problem_mark;
    fault_add(b->errs, place_of(b, mark), "not YAML: %s%s%s",
              parser->problem ? parser->problem : "no memory", parser->context ? " " : "",
              parser->context ? parser->context : "");
}

struct node *tree_try_parse(struct pool *pool, const char *file, const char *text, size_t n,
                            struct err_list *errs)
{
    struct builder b = {.pool = pool, .errs = errs, .file = file};
    yaml_parser_t parser;
    CHECK(yaml_parser_initialize(&parser), "libyaml: no memory for a parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    bool go_on = true, valid = true;
    while (go_on) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            report_syntax(&b, &parser);
            valid = false;
            break;
        }
        go_on = event.type != YAML_STREAM_END_EVENT && on_event(&b, &event);
        valid = valid && (go_on || event.type == YAML_STREAM_END_EVENT);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (!valid) return NULL;
    if (b.root) return b.root;
    struct node *nothing = pool_take(pool, sizeof *nothing);
    nothing->plain = true;
    nothing->text = "";
    nothing->at = (struct place){file, 1, 1};
    return nothing;
}
