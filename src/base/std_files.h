/*
 * std_files.h - standard input, output and error of a process that was started without one of them
 * (`>&-`, some batch systems and daemons). The next file that it opens would get the free number,
 * and what is printed would land in a shard or a checkpoint.
 */
#pragma once

/* First of all in main: those that are closed become /dev/null. */
void std_files_open(void);
