/* Joins the two lines of each forwarded request, and finds the payments among the answers. */
#include "passages.h"
#include "export.h"
#include "sim_time.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* A text in a tree, compared by the text alone. */
struct known {
    size_t number; /* of a key: its latest row with an order, from 1; 0: there is none */
    char text[];
};

struct row {
    int64_t seq;
    char *shown;         /* its first columns */
    struct order *order; /* that it named; or NULL */
    char *channel_key;
    char fault[FAULT_NAME_MAX + 1];
    bool kept, ended, sent;
    int64_t status;
};

struct passages {
    struct row *rows; /* by seq */
    size_t count, space;
    void *keys, *refs; /* trees of struct known */
};

struct passages *passages_new(void)
{
    return memory_new(sizeof(struct passages));
}

void passages_free(struct passages *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++) {
        free(self->rows[i].shown);
        free(self->rows[i].order);
        free(self->rows[i].channel_key);
    }
    tdestroy(self->keys, free);
    tdestroy(self->refs, free);
    free(self->rows);
    free(self);
}

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct known *)left)->text, ((const struct known *)right)->text);
}

/* The entry of this text; *made says whether it is new. */
static struct known *find(void **tree, const char *text, bool *made)
{
    struct known *own = memory_new(sizeof(*own) + strlen(text) + 1);
    struct known **place;

    strcpy(own->text, text);
    place = memory_need(tsearch(own, tree, compare));
    *made = *place == own;
    if (!*made)
        free(own);
    return *place;
}

static char *show(const struct record *record)
{
    const struct passage *passage = &record->passage;
    char at[TIME_TEXT_SIZE], *text = NULL;
    size_t size;
    FILE *memory = memory_need(open_memstream(&text, &size));

    time_write(record->at_us, at);
    fprintf(memory, "%" PRId64 ",%s", record->seq, at);
    export_text(memory, passage->method);
    export_text(memory, passage->path);
    export_text(memory, record->order.channel_key);
    export_text(memory, passage->body_sha256);
    fclose(memory);
    return memory_need(text);
}

static void add_row(struct passages *self, const struct record *record)
{
    const struct order *order = &record->order;
    struct row *row;
    bool made;

    if (self->count == self->space) {
        self->space = self->space ? 2 * self->space : 256;
        self->rows = memory_need(realloc(self->rows, self->space * sizeof(*row)));
    }
    row = &self->rows[self->count];
    memset(row, 0, sizeof(*row));
    row->seq = record->seq;
    row->shown = show(record);
    row->channel_key = memory_need(strdup(order->channel_key));
    row->kept = record->type == RECORD_KEPT;
    strcpy(row->fault, record->passage.fault);
    if (order->serial_no[0] && order->cust_no[0]) {
        row->order = memory_new(sizeof(*row->order));
        *row->order = *order;
        if (order->channel_key[0])
            find(&self->keys, order->channel_key, &made)->number = self->count + 1;
    }
    self->count++;
}

static struct row *row_of(const struct passages *self, int64_t seq)
{
    size_t low = 0, high = self->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->rows[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < self->count && self->rows[low].seq == seq ? &self->rows[low] : NULL;
}

bool passages_add(struct passages *self, const struct record *record, struct problem *problem)
{
    struct row *row;

    if (record->type != RECORD_FORWARDED) {
        if (record->type == RECORD_KEPT || record->type == RECORD_FORWARDING)
            add_row(self, record);
        return true;
    }
    row = row_of(self, record->passage.forwarding_seq);
    if (!row || row->kept || row->ended)
        return problem_set(problem, "no request is being forwarded as %" PRId64,
                           record->passage.forwarding_seq);
    row->ended = true;
    row->sent = record->passage.sent;
    row->status = record->passage.status;
    return true;
}

bool passages_paid(struct passages *self, const struct record *record, struct order *order)
{
    const struct row *row;
    bool made = false;

    memset(order, 0, sizeof(*order));
    if (record->type != RECORD_FORWARDED || !record->passage.channel_ref[0])
        return false;
    find(&self->refs, record->passage.channel_ref, &made);
    row = row_of(self, record->passage.forwarding_seq);
    if (!made || !row)
        return false;
    strcpy(order->channel_key, row->channel_key);
    if (row->order) {
        *order = *row->order;
    } else if (row->channel_key[0]) {
        const struct known *key = find(&self->keys, row->channel_key, &made);

        if (key->number)
            *order = *self->rows[key->number - 1].order;
    }
    return true;
}

/* A fault of the way back is not done where nobody was reached. */
static const char *fault_done(const struct row *row)
{
    bool before = strcmp(row->fault, "slow") == 0;

    return row->ended && !row->sent && !before ? "none" : row->fault;
}

void passages_print(const struct passages *self, FILE *csv)
{
    fputs("seq,at,method,path,channel_key,body_sha256,forwarded,status,fault\n", csv);
    for (size_t i = 0; i < self->count; i++) {
        const struct row *row = &self->rows[i];
        bool no = row->kept || (row->ended && !row->sent);

        fprintf(csv, "%s,%s,", row->shown, no ? "no" : row->ended ? "yes" : "maybe");
        if (row->status)
            fprintf(csv, "%" PRId64, row->status);
        fprintf(csv, ",%s\n", fault_done(row));
    }
}
