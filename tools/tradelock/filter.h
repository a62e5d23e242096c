/* The conditions that lists and changes of many trades share. */
#ifndef TRADELOCK_FILTER_H
#define TRADELOCK_FILTER_H

#include "command.h"

#include <tradelock/admin.h>

enum filter_option {
    FILTER_OP = 1000,
    FILTER_CUST,
    FILTER_SERIAL,
    FILTER_PREFIX,
    FILTER_LOG,
    FILTER_CHANNEL,
    FILTER_BATCH,
    FILTER_REF,
    FILTER_AMOUNT,
    FILTER_CURRENCY,
    FILTER_OLDER,
    FILTER_IDLE,
    FILTER_SINCE,
    FILTER_UNTIL,
    FILTER_PARKED,
    FILTER_IN_DOUBT,
    FILTER_CONFLICT,
    FILTER_LIMIT,
    FILTER_OPTIONS_END
};

#define FILTER_OPTIONS                                                                             \
    {"op", required_argument, NULL, FILTER_OP}, {"cust", required_argument, NULL, FILTER_CUST},    \
        {"serial", required_argument, NULL, FILTER_SERIAL},                                        \
        {"prefix", required_argument, NULL, FILTER_PREFIX},                                        \
        {"log", required_argument, NULL, FILTER_LOG},                                              \
        {"channel", required_argument, NULL, FILTER_CHANNEL},                                      \
        {"batch", required_argument, NULL, FILTER_BATCH},                                          \
        {"ref", required_argument, NULL, FILTER_REF},                                              \
        {"amount-over", required_argument, NULL, FILTER_AMOUNT},                                   \
        {"currency", required_argument, NULL, FILTER_CURRENCY},                                    \
        {"older", required_argument, NULL, FILTER_OLDER},                                          \
        {"idle", required_argument, NULL, FILTER_IDLE},                                            \
        {"since", required_argument, NULL, FILTER_SINCE},                                          \
        {"until", required_argument, NULL, FILTER_UNTIL},                                          \
        {"parked", no_argument, NULL, FILTER_PARKED},                                              \
        {"in-doubt", no_argument, NULL, FILTER_IN_DOUBT},                                          \
        {"conflict", no_argument, NULL, FILTER_CONFLICT},                                          \
    {                                                                                              \
        "limit", required_argument, NULL, FILTER_LIMIT                                             \
    }

#define FILTER_HELP                                                                                \
    "  --op OP         only this business operation\n"                                             \
    "  --cust CUST     only this customer\n"                                                       \
    "  --serial SERIAL only this serial number\n"                                                  \
    "  --prefix TEXT   only serial numbers that begin so\n"                                        \
    "  --log UUID      only rows with a step under this log UUID\n"                                \
    "  --channel NAME  only trades of this channel\n"                                              \
    "  --batch NAME    only trades of this batch\n"                                                \
    "  --ref REFERENCE only trades that the channel calls so\n"                                    \
    "  --amount-over N only trades of more than N minor units\n"                                   \
    "  --currency CUR  only trades in this currency\n"                                             \
    "  --older TIME    only rows made that long ago, or longer\n"                                  \
    "  --idle TIME     only rows not changed for that long\n"                                      \
    "  --since MOMENT  only rows made at this moment or later\n"                                   \
    "  --until MOMENT  only rows made before it\n"                                                 \
    "  --parked        only trades that wait for a person\n"                                       \
    "  --in-doubt      only trades of which money may have moved\n"                                \
    "  --conflict      only trades that evidence contradicts\n"

/* Whether the option is one of them. */
int filter_has(int option);
/* Takes optarg for it; EXIT_DONE, or what is wrong was said. */
int filter_set(const struct command *self, tl_filter *filter, int option);
/* The same for "parked channel=bank": the options' names without dashes.  Cuts the text up, which
 * the filter then borrows. */
int filter_where(const struct command *self, tl_filter *filter, char *words);
/* The conditions as --where takes them. */
void filter_say(char *to, size_t space, const tl_filter *filter);

#endif
