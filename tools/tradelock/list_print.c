/*
 * Prints lists.  Nothing is collected but the first rows, by which the columns get their widths; a
 * longer value later moves what stands behind it.
 */
#include "list_print.h"

#include "array_room.h"
#include "command.h"
#include "fields.h"
#include "fleet.h"
#include "print.h"

#include <tradelock/admin.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the totals of a batch, and prints them as lines or as JSON. */

struct batch_totals {
    tl_batch_part *part;
    size_t count;
    uint64_t trades, open;
};

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

/* Of a fleet the parts of several shards are one. */
static int take_part(void *context, const tl_batch_part *part)
{
    struct batch_totals *totals = context;
    tl_batch_part *same = same_part(totals, part);

    if (same != NULL) {
        same->money.trades += part->money.trades;
        tl_sum_add(same->money.sum_minor, part->money.sum_minor);
    } else {
        if (!array_room(&totals->part, totals->count, sizeof *totals->part))
            out_of_memory();
        totals->part[totals->count++] = *part;
    }
    totals->trades += part->money.trades;
    if (tl_batch_part_is_open(part))
        totals->open += part->money.trades;
    return 0;
}

/* Counts what this database has of the batch that the filter names, at its moment, and adds it to
 * what others had.  TL_OK also when there is none, with a count of 0.  batch_totals_free() frees
 * it, whatever the status. */
static tl_status batch_totals_add(struct batch_totals *totals, tl_client *client,
                                  const tl_filter *filter)
{
    const tl_status status =
        tl_batch(client, filter->batch, filter->as_of_us, 0, take_part, totals);

    if (totals->count > 0)
        qsort(totals->part, totals->count, sizeof totals->part[0], compare_parts);
    return status == TL_NOT_FOUND ? TL_OK : status;
}

static void batch_totals_free(struct batch_totals *totals)
{
    free(totals->part);
    totals->part = NULL;
    totals->count = 0;
}

static void print_part(const tl_batch_part *part)
{
    char money[TL_AMOUNT_TEXT];

    printf("  %s %s%s", COUNT_TEXT(part->money.trades), tl_state_name(part->state),
           part->conflict ? ", in conflict" : "");
    if (part->money.currency[0] != '\0')
        printf(": %s\n", tl_sum_text(money, part->money.sum_minor, part->money.currency));
    else
        puts(", no amount told");
}

static void batch_totals_print(const struct batch_totals *totals, const char *batch)
{
    if (totals->count == 0)
        return;
    fputs("batch ", stdout);
    print_harmless(batch, strlen(batch));
    if (totals->open == 0)
        printf(": complete, %s trade%s\n", COUNT_TEXT(totals->trades),
               totals->trades == 1 ? "" : "s");
    else
        printf(": not complete, %s of %s open\n", COUNT_TEXT(totals->open),
               COUNT_TEXT(totals->trades));
    for (size_t i = 0; i < totals->count; i++)
        print_part(&totals->part[i]);
}

/* null: there is no such batch. */
static json_t *batch_totals_json(const struct batch_totals *totals, const char *batch)
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

/* Rows by which columns get their widths. */
#define FIRST_ROWS 100

/* ----------------------------------------------------------------- columns -- */

static const char *const of_form[] = {
    [LIST_NARROW] = "serial,customer,operation,state,age,next,amount",
    [LIST_WIDE] = "serial,customer,operation,status,state,conflict,amount,counts,fence,updated,"
                  "next_at,reason",
    [LIST_CSV] = "serial,customer,operation,lane,status,state,conflict,amount,currency,epoch,sends,"
                 "attempts,fence,created,updated,next_at,parked,holder,batch,traceparent",
};

const char *list_column_names(void)
{
    static char names[512];

    names[0] = '\0';
    for (size_t i = 0; i < record_view.count + record_view.made_count; i++) {
        const struct field *column = record_column_at(&record_view, i);

        if (column->column != NULL)
            strcat(strcat(names, i > 0 ? "," : ""), column->column);
    }
    return names;
}

/* How many there are, or 0: *wrong, of *size letters, is none, or one too many. */
static size_t choose(const struct field **to, const char *names, const char **wrong, int *size)
{
    size_t count = 0;

    for (;;) {
        const size_t length = strcspn(names, ",");
        const struct field *column = record_column(&record_view, names, length);

        *wrong = names;
        *size = (int)length;
        if (column == NULL || count == LIST_COLUMNS_MOST)
            return 0;
        to[count++] = column;
        if (names[length] == '\0')
            return count;
        names += length + 1;
    }
}

