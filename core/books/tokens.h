/* The text of a declared statement, token by token: tokens.c. */
#ifndef TL_BOOKS_TOKENS_H
#define TL_BOOKS_TOKENS_H

#include <tradelock/tradelock.h>

#include <stddef.h>

typedef enum token_kind {
    TOKEN_WORD,   /* a keyword, a name without quotes, or a number */
    TOKEN_NAME,   /* a name that is no keyword: in backticks, or behind a dot */
    TOKEN_STRING, /* '...' or "..." */
    TOKEN_VALUE,  /* :name; at and size are those of the name */
    TOKEN_SIGN,   /* a parenthesis, a comma, an operator ... */
    TOKEN_END     /* the last one */
} token_kind;

typedef struct token {
    token_kind kind;
    const char *at; /* in the text */
    size_t size;
    /* In how many parentheses it stands; a parenthesis stands outside of itself. */
    unsigned depth;
    unsigned value; /* declare.c: which of the statement's values a TOKEN_VALUE is */
} token;

/* Takes the text apart, which has to stay while the tokens are used.  memory_free() frees them.
 * TL_OK, TL_NO_MEMORY, or TL_INVALID with a sentence: comments, variables, question marks and
 * semicolons are not taken, nor what does not end. */
tl_status tokens_read(token **out, const char *text);

/* Whether it is this keyword, in letters of either case, or this sign. */
int token_is(const token *t, const char *what);
/* Whether it is one of these; NULL ends them. */
int token_is_one_of(const token *t, const char *const *words);
/* The parenthesis that closes this one. */
const token *token_closing(const token *open);
/* Whether it can name a table or a column. */
int token_is_name(const token *t);
/* The name without its backticks: 1, or 0 if it does not fit. */
int token_name(const token *t, char *to, size_t space);

/* For sentences: "%.*s" of TOKEN_SHOWN(t), the end of the text included. */
const char *token_text(const token *t);
int token_size(const token *t);
#define TOKEN_SHOWN(t) token_size(t), token_text(t)

#endif
