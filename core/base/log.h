/*
 * The log: structured lines for the caller's function; the library writes nowhere else.
 *
 * A message must not contain a customer number; the line has a field for it, where it can be
 * hashed. The server's sentences may quote one, so log_line() also replaces the key's customer
 * number in the message.
 */
#ifndef TL_BASE_LOG_H
#define TL_BASE_LOG_H

#include <tradelock/layer.h>

#include <stdarg.h>

#define LOG_CUST_HASH 17 /* 16 digits and the end */
#define LOG_MESSAGE 1024 /* longer messages are cut */

struct logger {
    tl_log_fn fn; /* NULL: nothing is logged */
    void *context;
    const char *cust_key; /* of hashed customer numbers; NULL: they are plain */
    tl_level least;       /* lines below this level are not made */
};

/* Whether anybody reads lines of this level. */
int log_wanted(const struct logger *logger, tl_level level);

/* logger and key may be NULL; fence is 0 when there is none.  The thread's error sentence stays as
 * it is. */
void log_line(const struct logger *logger, tl_level level, const tl_key *key, uint64_t fence,
              const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same with what this trade says of itself; NULL: what the thread's work says. */
void log_said(const struct logger *logger, tl_level level, const tl_key *key, uint64_t fence,
              const tl_said *said, const char *format, ...) __attribute__((format(printf, 6, 7)));
void log_said_list(const struct logger *logger, tl_level level, const tl_key *key, uint64_t fence,
                   const tl_said *said, const char *format, va_list arguments)
    __attribute__((format(printf, 6, 0)));

/* What a hashed log shows for a customer number: 16 hexadecimal digits of its HMAC-SHA-256. */
void log_hash_cust(char to[LOG_CUST_HASH], const char *key, const char *cust_no);

#endif
