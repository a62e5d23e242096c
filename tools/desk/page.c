/* Writes pages: the one place where text becomes HTML.  Touches memory only. */
#include "page.h"

#include "array_room.h"

#include <tradelock/admin.h>
#include <tradelock/layer.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_MOST ((size_t)4 * 1024 * 1024)

void page_free(struct page *page)
{
    free(page->text);
    memset(page, 0, sizeof *page);
}

static void add(struct page *page, const char *data, size_t size)
{
    const size_t needed = page->size + size + 1;

    if (page->failed)
        return;
    if ((needed > page->space && needed > PAGE_MOST) ||
        !text_room(&page->text, &page->space, needed)) {
        page->failed = 1;
        return;
    }
    memcpy(page->text + page->size, data, size);
    page->size += size;
    page->text[page->size] = '\0';
}

void page_put(struct page *page, const char *markup)
{
    add(page, markup, strlen(markup));
}

/* ---------------------------------------------------------------- escaping -- */

/* How many bytes the character at text has, and which it is; 0: none that UTF-8 knows. */
static size_t decode(const char *text, size_t size, uint32_t *c)
{
    char bytes[5] = ""; /* the text may end without a NUL */
    size_t length;

    memcpy(bytes, text, size < 4 ? size : 4);
    length = tl_utf8_size(bytes);
    if (length == 0 || length > 4)
        return 0;
    *c = length == 1 ? (unsigned char)bytes[0] : (unsigned char)bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        *c = *c << 6 | ((unsigned char)bytes[i] & 0x3f);
    return length;
}

/* Whether people cannot see it, or it changes how what follows is seen. */
static int is_hidden(uint32_t c)
{
    return (c < ' ' && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0xad ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

static const char *entity_of(uint32_t c)
{
    static const char *const entities[] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"};

    return c < sizeof entities / sizeof entities[0] ? entities[c] : NULL;
}

void page_bytes(struct page *page, const char *text, size_t size)
{
    while (size > 0) {
        uint32_t c = (unsigned char)*text;
        const size_t length = decode(text, size, &c);
        const char *entity = length > 0 ? entity_of(c) : NULL;
        char number[16];

        if (length == 0)
            snprintf(number, sizeof number, "\\x%02x", (unsigned)c);
        else if (is_hidden(c))
            snprintf(number, sizeof number, "\\u{%x}", (unsigned)c);
        if (entity != NULL)
            page_put(page, entity);
        else if (length == 0 || is_hidden(c))
            page_put(page, number);
        else
            add(page, text, length);
        text += length > 0 ? length : 1;
        size -= length > 0 ? length : 1;
    }
}

void page_text(struct page *page, const char *text)
{
    if (text != NULL)
        page_bytes(page, text, strlen(text));
}

void page_words(struct page *page, const char *text)
{
    int is_code = 0;

    for (;;) {
        const size_t size = strcspn(text, "`");

        page_bytes(page, text, size);
        text += size;
        if (*text == '\0')
            break;
        page_put(page, is_code ? "</code>" : "<code>");
        is_code = !is_code;
        text++;
    }
    if (is_code)
        page_put(page, "</code>");
}

/* Writes one conversion; returns what follows it. */
static const char *convert(struct page *page, const char *at, va_list *arguments)
{
    const size_t length = strspn(at, "lz");
    const int is_signed = at[length] == 'd';
    long long value;
    char number[32];

    if (*at == 's') {
        page_text(page, va_arg(*arguments, const char *));
        return at + 1;
    }
    if (!is_signed && at[length] != 'u') {
        add(page, at, 1);
        return at + 1;
    }
    value = length == 2   ? va_arg(*arguments, long long)
            : length == 1 ? (long long)va_arg(*arguments, size_t)
            : is_signed   ? va_arg(*arguments, int)
                          : (long long)va_arg(*arguments, unsigned);
    snprintf(number, sizeof number, is_signed ? "%lld" : "%llu", value);
    page_put(page, number);
    return at + length + 1;
}

void page_format(struct page *page, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    while (*format != '\0') {
        const size_t plain = strcspn(format, "%");

        add(page, format, plain);
        format += plain;
        if (*format == '%')
            format = convert(page, format + 1, &arguments);
    }
    va_end(arguments);
}

void page_percent(struct page *page, double share)
{
    char number[16];

    snprintf(number, sizeof number, "%.2f%%", share > 1 ? 100 : share > 0 ? share * 100 : 0);
    page_put(page, number);
}

/* ---------------------------------------------------------- times and money -- */

void page_moment(struct page *page, int64_t us)
{
    char text[TL_MOMENT_TEXT];

    tl_moment_text(text, us, 3);
    if (us != 0)
        page_format(page, "<time datetime=\"%s\">%s</time>", text, text);
    else
        page_put(page, "–");
}

void page_ago(struct page *page, int64_t us, int64_t now_us)
{
    char text[TL_MOMENT_TEXT], span[TL_SPAN_TEXT];

    tl_moment_text(text, us, 3);
    tl_span_text(span, us > now_us ? us - now_us : now_us - us, TL_SPAN_WORDS);
    if (us != 0)
        page_format(page, "<time datetime=\"%s\" title=\"%s\">%s%s%s</time>", text, text,
                    us > now_us ? "in " : "", span, us > now_us ? "" : " ago");
    else
        page_put(page, "–");
}

void page_money(struct page *page, const char *amount)
{
    if (amount[0] == '\0') {
        page_put(page, "<span class=\"quiet\">no amount told</span>");
        return;
    }
    page_put(page, "<span class=\"money\">");
    for (const char *c = amount; *c != '\0'; c++)
        page_text(page, *c == '-' ? "−" : *c == ' ' ? "\u00a0" : (const char[]){*c, '\0'});
    page_put(page, "</span>");
}
