/* Builds a log line and hands it to the program's callback.  Touches no other state. */
#include "base/log.h"

#include "base/sha256.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void log_hash_cust(char to[LOG_CUST_HASH], const char *key, const char *cust_no)
{
    uint8_t digest[SHA256_SIZE];

    sha256_keyed(digest, key, cust_no);
    text_hex(to, digest, (LOG_CUST_HASH - 1) / 2);
}

static int is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* The next place in the text where the customer number stands as a whole word. */
static const char *find_cust(const char *start, const char *from, const char *cust_no)
{
    size_t size = strlen(cust_no);

    for (; (from = strstr(from, cust_no)) != NULL; from++) {
        int joined_left = from > start && is_word(from[-1]) && is_word(cust_no[0]);
        int joined_right = is_word(from[size]) && is_word(cust_no[size - 1]);

        if (!joined_left && !joined_right)
            return from;
    }
    return NULL;
}

static void hide_cust(char *to, size_t space, const char *message, const char *cust_no,
                      const char *hash)
{
    const char *next = message;
    const char *found;
    size_t used = 0;

    to[0] = '\0';
    while (used < space && (found = find_cust(message, next, cust_no)) != NULL) {
        int wanted = snprintf(to + used, space - used, "%.*s%s", (int)(found - next), next, hash);
        used += wanted > 0 ? (size_t)wanted : 0;
        next = found + strlen(cust_no);
    }
    if (used < space)
        text_copy(to + used, space - used, next);
}

int log_wanted(const struct logger *logger, tl_level level)
{
    return logger != NULL && logger->fn != NULL && level >= logger->least;
}

void log_said_list(const struct logger *logger, tl_level level, const tl_key *key, uint64_t fence,
                   const tl_said *said, const char *format, va_list arguments)
{
    char given[LOG_MESSAGE], message[LOG_MESSAGE], hidden[LOG_MESSAGE], hash[LOG_CUST_HASH],
        trace[TEXT_TRACE + 1];
    char currency[TL_CURRENCY + 1], batch[TL_BATCH_MAX + 1];
    tl_log_line line = {
        .level = level, .fence = fence, .trace_id = "", .currency = "", .batch = ""};

    if (!log_wanted(logger, level))
        return;
    if (vsnprintf(given, sizeof(given), format, arguments) < 0)
        given[0] = '\0';
    /* It may name what a stranger gave: a line stays one line, and steers no terminal. */
    text_printable(message, sizeof(message), given);
    line.message = message;
    line.thread_uuid = tl_thread_uuid();
    line.log_uuid = tl_log_uuid();
    line.serial_no = key != NULL && key->serial_no != NULL ? key->serial_no : "";
    line.cust_no = key != NULL && key->cust_no != NULL ? key->cust_no : "";
    line.op_code = key != NULL && key->op_code != NULL ? key->op_code : "";
    if (key != NULL) {
        if (said == NULL)
            said = tl_log_context();
        text_trace(trace, said->traceparent);
        line.trace_id = trace;
        text_printable(currency, sizeof currency, said->currency);
        line.currency = currency;
        line.amount_minor = currency[0] != '\0' ? said->amount_minor : 0;
        text_printable(batch, sizeof batch, said->batch);
        line.batch = batch;
    }
    if (logger->cust_key != NULL && line.cust_no[0] != '\0') {
        log_hash_cust(hash, logger->cust_key, line.cust_no);
        hide_cust(hidden, sizeof(hidden), message, line.cust_no, hash);
        line.message = hidden;
        line.cust_no = hash;
    }
    logger->fn(logger->context, &line);
}

void log_said(const struct logger *logger, tl_level level, const tl_key *key, uint64_t fence,
              const tl_said *said, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    log_said_list(logger, level, key, fence, said, format, arguments);
    va_end(arguments);
}

void log_line(const struct logger *logger, tl_level level, const tl_key *key, uint64_t fence,
              const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    log_said_list(logger, level, key, fence, NULL, format, arguments);
    va_end(arguments);
}
