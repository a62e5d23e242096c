/* The conditions that lists and changes of many trades share: rows of a command's options. */
#ifndef TRADELOCK_FILTER_H
#define TRADELOCK_FILTER_H

#include "command.h"

#include <tradelock/admin.h>

#define FILTER_ROW(name_, help_, kind_, member, ...)                                               \
    {.name = name_, .help = help_, .kind = kind_, .to = &(member), .is_filter = 1, __VA_ARGS__}

/* Of the tl_filter f; every one of them sets *was_given, unless that is NULL. */
#define FILTER_OPTIONS(f, was_given)                                                               \
    FILTER_ROW("op OP", "only this business operation", OPTION_TEXT, (f).op, .given = was_given),  \
        FILTER_ROW("cust CUST", "only this customer", OPTION_TEXT, (f).cust, .given = was_given),  \
        FILTER_ROW("serial SERIAL", "only this serial number", OPTION_TEXT, (f).serial,            \
                   .given = was_given),                                                            \
        FILTER_ROW("prefix TEXT", "only serial numbers that begin so", OPTION_TEXT,                \
                   (f).serial_prefix, .given = was_given),                                         \
        FILTER_ROW("log UUID", "only rows with a step under this log UUID", OPTION_TEXT,           \
                   (f).log_uuid, .given = was_given),                                              \
        FILTER_ROW("channel CHANNEL", "only trades of this channel", OPTION_TEXT, (f).channel,     \
                   .given = was_given),                                                            \
        FILTER_ROW("batch NAME", "only trades of this batch", OPTION_TEXT, (f).batch,              \
                   .given = was_given),                                                            \
        FILTER_ROW("ref REFERENCE", "only trades that the channel calls so", OPTION_TEXT,          \
                   (f).channel_ref, .given = was_given),                                           \
        FILTER_ROW("label TEXT", "only trades that people call so", OPTION_TEXT, (f).label,        \
                   .given = was_given),                                                            \
        FILTER_ROW("trace ID", "only trades of this W3C trace", OPTION_TEXT, (f).trace,            \
                   .given = was_given),                                                            \
        FILTER_ROW(                                                                                \
            "amount MONEY",                                                                        \
            "only trades of exactly so much: '1,250.00 EUR',\n1250.00, '125000 EUR minor units'",  \
            OPTION_TEXT, (f).amount, .given = was_given),                                          \
        FILTER_ROW("amount-over MONEY", "only trades of more than that: '1,250.00 EUR'",           \
                   OPTION_TEXT, (f).amount_over, .given = was_given),                              \
        FILTER_ROW("currency CUR", "only trades in this currency", OPTION_OTHER, (f).currency,     \
                   .take = filter_take_currency, .given = was_given),                              \
        FILTER_ROW("older TIME", "only rows made that long ago, or longer", OPTION_DURATION,       \
                   (f).older_ms, .given = was_given),                                              \
        FILTER_ROW("idle TIME", "only rows not changed for that long", OPTION_DURATION,            \
                   (f).idle_ms, .given = was_given),                                               \
        FILTER_ROW("since MOMENT", "only rows made at this moment or later", OPTION_MOMENT,        \
                   (f).since_us, .given = was_given),                                              \
        FILTER_ROW("until MOMENT", "only rows made before it", OPTION_MOMENT, (f).until_us,        \
                   .given = was_given),                                                            \
        FILTER_ROW("parked", "only trades that wait for a person", OPTION_FLAG, (f).parked,        \
                   .given = was_given),                                                            \
        FILTER_ROW("in-doubt", "only trades of which money may have moved", OPTION_FLAG,           \
                   (f).in_doubt, .given = was_given),                                              \
        FILTER_ROW("conflict", "only trades that evidence contradicts", OPTION_FLAG, (f).conflict, \
                   .given = was_given)

#define FILTER_LIMIT(f, was_given, help)                                                           \
    FILTER_ROW("limit N", help, OPTION_COUNT, (f).limit, .least = 1, .most = 1000000000,           \
               .given = was_given)

int filter_take_currency(const char *value, void *to);

/* Takes "parked channel=bank" for the command's filters: the options' names without dashes.  Cuts
 * the text up, which the filter then borrows. */
int filter_where(char *words);
/* The conditions as --where takes them. */
void filter_say(char *to, size_t space);

#endif
