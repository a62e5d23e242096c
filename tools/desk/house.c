/* Reads and decides through the operators' library, and copies what its callbacks are told. */
#include "house.h"

#include "array_room.h"
#include "fields.h"
#include "parts.h"
#include "print.h"
#include "said.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- lists -- */

void rows_free(struct rows *rows)
{
    free(rows->views);
    memset(rows, 0, sizeof *rows);
}

int rows_add(void *context, const tl_view *view)
{
    struct rows *rows = context;

    if (!array_room(&rows->views, rows->count, sizeof *rows->views)) {
        rows->failed = TL_NO_MEMORY;
        return 1;
    }
    rows->views[rows->count] = *view;
    rows->views[rows->count].payload = rows->views[rows->count].result = NULL;
    rows->views[rows->count++].payload_size = 0;
    return 0;
}

/* Rows stay where a customer went from, and are of the shard where the customer is. */
tl_status rows_leave_copies(struct rows *rows, const struct visit *visit)
{
    const size_t count = rows->count;
    const char **cust_nos = calloc(count + 1, sizeof *cust_nos);
    size_t *owners = calloc(count + 1, sizeof *owners);
    const tl_status status = cust_nos != NULL && owners != NULL ? TL_OK : TL_NO_MEMORY;

    rows->sums = (tl_list_end)TL_LIST_END_INIT;
    rows->count = 0;
    for (size_t i = 0; status == TL_OK && i < count; i++)
        cust_nos[i] = rows->views[i].cust_no;
    if (status == TL_OK)
        shards_owners(visit->session->shards, cust_nos, count, owners);
    for (size_t i = 0; status == TL_OK && i < count; i++) {
        const tl_view *view = &rows->views[i];

        if (owners[i] != SHARD_NOBODY && owners[i] != visit->shard)
            continue;
        tl_list_end_add(&rows->sums, view->currency, view->amount_minor);
        rows->views[rows->count++] = *view;
    }
    free(cust_nos);
    free(owners);
    return status;
}

struct taking {
    struct rows *rows;
    const struct ref *search;
};

