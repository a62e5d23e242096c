/* Checks, copies and builds text.  Touches no state. */
#include "base/text.h"

#include "base/error.h"
#include "base/memory.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *byte_kind(unsigned char byte)
{
    if (byte == ' ')
        return "a blank";
    if (byte < 0x20 || byte == 0x7f)
        return "a control character";
    return "not ASCII";
}

tl_status text_check_name(const char *what, const char *value, size_t max)
{
    if (value == NULL)
        return error_set(TL_INVALID, "%s: is missing", what);
    if (value[0] == '\0')
        return error_set(TL_INVALID, "%s: is empty", what);
    /* Not strlen(): a pointer passed by mistake may lead to a long text, or to one without an
     * end. */
    for (size_t i = 0; value[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)value[i];

        if (i == max)
            return error_set(TL_INVALID, "%s: is longer than %zu bytes", what, max);
        if (byte <= ' ' || byte >= 0x7f)
            return error_set(TL_INVALID,
                             "%s: byte %zu is %s (0x%02x); only printable ASCII without "
                             "blanks is allowed",
                             what, i + 1, byte_kind(byte), byte);
    }
    return TL_OK;
}

size_t tl_business_op_size(const char *op_code)
{
    const size_t size = op_code != NULL ? strlen(op_code) : 0, suffix = strlen(TL_RETRY_SUFFIX);

    if (size < suffix || strcmp(op_code + size - suffix, TL_RETRY_SUFFIX) != 0)
        return size;
    return size - suffix;
}

int text_is_retry_op(const char *op_code)
{
    return op_code[tl_business_op_size(op_code)] != '\0';
}

static tl_status check_operation(const char *op_code)
{
    const size_t suffix = strlen(TL_RETRY_SUFFIX);

    TRY(text_check_name("op_code", op_code, TL_OP_MAX));
    if (strlen(op_code) > TL_OP_MAX - suffix)
        return error_set(TL_INVALID,
                         "op_code: is longer than %zu bytes, so that \"%s\" does not fit "
                         "behind it",
                         TL_OP_MAX - suffix, TL_RETRY_SUFFIX);
    if (text_is_retry_op(op_code))
        return error_set(TL_INVALID,
                         "op_code: ends in \"%s\", which is the name of a retry lane; "
                         "give the business operation",
                         TL_RETRY_SUFFIX);
    return TL_OK;
}

tl_status key_check(const tl_key *key)
{
    if (key == NULL)
        return error_set(TL_INVALID, "key: is missing");
    TRY(text_check_name("serial_no", key->serial_no, TL_SERIAL_MAX));
    TRY(text_check_name("cust_no", key->cust_no, TL_CUST_MAX));
    return check_operation(key->op_code);
}

size_t tl_utf8_size(const char *character)
{
    const unsigned char *at = (const unsigned char *)character;
    size_t size;

    if (at == NULL)
        return 0;
    size = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;

    if (size > 1 && (at[0] < 0xc2 || at[0] > 0xf4))
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    /* Refused: over-long forms, surrogates, and numbers beyond Unicode. */
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return size;
}

tl_status text_check_utf8(const char *what, const char *value)
{
    const char *at = value;

    while (at != NULL && *at != '\0') {
        size_t size = tl_utf8_size(at);

        if (size == 0)
            return error_set(TL_INVALID, "%s: byte %zu is not UTF-8 (0x%02x)", what,
                             (size_t)(at - value) + 1, (unsigned char)*at);
        at += size;
    }
    return TL_OK;
}

/* Of a character of UTF-8: below U+0020, or U+007F to U+009F. */
static int is_control(const unsigned char *at)
{
    return at[0] < 0x20 || at[0] == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0);
}

void text_printable(char *to, size_t space, const char *from)
{
    text_copy(to, space, from);
    for (size_t size; *to != '\0'; to += size) {
        size = tl_utf8_size(to);
        if (size > 0 && !is_control((const unsigned char *)to))
            continue;
        size = size > 0 ? size : 1;
        memset(to, '?', size);
    }
}

tl_status tl_key_check(const tl_key *key)
{
    error_clear();
    return key != NULL ? key_check(key) : error_set(TL_INVALID, "key is NULL");
}

tl_status text_check_line(const char *what, const char *value, size_t most)
{
    tl_status status;

    if (value == NULL || value[0] == '\0')
        return error_set(TL_INVALID, "%s: is %s", what, value == NULL ? "missing" : "empty");
    /* Not strlen(): as in text_check_name(). */
    if (strnlen(value, most + 1) > most)
        return error_set(TL_INVALID, "%s: is longer than %zu bytes", what, most);
    status = text_check_utf8(what, value);
    for (const char *at = value; status == TL_OK && *at != '\0'; at += tl_utf8_size(at))
        if (is_control((const unsigned char *)at))
            status = error_set(TL_INVALID, "%s: byte %zu is a control character (0x%02x)", what,
                               (size_t)(at - value) + 1, (unsigned char)*at);
    return status;
}

tl_status tl_batch_check(const char *batch)
{
    return text_check_line("batch", batch, TL_BATCH_MAX);
}

/* Whether they are so many hexadecimal digits in small letters, not all of them 0 if it may not be
 * nothing. */
static int is_hex(const char *text, size_t size, int may_be_nothing)
{
    return strspn(text, "0123456789abcdef") >= size && (may_be_nothing || strspn(text, "0") < size);
}

