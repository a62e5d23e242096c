/* Finds a trade by its serial number, or by how that begins.  Only reads. */
#include "find.h"

#include "fleet.h"
#include "list_print.h"

#include <stdio.h>
#include <string.h>

/* Either of a trade's rows names it. */
static int take(void *context, const tl_view *view)
{
    struct found_trade *found = context;
    char op_code[TL_OP_MAX + 1];

    snprintf(op_code, sizeof op_code, "%.*s", (int)tl_business_op_size(view->op_code),
             view->op_code);
    if (found->count == 1 && strcmp(found->serial_no, view->serial_no) == 0 &&
        strcmp(found->cust_no, view->cust_no) == 0 && strcmp(found->op_code, op_code) == 0)
        return 0;
    found->count++;
    memcpy(found->serial_no, view->serial_no, sizeof found->serial_no);
    memcpy(found->cust_no, view->cust_no, sizeof found->cust_no);
    memcpy(found->op_code, op_code, sizeof found->op_code);
    return found->count > 1;
}

struct search {
    const tl_filter *filter;
    struct found_trade *found;
};

static int look(tl_client *client, void *context)
{
    const struct search *search = context;
    const tl_status status = tl_list(client, search->filter, take, search->found);

    return status == TL_OK ? EXIT_DONE : fleet_missed(status);
}

static int say_which(const struct common *common, const tl_filter *filter)
{
    const struct list_form_options form = {.form = common->json ? LIST_JSON : LIST_NARROW};
    const int code = list_print(filter, &form);

    fprintf(stderr, "tradelock: several trades match %s: name one, by SERIAL CUST OP\n",
            filter->serial != NULL ? filter->serial : filter->serial_prefix);
    return code == EXIT_DONE ? EXIT_REFUSED : code;
}

/* A trade that one shard has is the one that was meant only if every shard was asked. */
int find_trade(const struct common *common, tl_filter *filter, struct found_trade *found)
{
    const char *serial = filter->serial;
    struct search search = {filter, found};
    int code = fleet_each(0, look, &search);

    if (code == EXIT_DONE && found->count == 0) {
        filter->serial_prefix = serial;
        filter->serial = NULL;
        code = fleet_each(0, look, &search);
    }
    if (code != EXIT_DONE)
        return code;
    if (found->count > 1)
        return say_which(common, filter);
    if (found->count == 0) {
        fprintf(stderr, "tradelock: there is no trade %s, and none whose serial number begins so\n",
                serial);
        return EXIT_REFUSED;
    }
    found->key = (tl_key){
        .serial_no = found->serial_no, .cust_no = found->cust_no, .op_code = found->op_code};
    return EXIT_DONE;
}
