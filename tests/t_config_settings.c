/* A printed configuration read back line by line: every key of the table with what was written, and
   nothing of lines that no version prints. */
// TEST ranks=1 timeout=30
#include "config/keys.h"
#include "config/setting.h"
#include "lib_config.h"
#include "test.h"

#include <string.h>

static void check_all_keys(void)
{
    struct config c;
    config_must_load_text(&c, config_small_text, NULL);
    char *text = config_to_text(&c);
    struct setting s = {.rest = text};
    int row = 0;
    for (; setting_next(&s); row++)
        EXPECT(row < n_config_keys && !strcmp(s.key, config_keys[row].name), "key %d: %s", row,
               s.key);
    EXPECT(row == n_config_keys, "%d of %d keys", row, n_config_keys);
    EXPECT(setting_find(&s, text, "model.rope_scaling.type"), "not found");
    EXPECT(s.n_value == 7 && !memcmp(s.value, "default", 7), "%.*s", s.n_value, s.value);
    EXPECT(!setting_find(&s, text, "model.type"), "%s", s.key);
    free(text);
    config_free(&c);
}

/* A checkpoint's text is read from a file: its sections may be longer and deeper than ours. */
static void check_strange_lines(void)
{
    char text[2048], name[SETTING_NAME];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    snprintf(
        text, sizeof text,
        "%s:\n  %s:\n    %s:\n      %s: 1\n      y%s: 2\n        z: 3\n# a: 4\nb\nc:\nd:5\ne: ",
        name, name, name, name, name);
    struct setting s = {.rest = text};
    EXPECT(setting_next(&s) && strlen(s.key) == 4 * SETTING_NAME - 1 && *s.value == '1', "%s: %.*s",
           s.key, s.n_value, s.value);
    EXPECT(setting_next(&s) && !strcmp(s.key, "d") && s.n_value == 0, "%s: %.*s", s.key, s.n_value,
           s.value);
    EXPECT(setting_next(&s) && !strcmp(s.key, "e") && s.n_value == 0, "%s: %.*s", s.key, s.n_value,
           s.value);
    EXPECT(!setting_next(&s), "%s: %.*s", s.key, s.n_value, s.value);
}

int main(void)
{
    check_all_keys();
    check_strange_lines();
    return test_end();
}
