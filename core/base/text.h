/* Checking, copying and building text. */
#ifndef TL_BASE_TEXT_H
#define TL_BASE_TEXT_H

#include <tradelock/tradelock.h>

#include <stdint.h>

#define TEXT_SITE_MAX 64

/*
 * TL_OK: the key can be stored.  Each part is there, not too long, and printable ASCII without
 * blanks; the operation code does not end in "_RETRY", and has room for it.  Else TL_INVALID, with
 * a sentence that names the part, and the byte and its place.
 */
tl_status key_check(const tl_key *key);

/* Whether this operation code names a retry lane: it ends in "_RETRY". */
int text_is_retry_op(const char *op_code);

/* Checks any other name as a part of a key is checked; what: how the sentence calls it. */
tl_status text_check_name(const char *what, const char *value, size_t max);

/* TL_OK: the text is UTF-8, or NULL.  TL_INVALID, with a sentence: the server would refuse these
 * bytes in the middle of a statement. */
tl_status text_check_utf8(const char *what, const char *value);
/* As tl_batch_check(), for a text of this name. */
tl_status text_check_line(const char *what, const char *value, size_t most);

/* TL_OK: the text is three capital letters. */
tl_status text_check_currency(const char *currency);

#define TEXT_TRACE 32 /* digits of a trace */
/* Whether this is a W3C trace context of version 00, "00-TRACE-PARENT-FLAGS" in small letters, of
 * which neither trace nor parent is all zero.  NULL is none. */
int text_is_traceparent(const char *text);
/* Copies its trace id; "" if it is no trace context. */
void text_trace(char to[TEXT_TRACE + 1], const char *traceparent);

/* Copies what fits, and a NUL; a byte that is of no character of UTF-8, and of a control character
 * each, becomes '?'. */
void text_printable(char *to, size_t space, const char *from);

/* Copies what fits, and a NUL.  1: everything fitted; 0: the text was cut, never inside a UTF-8
 * character.  NULL copies as "". */
int text_copy(char *to, size_t space, const char *from);
/* The same, appended to the text in `to`. */
int text_add(char *to, size_t space, const char *from);

/* Lower-case hexadecimal; `to` has room for 2 * size + 1 bytes. */
void text_hex(char *to, const void *data, size_t size);

/* The bytes of a UUID of 36 characters, in either case.  1, or 0 and `to` is undefined: it is no
 * UUID.  Each step has three UUIDs, for which libuuid takes a microsecond and a half. */
#define TEXT_UUID 16
int text_from_uuid(uint8_t to[TEXT_UUID], const char *from);

/* The nearest name, which was probably meant; NULL if every name is more than two letters away.  A
 * dash counts as an underscore. */
const char *text_nearest(const char *name, const char *const *names, size_t count);

/* A hash for tables of names; it is the same in every process. */
uint32_t text_hash(const char *text);

/*
 * Text that grows.  It remembers that memory ran out, and every later call then does nothing.  So
 * the caller asks once, at the end.
 */
struct text_buffer {
    char *data; /* NULL, or ends with a NUL that size does not count */
    size_t size, space;
    int failed;
};

void text_buffer_init(struct text_buffer *buffer);
void text_buffer_append(struct text_buffer *buffer, const void *data, size_t size);
void text_buffer_append_text(struct text_buffer *buffer, const char *text);
void text_buffer_append_format(struct text_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Room for `more` bytes at the end, which the caller writes in place; NULL: no memory.  Afterwards
 * text_buffer_grew() says where the writing stopped. */
char *text_buffer_room(struct text_buffer *buffer, size_t more);
void text_buffer_grew(struct text_buffer *buffer, const char *end);
void text_buffer_clear(struct text_buffer *buffer);             /* empties, keeps the memory */
const char *text_buffer_text(const struct text_buffer *buffer); /* "" when empty */
void text_buffer_free(struct text_buffer *buffer);

#endif