tl_status text_check_currency(const char *currency)
{
    if (strlen(currency) != TL_CURRENCY ||
        strspn(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != TL_CURRENCY)
        return error_set(TL_INVALID, "currency is not three capital letters, such as EUR");
    return TL_OK;
}

int text_is_traceparent(const char *text)
{
    const size_t trace = strlen("00-"), parent = trace + TEXT_TRACE + 1, flags = parent + 16 + 1;

    /* Not strlen(): as in text_check_name(). */
    return text != NULL && strnlen(text, TL_TRACEPARENT + 1) == TL_TRACEPARENT &&
           strncmp(text, "00-", trace) == 0 && is_hex(text + trace, TEXT_TRACE, 0) &&
           text[parent - 1] == '-' && is_hex(text + parent, 16, 0) && text[flags - 1] == '-' &&
           is_hex(text + flags, 2, 1);
}

void text_trace(char to[TEXT_TRACE + 1], const char *traceparent)
{
    const size_t before = strlen("00-");

    to[0] = '\0';
    if (text_is_traceparent(traceparent))
        text_copy(to, TEXT_TRACE + 1, traceparent + before);
}

int text_copy(char *to, size_t space, const char *from)
{
    size_t size;

    if (space == 0)
        return 0;
    if (from == NULL)
        from = "";
    size = strnlen(from, space - 1);
    int whole = from[size] == '\0';
    while (!whole && size > 0 && ((unsigned char)from[size] & 0xc0) == 0x80)
        size--;
    memmove(to, from, size);
    to[size] = '\0';
    return whole;
}

int text_add(char *to, size_t space, const char *from)
{
    size_t used = strnlen(to, space);

    return text_copy(to + used, space - used, from);
}

void text_hex(char *to, const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    *to = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int text_from_uuid(uint8_t to[TEXT_UUID], const char *from)
{
    for (size_t i = 0; i < TEXT_UUID; i++) {
        int high, low;

        if ((i == 4 || i == 6 || i == 8 || i == 10) && *from++ != '-')
            return 0;
        high = hex_digit(from[0]);
        low = high < 0 ? -1 : hex_digit(from[1]);
        if (low < 0)
            return 0;
        to[i] = (uint8_t)(high << 4 | low);
        from += 2;
    }
    return *from == '\0';
}

#define NEAR 2

/* Whether at most `changes` insertions, removals and replacements of letters make one name of the
 * other. */
static int is_near(const char *a, const char *b, int changes)
{
    while (*a != '\0' && (*a == *b || (*a == '-' && *b == '_')))
        a++, b++;
    if (*a == '\0' && *b == '\0')
        return 1;
    if (changes == 0)
        return 0;
    return (*a != '\0' && is_near(a + 1, b, changes - 1)) ||
           (*b != '\0' && is_near(a, b + 1, changes - 1)) ||
           (*a != '\0' && *b != '\0' && is_near(a + 1, b + 1, changes - 1));
}

const char *text_nearest(const char *name, const char *const *names, size_t count)
{
    size_t size = strlen(name);

    /* Two changes of a short name would leave nothing to recognise. */
    for (int changes = 0; changes <= NEAR && 2 * (size_t)changes < size; changes++)
        for (size_t i = 0; i < count; i++)
            if (is_near(name, names[i], changes))
                return names[i];
    return NULL;
}

/* FNV-1a. */
uint32_t text_hash(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

void text_buffer_init(struct text_buffer *buffer)
{
    memset(buffer, 0, sizeof(*buffer));
}

/* Makes room for `more` bytes and the NUL at the end. */
static int make_room(struct text_buffer *buffer, size_t more)
{
    if (buffer->failed)
        return 0;
    if (more >= SIZE_MAX / 2 - buffer->size) {
        buffer->failed = 1;
        return 0;
    }
    size_t wanted = buffer->size + more + 1;
    if (wanted <= buffer->space)
        return 1;
    size_t space = buffer->space * 2 > wanted ? buffer->space * 2 : wanted;
    if (space < 64)
        space = 64;
    char *data = memory_resize(buffer->data, space);
    if (data == NULL) {
        buffer->failed = 1;
        return 0;
    }
    buffer->data = data;
    buffer->space = space;
    return 1;
}

void text_buffer_append(struct text_buffer *buffer, const void *data, size_t size)
{
    if (!make_room(buffer, size))
        return;
    if (size > 0)
        memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

char *text_buffer_room(struct text_buffer *buffer, size_t more)
{
    return make_room(buffer, more) ? buffer->data + buffer->size : NULL;
}

void text_buffer_grew(struct text_buffer *buffer, const char *end)
{
    buffer->size = (size_t)(end - buffer->data);
    buffer->data[buffer->size] = '\0';
}

void text_buffer_append_text(struct text_buffer *buffer, const char *text)
{
    text_buffer_append(buffer, text, strlen(text));
}

void text_buffer_append_format(struct text_buffer *buffer, const char *format, ...)
{
    va_list arguments, again;

    va_start(arguments, format);
    va_copy(again, arguments);
    int wanted = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (wanted < 0)
        buffer->failed = 1;
    else if (make_room(buffer, (size_t)wanted)) {
        vsnprintf(buffer->data + buffer->size, (size_t)wanted + 1, format, again);
        buffer->size += (size_t)wanted;
    }
    va_end(again);
}

void text_buffer_clear(struct text_buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = 0;
    if (buffer->data != NULL)
        buffer->data[0] = '\0';
}

const char *text_buffer_text(const struct text_buffer *buffer)
{
    return buffer->data != NULL ? buffer->data : "";
}

void text_buffer_free(struct text_buffer *buffer)
{
    memory_free(buffer->data);
    text_buffer_init(buffer);
}
