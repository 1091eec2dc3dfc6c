/* Bytes of a file or a name that are control characters break no message into lines and do not
 * reach the terminal: fatal faults, listed faults, warnings, faults of shards. The source's place
 * and condition are told of faults of the program only. A list of very many errors has the first of
 * them and their number. */
// TEST ranks=1 timeout=10
#include "data_fixture.h"

#define NASTY "a\nb\033[31m\177c\td"
#define PRINTABLE "a?b?[31m?c?d"

static void die_of_it(const char *name)
{
    DIE(CODE_DATA, "%s: broken", name);
}
static void check_of_it(const char *name)
{
    CHECK(!name, "%s", name);
}
static void warn_of_it(const char *name)
{
    warn_line("%s: odd", name);
}

int main(void)
{
    struct err_list errs = {0};
    struct fault fault = {0};
    err_add(&errs, "%s: unknown", NASTY);
    err_add(&errs, "second");
    EXPECT(!strcmp(errs.text, PRINTABLE ": unknown\nsecond\n"), "listed: %s", errs.text);
    for (int i = 2; i < 2000000; i++) err_add(&errs, "another");
    const char *last = strstr(errs.text, "another\n...");
    EXPECT(errs.n == 2000000 && last && !strcmp(last, "another\n... and 1999950 more\n") &&
               last - errs.text < 1000,
           "%d errors: %s", errs.n, errs.text);
    err_free(&errs);
    fault_set(&fault, CODE_DATA, "%s: altered", NASTY);
    EXPECT(!strcmp(fault.why, PRINTABLE ": altered"), "shard: %s", fault.why);
    fixture_expect(die_of_it, NASTY, CODE_DATA, "fatal " PRINTABLE ": broken\n\0");
    fixture_expect(check_of_it, NASTY, CODE_INTERNAL,
                   "t_err_printable.c:\0: !name: " PRINTABLE "\0");
    fixture_expect(warn_of_it, NASTY, CODE_DONE, "warning " PRINTABLE ": odd\n\0");
    return test_end();
}
