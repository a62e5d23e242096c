/* Keeps what this process was last told was committed.  Touches its own memory only. */
#include "transition/marks.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

#define STEPS_AT_FIRST 64
#define STEPS_MAX 16384 /* where no round comes, as without the right to it */

void marks_init(commit_marks *self)
{
    pthread_mutex_init(&self->mutex, NULL);
}

void marks_end(commit_marks *self)
{
    memory_free(self->steps);
    pthread_mutex_destroy(&self->mutex);
}

uint64_t marks_begin(commit_marks *self)
{
    return atomic_load(&self->count);
}

/* Whether one of them was answered where something may be granted.  Needs: the mutex held. */
static int drop_covered(commit_marks *self, const db_server *server, uint64_t began)
{
    size_t kept = 0;
    int may_grant = 0;

    for (size_t i = 0; i < self->used; i++)
        if (self->all[i].server != server || self->all[i].answered > began)
            self->all[kept++] = self->all[i];
        else
            may_grant |= self->all[i].may_grant;
    self->used = kept;
    if (server == self->overflowed_of && began >= self->overflowed) {
        self->overflowed = 0;
        self->overflowed_of = NULL;
    }
    return may_grant;
}

static void stamp(commit_marks *self, commit_mark *to, const commit_mark *one,
                  const db_server *server, int may_grant)
{
    *to = *one;
    to->server = server;
    to->answered = atomic_load(&self->count);
    to->answered_ms = clock_boottime_ms();
    to->may_grant = may_grant;
}

/* Needs: the mutex held. */
static void add_step(commit_marks *self, const commit_mark *one, const db_server *server,
                     int may_grant)
{
    const size_t space = self->step_space == 0 ? STEPS_AT_FIRST : self->step_space * 2;

    if (self->step_count == self->step_space) {
        commit_mark *larger = space <= STEPS_MAX ? memory_larger(self->steps, self->step_count,
                                                                 space, sizeof *larger)
                                                 : NULL,
                    *old = self->steps;
        if (larger == NULL) {
            self->steps_lost = atomic_load(&self->count);
            return;
        }
        self->steps = larger;
        self->step_space = space;
        memory_free(old);
    }
    if (one->lasts_until_ms > 0)
        atomic_fetch_add(&self->lasting, 1);
    stamp(self, &self->steps[self->step_count++], one, server, may_grant);
}

static int is_same_trade(const commit_mark *a, const commit_mark *b)
{
    return strcmp(a->serial_no, b->serial_no) == 0 && strcmp(a->cust_no, b->cust_no) == 0 &&
           strcmp(a->op_code, b->op_code) == 0;
}

void marks_follow(commit_marks *self, const commit_mark *one)
{
    if (one->kind != MARK_TRADE || atomic_load(&self->lasting) == 0)
        return;
    pthread_mutex_lock(&self->mutex);
    for (size_t i = 0; i < self->step_count; i++) {
        commit_mark *step = &self->steps[i];

        if (step->lasts_until_ms > 0 && !step->of_many && is_same_trade(step, one) &&
            memcmp(step->token, one->token, MARK_TOKEN) != 0) {
            step->lasts_until_ms = 0;
            atomic_fetch_sub(&self->lasting, 1);
        }
    }
    pthread_mutex_unlock(&self->mutex);
}

/* Needs: the mutex held. */
static void add(commit_marks *self, const commit_mark *one, const db_server *server, int may_grant)
{
    const uint64_t answered = atomic_load(&self->count);

    if (self->used == COMMIT_MARKS_MAX) {
        self->overflowed_of =
            self->overflowed == 0 || server == self->overflowed_of ? server : NULL;
        self->overflowed = answered;
        return;
    }
    stamp(self, &self->all[self->used++], one, server, may_grant);
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
    int is_believed, may_grant;

    if (server == NULL || one->kind == MARK_NONE)
        return 1;
    pthread_mutex_lock(&self->mutex);
    is_believed = db_state_of(server) != DB_SERVER_LEFT;
    may_grant = db_state_of(server) != DB_SERVER_MAY_LACK;
    if (is_believed) {
        note_whose(self, server);
        may_grant |= drop_covered(self, server, began);
        atomic_fetch_add(&self->count, 1);
        if (one->kind == MARK_TRADE)
            add_step(self, one, server, may_grant);
        else
            add(self, one, server, may_grant);
    }
    pthread_mutex_unlock(&self->mutex);
    return is_believed;
}

/* Those of this server, of which so many had been answered, and that do not last; or of all that are
 * left.  Needs: the mutex held. */
static void drop_steps(commit_marks *self, const db_server *server, uint64_t answered)
{
    const int64_t now_ms = clock_boottime_ms();
    size_t kept = 0;

    for (size_t i = 0; i < self->step_count; i++) {
        const commit_mark *one = &self->steps[i];
        const int is_over = server != NULL ? one->server == server && one->answered <= answered &&
                                                 one->lasts_until_ms <= now_ms
                                           : db_state_of(one->server) == DB_SERVER_LEFT;

        if (!is_over)
            self->steps[kept++] = *one;
        else if (one->lasts_until_ms > 0)
            atomic_fetch_sub(&self->lasting, 1);
    }
    self->step_count = kept;
}

int marks_drop_closed(commit_marks *self, const db_server *server)
{
    int is_due = 0;

    pthread_mutex_lock(&self->mutex);
    if (self->closed_of == server) {
        drop_steps(self, server, self->closed);
        if (self->closed >= self->steps_lost)
            self->steps_lost = 0;
    }
    for (size_t i = 0; i < self->step_count && !is_due; i++)
        is_due = self->steps[i].server == server &&
                 (self->closed_of != server || self->steps[i].answered > self->closed);
    pthread_mutex_unlock(&self->mutex);
    return is_due;
}

void marks_closed(commit_marks *self, const db_server *server, uint64_t began)
{
    pthread_mutex_lock(&self->mutex);
    self->closed_of = server;
    self->closed = began;
    pthread_mutex_unlock(&self->mutex);
}

int marks_of_others(commit_marks *self, const db_server *here, commit_mark **out, size_t *count)
{
    int copied;

    *out = NULL;
    *count = 0;
    pthread_mutex_lock(&self->mutex);
    *out = memory_new_array(self->used + self->step_count + 1, sizeof **out);
    copied = *out != NULL && self->overflowed == 0 && self->steps_lost == 0;
    for (size_t i = 0; copied && i < self->step_count; i++)
        if (self->steps[i].server != here)
            (*out)[(*count)++] = self->steps[i];
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
    if (kept == 0)
        self->overflowed = self->steps_lost = 0;
    self->used = kept;
    drop_steps(self, NULL, 0);
    pthread_mutex_unlock(&self->mutex);
}
