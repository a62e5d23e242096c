/* Checking, copying and building text. */
#ifndef TL_BASE_TEXT_H
#define TL_BASE_TEXT_H

#include <tradelock/tradelock.h>

#include <stdint.h>

#define TEXT_SITE_MAX 64

/*
 * Whether the key can be stored: each part there, not too long, printable ASCII without blanks, and
 * the operation one that can take "_RETRY" and does not have it.  TL_OK, or TL_INVALID with one
 * sentence that names the part, and the byte and its place.
 */
tl_status key_check(const tl_key *key);

/* Whether it names the retry lane of an operation: it ends in "_RETRY". */
int text_is_retry_op(const char *op_code);

/* The same for any other name; what: how the sentence calls it. */
tl_status text_check_name(const char *what, const char *value, size_t max);

/* TL_OK when the text, NULL included, is UTF-8, or TL_INVALID with one sentence: the server would
 * refuse the bytes in the middle of a statement. */
tl_status text_check_utf8(const char *what, const char *value);

/* Copies what fits and ends it; 1 when everything fitted, 0 when it was cut (before, not inside, a
 * UTF-8 character).  NULL copies as "". */
int text_copy(char *to, size_t space, const char *from);
/* The same behind what stands in `to`. */
int text_add(char *to, size_t space, const char *from);

/* Lower-case hexadecimal; `to` takes 2 * size + 1. */
void text_hex(char *to, const void *data, size_t size);

/* The bytes of a UUID written in its 36 characters, of either case: 1, or 0 and `to` is
 * undefined.  Each step has three of them, for which libuuid takes a microsecond and a half. */
#define TEXT_UUID 16
int text_from_uuid(uint8_t to[TEXT_UUID], const char *from);

/* The name that was probably meant: at most two letters away, and nothing nearer; NULL when none is
 * that near.  A dash is as good as an underscore. */
const char *text_nearest(const char *name, const char *const *names, size_t count);

/* A number for tables of names; the same in every process. */
uint32_t text_hash(const char *text);

/*
 * Text that grows.  Running out of memory is remembered and makes every later call do nothing, so
 * that it is asked for once, at the end.
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
/* Room for `more` bytes at the end, to be written in place: NULL when there is none.  Then
 * text_buffer_grew() says where the writing stopped. */
char *text_buffer_room(struct text_buffer *buffer, size_t more);
void text_buffer_grew(struct text_buffer *buffer, const char *end);
void text_buffer_clear(struct text_buffer *buffer);             /* empties, keeps the memory */
const char *text_buffer_text(const struct text_buffer *buffer); /* "" when empty */
void text_buffer_free(struct text_buffer *buffer);

#endif
