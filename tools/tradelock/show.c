/* tradelock show: everything that is known of one trade, read first and then printed. */
#include "command.h"
#include "explain.h"
#include "fields.h"
#include "find.h"
#include "fleet.h"
#include "nearest.h"
#include "print.h"
#include "said.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything is read before anything is printed, so that an error leaves no half page. */
struct shown {
    tl_view view[2]; /* by tl_lane */
    int has[2];
    json_t *rows[2];
    struct listing evidence, resolutions;
    struct listing timeline; /* without rows when the log may not be read */
    int64_t as_of_us;        /* 0: now */
    struct step_teller teller;
    char by[2][CELL]; /* who did the last step of each lane */
    struct said said;
    struct explained explained;
    void *kept[4];
    unsigned kept_count;
};

static const void *keep(struct shown *shown, const void *data, size_t size)
{
    void *copy = data != NULL ? malloc(size + 1) : NULL;

    if (copy == NULL)
        return NULL;
    memcpy(copy, data, size);
    shown->kept[shown->kept_count++] = copy;
    return copy;
}

static int take_view(void *context, const tl_view *view)
{
    struct shown *shown = context;
    const tl_lane lane = view->lane == 'R' ? TL_LANE_RETRY : TL_LANE_SYNC;
    tl_view *mine = &shown->view[lane];

    *mine = *view;
    mine->payload = keep(shown, view->payload, view->payload_size);
    mine->result = keep(shown, view->result, view->result_size);
    shown->has[lane] = 1;
    shown->rows[lane] = json_view(view);
    return 0;
}

static int take_evidence(void *context, const tl_evidence_row *row)
{
    struct shown *shown = context;

    return listing_add_as(&shown->evidence, row, json_evidence(row));
}

static int take_resolution(void *context, const tl_resolution_row *row)
{
    return listing_add(&((struct shown *)context)->resolutions, row);
}

/* What an earlier step remarked is not shown of those that leave it on the row. */
static int take_step(void *context, const tl_step *step)
{
    struct shown *shown = context;
    const struct told_step told = step_tell(&shown->teller, step);
    const int retry = step_is_retry(step);

    if (!retry)
        said_take(&shown->said, step);
    record_cell(shown->by[retry], record_column(&record_step, "by", 2), &told, 0);
    return listing_add(&shown->timeline, &told);
}

static int take_sentence(void *context, const tl_sentence *sentence)
{
    struct shown *shown = context;

    explained_take(&shown->explained, sentence);
    return 0;
}

/* ---------------------------------------------------------------- printing -- */

static void print_moment(const char *name, const tl_view *view, int64_t us)
{
    char when[TIME_TEXT], distance[TIME_TEXT];

    if (us != 0)
        print_pair_format(name, "%s (%s)", time_text(when, us),
                          distance_text(distance, view->now_us, us));
}

static void print_field(const struct field *field, const tl_view *view)
{
    char space[FIELD_SPACE];
    const void *bytes;
    size_t size;

    if (field->type == FIELD_TIME) {
        print_moment(field->label, view, field_time(field, view));
    } else if (field->type == FIELD_BYTES) {
        bytes = field_bytes(field, view, &size);
        print_bytes(field->label, bytes, size);
    } else {
        print_pair(field->label, field_words(space, field, view));
    }
}

static void print_group(enum field_group group, const tl_view *view)
{
    for (size_t i = 0; i < VIEW_FIELDS; i++)
        if (view_fields[i].group == group && view_fields[i].label != NULL)
            print_field(&view_fields[i], view);
}

static void print_row(const tl_view *view, const char *by)
{
    char amount[TL_AMOUNT_TEXT];

    /* The letter of a lane that waits is F, and nothing has failed. */
    if (view->lane == 'R' && view->status == 'F' && view->state != TL_STATE_CLOSED)
        print_pair("status", tl_state_name(view->state));
    else
        print_pair_format("status", "%c, %s", view->status, tl_state_name(view->state));
    print_pair("shard", fleet_kept());
    print_group(GROUP_TROUBLE, view);
    if (view->proof != TL_PROOF_NONE)
        print_pair_format("proof", "%s: %s%s", tl_proof_name((tl_proof)view->proof),
                          tl_proof_text((tl_proof)view->proof),
                          view->retryable ? " (retryable)" : "");
    print_pair("amount", tl_amount_text(amount, view->amount_minor, view->currency));
    print_group(GROUP_REQUEST, view);
    print_group(GROUP_COUNTS, view);
    print_pair_format("attempts", "%u (claims %u)", view->attempts, view->claims);
    print_group(GROUP_HOLDER, view);
    print_group(GROUP_SESSION, view);
    print_group(GROUP_WORK, view);
    print_group(GROUP_TIMES, view);
    print_group(GROUP_CHANNEL, view);
    print_group(GROUP_FOUND, view);
    print_pair(by[0] != '\0' ? "by" : "actor, as typed", by[0] != '\0' ? by : view->actor);
    print_group(GROUP_REMARK, view);
    print_group(GROUP_CONTENTS, view);
}

