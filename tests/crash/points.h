/* The numbered points that a process passed, from its log (core/base/fault.h). */
#ifndef TESTS_CRASH_POINTS_H
#define TESTS_CRASH_POINTS_H

#include "support/database.h"

#include <stddef.h>

typedef struct point {
    char kind[16], name[64], when[8];
    unsigned nth;  /* of this name and when, from 1 */
    unsigned runs; /* deaths that were wanted here */
} point;

typedef struct points {
    point *list;
    size_t count;
    /* Before they happen: what the server and the channel must have seen. */
    size_t connects, statements, calls, callbacks;
} points;

/* Takes at most nth_max occurrences of each; all are counted. */
void points_read(points *self, const char *path, unsigned nth_max);
void points_free(points *self);

/* What the server's general log (as a table) has of connections that are not in `others`, a list of
 * their ids: they must be as many as the points.  What the triggers write into the histories was
 * sent by nobody. */
void points_seen(MYSQL *sql, const char *others, long long *connects, long long *statements);
/* What it has been asked by all but this connection, with their farewells.  An array is one question,
 * for which the log has a line for each row, and what triggers write is none. */
long long points_asked(MYSQL *sql);
/* The log in words, for those who look for the one that was not counted. */
void points_show(MYSQL *sql, const char *others);

/* TL_FAULT_ONLY=..., TL_FAULT_KILL=... for this point. */
void point_environment(const point *self, char only[96], char kill[32]);

#endif
