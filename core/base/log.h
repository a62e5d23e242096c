/*
 * The log: structured lines to the caller's function, nothing anywhere else.
 *
 * Messages must not contain a customer number; it goes into the line's own field, where it can be
 * hashed.  As a second line of defence log_line() replaces the key's customer number in the message
 * too, since sentences of the server may quote it.
 */
#ifndef TL_BASE_LOG_H
#define TL_BASE_LOG_H

#include <tradelock/tradelock.h>

#define LOG_CUST_HASH 17 /* 16 digits and the end */

struct logger {
    tl_log_fn fn; /* NULL: nothing is logged */
    void *context;
    int hash_cust;
    tl_level least; /* what is below is not even written */
};

/* Whether anybody reads lines of this level. */
int log_wanted(const struct logger *logger, tl_level level);

/* logger and key may be NULL; fence is 0 when there is none.  Leaves the thread's error sentence
 * alone. */
void log_line(const struct logger *logger, tl_level level, const tl_key *key, uint64_t fence,
              const char *format, ...) __attribute__((format(printf, 5, 6)));

/* What stands for a customer number in a hashed log: the first 16 hexadecimal digits of its
 * SHA-256. */
void log_hash_cust(char to[LOG_CUST_HASH], const char *cust_no);

#endif
