/*
 * struct.h - the structs of the headers by name, for languages that call C and read none of it.
 *
 * THE STORY
 *
 * Such a program makes a struct by its name, sets its fields by theirs, and gives it to the calls:
 *
 *     tl_struct_new(&request, "tl_request");
 *     tl_struct_set_bytes(request, "key.serial_no", "W1", 2);
 *     tl_struct_set_number(request, "amount_minor", 100);
 *     tl_workflow_run(workflows, request, answer);
 *     tl_struct_bytes("tl_answer", answer, "view.channel_ref", &text, &size);
 *     tl_struct_free(request);
 *
 *     made, and set     tl_client_options, tl_workflow, tl_channel, tl_policy, tl_statement,
 *                       tl_former_channel, tl_key, tl_request, tl_trades, tl_worker_options
 *     made, and read    tl_answer, tl_trade
 *     only read         tl_attempt, tl_reply, tl_view, tl_log_line: those of callbacks
 *
 * FIELDS
 *
 * A dot leads into another struct: "key.cust_no" of a tl_request, "view.remark" of a tl_answer.
 * Elements of a list have numbers: "statements.0.sql" of a tl_workflow, "policy.schedule_ms.0".  The
 * first name of the number that comes next makes that element, also if the setting is then refused.
 * Versions, sizes and counts are set with what they belong to.
 *
 *     number    integers, enums and flags; a letter is its number in ASCII
 *     bytes     texts, whose size does not count the NUL at their end; payloads, results and
 *               fingerprints
 *     pointer   callbacks, and what is theirs (context)
 *
 * OWNERSHIP AND THREADS
 *
 * What is set is copied, and kept until it is set anew or the struct is freed; but pointers are the
 * caller's.  What is read is borrowed: it lives as long as the struct, or until the field is set
 * anew.  One thread at a time uses a struct, any number use as many.  What a call needs after it
 * returned is said there, as for structs in C.
 *
 * ERRORS
 *
 * Units and errors are as in <tradelock/workflow.h>.  TL_INVALID with a sentence, and nothing is
 * set or read: something is NULL, no struct or field is called so, it is of another kind, or the
 * number is out of its range.  A pointer to something else than the struct that is named is no
 * error that can be seen.  Each of these calls has a sentence of its own: read tl_error_message() of
 * a payment before its answer.
 */
#ifndef TRADELOCK_STRUCT_H
#define TRADELOCK_STRUCT_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a struct as its TL_..._INIT does, or all 0.  TL_OK, TL_INVALID or TL_NO_MEMORY.  It is given
 * as it is to calls that take a pointer to it; tl_struct_free() frees it. */
TL_EXPORT tl_status tl_struct_new(void **out, const char *type);
/* Frees what tl_struct_new() made, with all that was set, and clears an answer before.  Of a
 * submitted run that is not completed nothing is freed, as in tl_answer_clear(). */
TL_EXPORT void tl_struct_free(void *made);

/* Sets a number of a struct that was made.  TL_OK, TL_INVALID or TL_NO_MEMORY. */
TL_EXPORT tl_status tl_struct_set_number(void *made, const char *field, int64_t number);
/* Sets a text without a NUL, or bytes.  NULL of size 0 is NULL.  Answers as tl_struct_set_number(). */
TL_EXPORT tl_status tl_struct_set_bytes(void *made, const char *field, const void *bytes,
                                        size_t size);
/* Sets a callback, or another pointer.  Answers as tl_struct_set_number(). */
TL_EXPORT tl_status tl_struct_set_pointer(void *made, const char *field, void *pointer);

/* Reads a number.  TL_OK; TL_INVALID; TL_NOT_FOUND: a list has no such element. */
TL_EXPORT tl_status tl_struct_number(const char *type, const void *of, const char *field,
                                     int64_t *number);
/* Reads where a text or bytes are, and their size; of a pointer what it is, with size 0; of a struct
 * within this one (key) where that is.  Answers as tl_struct_number(). */
TL_EXPORT tl_status tl_struct_bytes(const char *type, const void *of, const char *field,
                                    const void **bytes, size_t *size);

/* The number of a status, a proof, an answer of a callback or the like: of "TL_EXECUTE_UNKNOWN" 0.
 * TL_OK or TL_INVALID. */
TL_EXPORT tl_status tl_constant(const char *name, int64_t *number);

#ifdef __cplusplus
}
#endif
#endif
