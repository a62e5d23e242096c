/* The payments of a channel's ledger, or of a bank's statement as the bank writes it. */
#ifndef TRADELOCK_STATEMENT_H
#define TRADELOCK_STATEMENT_H

#include "command.h"

#include <tradelock/admin.h>

#include <stdio.h>

/* What a line is about: where several words say something, the last of these. */
enum statement_kind {
    KIND_PAID,
    KIND_RECEIVED, /* money came in, and it is no payment of the channel's that came back */
    KIND_RETURNED, /* a payment came back: its amount is below 0 */
    KIND_UNBOOKED, /* not yet, or not at all */
    KINDS
};

/* Which trades a payment fits whose customer is not named. */
struct statement_fit {
    unsigned trades;
    const char *serial_no, *cust_no, *op_code; /* of the last one */
};

struct statement {
    tl_payment *payments; /* and what came back; without cust_no: see statement_find() */
    size_t count;
    /* Lines that count for nothing: set aside by their kind or number, and totals. */
    size_t aside[KINDS], aside_lines, totals;
    size_t unfound;      /* payments that no trade is of, which were dropped */
    const char *channel; /* that paid; NULL: not said */
    /* Own memory. */
    char **texts;
    size_t text_count;
    struct statement_fit *fits; /* of each payment, while trades are looked for */
};

struct statement_rules {
    /* NULL: not said.  STATEMENT_OPTIONS has what they mean. */
    const char *map, *ignored, *delimiter, *decimal, *encoding, *preamble, *total;
    const char *words[KINDS];
    const char *op_code, *currency; /* of payments that name none */
    const char *channel;            /* whose references they are */
    const char *profile, *aside;
    const char *config_file; /* where the profile is */
    int is_filed;            /* evidence is to be filed of each payment: it must be possible */
    size_t most;             /* payments; 0: as many as there is memory for */
};

/* Options of a command, and settings of a section [statement-NAME] of the settings file, which an
 * option overrules. */
#define STATEMENT_SETTINGS(r)                                                                      \
    {"map NAMES",                                                                                  \
     "what the file calls its columns, as\n"                                                       \
     "ref=EndToEndId,amount=Betrag: of serial, cust, op,\n"                                        \
     "key, ref, amount (1250.00) or minor (125000),\n"                                             \
     "received (amounts that came in), currency, and\n"                                            \
     "sign and kind, which say what a line is about",                                              \
     OPTION_TEXT, .to = &(r).map},                                                                 \
        {"ignore NAMES", "columns that are not compared, with commas between", OPTION_TEXT,        \
         .to = &(r).ignored},                                                                      \
        {"delimiter C", "between cells: one character, or tab (,)", OPTION_TEXT,                   \
         .to = &(r).delimiter},                                                                    \
        {"decimal C", "before the cents: . or , (.)", OPTION_TEXT, .to = &(r).decimal},            \
        {"encoding NAME", "such as latin1, cp1252 or utf-16 (utf-8)", OPTION_TEXT,                 \
         .to = &(r).encoding},                                                                     \
        {"preamble N", "lines before the one that names the columns (0)", OPTION_TEXT,             \
         .to = &(r).preamble},                                                                     \
        {"total WORDS",                                                                            \
         "lines of totals begin so, and are passed over\n"                                         \
         "(words with commas between)",                                                            \
         OPTION_TEXT, .to = &(r).total},                                                           \
        {"paid WORDS",                                                                             \
         "what stands in sign and kind where the channel\n"                                        \
         "paid; + and -: the amount's sign",                                                       \
         OPTION_TEXT, .to = &(r).words[KIND_PAID]},                                                \
        {"received WORDS", "where money came in", OPTION_TEXT, .to = &(r).words[KIND_RECEIVED]},   \
        {"returned WORDS", "where a payment came back", OPTION_TEXT,                               \
         .to = &(r).words[KIND_RETURNED]},                                                         \
    {                                                                                              \
        "unbooked WORDS", "where nothing was paid, yet or at all", OPTION_TEXT,                    \
            .to = &(r).words[KIND_UNBOOKED]                                                        \
    }
#define STATEMENT_OPTIONS(r)                                                                       \
    {"profile NAME", "these of section [statement-NAME] of the settings", OPTION_TEXT,             \
     .to = &(r).profile},                                                                          \
        STATEMENT_SETTINGS(r),                                                                     \
    {                                                                                              \
        "aside LIST",                                                                              \
            "lines to be left out, as 17,23, and kinds:\n"                                         \
            "received, returned, unbooked",                                                        \
            OPTION_TEXT, .to = &(r).aside                                                          \
    }

/*
 * Reads CSV, or ISO 20022 camt.053 where that is what stands in it.  The heading names the columns: serial_no and cust_no must be among them unless a map
 * says otherwise; op_code, channel_key, channel_ref, amount_minor and currency may be.  seq, paid_at
 * and payee, which a simulator exports, and what the rules ignore are passed over.  Refused are any
 * other column, one that is missing or stands twice, a last line without its end; and each line, of
 * those that are not set aside, which is not understood: with more or fewer cells, text that is no
 * UTF-8 or has a control character, another amount or word than can be, money that came in.  0, or
 * -1 with one sentence that names the lines.
 */
int statement_read(struct statement *self, const char *path, const struct statement_rules *rules,
                   char *problem, size_t space);
/* The same of bytes in memory; name is what a problem calls them. */
int statement_read_bytes(struct statement *self, const char *bytes, size_t size, const char *name,
                         const struct statement_rules *rules, char *problem, size_t space);
void statement_free(struct statement *self);

/* Calls each() with every NAME of sections [statement-NAME] of the settings file. */
void statement_profiles(const char *config_file, void (*each)(void *context, const char *name),
                        void *context);

/*
 * Whose payments they are of which the bank names no customer.  statement_find_begin() says whether
 * there are any: 0, 1, or -1 out of memory.  Then tl_payment_find() of each database calls
 * statement_take_trade() with the statement.  At the end what fits no trade gets the customer "",
 * or is dropped where evidence is filed.  -1: payments fit several trades, and the sentence names
 * their lines.
 */
int statement_find_begin(struct statement *self);
int statement_take_trade(void *self, size_t number, const tl_key *key);
int statement_find_end(struct statement *self, int is_filed, char *problem, size_t space);

/* What the payments come to, and what came back; of `count` payments, such as those of a shard. */
void statement_sum(const tl_payment *payments, size_t count, tl_list_end *paid,
                   tl_list_end *returned);
/* "2 received, 1 total, 1 line" of what counts for nothing; "". */
const char *statement_aside(char *to, size_t space, const struct statement *self);

/* Whether somebody can be called so: what is no customer is of no shard. */
int statement_names_customer(const tl_payment *payment);
/*
 * Puts the payments in the order of place[i] of each, which is less than `places`; those of one
 * place keep theirs.  Those from first[p] on, and before first[p + 1], are of place p; so first has
 * one more than there are places.  No statement stays none. -1: out of memory, and no payment moved.
 */
int statement_sort(struct statement *self, const size_t *place, size_t places, size_t *first);

#endif
