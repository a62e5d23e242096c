/* Writes pages: the one place where text becomes HTML.  Touches memory only. */
#include "page.h"

#include <tradelock/admin.h>

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
    if (page->failed)
        return;
    if (page->size + size + 1 > page->space) {
        const size_t space = (page->size + size + 1) * 2;
        char *larger = page->size + size < PAGE_MOST ? realloc(page->text, space) : NULL;

        if (larger == NULL) {
            page->failed = 1;
            return;
        }
        page->text = larger;
        page->space = space;
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
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    const size_t length = bytes[0] < 0x80             ? 1
                          : (bytes[0] & 0xe0) == 0xc0 ? 2
                          : (bytes[0] & 0xf0) == 0xe0 ? 3
                          : (bytes[0] & 0xf8) == 0xf0 ? 4
                                                      : 0;

    if (length == 0 || length > size)
        return 0;
    *c = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (bytes[i] & 0x3f);
    }
    return *c >= least[length] && *c <= 0x10ffff && (*c < 0xd800 || *c > 0xdfff) ? length : 0;
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
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
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
    char number[32];

    if (*at == 's') {
        page_text(page, va_arg(*arguments, const char *));
        return at + 1;
    }
    if (strncmp(at, "lld", 3) == 0 || strncmp(at, "llu", 3) == 0) {
        const long long value = va_arg(*arguments, long long);

        snprintf(number, sizeof number, at[2] == 'd' ? "%lld" : "%llu", value);
        page_put(page, number);
        return at + 3;
    }
    if (strncmp(at, "zu", 2) == 0) {
        snprintf(number, sizeof number, "%zu", va_arg(*arguments, size_t));
        page_put(page, number);
        return at + 2;
    }
    if (*at == 'd' || *at == 'u') {
        const int value = va_arg(*arguments, int);

        snprintf(number, sizeof number, *at == 'd' ? "%d" : "%u", value);
        page_put(page, number);
        return at + 1;
    }
    add(page, at, 1);
    return at + 1;
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
