/*
 * Problems as sentences: every room returns a tl_status and leaves one sentence for the calling
 * thread.  The sentence names the thing and the place; it is never an SQL error alone.
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

/* Returns what is not TL_OK, or of a db_answer not DB_DONE: all but 0.  Not where something is given
 * back at the end. */
#define TRY(step)                                                                                  \
    do {                                                                                           \
        const __typeof__(step) tried_ = (step);                                                    \
                                                                                                   \
        if (tried_ != 0)                                                                           \
            return tried_;                                                                         \
    } while (0)

/* Notes of the sentence that was just set, that KILL QUERY or the like ended the statement: the
 * same call may be repeated at once.  The next sentence forgets it. */
void error_note_interrupted(void);
int error_is_interrupted(void);

/* At the end of a public call: clears the sentence of a success, which an earlier try may have
 * left. */
tl_status error_over(tl_status status);

#ifdef __clang_analyzer__
/* The static analyzer sees one file at a time; this shows it that the call returns `status`. */
#define error_set(status, ...) ((void)error_set((status), __VA_ARGS__), (status))
#define error_prefix(status, ...) ((void)error_prefix((status), __VA_ARGS__), (status))
#endif

#endif