int list_columns_check(const char *names, const char **wrong, int *size)
{
    const struct field *chosen[LIST_COLUMNS_MOST];

    return choose(chosen, names, wrong, size) > 0;
}

/* ------------------------------------------------------------------- lines -- */

struct output {
    enum list_form form;
    const struct field *chosen[LIST_COLUMNS_MOST];
    size_t count;                 /* of columns */
    int width[LIST_COLUMNS_MOST]; /* on the terminal */
    char *first[FIRST_ROWS];      /* rows that are not printed yet, cell by cell */
    size_t kept, rows;
    const struct list_form_options *options;
    int begun;
    const tl_filter *filter;
    unsigned told; /* by so many databases without an error */
    char near[TL_SERIAL_MAX + 1];
    tl_list_end total; /* of all of them */
    struct batch_totals batch;
    json_t *ends; /* how each shard's list ended */
};

/* One line; the last column is not padded. */
static void print_line(const struct output *output, const char *const *cells)
{
    for (size_t i = 0; i < output->count; i++) {
        const int gap = output->width[i] - text_width(cells[i], strlen(cells[i]));

        if (column_is_right(output->chosen[i]) && (cells[i][0] != '\0' || i + 1 < output->count))
            printf("%*s", gap > 0 ? gap : 0, "");
        print_harmless(cells[i], strlen(cells[i]));
        if (i + 1 < output->count)
            printf("%*s", (column_is_right(output->chosen[i]) || gap < 0 ? 0 : gap) + 1, "");
    }
    putchar('\n');
}

/* The cells of a row in one block, each ended by NUL. */
static char *make_cells(const struct output *output, const tl_view *view)
{
    char *block = malloc(output->count * CELL), *end = block, *smaller;

    if (block == NULL)
        out_of_memory();
    for (size_t i = 0; i < output->count; i++) {
        record_cell(end, output->chosen[i], view, output->form == LIST_CSV);
        /* The letter of a lane that waits is F, and nothing has failed: people read "-". */
        if (output->form != LIST_CSV && view->lane == 'R' && view->state != TL_STATE_CLOSED &&
            strcmp(output->chosen[i]->column, "status") == 0 && strcmp(end, "F") == 0)
            memcpy(end, "-", 2);
        end += strlen(end) + 1;
    }
    /* Never to nothing: that may free it. */
    smaller = realloc(block, (size_t)(end - block) + 1);
    return smaller != NULL ? smaller : block;
}

static void find_cells(const struct output *output, char *block,
                       const char *cells[LIST_COLUMNS_MOST])
{
    for (size_t i = 0; i < output->count; i++) {
        cells[i] = block;
        block += strlen(block) + 1;
    }
}

static void print_block(const struct output *output, char *block)
{
    const char *cells[LIST_COLUMNS_MOST];

    find_cells(output, block, cells);
    print_line(output, cells);
    free(block);
}

static void widen(struct output *output, const char *const *cells)
{
    for (size_t i = 0; i < output->count; i++)
        if (text_width(cells[i], strlen(cells[i])) > output->width[i])
            output->width[i] = text_width(cells[i], strlen(cells[i]));
}

static void print_first(struct output *output)
{
    const char *cells[LIST_COLUMNS_MOST];

    if (output->kept == 0)
        return;
    for (size_t i = 0; i < output->count; i++)
        cells[i] = output->chosen[i]->heading;
    widen(output, cells);
    for (size_t row = 0; row < output->kept; row++) {
        find_cells(output, output->first[row], cells);
        widen(output, cells);
    }
    for (size_t i = 0; i < output->count; i++)
        cells[i] = output->chosen[i]->heading;
    print_line(output, cells);
    for (size_t row = 0; row < output->kept; row++)
        print_block(output, output->first[row]);
    output->kept = 0;
}

static void add_line(struct output *output, const tl_view *view)
{
    char *block = make_cells(output, view);

    if (output->rows <= FIRST_ROWS) {
        output->first[output->kept++] = block;
        if (output->kept < FIRST_ROWS)
            return;
        print_first(output);
    } else {
        print_block(output, block);
    }
}

