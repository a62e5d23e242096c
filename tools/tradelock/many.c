/* Finds the trades of one change of many, and shows what it would do.  Only reads. */
#include "many.h"

#include "array_room.h"
#include "fields.h"
#include "fleet.h"
#include "judge.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tl_key seen_key(const struct seen *seen)
{
    return (tl_key){seen->serial_no, seen->cust_no, seen->op_code};
}

int many_add(struct many *self, const struct seen *row)
{
    if (!array_room(&self->rows, self->bulk.count, sizeof *self->rows)) {
        self->status = tl_error_report(TL_NO_MEMORY, "out of memory for the trades");
        return 0;
    }
    self->rows[self->bulk.count++] = *row;
    return 1;
}

static int take(void *context, const tl_view *view)
{
    struct many *self = context;
    const int why = self->judge(self, view);
    struct seen row = {.amount_minor = view->amount_minor, .fence = view->fence, .act_no = 0};

    if (why >= 0)
        self->apart[why]++;
    if (why != JUDGE_MEANT)
        return 0;
    if (self->check == NULL && self->bulk.count == self->limit)
        return 1;
    snprintf(row.serial_no, sizeof row.serial_no, "%s", view->serial_no);
    snprintf(row.cust_no, sizeof row.cust_no, "%s", view->cust_no);
    snprintf(row.op_code, sizeof row.op_code, "%s", view->op_code);
    snprintf(row.currency, sizeof row.currency, "%s", view->currency);
    return !many_add(self, &row);
}

static int add_example(void *context, const tl_view *view)
{
    const struct bulk *bulk = context;
    char amount[TL_AMOUNT_TEXT], fence[24];

    snprintf(fence, sizeof fence, "%" PRIu64, view->fence);
    table_add(bulk->examples, view->serial_no, view->cust_no, view->op_code,
              tl_state_name(view->state),
              tl_amount_text(amount, view->amount_minor, view->currency), view->channel, fence);
    return json_array_append_new(bulk->examples_json, fleet_row(json_view(view))) != 0;
}

/* Keeps those from `first` on, of this database, that stand the second look. */
static tl_status settle(struct many *self, tl_client *client, uint64_t first)
{
    struct bulk *bulk = &self->bulk;
    const uint64_t end = bulk->count;

    bulk->count = first;
    for (uint64_t i = first; i < end && bulk->count < self->limit && self->status == TL_OK; i++) {
        const struct seen row = self->rows[i];
        const int why = self->check != NULL ? self->check(self, client, &row) : JUDGE_MEANT;
        const tl_key key = seen_key(&row);

        if (why >= 0)
            self->apart[why]++;
        if (why != JUDGE_MEANT)
            continue;
        self->rows[bulk->count++] = row;
        self->of_shard[fleet_at()]++;
        tl_list_end_add(&bulk->money, row.currency, row.amount_minor);
        if (bulk->count <= BULK_EXAMPLES && self->status == TL_OK)
            self->status = tl_show(client, &key, TL_LANE_SYNC, add_example, bulk);
    }
    return self->status;
}

static int look(tl_client *client, void *context)
{
    struct many *self = context;
    const uint64_t first = self->bulk.count;
    int code = EXIT_DONE;

    if (self->filter == NULL) {
        code = self->look(self, client);
    } else {
        self->filter->lane = 'S';
        self->filter->limit = UINT32_MAX;
        code = fleet_told(tl_list(client, self->filter, take, self));
    }
    if (code == EXIT_DONE && self->status == TL_OK)
        settle(self, client, first);
    return code != EXIT_DONE ? code : fleet_told(self->status);
}

/* "Left alone: 3 held by somebody, 1 due already." */
static void say_apart(struct many *self, char *to, size_t space)
{
    size_t size = 0;

    to[0] = '\0';
    for (size_t i = 0; i < MANY_APART && self->reasons[i] != NULL; i++) {
        json_object_set_new(self->bulk.apart_json, self->reasons[i],
                            json_integer((json_int_t)self->apart[i]));
        if (self->apart[i] > 0 && size < space)
            size +=
                (size_t)snprintf(to + size, space - size, "%s%" PRIu64 " %s",
                                 size > 0 ? ", " : "Left alone: ", self->apart[i], self->words[i]);
    }
    if (size > 0 && size + 1 < space)
        size += (size_t)snprintf(to + size, space - size, ".");
    if (self->say != NULL && size < space)
        self->say(self, to, space, size);
}

static void name_row(const void *context, uint64_t row, tl_key *key)
{
    *key = seen_key(&((const struct many *)context)->rows[row]);
}

int many_run(struct many *self)
{
    struct bulk *bulk = &self->bulk;
    char apart[2048];
    int code;

    self->of_shard = calloc(fleet_size() + 1, sizeof *self->of_shard);
    if (self->of_shard == NULL)
        return report(tl_error_report(TL_NO_MEMORY, "out of memory for the trades"));
    self->limit = self->limit > 0 ? self->limit : UINT64_MAX;
    bulk->run.context = self;
    bulk->run.is_of_row = judge_is_of_row;
    bulk->name = name_row;
    bulk->code_of_none = EXIT_REFUSED;
    bulk->of_shard = self->of_shard;
    bulk->apart = apart;
    bulk->apart_json = json_object();
    bulk->examples_json = json_array();
    bulk->examples =
        table_new("SERIAL", "CUSTOMER", "OPERATION", "STATE", "AMOUNT", "CHANNEL", "FENCE", NULL);
    code = fleet_each(0, look, self);
    say_apart(self, apart, sizeof apart);
    /* What the shards that answered have is done: the same again does the rest. */
    if (code == EXIT_DONE || (fleet_is() && bulk->count > 0 && code != EXIT_REFUSED))
        code = bulk_run(bulk);
    table_free(bulk->examples);
    json_decref(bulk->examples_json);
    json_decref(bulk->apart_json);
    json_decref(bulk->left_out);
    free(self->rows);
    free(self->of_shard);
    return code;
}
