/*
 * Problems as sentences.  Functions that can be refused return false and leave one sentence, which
 * goes to the client (400) or to standard error as it is.
 */
#ifndef SIM_PROBLEM_H
#define SIM_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

struct problem {
    char text[512];
};

/* Keeps the sentence, as plain ASCII whatever it quotes; always false, so that callers can return
 * it. */
bool problem_set(struct problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The pointer, never NULL.  Without memory the program ends at once with status 1, which is safe at
 * any moment: what was answered is in the ledger, the rest never happened.
 */
void *memory_need(void *pointer);
void *memory_new(size_t size);

#endif