/* -------------------------------------------------------------------- JSON -- */

json_t *list_json_money(const tl_list_end *end)
{
    json_t *money = json_array();

    for (unsigned i = 0; i < end->money_count; i++)
        json_array_append_new(money,
                              json_pack("{s:s, s:o, s:I}", "currency", end->money[i].currency,
                                        "sum_minor", json_digits(end->money[i].sum_minor), "trades",
                                        (json_int_t)end->money[i].trades));
    return money;
}

static void end_json(const struct output *output)
{
    const tl_filter *filter = output->filter;
    const tl_list_end *end = &output->total;
    json_t *rest = json_pack("{s:I, s:I, s:o, s:o, s:o, s:b, s:o}", "count", (json_int_t)end->rows,
                             "trades", (json_int_t)end->trades, "money", list_json_money(end),
                             "batch", batch_totals_json(&output->batch, filter->batch), "as_of",
                             json_time(filter->as_of_us), "more", end->more, "next",
                             json_text(fleet_is() ? NULL : end->next));
    char *text;

    if (fleet_is())
        json_object_set(fleet_document(rest), "ends", output->ends);
    text = rest != NULL ? json_dumps(rest, 0) : NULL;
    if (text == NULL)
        out_of_memory();
    /* Without its first brace it goes on with the document. */
    printf("\n  ],\n  %s\n", text + 1);
    free(text);
    json_decref(rest);
}

/* -------------------------------------------------------------------- a list -- */