static int take(void *context, const tl_view *view)
{
    const struct taking *taking = context;

    return house_is_of_cause(taking->search, view) && rows_add(taking->rows, view);
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static void set_show(tl_filter *filter, enum show show)
{
    filter->parked = show == SHOW_PARKED;
    filter->in_doubt = show == SHOW_DOUBT;
    filter->conflict = show == SHOW_CONFLICT;
    if (show == SHOW_PROCESS)
        filter->status = 'P';
    if (show == SHOW_FAILED)
        filter->status = 'F';
    if (show == SHOW_PAID)
        filter->status = 'Y';
}

void house_filter(tl_filter *filter, enum show show, const struct ref *search)
{
    filter->lane = 'S';
    filter->find = or_null(search->find);
    filter->serial = or_null(search->serial_no);
    filter->cust = or_null(search->cust_no);
    filter->op = or_null(search->op_code);
    filter->log_uuid = or_null(search->log_no);
    filter->channel = or_null(search->channel);
    set_show(filter, show);
}

int house_is_of_cause(const struct ref *search, const tl_view *view)
{
    return search->cause[0] == '\0' ||
           (strcmp(view->channel, search->channel) == 0 &&
            (strcmp(search->show, "conflict") == 0 || strcmp(view->parked, search->cause) == 0));
}

static int by_age(const void *one, const void *other)
{
    const tl_view *a = one, *b = other;
    const int by_serial = strcmp(a->serial_no, b->serial_no);

    if (a->created_us != b->created_us)
        return a->created_us < b->created_us ? -1 : 1;
    return by_serial != 0 ? by_serial : strcmp(a->cust_no, b->cust_no);
}

/* Of what was read those behind rows->before stay, as many as a page has. */
static void keep_page(struct rows *rows, const struct ref *search)
{
    const size_t wanted = strtoul(search->skip, NULL, 10);
    const size_t from = wanted < rows->count ? wanted : rows->count;

    rows->is_part = rows->more || search->after[0] != '\0';
    rows->count -= from;
    memmove(rows->views, rows->views + from, rows->count * sizeof *rows->views);
    if (rows->count <= PAGE_ROWS)
        return;
    rows->count = PAGE_ROWS;
    rows->more = 1;
    rows->skip = from + PAGE_ROWS;
    snprintf(rows->next, sizeof rows->next, "%s", search->after);
}

int house_waits(const struct ref *search)
{
    const enum show show = part_show_of(search->show);

    return search->find[0] == '\0' && search->log_no[0] == '\0' &&
           (show == SHOW_PARKED || show == SHOW_DOUBT || show == SHOW_CONFLICT);
}

tl_status house_list(const struct visit *visit, const struct ref *search, struct rows *rows)
{
    struct taking taking = {rows, search};
    tl_filter filter = TL_FILTER_INIT;
    tl_list_end end = TL_LIST_END_INIT;
    tl_status status;

    house_filter(&filter, part_show_of(search->show), search);
    filter.after = or_null(search->after);
    filter.limit = house_waits(search) ? PAGE_LOOKS : PAGE_ROWS;
    filter.look_most = PAGE_LOOKS;
    filter.newest_first = 1;
    status = tl_list_page(visit->client, &filter, take, &taking, &end);
    if (status == TL_OK)
        status = rows->failed;
    if (status == TL_OK)
        status = rows_leave_copies(rows, visit);
    rows->more = end.more;
    snprintf(rows->next, sizeof rows->next, "%s", end.next);
    if (house_waits(search) && rows->count > 0)
        qsort(rows->views, rows->count, sizeof *rows->views, by_age);
    return status;
}

tl_status listed_read(struct listed *listed, struct visit *visit, const struct ref *search)
{
    tl_status status = visit_go_to(visit, listed->shard);

    if (status == TL_OK)
        status = house_list(visit, search, &listed->rows);
    if (status != TL_OK)
        missing_keep(&listed->missing, visit, status);
    else if (house_waits(search) && listed->rows.count > 0)
        keep_page(&listed->rows, search);
    return status;
}

static int take_part(void *context, const tl_batch_part *part)
{
    struct batch *batch = context;

    if (!array_room(&batch->part, batch->count, sizeof *batch->part)) {
        batch->status = TL_NO_MEMORY;
        return 1;
    }
    batch->part[batch->count++] = *part;
    batch->trades += part->money.trades;
    if (tl_batch_part_is_open(part))
        batch->open += part->money.trades;
    return 0;
}

void house_batch(struct visit *visit, size_t shard, const char *name, struct batch *batch)
{
    tl_status status;

    memset(batch, 0, sizeof *batch);
    status = visit_go_to(visit, shard);
    if (status == TL_OK)
        status = tl_batch(visit->client, name, 0, BATCH_MOST, take_part, batch);
    if (status != TL_OK)
        batch->status = status;
}

void batch_free(struct batch *batch)
{
    free(batch->part);
    memset(batch, 0, sizeof *batch);
}

/* ----------------------------------------------------------------- a trade -- */

static void *keep_block(struct trade *trade, size_t size)
{
    void *block = NULL;

    if (array_room(&trade->kept, trade->kept_count, sizeof *trade->kept))
        block = malloc(size);
    if (block == NULL)
        trade->no_memory = 1;
    else
        trade->kept[trade->kept_count++] = block;
    return block;
}

static const void *keep(void *context, const void *data, size_t size)
{
    struct trade *trade = context;
    void *copy = data != NULL ? keep_block(trade, size + 1) : NULL;

    if (copy != NULL) {
        memcpy(copy, data, size);
        ((char *)copy)[size] = '\0';
    }
    return copy;
}

void trade_free(struct trade *trade)
{
    while (trade->kept_count > 0)
        free(trade->kept[--trade->kept_count]);
    free(trade->kept);
    free(trade->steps);
    free(trade->evidence);
    free(trade->halves);
    memset(trade, 0, sizeof *trade);
}

static int take_view(void *context, const tl_view *view)
{
    struct trade *trade = context;
    const tl_lane lane = view->lane == 'R' ? TL_LANE_RETRY : TL_LANE_SYNC;
    tl_view *mine = &trade->view[lane];

    *mine = *view;
    record_keep(&record_view, mine, keep, trade);
    trade->has[lane] = 1;
    return trade->no_memory;
}

/* The place of a copy of the row behind those that are there; NULL: there is none, and the trade says
 * why. */
static void *add(struct trade *trade, void **rows, size_t *count, size_t most, const void *row,
                 size_t size, const struct record *record)
{
    void *mine;

    trade->cut |= *count == most;
    if (*count == most)
        return NULL;
    if (!array_room(rows, *count, size)) {
        trade->no_memory = 1;
        return NULL;
    }
    mine = memcpy((char *)*rows + *count * size, row, size);
    record_keep(record, mine, keep, trade);
    *count += !trade->no_memory;
    return mine;
}

static int take_step(void *context, const tl_step *step)
{
    struct trade *trade = context;

    return add(trade, (void **)&trade->steps, &trade->step_count, TRADE_STEPS, step, sizeof *step,
               &record_step) == NULL;
}

static int take_sentence(void *context, const tl_sentence *sentence)
{
    struct trade *trade = context;
    tl_sentence *mine = &trade->told[trade->told_count];

    if (trade->told_count == TRADE_SENTENCES)
        return 1;
    mine->topic = sentence->topic;
    mine->text = keep(trade, sentence->text, strlen(sentence->text));
    mine->command = keep(trade, sentence->command, strlen(sentence->command));
    trade->told_count += !trade->no_memory;
    return trade->no_memory;
}

static int take_evidence(void *context, const tl_evidence_row *row)
{
    struct trade *trade = context;
    tl_evidence_row *mine = add(trade, (void **)&trade->evidence, &trade->evidence_count,
                                TRADE_OTHERS, row, sizeof *row, &record_evidence);

    if (mine != NULL && mine->amount.currency != NULL)
        mine->amount.currency = keep(trade, mine->amount.currency, strlen(mine->amount.currency));
    return mine == NULL;
}

static int take_half(void *context, const tl_resolution_row *row)
{
    struct trade *trade = context;

    return add(trade, (void **)&trade->halves, &trade->half_count, TRADE_OTHERS, row, sizeof *row,
               &record_resolution) == NULL;
}

tl_status house_trade(tl_client *client, const struct ref *ref, int64_t as_of_us,
                      struct trade *trade)
{
    const tl_key key = ref_key(ref);
    tl_trade_each each = TL_TRADE_EACH_INIT;
    tl_status status;

    each.row = take_view;
    each.step = take_step;
    each.evidence = take_evidence;
    each.resolution = take_half;
    each.sentence = take_sentence;
    each.as_of_us = trade->as_of_us = as_of_us;
    status = tl_trade_read(client, &key, &each, trade, NULL);
    return status == TL_OK && trade->no_memory ? TL_NO_MEMORY : status;
}

const tl_view *trade_view(const struct trade *trade)
{
    return &trade->view[trade->has[TL_LANE_SYNC] ? TL_LANE_SYNC : TL_LANE_RETRY];
}

static json_t *json_row(const struct trade *trade, tl_lane lane)
{
    return trade->has[lane] ? json_view(&trade->view[lane]) : NULL;
}

/* All sentences as one text. */
static json_t *json_told(const struct trade *trade)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    json_t *told = NULL;

    if (to == NULL)
        return NULL;
    for (size_t i = 0; i < trade->told_count; i++)
        fprintf(to, "%s%s", i > 0 ? "  " : "", trade->told[i].text);
    if (fclose(to) == 0)
        told = json_text(text);
    free(text);
    return told;
}

