/* model.c - the model of a config.json as YAML, without any weights; see commands.h. */
#include "commands.h"
#include "foreign.h"
#include "hf_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int cmd_model(const struct options *o)
{
    struct config cfg;
    struct hf_settings set;
    struct err_list errs = {0};
    struct stat st;
    const bool is_dir = !stat(o->arg[0], &st) && S_ISDIR(st.st_mode);
    char *path = is_dir ? foreign_path(o->arg[0], "config.json") : strdup(o->arg[0]);
    CHECK(path, "no memory for a path");
    int code = CODE_DONE;
    if (hf_config_try_read(&cfg, &set, path, &errs)) {
        code = report_all(&errs, CODE_CONFIG);
    } else {
        char *yaml = hf_config_yaml(&cfg);
        fputs(yaml, stdout);
        free(yaml);
        hf_settings_print(&set, stderr);
    }
    err_free(&errs);
    config_free(&cfg);
    hf_settings_free(&set);
    free(path);
    return code;
}
