/* Appends records to the ledger's file, and makes them durable in groups. */
#include "ledger.h"
#include "sim_time.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct bytes {
    char *data;
    size_t used, space;
};

struct ledger {
    char *path; /* fixed after opening */
    int fd;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t synced;
    struct bytes queued;
    int64_t last_seq;    /* of the last record appended */
    int64_t durable_seq; /* of the last record that is on the disk */
    int64_t durable_bytes;
    bool syncing; /* somebody writes; the others wait for it */
    bool broken;
    struct problem failure;
};

bool ledger_scan(FILE *file, const char *path, int64_t limit, record_visitor visit, void *context,
                 int64_t *end, struct problem *problem)
{
    int64_t number = 0, position = 0, last_seq = 0;
    struct record record;
    struct problem detail;
    char *line = NULL;
    size_t space = 0;
    bool fine = false;
    ssize_t length;

    while ((length = getline(&line, &space, file)) > 0) {
        if (line[length - 1] != '\n' || (limit >= 0 && position + length > limit))
            break;
        number++;
        if (!record_read(line, (size_t)length - 1, &record, &detail) ||
            (record.seq <= last_seq &&
             !problem_set(&detail, "seq %" PRId64 " follows %" PRId64, record.seq, last_seq)) ||
            ((number == 1) != (record.type == RECORD_LEDGER) &&
             !problem_set(&detail, "the first line, and no other, must be of type ledger")) ||
            !visit(context, &record, &detail)) {
            problem_set(problem, "%s:%" PRId64 ": not a line of a ledger: %s", path, number,
                        detail.text);
            goto out;
        }
        last_seq = record.seq;
        position += length;
    }
    if (ferror(file)) {
        problem_set(problem, "cannot read %s: %s", path, strerror(errno));
        goto out;
    }
    *end = position;
    fine = true;
out:
    free(line);
    return fine;
}

struct recovery {
    record_visitor visit;
    void *context;
    int64_t last_seq;
    bool of_proxy; /* wanted */
    bool other;    /* the ledger is of the other kind */
};

static bool recover_record(void *context, const struct record *record, struct problem *problem)
{
    struct recovery *recovery = context;

    if (record->type == RECORD_LEDGER)
        recovery->other = record->of_proxy != recovery->of_proxy;
    if (recovery->other)
        return true;
    recovery->last_seq = record->seq;
    return recovery->visit(recovery->context, record, problem);
}

static bool recover(struct ledger *ledger, bool of_proxy, record_visitor visit, void *context,
                    struct problem *problem)
{
    struct recovery recovery = {visit, context, 0, of_proxy, false};
    int copy = ledger->fd < 0 ? -1 : dup(ledger->fd);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "r");
    int64_t end = 0;
    bool fine = false;

    if (!file) {
        if (copy >= 0)
            close(copy);
        return problem_set(problem, "cannot read %s: %s", ledger->path, strerror(errno));
    }
    fine = ledger_scan(file, ledger->path, -1, recover_record, &recovery, &end, problem);
    fclose(file);
    if (!fine)
        return false;
    if (recovery.other)
        return problem_set(problem, "the ledger %s is that of a %s", ledger->path,
                           of_proxy ? "channel, not of a proxy" : "proxy, not of a channel");
    if (ftruncate(ledger->fd, (off_t)end) != 0 || fdatasync(ledger->fd) != 0)
        return problem_set(problem, "cannot write %s: %s", ledger->path, strerror(errno));
    ledger->last_seq = recovery.last_seq;
    ledger->durable_seq = recovery.last_seq;
    ledger->durable_bytes = end;
    return true;
}

