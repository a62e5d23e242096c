/* Finds the trades of a statement whose bank names no customer, and prints its sums beside theirs. */
#include "statement_print.h"

#include "fleet.h"
#include "list_print.h"

static int find_here(tl_client *client, void *context)
{
    struct statement *statement = context;

    return fleet_told(tl_payment_find(client, statement->payments, statement->count,
                                      statement->channel, statement_take_trade, statement));
}

int statement_find(struct statement *self, int is_filed, const char *name)
{
    char problem[128] = "out of memory";
    const int wanted = statement_find_begin(self);
    int code = EXIT_DONE;

    if (wanted == 0)
        return EXIT_DONE;
    if (wanted > 0) {
        code = fleet_each(0, find_here, self);
        if (code != EXIT_DONE && !fleet_is())
            return code;
        /* What is of a shard that does not answer is not compared. */
        if (statement_find_end(self, is_filed || fleet_is_incomplete(), problem, sizeof problem) ==
            0)
            return code;
    }
    return usage_error("%s: %s", name, problem);
}

void statement_print(const struct statement *self, const tl_payment *payments, size_t count,
                     const tl_list_end *trades)
{
    tl_list_end paid = TL_LIST_END_INIT, returned = TL_LIST_END_INIT;
    char aside[160];

    statement_sum(payments, count, &paid, &returned);
    fputs("The file pays  ", stdout);
    list_print_totals(&paid, "payment");
    fputs("Their trades   ", stdout);
    list_print_totals(trades, "trade");
    if (returned.trades > 0) {
        fputs("It gives back  ", stdout);
        list_print_totals(&returned, "payment");
    }
    if (statement_aside(aside, sizeof aside, self)[0] != '\0')
        printf("Left out       %s\n", aside);
}

static json_t *json_sum(const tl_list_end *sum)
{
    return json_pack("{s:I, s:o}", "count", (json_int_t)sum->trades, "money", list_json_money(sum));
}

json_t *statement_json(const struct statement *self, const tl_payment *payments, size_t count,
                       const tl_list_end *trades)
{
    tl_list_end paid = TL_LIST_END_INIT, returned = TL_LIST_END_INIT;
    const size_t *aside = self->aside;

    statement_sum(payments, count, &paid, &returned);
    return json_pack("{s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I, s:I}}", "paid", json_sum(&paid),
                     "returned", json_sum(&returned), "trades", json_sum(trades), "aside",
                     "received", (json_int_t)aside[KIND_RECEIVED], "returned",
                     (json_int_t)aside[KIND_RETURNED], "unbooked", (json_int_t)aside[KIND_UNBOOKED],
                     "lines", (json_int_t)self->aside_lines, "totals", (json_int_t)self->totals);
}
