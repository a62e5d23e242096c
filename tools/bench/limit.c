/* What the disk allows: a small write and its fdatasync, one after the other. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int file = -1;

static int open_file(const bench_options *options)
{
    char path[4096];

    if (options->directory == NULL)
        bench_fail("--dir DIR is needed");
    snprintf(path, sizeof path, "%s/limit", options->directory);
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    /* As the log: its blocks are there before it is written. */
    if (file < 0 || ftruncate(file, 0) != 0 || posix_fallocate(file, 0, 1 << 24) != 0)
        bench_fail("%s: %s", path, strerror(errno));
    (void)unlink(path);
    return 0;
}

static int cycle(unsigned caller, uint64_t number)
{
    static const char block[512];

    (void)caller;
    if (pwrite(file, block, sizeof block, (off_t)(number % 32768) * 512) != (ssize_t)sizeof block ||
        fdatasync(file) != 0)
        bench_fail("fdatasync: %s", strerror(errno));
    return 1;
}

static void close_file(void)
{
    (void)close(file);
}

const contestant contestant_fsync = {.name = "fsync",
                                     .what = "write 512 bytes and sync, one caller",
                                     .open = open_file,
                                     .cycle = cycle,
                                     .close = close_file};