static const char *many(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void list_print_totals(const tl_list_end *end, const char *noun)
{
    char money[TL_AMOUNT_TEXT];
    uint64_t told = 0;

    printf("%s%s %s%s", end->more ? "the first " : "", COUNT_TEXT(end->trades), noun,
           many(end->trades));
    if (end->rows > end->trades)
        printf(" (%s row%s)", COUNT_TEXT(end->rows), many(end->rows));
    for (unsigned i = 0; i < end->money_count; i++) {
        printf("%s %s in %s", i == 0 ? ":" : ";",
               tl_sum_text(money, end->money[i].sum_minor, end->money[i].currency),
               COUNT_TEXT(end->money[i].trades));
        told += end->money[i].trades;
    }
    if (end->money_count > 0 && told < end->trades)
        printf("; no amount told in %s", COUNT_TEXT(end->trades - told));
    putchar('\n');
}

static void say_the_rest(const struct output *output)
{
    const json_t *end;
    size_t i;

    if (output->filter->as_of_us != 0)
        fputs("tradelock: by the history that is there: what a purge has removed since is not in "
              "this list\n",
              stderr);
    json_array_foreach(output->ends, i, end)
    {
        const char *shard = json_string_value(json_object_get(end, "shard"));

        if (json_is_true(json_object_get(end, "more")))
            fprintf(stderr,
                    "tradelock: these are the first %s%s%s, there %s more: the same with "
                    "%s%s%s--after %s\n",
                    COUNT_TEXT((uint64_t)json_integer_value(json_object_get(end, "count"))),
                    shard != NULL ? " of shard " : "", shard != NULL ? shard : "",
                    output->filter->look_most > 0 ? "may be" : "are",
                    shard != NULL ? "--shard " : "", shard != NULL ? shard : "",
                    shard != NULL ? " " : "", json_string_value(json_object_get(end, "next")));
    }
}

/* Which shard a row is of stands before the others, unless columns were asked for. */
static size_t choose_of_fleet(const struct field **to, const char *names, int with_shard)
{
    const char *wrong;
    int size;

    if (with_shard)
        *to = record_column(&record_view, "shard", strlen("shard"));
    return choose(to + (with_shard != 0), names, &wrong, &size) + (with_shard != 0);
}

/* Nothing is printed before the first row, so that an error is alone. */
static void begin(struct output *output)
{
    const char *names = output->options->columns;

    if (output->begun)
        return;
    output->begun = 1;
    common.has_document = output->form == LIST_JSON;
    if (output->form == LIST_JSON)
        fputs("{\n  \"rows\": [", stdout);
    else
        output->count =
            choose_of_fleet(output->chosen, names != NULL ? names : of_form[output->form],
                            names == NULL && fleet_is());
    if (output->form == LIST_CSV) {
        const char *cells[LIST_COLUMNS_MOST];

        for (size_t i = 0; i < output->count; i++)
            cells[i] = output->chosen[i]->column;
        csv_print(stdout, cells, output->count);
    }
}

static int add_row(void *context, const tl_view *view)
{
    struct output *output = context;

    begin(output);
    output->rows++;
    output->total.rows++;
    if (view->lane == 'S')
        tl_list_end_add(&output->total, view->currency, view->amount_minor);
    if (output->form == LIST_JSON) {
        json_t *row = fleet_row(json_view(view));

        fputs(output->rows > 1 ? ",\n    " : "\n    ", stdout);
        if (row == NULL || json_dumpf(row, stdout, 0) != 0)
            out_of_memory();
        json_decref(row);
    } else if (output->form == LIST_CSV) {
        const char *cells[LIST_COLUMNS_MOST];
        char *block = make_cells(output, view);

        find_cells(output, block, cells);
        csv_print(stdout, cells, output->count);
        free(block);
    } else
        add_line(output, view);
    return ferror(stdout);
}

static int find_near(tl_client *client, void *context)
{
    struct output *output = context;

    return output->near[0] != '\0' ? EXIT_DONE
                                   : fleet_told(tl_find_near(client, output->filter, output->near));
}

/* What was looked for, and how; and what is nearly called so. */
static void say_not_found(struct output *output)
{
    char kinds[TL_FIND_KINDS_TEXT];

    if (tl_find_kinds(output->filter, kinds) != TL_OK)
        return;
    fprintf(stderr,
            "tradelock: no trade is found by '%s', in these capital and small letters.  It was "
            "looked for as: %s\n",
            output->filter->find, kinds);
    if (text_is_uuid(output->filter->find))
        fprintf(stderr, "tradelock: a log UUID is looked for by --log %s\n", output->filter->find);
    fleet_each(0, find_near, output);
    if (output->near[0] != '\0')
        fprintf(stderr,
                "tradelock: a serial number differs in blanks or letters alone: --find %s\n",
                output->near);
}

static void print_end(struct output *output)
{
    begin(output);
    if (output->form == LIST_JSON)
        end_json(output);
    print_first(output);
    if (output->form == LIST_NARROW || output->form == LIST_WIDE) {
        if (output->rows > 0) {
            putchar('\n');
            list_print_totals(&output->total, "trade");
        } else if (output->filter->find != NULL && !output->total.more) {
            say_not_found(output);
        } else {
            fprintf(stderr, "tradelock: no lock passes these filters%s\n",
                    output->total.more ? " so far" : "");
        }
        batch_totals_print(&output->batch, output->filter->batch);
    }
    fflush(stdout);
    say_the_rest(output);
}

static void keep_end(struct output *output, const tl_list_end *end)
{
    output->total.more |= end->more;
    snprintf(output->total.next, sizeof output->total.next, "%s", end->next);
    json_array_append_new(output->ends,
                          fleet_row(json_pack("{s:I, s:b, s:o}", "count", (json_int_t)end->rows,
                                              "more", end->more, "next", json_text(end->next))));
}

static int list_one(tl_client *client, void *context)
{
    struct output *output = context;
    tl_list_end *end = calloc(1, sizeof *end);
    tl_status status;

    if (end == NULL)
        out_of_memory();
    end->version = TL_LIST_END_VERSION;
    status = tl_list_page(client, output->filter, add_row, output, end);
    if (status == TL_OK && output->filter->batch != NULL)
        status = batch_totals_add(&output->batch, client, output->filter);
    keep_end(output, end);
    free(end);
    output->told += status == TL_OK;
    return fleet_told(status);
}

int list_print(const tl_filter *filter, const struct list_form_options *options)
{
    struct output *output = calloc(1, sizeof *output);
    int code;

    if (output == NULL)
        out_of_memory();
    output->form = options->form;
    output->options = options;
    output->filter = filter;
    output->total.version = TL_LIST_END_VERSION;
    output->ends = json_array();
    code = fleet_each(0, list_one, output);
    if (output->told > 0 || output->rows > 0 || fleet_is())
        print_end(output);
    batch_totals_free(&output->batch);
    json_decref(output->ends);
    free(output);
    return finish_output(code);
}
