/*
 * Since when the oldest due work of an operation is due, as this process last found it.  A claim
 * that begins there need not step over the entries of the index `due` that earlier claims left.
 *
 * A mark is only where to begin looking.  Work that is due since before it is missed until the mark
 * is forgotten: after DUE_MARK_MS, however many claims follow each other, and at once when a claim
 * that began there found less than it asked for.  So work that others had locked, or whose moment
 * was set back, waits no longer than that.
 */
#ifndef TL_CLIENT_DUE_MARK_H
#define TL_CLIENT_DUE_MARK_H

#include <tradelock/tradelock.h>

#include <pthread.h>

#define DUE_MARK_MS 250
/* A process with more operations than these goes without for some. */
#define DUE_MARKS 8

typedef struct due_mark {
    char op_code[TL_OP_MAX + 1];
    int64_t from_us;   /* by the server's clock, in microseconds since 1970 */
    int64_t begins_ms; /* CLOCK_BOOTTIME of the last look from the beginning */
} due_mark;

typedef struct due_marks {
    pthread_mutex_t mutex;
    due_mark marks[DUE_MARKS]; /* under the mutex */
} due_marks;

void due_marks_init(due_marks *marks);

/* Where to begin; 0: at the beginning. */
int64_t due_mark_get(due_marks *marks, const char *op_code);
/* Notes what a claim found that began at began_us: the oldest.  0: less than it asked for. */
void due_mark_set(due_marks *marks, const char *op_code, int64_t began_us, int64_t oldest_us);

#endif
