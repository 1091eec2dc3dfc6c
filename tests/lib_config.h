/* lib_config.h - configurations for tests: from text, from ready files, with overrides. */
#pragma once

#include "config/config.h"

/* Loads file with overrides (ended by NULL); a fault is a test failure that prints the list. */
void config_must_load(struct config *cfg, const char *file, char *const overrides[]);

/* Loads text, written to a file of the test's directory, likewise. */
void config_must_load_text(struct config *cfg, const char *text, char *const overrides[]);

/* A small complete configuration, without a last line break. */
extern const char config_small_text[];
