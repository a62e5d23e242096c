/* Looks at the sessions of others, and ends those that were silent for a whole time-out.  Touches
 * tl_session and its own memory of what it saw. */
#include "session/observer.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* No session has this name: an observer without a session of its own observes all. */
#define NO_SESSION "00000000-0000-0000-0000-000000000000"

struct seen {
    char id[RANDOM_UUID], whose[160]; /* "program pid@host" */
    uint64_t beat;
    int64_t unchanged_since_ms; /* boot time */
    int64_t timeout_ms;
    int present; /* in the look that is under way */
};

struct observer {
    char own_id[RANDOM_UUID];
    const struct logger *logger;
    struct seen *seen;
    size_t count, space;
};

tl_status observer_new(observer **out, const char *own_id, const struct logger *logger)
{
    observer *o = memory_new(sizeof *o);

    if (o == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for observing sessions");
    text_copy(o->own_id, sizeof o->own_id, own_id);
    o->logger = logger;
    *out = o;
    return TL_OK;
}

void observer_free(observer *o)
{
    if (o == NULL)
        return;
    memory_free(o->seen);
    memory_free(o);
}

void observer_interrupt(observer *o)
{
    o->count = 0;
}

void observer_go_on(observer *o, const char *own_id)
{
    text_copy(o->own_id, sizeof o->own_id, own_id);
    observer_interrupt(o);
}

static struct seen *find_or_add(observer *o, const char *id)
{
    struct seen *added;

    for (size_t i = 0; i < o->count; i++)
        if (strcmp(o->seen[i].id, id) == 0)
            return &o->seen[i];
    if (o->count == o->space) {
        size_t space = o->space == 0 ? 16 : o->space * 2;
        struct seen *larger = memory_larger(o->seen, o->count, space, sizeof *larger),
                    *old = o->seen;

        if (larger == NULL)
            return NULL;
        o->seen = larger;
        o->space = space;
        memory_free(old);
    }
    added = &o->seen[o->count++];
    memset(added, 0, sizeof *added);
    text_copy(added->id, sizeof added->id, id);
    added->unchanged_since_ms = -1;
    return added;
}

/* Notes one row of the look; a beat that moved restarts the wait. */
static tl_status note(observer *o, const db_result *r, size_t row, int64_t now_ms)
{
    const uint64_t beat = db_get_uint(r, row, 1);
    struct seen *seen = find_or_add(o, db_get_text(r, row, 0));

    if (seen == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for observing sessions");
    if (seen->unchanged_since_ms < 0 || seen->beat != beat) {
        seen->beat = beat;
        seen->unchanged_since_ms = now_ms;
    }
    seen->timeout_ms = db_get_int(r, row, 2);
    snprintf(seen->whose, sizeof seen->whose, "%s", db_get_text(r, row, 3));
    seen->present = 1;
    return TL_OK;
}

static void forget_absent(observer *o)
{
    size_t kept = 0;

    for (size_t i = 0; i < o->count; i++)
        if (o->seen[i].present)
            o->seen[kept++] = o->seen[i];
    o->count = kept;
}

static tl_status expire(observer *o, db *connection, const struct seen *seen, uint64_t *ended)
{
    RESULT result = DB_RESULT_INIT;
    const char *by = o->own_id[0] != '\0' ? o->own_id : NULL;
    db_answer answer;
    tl_status status = TL_OK;

    assert(seen->present && seen->unchanged_since_ms >= 0 && strcmp(seen->id, o->own_id) != 0);
    answer = SQL_RUN(connection, &result, session_expire, .observer = db_text(by),
                     .session_id = db_text(seen->id), .beat = db_uint(seen->beat));
    if (answer != DB_DONE) {
        status = db_error_status(connection, answer, "ending an expired session");
    } else if (result.affected == 1) {
        (*ended)++;
        log_line(o->logger, TL_WARNING, NULL, 0,
                 "session %s (%s) showed no heartbeat for %lld ms and was ended", seen->id,
                 seen->whose, (long long)seen->timeout_ms);
    }
    return status;
}

tl_status observer_look(observer *o, db *connection, uint64_t *ended)
{
    RESULT result = DB_RESULT_INIT;
    /* Silence is counted until before this look was sent, and from after its answer was read: the
     * time of a look itself is nobody's silence. */
    int64_t before_ms = clock_boottime_ms(), now_ms;
    db_answer answer =
        SQL_RUN(connection, &result, session_others,
                .session_id = db_text(o->own_id[0] != '\0' ? o->own_id : NO_SESSION));
    tl_status status = TL_OK;

    if (answer != DB_DONE)
        return db_error_status(connection, answer, "observing sessions");
    now_ms = clock_boottime_ms();
    for (size_t i = 0; i < o->count; i++)
        o->seen[i].present = 0;
    for (size_t row = 0; row < result.rows && status == TL_OK; row++)
        status = note(o, &result, row, now_ms);
    forget_absent(o);
    for (size_t i = 0; i < o->count && status == TL_OK; i++)
        if (before_ms - o->seen[i].unchanged_since_ms >= o->seen[i].timeout_ms)
            status = expire(o, connection, &o->seen[i], ended);
    return status;
}
