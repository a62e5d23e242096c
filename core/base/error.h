/*
 * Problems as sentences: every room returns a tl_status and leaves one sentence for the calling
 * thread.  The sentence names the thing and the place; no raw SQL error alone.
 */
#ifndef TL_BASE_ERROR_H
#define TL_BASE_ERROR_H

#include <tradelock/tradelock.h>

#define ERROR_MAX 1024 /* bytes of a sentence, its NUL included */

/* Keeps the sentence for tl_error_message() and returns status. */
tl_status error_set(tl_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the sentence that is already there. */
tl_status error_prefix(tl_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void error_clear(void);

/* At the end of a public call: a success leaves no sentence, whatever its earlier tries said. */
tl_status error_over(tl_status status);

#ifdef __clang_analyzer__
/* Shows the analyzer, which sees one file at a time, that the status comes back. */
#define error_set(status, ...) ((void)error_set((status), __VA_ARGS__), (status))
#define error_prefix(status, ...) ((void)error_prefix((status), __VA_ARGS__), (status))
#endif

#endif
