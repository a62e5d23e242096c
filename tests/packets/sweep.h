/*
 * One operation after the other, cut at every packet.
 *
 * For n = 1, 2, ... until the operation ends undisturbed, and for each way of disturbing,
 * the operation is run anew, its answer is compared with the table, the log and the
 * business rows, and what did not end is called again, with the same handle, until it
 * does.  Short runs (without TL_TEST_LONG) take about every twentieth packet.
 */
#ifndef TESTS_PACKETS_SWEEP_H
#define TESTS_PACKETS_SWEEP_H

#include "scene.h"

#define OPERATION_GRANTS 1u /* the final answer gives scene.lock a hold */
#define OPERATION_RIVAL 2u  /* the near client asks too, while nothing is known */
/* Several committed steps: some of them may stand after an answer that says that the operation may
 * be repeated. */
#define OPERATION_PARTS 4u
/* A connection of the caller's own, whose half-open end the network drops in the end. */
#define OPERATION_HANG_UP 8u

/* What it calls last is no public function that succeeds, and may leave a sentence. */
#define OPERATION_SPEAKS 16u

#define SWEEP_ANY_STEPS (-1) /* repeating it adds steps, and does no harm */

typedef struct operation {
    const char *name;
    unsigned flags;
    void (*prepare)(scene *s);      /* undisturbed */
    tl_status (*call)(scene *s);    /* may come again after UNKNOWN and RETRY */
    tl_status final;                /* the one answer in the end */
    const char *row, *retry_row;    /* as scene_row() shows them in the end */
    int steps;                      /* log rows that it adds */
    int ledger;                     /* business rows that it adds */
    const char *(*check)(scene *s); /* of its own, in the end; "" when right; or NULL */
} operation;

/* Sweeps them all and prints the figures; the number of wrong answers. */
int sweep(const char *theme, const operation *operations, size_t count);

/* Runs each of them on a server that holds back every commit, and cuts the line while the server is
 * executing the operation's; the same questions and figures. */
int sweep_commits(const char *theme, const operation *operations, size_t count);

#ifdef TL_TEST_HOOKS
/* Lets the first, the second ... allocation of each of them fail, until it ends unharmed: the same
 * questions.  (Leaks are for AddressSanitizer.) */
int sweep_memory(const char *theme, const operation *operations, size_t count);
#endif

#endif
