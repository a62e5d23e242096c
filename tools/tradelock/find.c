/* Finds a trade by its key, by its serial number, or by how that begins.  Only reads. */
#include "find.h"

#include "fleet.h"
#include "fleet_map.h"
#include "list_print.h"

#include <stdio.h>
#include <string.h>

/* The one trade. */
struct found_trade {
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
    unsigned count; /* of trades that match: one, none, or "more" */
};

static tl_filter filter = {.version = TL_FILTER_VERSION};
static struct found_trade found;

/* Either of a trade's rows names it. */
static int take(void *context, const tl_view *view)
{
    struct found_trade *one = context;
    char op_code[TL_OP_MAX + 1];

    snprintf(op_code, sizeof op_code, "%.*s", (int)tl_business_op_size(view->op_code),
             view->op_code);
    if (one->count == 1 && strcmp(one->serial_no, view->serial_no) == 0 &&
        strcmp(one->cust_no, view->cust_no) == 0 && strcmp(one->op_code, op_code) == 0)
        return 0;
    one->count++;
    memcpy(one->serial_no, view->serial_no, sizeof one->serial_no);
    memcpy(one->cust_no, view->cust_no, sizeof one->cust_no);
    memcpy(one->op_code, op_code, sizeof one->op_code);
    return one->count > 1;
}

static int look(tl_client *client, void *context)
{
    return fleet_told(tl_list(client, &filter, take, context));
}

static int say_which(void)
{
    const struct list_form_options form = {.form = common.json ? LIST_JSON : LIST_NARROW};
    const int code = list_print(&filter, &form);

    fprintf(stderr, "tradelock: several trades match %s: name one, by SERIAL CUST OP\n",
            filter.serial != NULL ? filter.serial : filter.serial_prefix);
    return code == EXIT_DONE ? EXIT_REFUSED : code;
}

/* A trade that one shard has is the one that was meant only if every shard was asked. */
static int find_by_serial(void)
{
    const char *serial = filter.serial;
    int code = fleet_each(0, look, &found);

    if (code == EXIT_DONE && found.count == 0) {
        filter.serial_prefix = serial;
        filter.serial = NULL;
        code = fleet_each(0, look, &found);
    }
    if (code != EXIT_DONE)
        return code;
    if (found.count > 1)
        return say_which();
    if (found.count == 0) {
        fprintf(stderr, "tradelock: there is no trade %s, and none whose serial number begins so\n",
                serial);
        return EXIT_REFUSED;
    }
    return EXIT_DONE;
}

int find_check(int argc, char **argv)
{
    if (argc < 1 || argc > 3)
        return usage_error("%s takes one to three operands, SERIAL CUST OP, not %d", running->name,
                           argc);
    filter.serial = argv[0];
    filter.cust = argc > 1 ? argv[1] : NULL;
    filter.op = argc > 2 ? argv[2] : NULL;
    return EXIT_DONE;
}

int find_trade(tl_client **client, tl_key *key)
{
    int code = EXIT_DONE;

    *key = (tl_key){filter.serial, filter.cust, filter.op};
    if (filter.cust == NULL || filter.op == NULL) {
        code = find_by_serial();
        *key = (tl_key){found.serial_no, found.cust_no, found.op_code};
    }
    return code == EXIT_DONE ? fleet_owner(client, key->cust_no) : code;
}
