/*
 * Two operators for tests: two real accounts of the database with the operators' role, the real
 * command, and the sample workflow with a real channel.
 */
#ifndef TESTS_CLI_OPERATORS_H
#define TESTS_CLI_OPERATORS_H

#include "command.h"

#include "workflows/house.h"

enum { ANN, BOB, SERVICE, ACCOUNTS };

extern struct operators {
    house h;
    const char *admin; /* the option file of an administrator */
    char user[ACCOUNTS][32], config[ACCOUNTS][256];
} operators;

int operators_set_up(void **state);
int operators_tear_down(void **state);
/* The accounts alone, of the database of operators.h. */
void operators_come(void);
void operators_go(void);
void operators_grant(void);
unsigned long long operators_fence(const char *serial);
/* `as`: clear, paid or failed; the caller frees the output. */
output *operators_decide_in(const char *environment, int who, const char *verb, const char *serial,
                            const char *as, unsigned long long fence);
void operators_decide(int who, const char *verb, const char *serial, const char *as,
                      unsigned long long fence);
void operators_refused(int who, const char *verb, const char *serial, const char *as,
                       unsigned long long fence, const char *words);
/* Decided by both about the row as it is. */
void operators_decide_together(const char *serial, const char *as);
/* The request never arrived, and nobody knows that. */
void operators_make_doubtful(const char *serial);
void operators_make_failed(const char *serial);
void operators_say_paid(const char *serial, const char *ref);
void operators_audit(int code, const char *words);
long long operators_conflict(const char *serial);
/* What the account has asked the server for, and the rows that were read for it.  The server counts
 * a statement after it has answered it. */
long long statistic(const char *user, const char *column);

#endif
