/* Reads the totals of a batch, and prints them as lines or as JSON. */
#include "batch_print.h"

#include "command.h"
#include "fields.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tl_batch_part *same_part(struct batch_totals *totals, const tl_batch_part *part)
{
    for (size_t i = 0; i < totals->count; i++)
        if (totals->part[i].state == part->state && totals->part[i].conflict == part->conflict &&
            strcmp(totals->part[i].money.currency, part->money.currency) == 0)
            return &totals->part[i];
    return NULL;
}

/* As tl_batch() orders them: what told no amount comes last of its state. */
static int compare_parts(const void *left, const void *right)
{
    const tl_batch_part *a = left, *b = right;

    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    if (a->conflict != b->conflict)
        return a->conflict < b->conflict ? -1 : 1;
    if ((a->money.currency[0] == '\0') != (b->money.currency[0] == '\0'))
        return a->money.currency[0] == '\0' ? 1 : -1;
    return strcmp(a->money.currency, b->money.currency);
}

static void append_part(struct batch_totals *totals, const tl_batch_part *part)
{
    tl_batch_part *larger = realloc(totals->part, (totals->count + 1) * sizeof *larger);

    if (larger == NULL) {
        fputs("tradelock: out of memory\n", stderr);
        exit(EXIT_INTERNAL);
    }
    totals->part = larger;
    totals->part[totals->count++] = *part;
}

/* Of a fleet the parts of several shards are one. */
static int take_part(void *context, const tl_batch_part *part)
{
    struct batch_totals *totals = context;
    tl_batch_part *same = same_part(totals, part);

    if (same != NULL) {
        same->money.trades += part->money.trades;
        tl_sum_add(same->money.sum_minor, part->money.sum_minor);
    } else {
        append_part(totals, part);
    }
    totals->trades += part->money.trades;
    if (tl_batch_part_is_open(part))
        totals->open += part->money.trades;
    return 0;
}

tl_status batch_totals_add(struct batch_totals *totals, tl_client *client, const tl_filter *filter)
{
    const tl_status status =
        tl_batch(client, filter->batch, filter->as_of_us, 0, take_part, totals);

    if (totals->count > 0)
        qsort(totals->part, totals->count, sizeof totals->part[0], compare_parts);
    return status == TL_NOT_FOUND ? TL_OK : status;
}

void batch_totals_free(struct batch_totals *totals)
{
    free(totals->part);
    totals->part = NULL;
    totals->count = 0;
}

static void print_part(const tl_batch_part *part)
{
    printf("  %" PRIu64 " %s%s", part->money.trades, tl_state_name(part->state),
           part->conflict ? ", in conflict" : "");
    if (part->money.currency[0] != '\0')
        printf(": %s %s (minor units)\n", part->money.sum_minor, part->money.currency);
    else
        puts(", no amount told");
}

void batch_totals_print(const struct batch_totals *totals, const char *batch)
{
    if (totals->count == 0)
        return;
    fputs("batch ", stdout);
    print_harmless(batch, strlen(batch));
    if (totals->open == 0)
        printf(": complete, %" PRIu64 " trade%s\n", totals->trades, totals->trades == 1 ? "" : "s");
    else
        printf(": not complete, %" PRIu64 " of %" PRIu64 " open\n", totals->open, totals->trades);
    for (size_t i = 0; i < totals->count; i++)
        print_part(&totals->part[i]);
}

json_t *batch_totals_json(const struct batch_totals *totals, const char *batch)
{
    json_t *parts;

    if (totals->count == 0)
        return json_null();
    parts = json_array();
    for (size_t i = 0; i < totals->count; i++)
        json_array_append_new(parts, record_json(&record_batch_part, &totals->part[i]));
    return json_pack("{s:o, s:b, s:I, s:I, s:o}", "name", json_text(batch), "complete",
                     totals->open == 0, "trades", (json_int_t)totals->trades, "open",
                     (json_int_t)totals->open, "parts", parts);
}
