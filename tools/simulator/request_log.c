/* Writes one line for each request received and one for its end. */
#include "request_log.h"
#include "sim_time.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request_log {
    int fd; /* -1: nothing is written */
    atomic_flag failed;
};

struct request_log *request_log_open(const char *path, struct problem *problem)
{
    struct request_log *log = memory_new(sizeof(*log));

    log->fd = -1;
    if (!path)
        return log;
    log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log->fd >= 0)
        return log;
    problem_set(problem, "cannot open the request log %s: %s", path, strerror(errno));
    free(log);
    return NULL;
}

void request_log_close(struct request_log *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    free(log);
}

void request_log_line(struct request_log *log, const char *event, int64_t request, json_t *fields)
{
    json_t *line;
    char at[TIME_TEXT_SIZE], *text;
    size_t length;

    if (log->fd < 0) {
        json_decref(fields);
        return;
    }
    time_write(time_now_us(), at);
    line = memory_need(
        json_pack("{s:s, s:I, s:s}", "event", event, "request", (json_int_t)request, "at", at));
    json_object_update_missing(line, fields);
    json_decref(fields);
    text = memory_need(json_dumps(line, JSON_COMPACT));
    json_decref(line);
    length = strlen(text);
    text = memory_need(realloc(text, length + 2));
    memcpy(text + length, "\n", 2);
    /* One write, so that lines of several threads never mix.  A log that cannot be written must not
     * change what the channel does, and says so once. */
    if (write(log->fd, text, length + 1) < 0 && !atomic_flag_test_and_set(&log->failed))
        fprintf(stderr, "tradelock-simulator: cannot write the request log: %s\n", strerror(errno));
    free(text);
}
