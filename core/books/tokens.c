/*
 * Takes the text of a declared statement apart, as the server does it on the library's connections:
 * UTF-8, "..." is a string, and a backslash escapes within strings.  Touches no state.
 */
#include "books/tokens.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>
#include <strings.h>

/* For sentences, which show no long strings. */
#define SHOWN_MAX 40

struct scan {
    const char *at;
    token *tokens; /* room for each byte of the text, and the end */
    size_t count;
    unsigned depth;
};

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Names may hold these; what is not ASCII is a letter. */
static int is_in_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '$' || (unsigned char)c >= 0x80;
}

static const token *last(const struct scan *s)
{
    return s->count > 0 ? &s->tokens[s->count - 1] : NULL;
}

static void add(struct scan *s, token_kind kind, const char *from)
{
    s->tokens[s->count++] =
        (token){.kind = kind, .at = from, .size = (size_t)(s->at - from), .depth = s->depth};
}

/* Digits, perhaps with an exponent whose sign follows; or 0x41, 0b1. */
static int is_number(const char *word, size_t size)
{
    static const char digits[] = "0123456789";
    size_t end = strspn(word, digits);

    if (end == 1 && word[0] == '0' && (word[1] == 'x' || word[1] == 'b'))
        end = 2 + strspn(word + 2, word[1] == 'x' ? "0123456789abcdefABCDEF" : "01");
    else if (word[end] == 'e' || word[end] == 'E')
        end += 1 + strspn(word + end + 1, digits);
    return end == size;
}

/* Where a number ends before letters, the server begins a word: 1e5LIMIT 1. */
static tl_status take_word(struct scan *s)
{
    const char *from = s->at;
    const token *before = last(s);

    while (is_in_word(*s->at))
        s->at++;
    add(s, before != NULL && token_is(before, ".") ? TOKEN_NAME : TOKEN_WORD, from);
    if (!is_digit(*from) || is_number(from, (size_t)(s->at - from)))
        return TL_OK;
    return error_set(TL_INVALID,
                     "\"%.*s\" begins with a digit: a name stands in backticks then, and a number "
                     "is followed by a blank",
                     TOKEN_SHOWN(last(s)));
}

static tl_status take_value(struct scan *s)
{
    const char *from = ++s->at;

    if (!is_letter(*from))
        return error_set(TL_INVALID, "a colon is to be followed by the name of a value");
    while (is_letter(*s->at) || is_digit(*s->at))
        s->at++;
    add(s, TOKEN_VALUE, from);
    return TL_OK;
}

/* A doubled quote stands for itself. */
static tl_status take_quoted(struct scan *s)
{
    const char *from = s->at;
    const char quote = *from;

    for (s->at++; *s->at != '\0'; s->at++) {
        if (*s->at == '\\' && quote != '`' && s->at[1] != '\0')
            s->at++;
        else if (*s->at == quote && s->at[1] == quote)
            s->at++;
        else if (*s->at == quote)
            break;
    }
    if (*s->at == '\0')
        return error_set(TL_INVALID, "the end of a string, or of a name in quotes, is missing");
    s->at++;
    add(s, quote == '`' ? TOKEN_NAME : TOKEN_STRING, from);
    return TL_OK;
}

static tl_status take_parenthesis(struct scan *s)
{
    const char *from = s->at++;

    if (*from == ')' && s->depth-- == 0)
        return error_set(TL_INVALID, "a parenthesis is closed that was not opened");
    add(s, TOKEN_SIGN, from);
    if (*from == '(')
        s->depth++;
    return TL_OK;
}

static tl_status refuse_sign(const char *at)
{
    if (*at == '?')
        return error_set(TL_INVALID, "a value has a name, as in :amount_minor, and no question "
                                     "mark");
    if (*at == ';')
        return error_set(TL_INVALID, "is one statement, and has no semicolon");
    if (*at == '@')
        return error_set(TL_INVALID, "variables (@) are not taken");
    if (*at == '#' || strncmp(at, "--", 2) == 0 || strncmp(at, "/*", 2) == 0)
        return error_set(TL_INVALID, "comments are not taken");
    return TL_OK;
}

static void take_sign(struct scan *s)
{
    const char *from = s->at++;

    if (strchr("<>=!", *from) != NULL)
        while (*s->at != '\0' && strchr("<>=!", *s->at) != NULL)
            s->at++;
    add(s, TOKEN_SIGN, from);
}

static tl_status take(struct scan *s)
{
    const char c = *s->at;
    tl_status status;

    if (is_in_word(c))
        return take_word(s);
    if (c == ':')
        return take_value(s);
    if (c == '\'' || c == '"' || c == '`')
        return take_quoted(s);
    if (c == '(' || c == ')')
        return take_parenthesis(s);
    status = refuse_sign(s->at);
    if (status == TL_OK)
        take_sign(s);
    return status;
}

tl_status tokens_read(token **out, const char *text)
{
    struct scan s = {.at = text};
    tl_status status = TL_OK;

    s.tokens = memory_new_array(strlen(text) + 1, sizeof *s.tokens);
    if (s.tokens == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the statement");
    while (status == TL_OK) {
        s.at += strspn(s.at, " \t\n\v\f\r");
        if (*s.at == '\0')
            break;
        status = take(&s);
    }
    if (status == TL_OK && s.depth > 0)
        status = error_set(TL_INVALID, "a parenthesis is not closed");
    if (status != TL_OK) {
        memory_free(s.tokens);
        return status;
    }
    add(&s, TOKEN_END, s.at);
    *out = s.tokens;
    return TL_OK;
}

int token_is(const token *t, const char *what)
{
    return (t->kind == TOKEN_WORD || t->kind == TOKEN_SIGN) && t->size == strlen(what) &&
           strncasecmp(t->at, what, t->size) == 0;
}

int token_is_one_of(const token *t, const char *const *words)
{
    for (; *words != NULL; words++)
        if (token_is(t, *words))
            return 1;
    return 0;
}

const token *token_closing(const token *open)
{
    const token *t = open + 1;

    while (!token_is(t, ")") || t->depth != open->depth)
        t++;
    return t;
}

int token_is_name(const token *t)
{
    return t->kind == TOKEN_WORD || t->kind == TOKEN_NAME;
}

int token_name(const token *t, char *to, size_t space)
{
    const char *from = t->at, *end = t->at + t->size;
    const int quoted = *from == '`';
    size_t size = 0;

    for (from += quoted, end -= quoted; from < end; from++) {
        if (size + 1 >= space)
            return 0;
        to[size++] = *from;
        if (quoted && *from == '`')
            from++;
    }
    to[size] = '\0';
    return 1;
}

const char *token_text(const token *t)
{
    return t->kind == TOKEN_END ? "the end" : t->kind == TOKEN_VALUE ? t->at - 1 : t->at;
}

/* Cuts no UTF-8 character. */
int token_size(const token *t)
{
    size_t size = t->size + (t->kind == TOKEN_VALUE);

    if (t->kind == TOKEN_END)
        return (int)strlen("the end");
    if (size > SHOWN_MAX)
        for (size = SHOWN_MAX; ((unsigned char)t->at[size] & 0xc0) == 0x80;)
            size--;
    return (int)size;
}