static int print_shown(struct shown *shown, int code)
{
    char said[SAID_SENTENCE], as_of[TIME_TEXT];
    const tl_view *main_view =
        &shown->view[shown->has[TL_LANE_SYNC] ? TL_LANE_SYNC : TL_LANE_RETRY];

    printf("%s %s %s\n", main_view->serial_no, main_view->cust_no, main_view->op_code);
    if (shown->as_of_us != 0)
        printf("As it was at %s, by its history: %s.\n", time_text(as_of, shown->as_of_us),
               tl_state_name(main_view->state));
    putchar('\n');
    explained_print(&shown->explained);
    if (shown->as_of_us == 0)
        putchar('\n');
    print_row(main_view, shown->by[main_view->lane == 'R']);
    if (shown->said.text[0] != '\0')
        print_pair("channel said", said_text(said, &shown->said));
    if (shown->has[TL_LANE_SYNC] && shown->has[TL_LANE_RETRY]) {
        const tl_view *retry = &shown->view[TL_LANE_RETRY];

        printf("\nRetry lane %s\n", retry->op_code);
        print_row(retry, shown->by[TL_LANE_RETRY]);
    }
    if (json_array_size(shown->evidence.rows) > 0)
        puts("\nEvidence");
    fflush(stdout);
    table_print(shown->evidence.table);
    if (json_array_size(shown->resolutions.rows) > 0)
        puts("\nDecisions of operators");
    fflush(stdout);
    table_print(shown->resolutions.table);
    if (json_array_size(shown->timeline.rows) > 0)
        puts("\nTimeline");
    fflush(stdout);
    table_print(shown->timeline.table);
    return finish_output(code);
}

/* Prints what the tables do not need any more. */
static int print_shown_json(struct shown *shown, int code)
{
    const struct json_trade trade = {.sync = json_incref(shown->rows[TL_LANE_SYNC]),
                                     .retry = json_incref(shown->rows[TL_LANE_RETRY]),
                                     .explanation = explained_text(&shown->explained),
                                     .evidence = json_incref(shown->evidence.rows),
                                     .resolutions = json_incref(shown->resolutions.rows),
                                     .timeline = json_incref(shown->timeline.rows),
                                     .channel_said = shown->said.text,
                                     .channel_said_us = shown->said.when_us,
                                     .as_of_us = shown->as_of_us};

    return print_json(fleet_row(json_trade(&trade)), code);
}

/* ----------------------------------------------------------------- reading -- */

static int64_t as_of_us; /* 0: now */

/* The application's account may not read the log; the rest is worth showing all the same. */
static void drop_timeline(struct shown *shown)
{
    fputs("tradelock: this account may not read the log; the timeline needs an operator's or a "
          "reader's\n",
          stderr);
    json_decref(shown->timeline.rows);
    shown->timeline.rows = NULL;
}

static tl_status read_trade(tl_client *client, const tl_key *key, struct shown *shown)
{
    tl_trade_each each = TL_TRADE_EACH_INIT;
    int has_history = 0;
    tl_status status;

    each.row = take_view;
    each.step = take_step;
    each.evidence = take_evidence;
    each.resolution = take_resolution;
    each.sentence = take_sentence;
    each.as_of_us = shown->as_of_us;
    status = tl_trade_read(client, key, &each, shown, &has_history);
    if (status == TL_OK && !has_history)
        drop_timeline(shown);
    return status;
}

static int show(tl_client *client, const tl_key *key)
{
    struct shown shown = {.as_of_us = as_of_us, .explained = {.sentences = json_array()}};
    tl_status status;
    int code;

    listing_begin(&shown.evidence, &record_evidence, NULL);
    listing_begin(&shown.resolutions, &record_resolution, NULL);
    listing_begin(&shown.timeline, &record_step, NULL);
    status = read_trade(client, key, &shown);
    if (status == TL_OK) {
        const tl_view *view = &shown.view[shown.has[TL_LANE_SYNC] ? TL_LANE_SYNC : TL_LANE_RETRY];

        code = is_in_doubt_or_parked(view) ? EXIT_OPEN : EXIT_DONE;
        code = common.json ? print_shown_json(&shown, code) : print_shown(&shown, code);
    } else {
        code = report_trade(client, status, key);
    }
    explained_free(&shown.explained);
    listing_free(&shown.evidence);
    listing_free(&shown.resolutions);
    listing_free(&shown.timeline);
    json_decref(shown.rows[0]);
    json_decref(shown.rows[1]);
    while (shown.kept_count > 0)
        free(shown.kept[--shown.kept_count]);
    return code;
}

static int work(tl_client *client)
{
    tl_key key;
    const int code = find_trade(&client, &key);

    return code == EXIT_DONE ? show(client, &key) : code;
}

static const struct command_option options[] = {
    {"as-of MOMENT",
     "as it was then, by its history: 2026-03-01T09:30, in UTC, or\nhow long ago, as 2h",
     OPTION_MOMENT, .to = &as_of_us},
    {.name = NULL}};

const struct command command_show = {
    .name = "show",
    .summary = "show one trade, why it is where it is, and its whole history",
    .arguments = "SERIAL [CUST [OP]] [--as-of MOMENT] [--json]",
    .text = "Shows both rows of a trade, what its state means and what happens next, the\n"
            "evidence that was filed, and every committed step from the log.  OP is the\n"
            "business operation.  A serial number alone, or its beginning, finds the trade; if\n"
            "several match, they are listed.  Exit code 6 when the trade is in doubt or\n"
            "parked.\n",
    .examples = "  tradelock show W2024001\n"
                "  tradelock show W2024001 C1001 WITHDRAW --as-of 2h\n",
    .options = options,
    .check = find_check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
};
