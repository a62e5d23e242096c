#include "stepping.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARED "/dev/shm"

#define LIBRARY "faketime/libfaketimeMT.so.1"

struct stepping {
    server *server;
    char dir[64], file[96];
};

/* libfaketime leaves two files of each process that ended, named by its number. */
static void remove_what_is_left(void)
{
    DIR *all = opendir(SHARED);
    const struct dirent *entry;

    while (all != NULL && (entry = readdir(all)) != NULL) {
        char path[sizeof SHARED + sizeof entry->d_name + 1];
        const char *at = strstr(entry->d_name, "faketime_");
        int process;

        if (at == NULL || sscanf(at, "faketime_s%*[emh]_%d", &process) != 1)
            continue;
        snprintf(path, sizeof path, "%s/%s", SHARED, entry->d_name);
        if (kill(process, 0) != 0 && errno == ESRCH)
            unlink(path);
    }
    if (all != NULL)
        closedir(all);
}

/* The first one is the last to be called, when the servers are gone. */
__attribute__((constructor)) static void clean_at_exit(void)
{
    atexit(remove_what_is_left);
}

/* As the loader finds it in Debian's directory of this architecture. */
void stepping_library(char *path, size_t space)
{
    static const char *const places[] = {"/usr/lib/" TESTS_CLOCK_TRIPLET, "/usr/lib"};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, space, "%s/%s", places[i], LIBRARY);
        if (access(path, R_OK) == 0)
            return;
    }
    server_panic("libfaketime is not installed: tools/dev/packages test");
}

/* One file takes the other's place: half of it is never read. */
void stepping_set(stepping *self, int64_t ahead_ms)
{
    char fresh[sizeof self->file + 8];
    FILE *file;

    snprintf(fresh, sizeof fresh, "%s.new", self->file);
    file = fopen(fresh, "we");
    if (file == NULL ||
        fprintf(file, "%s%" PRId64 ".%03d\n", ahead_ms < 0 ? "-" : "+",
                (ahead_ms < 0 ? -ahead_ms : ahead_ms) / 1000,
                (int)((ahead_ms < 0 ? -ahead_ms : ahead_ms) % 1000)) < 0 ||
        fclose(file) != 0 || rename(fresh, self->file) != 0)
        server_panic("%s cannot be written", self->file);
}

/* The server alone gets it, through the environment of what starts it. */
stepping *stepping_start(void)
{
    /* A server that waits for a latch takes a clock that is set forward for a wait of that long,
     * and ends itself. */
    static const char *const options[] = {"--innodb-fatal-semaphore-wait-threshold=4294967295",
                                          NULL};
    stepping *self = calloc(1, sizeof *self);
    char library[128];

    if (self == NULL)
        server_panic("out of memory");
    snprintf(self->dir, sizeof self->dir, "/tmp/tl-clock-XXXXXX");
    if (mkdtemp(self->dir) == NULL)
        server_panic("no directory %s", self->dir);
    snprintf(self->file, sizeof self->file, "%s/ahead", self->dir);
    stepping_set(self, 0);
    stepping_library(library, sizeof library);
    setenv("FAKETIME_TIMESTAMP_FILE", self->file, 1);
    setenv("FAKETIME_NO_CACHE", "1", 1);
    setenv("DONT_FAKE_MONOTONIC", "1", 1);
    setenv("LD_PRELOAD", library, 1);
    self->server = server_start(options);
    unsetenv("LD_PRELOAD");
    return self;
}

void stepping_free(stepping *self)
{
    unlink(self->file);
    rmdir(self->dir);
    free(self);
}

server *stepping_server(stepping *self)
{
    return self->server;
}
