/* The trade that a person means by a serial number alone. */
#ifndef TRADELOCK_FIND_H
#define TRADELOCK_FIND_H

#include "command.h"

#include <tradelock/admin.h>

/* The key of the one trade, and room for it. */
struct found_trade {
    tl_key key;
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
    unsigned count; /* of trades that match: one, none, or "more" */
};

/*
 * After fleet_begin() it looks for trades of this serial number, else of those that begin so; the
 * filter's customer and operation narrow it.  If several match, they are printed.  EXIT_DONE and
 * found->count 1: there is one; else the exit code with which the command ends.
 */
int find_trade(const struct common *common, tl_filter *filter, struct found_trade *found);

#endif