/* A new file survives a crash of the machine only when its directory was synced too. */
static bool sync_directory(const char *path, struct problem *problem)
{
    char *copy = memory_need(strdup(path));
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool fine = fd >= 0 && fsync(fd) == 0;

    if (!fine)
        problem_set(problem, "cannot sync the directory of %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(copy);
    return fine;
}

static bool open_and_lock(struct ledger *ledger, struct problem *problem)
{
    struct stat info;

    /* O_NONBLOCK: opening a FIFO by mistake must not hang; regular files ignore it. */
    ledger->fd = open(ledger->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
    if (ledger->fd < 0 || fstat(ledger->fd, &info) != 0)
        return problem_set(problem, "cannot open the ledger %s: %s", ledger->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return problem_set(problem, "the ledger %s is not a regular file", ledger->path);
    if (flock(ledger->fd, LOCK_EX | LOCK_NB) != 0)
        return problem_set(problem, "the ledger %s is in use by another simulator", ledger->path);
    return sync_directory(ledger->path, problem);
}

struct ledger *ledger_open(const char *path, bool of_proxy, record_visitor visit, void *context,
                           struct problem *problem)
{
    struct ledger *ledger = memory_new(sizeof(*ledger));
    struct record first;

    ledger->path = memory_need(strdup(path));
    ledger->fd = -1;
    pthread_mutex_init(&ledger->mutex, NULL);
    pthread_cond_init(&ledger->synced, NULL);
    if (!open_and_lock(ledger, problem) || !recover(ledger, of_proxy, visit, context, problem))
        goto out;
    if (ledger->last_seq == 0) {
        memset(&first, 0, sizeof(first));
        first.type = RECORD_LEDGER;
        first.format = RECORD_FORMAT;
        first.of_proxy = of_proxy;
        if (!ledger_wait(ledger, ledger_append(ledger, &first))) {
            ledger_failure(ledger, problem);
            goto out;
        }
    }
    return ledger;
out:
    ledger_close(ledger);
    return NULL;
}

void ledger_close(struct ledger *ledger)
{
    if (!ledger)
        return;
    if (ledger->fd >= 0) {
        ledger_wait(ledger, ledger->last_seq);
        close(ledger->fd);
    }
    free(ledger->queued.data);
    free(ledger->path);
    pthread_cond_destroy(&ledger->synced);
    pthread_mutex_destroy(&ledger->mutex);
    free(ledger);
}

static void bytes_add(struct bytes *bytes, const char *data, size_t size)
{
    if (bytes->used + size > bytes->space) {
        bytes->space = 2 * (bytes->used + size);
        bytes->data = memory_need(realloc(bytes->data, bytes->space));
    }
    memcpy(bytes->data + bytes->used, data, size);
    bytes->used += size;
}

int64_t ledger_append(struct ledger *ledger, struct record *record)
{
    char *line;
    int64_t seq;

    pthread_mutex_lock(&ledger->mutex);
    seq = ++ledger->last_seq;
    record->seq = seq;
    record->at_us = time_now_us();
    /* Numbers are never used twice within a ledger, so neither are references. */
    if (record->type == RECORD_PAID)
        snprintf(record->channel_ref, sizeof(record->channel_ref), "P%010" PRId64, seq);
    line = record_write(record);
    bytes_add(&ledger->queued, line, strlen(line));
    pthread_mutex_unlock(&ledger->mutex);
    free(line);
    return seq;
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
}

/* Writes everything queued.  Needs: mutex held, nobody syncing; it is free meanwhile. */
static void sync_group(struct ledger *ledger)
{
    struct bytes group = ledger->queued;
    int64_t group_seq = ledger->last_seq;
    bool fine;

    memset(&ledger->queued, 0, sizeof(ledger->queued));
    ledger->syncing = true;
    pthread_mutex_unlock(&ledger->mutex);
    errno = 0;
    fine = write_all(ledger->fd, group.data, group.used) && fdatasync(ledger->fd) == 0;
    pthread_mutex_lock(&ledger->mutex);
    if (fine) {
        ledger->durable_seq = group_seq;
        ledger->durable_bytes += (int64_t)group.used;
    } else {
        problem_set(&ledger->failure, "cannot write the ledger %s: %s", ledger->path,
                    strerror(errno));
        ledger->broken = true;
    }
    ledger->syncing = false;
    pthread_cond_broadcast(&ledger->synced);
    free(group.data);
}

bool ledger_wait(struct ledger *ledger, int64_t seq)
{
    bool durable;

    pthread_mutex_lock(&ledger->mutex);
    while (ledger->durable_seq < seq && !ledger->broken) {
        if (ledger->syncing)
            pthread_cond_wait(&ledger->synced, &ledger->mutex);
        else
            sync_group(ledger);
    }
    durable = ledger->durable_seq >= seq;
    pthread_mutex_unlock(&ledger->mutex);
    return durable;
}

const char *ledger_path(const struct ledger *ledger)
{
    return ledger->path;
}

int64_t ledger_durable_bytes(struct ledger *ledger)
{
    int64_t result;

    pthread_mutex_lock(&ledger->mutex);
    result = ledger->durable_bytes;
    pthread_mutex_unlock(&ledger->mutex);
    return result;
}

void ledger_failure(struct ledger *ledger, struct problem *problem)
{
    pthread_mutex_lock(&ledger->mutex);
    *problem = ledger->failure;
    pthread_mutex_unlock(&ledger->mutex);
}