char *house_json(const struct trade *trade, const char *shard)
{
    struct json_trade parts = {.evidence = json_array(),
                               .resolutions = json_array(),
                               .timeline = json_array(),
                               .as_of_us = trade->as_of_us};
    struct said said = {.text = ""};
    json_t *document;
    char *text;

    parts.sync = json_row(trade, TL_LANE_SYNC);
    parts.retry = json_row(trade, TL_LANE_RETRY);
    parts.explanation = json_told(trade);
    for (size_t i = 0; i < trade->evidence_count; i++)
        json_array_append_new(parts.evidence, json_evidence(&trade->evidence[i]));
    for (size_t i = 0; i < trade->half_count; i++)
        json_array_append_new(parts.resolutions,
                              record_json(&record_resolution, &trade->halves[i]));
    for (size_t i = 0; i < trade->step_count; i++) {
        json_array_append_new(parts.timeline, record_json(&record_step, &trade->steps[i]));
        if (!step_is_retry(&trade->steps[i]))
            said_take(&said, &trade->steps[i]);
    }
    parts.channel_said = said.text;
    parts.channel_said_us = said.when_us;
    document = json_trade(&parts);
    if (shard[0] != '\0')
        json_object_set_new(document, "shard", json_string(shard));
    text = json_dumps(document, JSON_INDENT(2));
    json_decref(document);
    return text;
}

/* ---------------------------------------------------------------- deciding -- */

static int see_fence(void *context, const tl_view *view)
{
    *(uint64_t *)context = view->fence;
    return 0;
}

/* Evidence is about an epoch, and never changed.  A person who saw an older row looks again first,
 * since it may say already what they want to file. */
static tl_status file(tl_client *client, const tl_key *key, const struct decision *decision)
{
    tl_evidence evidence = TL_EVIDENCE_INIT;
    uint64_t fence = 0;
    tl_status status = tl_show(client, key, TL_LANE_SYNC, see_fence, &fence);

    if (status != TL_OK)
        return status;
    if (fence != decision->fence)
        return tl_moved_on(client, key, decision->fence);
    evidence.key = *key;
    evidence.epoch = decision->epoch;
    evidence.outcome = decision->outcome;
    evidence.final = decision->final;
    evidence.channel_ref = or_null(decision->channel_ref);
    evidence.source = decision->source;
    evidence.remark = or_null(decision->reason);
    evidence.amount = decision->amount;
    return tl_evidence_file(client, &evidence, decision->actor);
}

tl_status house_decide(tl_client *client, const struct ref *ref, const struct decision *decision)
{
    const tl_key key = ref_key(ref);
    tl_resolution resolution = TL_RESOLUTION_INIT;

    if (decision->act == ACT_EVIDENCE)
        return file(client, &key, decision);
    if (decision->act == ACT_RETRY)
        return tl_retry_now(client, &key, decision->fence, decision->actor, decision->reason);
    resolution.key = key;
    resolution.fence = decision->fence;
    resolution.decision = decision->as;
    resolution.actor = decision->actor;
    resolution.reason = decision->reason;
    if (decision->act == ACT_PROPOSE)
        return tl_resolution_propose(client, &resolution);
    resolution.although_pending = decision->although_pending;
    return tl_resolution_confirm(client, &resolution);
}
