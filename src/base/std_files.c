/* std_files.c - see std_files.h. */
#include "base/std_files.h"

#include "base/err.h"

#include <fcntl.h>
#include <unistd.h>

void std_files_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        const int got = open("/dev/null", O_RDWR); /* the lowest free number, which is fd */
        if (got != fd) err_exit(CODE_IO);
    }
}
