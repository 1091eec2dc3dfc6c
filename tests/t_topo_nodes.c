/* mesh_print_nodes: a warning for tp and for ep where a group is on more nodes than it needs, and
 * only there; a line for every node with its ranks. */
// TEST ranks=1 timeout=30
#include "test.h"
#include "topo/mesh.h"

#include <stdlib.h>
#include <string.h>

/* What is printed of 8 ranks on nodes that are named by a letter each. */
static char *print(const char *nodes, int tp, int ep, bool table)
{
    char *text;
    size_t n;
    struct mesh m;
    const struct mesh_shape shape = {.size = 8, .tp = tp, .ep = ep, .ranks_per_node = 8};
    mesh_plan(&m, &shape, 0);
    m.host = calloc(8, sizeof *m.host);
    m.n_nodes = 0;
    for (int r = 0; r < 8; r++) {
        m.node_of[r] = nodes[r] - 'a';
        m.host[r][0] = nodes[r];
        if (m.node_of[r] >= m.n_nodes) m.n_nodes = m.node_of[r] + 1;
    }
    FILE *out = open_memstream(&text, &n);
    mesh_print_nodes(&m, out, table);
    fclose(out);
    free(m.host);
    m.host = NULL; /* a planned mesh has none */
    mesh_free(&m);
    return text;
}

static void expect_text(const char *nodes, int tp, int ep, const char *want_start)
{
    char *got = print(nodes, tp, ep, false);
    EXPECT(!strncmp(got, want_start, strlen(want_start)) && (*want_start || !*got),
           "%s tp %d ep %d: '%s', expected '%s'", nodes, tp, ep, got, want_start);
    free(got);
}

int main(void)
{
    expect_text("aaaabbbb", 4, 4, "");
    expect_text("aaaabbbb", 2, 8, ""); /* 8 ranks need both nodes */
    expect_text("abababab", 1, 1, "");
    expect_text("abababab", 2, 1, "warning tp 2: ranks 0 to 1 are on 2 nodes, 1 would do");
    expect_text("abababab", 1, 4, "warning ep 4: ranks 0 to 3 are on 2 nodes, 1 would do");
    expect_text("aaaabcbc", 2, 1, "warning tp 2: ranks 4 to 5 are on 2 nodes, 1 would do");
    expect_text("aabbccdd", 2, 8, "");
    expect_text("abcdabcd", 1, 4, "warning ep 4: ranks 0 to 3 are on 4 nodes, 2 would do");
    char *table = print("aabbbabb", 1, 1, true);
    EXPECT(!strcmp(table, "node    0 a: ranks 0-1,5\nnode    1 b: ranks 2-4,6-7\n"), "%s", table);
    free(table);
    return test_end();
}
