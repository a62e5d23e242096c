/* Keeps what this process was last told was committed.  Touches its own memory only. */
#include "transition/marks.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

void marks_init(commit_marks *self)
{
    pthread_mutex_init(&self->mutex, NULL);
}

void marks_end(commit_marks *self)
{
    pthread_mutex_destroy(&self->mutex);
}

uint64_t marks_begin(commit_marks *self)
{
    return atomic_load(&self->count);
}

/* Needs: the mutex held. */
static void drop_covered(commit_marks *self, const db_server *server, uint64_t began)
{
    size_t kept = 0;

    for (size_t i = 0; i < self->used; i++)
        if (self->all[i].server != server || self->all[i].answered > began)
            self->all[kept++] = self->all[i];
    self->used = kept;
    if (server == self->overflowed_of && began >= self->overflowed) {
        self->overflowed = 0;
        self->overflowed_of = NULL;
    }
}

/* Needs: the mutex held. */
static void add(commit_marks *self, const commit_mark *one, const db_server *server)
{
    const uint64_t answered = atomic_fetch_add(&self->count, 1) + 1;
    commit_mark *to = &self->all[self->used];

    if (self->used == COMMIT_MARKS_MAX) {
        self->overflowed_of =
            self->overflowed == 0 || server == self->overflowed_of ? server : NULL;
        self->overflowed = answered;
        return;
    }
    *to = *one;
    to->server = server;
    to->answered = answered;
    to->answered_ms = clock_boottime_ms();
    self->used++;
}

int marks_note(commit_marks *self, const commit_mark *one, const db_server *server, uint64_t began)
{
    int is_believed;

    if (server == NULL || one->kind == MARK_NONE)
        return 1;
    pthread_mutex_lock(&self->mutex);
    is_believed = db_state_of(server) != DB_SERVER_LEFT;
    if (is_believed) {
        drop_covered(self, server, began);
        add(self, one, server);
    }
    pthread_mutex_unlock(&self->mutex);
    return is_believed;
}

int marks_of_others(commit_marks *self, const db_server *here, commit_mark **out, size_t *count)
{
    int copied;

    *out = NULL;
    *count = 0;
    pthread_mutex_lock(&self->mutex);
    *out = memory_new_array(self->used + 1, sizeof **out);
    copied = *out != NULL && self->overflowed == 0;
    for (size_t i = 0; copied && i < self->used; i++)
        if (self->all[i].server != here)
            (*out)[(*count)++] = self->all[i];
    pthread_mutex_unlock(&self->mutex);
    return copied;
}

void marks_forget_left(commit_marks *self)
{
    size_t kept = 0;

    pthread_mutex_lock(&self->mutex);
    for (size_t i = 0; i < self->used; i++)
        if (db_state_of(self->all[i].server) != DB_SERVER_LEFT)
            self->all[kept++] = self->all[i];
    if (kept == 0)
        self->overflowed = 0;
    self->used = kept;
    pthread_mutex_unlock(&self->mutex);
}
