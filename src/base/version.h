/* version.h - which program this is: for --version of every program, the first lines of a run, and
 * the checkpoints. */
#pragma once

#include "base/err.h"

const char *version_commit(void); /* "v1.0-12-g6198e5b", what `git describe` said of the source */
const char *version_libraries(void); /* "Open MPI v4.1.4, HDF5 1.10.8, zstd 1.5.4, ..." */

/* Prints what `PROGRAM --version` says: the commit, the libraries in use, the compiler and the
 * instruction set it built for, and those of this processor. Returns output_end(). */
enum exit_code version_print(const char *program);
