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
}

/* Needs: the mutex held. */
static void note_whose(commit_marks *self, const db_server *server)
{
    if (db_state_of(server) != DB_SERVER_MAY_LACK || (self->only != NULL && self->only != server))
        self->is_told = 1;
    self->only = server;
}

int marks_note(commit_marks *self, const commit_mark *one, const db_server *server, uint64_t began)
{
    int is_believed;

    if (server == NULL || one->kind == MARK_NONE)
        return 1;
    pthread_mutex_lock(&self->mutex);
    is_believed = db_state_of(server) != DB_SERVER_LEFT;
    if (is_believed) {
        note_whose(self, server);
        drop_covered(self, server, began);
        self->overflowed |= self->used == COMMIT_MARKS_MAX;
    }
    if (is_believed && self->used < COMMIT_MARKS_MAX) {
        commit_mark *to = &self->all[self->used++];

        *to = *one;
        to->server = server;
        to->answered = atomic_fetch_add(&self->count, 1) + 1;
        to->answered_ms = clock_boottime_ms();
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
    copied = *out != NULL && !self->overflowed;
    for (size_t i = 0; copied && i < self->used; i++)
        if (self->all[i].server != here)
            (*out)[(*count)++] = self->all[i];
    pthread_mutex_unlock(&self->mutex);
    return copied;
}

int marks_are_told(commit_marks *self, const db_server *here)
{
    int are;

    pthread_mutex_lock(&self->mutex);
    are = self->is_told || (self->only != NULL && self->only != here);
    pthread_mutex_unlock(&self->mutex);
    return are;
}

void marks_forget_left(commit_marks *self)
{
    size_t kept = 0;

    pthread_mutex_lock(&self->mutex);
    for (size_t i = 0; i < self->used; i++)
        if (db_state_of(self->all[i].server) != DB_SERVER_LEFT)
            self->all[kept++] = self->all[i];
    self->overflowed = self->overflowed && kept > 0;
    self->used = kept;
    pthread_mutex_unlock(&self->mutex);
}
