/* Remembers where the due work of each operation begins.  Touches its marks only. */
#include "client/due_mark.h"

#include "base/clock.h"
#include "base/text.h"

#include <string.h>

void due_marks_init(due_marks *marks)
{
    pthread_mutex_init(&marks->mutex, NULL);
}

/* The operation's mark, or the one that is to be replaced.  Needs: marks->mutex held. */
static due_mark *find(due_marks *marks, const char *op_code)
{
    due_mark *oldest = &marks->marks[0];

    for (due_mark *m = marks->marks; m < marks->marks + DUE_MARKS; m++) {
        if (strcmp(m->op_code, op_code) == 0)
            return m;
        if (m->begins_ms < oldest->begins_ms)
            oldest = m;
    }
    return oldest;
}

int64_t due_mark_get(due_marks *marks, const char *op_code)
{
    int64_t from_us = 0;
    const due_mark *m;

    pthread_mutex_lock(&marks->mutex);
    m = find(marks, op_code);
    if (strcmp(m->op_code, op_code) == 0 && clock_boottime_ms() - m->begins_ms < DUE_MARK_MS)
        from_us = m->from_us;
    pthread_mutex_unlock(&marks->mutex);
    return from_us;
}

void due_mark_set(due_marks *marks, const char *op_code, int64_t began_us, int64_t oldest_us)
{
    due_mark *m;

    pthread_mutex_lock(&marks->mutex);
    m = find(marks, op_code);
    if (began_us == 0) {
        text_copy(m->op_code, sizeof m->op_code, op_code);
        m->begins_ms = clock_boottime_ms();
    }
    if (strcmp(m->op_code, op_code) == 0)
        m->from_us = oldest_us;
    pthread_mutex_unlock(&marks->mutex);
}
