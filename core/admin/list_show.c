/* Shows the rows of a page that pass: a few dozen are read whole in one statement.  Reads only. */
#include "admin/list.h"
#include "admin/statements.h"
#include "admin/words.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/read.h"
#include "sql_text.h"
#include "store/bind.h"
#include "store/record.h"
#include "store/rows.h"
#include "store/view.h"

#include <tradelock/admin/trades.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static db_answer store_log_seen(db *connection, const tl_key *keys, size_t count,
                                const char *log_uuid, db_result *result)
{
    struct sql_log_seen_row *values = memory_new_array(count, sizeof *values);
    const store_rows rows = {.outside = SQL_VALUES(log_seen, .log_no = db_text(log_uuid)),
                             .rows = (const db_value *)values,
                             .count = count};
    db_answer answer;

    if (values == NULL)
        return DB_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] =
            SQL_ROW(log_seen, .cust_no = db_ascii(keys[i].cust_no),
                    .serial_no = db_ascii(keys[i].serial_no), .op_code = db_ascii(keys[i].op_code));
    answer = store_run_rows(connection, &sql_log_seen, &rows, result);
    memory_free(values);
    return answer;
}

/* Rows whose history one statement looks at; many more take it longer each. */
#define WORK_MOST 512

/* Whether it is a sync row in process that neither its holder nor its retry row leads to.  Only SQL
 * typed by hand makes one. */
static int is_astray(const struct list *list, const tl_view *view)
{
    if (view->status != 'P' || view->lane != 'S')
        return 0;
    if (view->session_id[0] == '\0')
        return view->next_run_us == 0 && view->parked[0] == '\0' && !view->repeatable &&
               view->retry_status != 'P';
    for (size_t i = 0; i < list->operation_count; i++)
        if (strcmp(list->operations[i].op_code, view->op_code) == 0)
            return view->next_run_us != 0 && view->next_run_us < list->operations[i].low_water_us;
    return 0;
}

/* Whether the row belongs to the source from which it was found, and not to one before. */
static int is_wanted(const struct list *list, const tl_view *view)
{
    if (list->filter->as_of_us != 0)
        return 1;
    switch (list->source) {
    case LIST_CONFLICT:
    case LIST_CONFLICT_PARKED:
        return view->conflict;
    case LIST_PARKED_SYNC:
        return view->status == 'P' && view->parked[0] != '\0' &&
               !(view->conflict && list_filter_uses(list->filter, LIST_CONFLICT));
    case LIST_PARKED:
        return view->parked[0] != '\0';
    case LIST_LEFT:
    case LIST_WAITING_SYNC:
        return view->status == 'P' && view->session_id[0] == '\0' && !view->conflict;
    case LIST_HELD:
        return view->status == 'P' && view->session_id[0] != '\0' && !view->conflict;
    case LIST_WAITING:
    case LIST_HELD_REST:
    case LIST_CUSTOMER_OPEN:
    case LIST_BATCH_OPEN:
        return list_is_open(view);
    case LIST_RECENT:
        if (list_mixes_held(list->filter) && view->status == 'P' && view->session_id[0] != '\0')
            return !view->conflict;
        return !view->conflict && (!list_is_open(view) || is_astray(list, view));
    case LIST_IDLE:
    case LIST_MADE:
        return !view->conflict && (!list_is_open(view) || is_astray(list, view));
    case LIST_BATCH_REST:
        return list_is_one_walk(list->filter) || !list_is_open(view);
    case LIST_CUSTOMER_REST:
        return !list_is_open(view);
    default:
        return 1;
    }
}

void list_place_of(store_list_place *place, const db_result *page, size_t row)
{
    text_copy(place->cust_no, sizeof place->cust_no, db_get_text(page, row, LIST_CUST));
    text_copy(place->serial_no, sizeof place->serial_no, db_get_text(page, row, LIST_SERIAL));
    text_copy(place->op_code, sizeof place->op_code, db_get_text(page, row, LIST_OP));
    text_copy(place->text, sizeof place->text, db_get_text(page, row, LIST_PLACE_TEXT));
    place->us = db_get_int(page, row, LIST_PLACE_US);
}

void list_stands_at(struct list *list, const struct list_row *on)
{
    list_place_of(&list->last, on->page, on->row);
    list->last_source = list->source;
    list->last_kind = list->kind;
    list->has_last = 1;
}

/* A row that passes when the limit is reached is not shown; it tells that there is more. */
static void show_view(struct list *list, const struct list_row *on, const tl_view *view)
{
    if (!is_wanted(list, view) || !list_filter_passes(list->filter, view) ||
        (list->search != NULL && find_comes_before(list->search, list->kind, view)))
        return;
    if (list->left == 0) {
        list->end->more = list->stopped = 1;
        return;
    }
    list->left--;
    list_end_add(list->end, view);
    list_stands_at(list, on);
    if (list->each(list->context, view) != 0)
        list->end->more = list->stopped = 1;
}

static tl_view *view_of(struct list *list, const tl_key *key)
{
    for (size_t i = 0; i < list->views.rows; i++)
        if (strcmp(list->view[i].serial_no, key->serial_no) == 0 &&
            strcmp(list->view[i].cust_no, key->cust_no) == 0 &&
            strcmp(list->view[i].op_code, key->op_code) == 0)
            return &list->view[i];
    return NULL;
}

/* Whether the row of the page is a trade that was over at the moment, and has not changed since. */
static int was_finished(const struct list *list, const struct list_row *on)
{
    return list->filter->as_of_us != 0 && db_get_text(on->page, on->row, LIST_STATUS)[0] != 'P' &&
           !text_is_retry_op(db_get_text(on->page, on->row, LIST_OP)) &&
           db_get_int(on->page, on->row, LIST_LOGGED) <= list->filter->as_of_us;
}

/* Makes the view what the row was at the moment, if the list asks for one.  A trade that was over
 * is what it is, and costs no look at its history. */
static tl_status make_past(struct list *list, const struct list_row *on, tl_view *view, int *there)
{
    *there = view != NULL;
    if (view == NULL || list->filter->as_of_us == 0)
        return TL_OK;
    if (!was_finished(list, on) || view->rev != db_get_uint(on->page, on->row, LIST_REV))
        return list_as_of(list->connection, view, list->filter->as_of_us, there);
    view->now_us = list->filter->as_of_us;
    return TL_OK;
}

/* Shows some of the rows that were found. */
static tl_status show_batch(struct list *list, size_t first, size_t count)
{
    view_inside inside;
    tl_status status;

    READ_REPEATED(status, read_status(list->connection,
                                      store_list_views(list->connection, list->keys + first, count,
                                                       &list->views),
                                      "reading rows"));
    for (size_t i = 0; status == TL_OK && i < list->views.rows; i++)
        view_read(&list->view[i], &inside, &list->views, i);
    for (size_t i = first; status == TL_OK && i < first + count && !list->stopped; i++) {
        tl_view *view = view_of(list, &list->keys[i]);
        int there;

        status = make_past(list, &list->found[i].on, view, &there);
        if (status == TL_OK && there)
            show_view(list, &list->found[i].on, view);
    }
    return status;
}

/* Whether the row has ended where those in process are looked for, as nearly all have of a batch,
 * or above the low-water mark of a busy service: they are not read whole only to be passed over. */
static int has_ended(const struct list *list, const struct list_row *on)
{
    return (list->source == LIST_HELD || list->source == LIST_BATCH_OPEN) &&
           list->filter->as_of_us == 0 && db_get_text(on->page, on->row, LIST_STATUS)[0] != 'P' &&
           !text_is_retry_op(db_get_text(on->page, on->row, LIST_OP));
}

static int is_looked_for(const struct list *list, const struct list_row *on)
{
    const tl_filter *f = list->filter;

    return db_get_int(on->page, on->row, LIST_PASSES) && !has_ended(list, on) &&
           !((f->in_doubt || f->parked || f->status == 'P') && was_finished(list, on));
}

/* Leads from a retry row to its sync row; 0: it is none. */
static int lead_to_sync(tl_key *key, char sync_op[TL_OP_MAX + 1])
{
    if (!text_is_retry_op(key->op_code))
        return 0;
    text_copy(sync_op, TL_OP_MAX + 1, key->op_code);
    sync_op[tl_business_op_size(sync_op)] = '\0';
    key->op_code = sync_op;
    return 1;
}

/* Names those of the rows that pass, or the sync rows to which they lead. */
static size_t find_rows(struct list *list, size_t rows)
{
    size_t count = 0;

    for (size_t i = 0; i < rows; i++) {
        const struct list_row *on = &list->rows[i];
        tl_key *key = &list->keys[count];
        struct list_found *found = &list->found[count];

        if (!is_looked_for(list, on))
            continue;
        *key = (tl_key){.cust_no = db_get_text(on->page, on->row, LIST_CUST),
                        .serial_no = db_get_text(on->page, on->row, LIST_SERIAL),
                        .op_code = db_get_text(on->page, on->row, LIST_OP)};
        found->on = *on;
        if (!list_is_of_sync(list->source) || lead_to_sync(key, found->sync_op))
            count++;
    }
    return count;
}

static int is_of_work(const struct list *list, const tl_key *key)
{
    const db_result *keys = &list->of_work;

    for (size_t row = 0; row < keys->rows; row++)
        if (strcmp(db_get_text(keys, row, LIST_SERIAL), key->serial_no) == 0 &&
            strcmp(db_get_text(keys, row, LIST_CUST), key->cust_no) == 0 &&
            strcmp(db_get_text(keys, row, LIST_OP), key->op_code) == 0)
            return 1;
    return 0;
}

static void keep(struct list *list, size_t from, size_t to)
{
    list->keys[to] = list->keys[from];
    if (to != from)
        list->found[to] = list->found[from];
    if (list_is_of_sync(list->source))
        list->keys[to].op_code = list->found[to].sync_op;
}

/* Moves those of some of the rows that have a step under the log UUID to the others that have. */
static tl_status keep_some(struct list *list, size_t first, size_t count, size_t *kept)
{
    tl_status status;

    db_result_free(&list->of_work);
    READ_REPEATED(status, read_status(list->connection,
                                      store_log_seen(list->connection, list->keys + first, count,
                                                     list->filter->log_uuid, &list->of_work),
                                      "looking for the log UUID in the history"));
    for (size_t i = first; status == TL_OK && i < first + count; i++)
        if (is_of_work(list, &list->keys[i]))
            keep(list, i, (*kept)++);
    return status;
}

/* Leaves those of the rows that have a step under the log UUID. */
static tl_status keep_work(struct list *list, size_t *count)
{
    size_t kept = 0;

    if (list->filter->log_uuid == NULL)
        return TL_OK;
    for (size_t first = 0; first < *count; first += WORK_MOST) {
        const size_t left = *count - first;

        TRY(keep_some(list, first, left < WORK_MOST ? left : WORK_MOST, &kept));
    }
    *count = kept;
    return TL_OK;
}

/* Leaves out the copies. */
static tl_status keep_own(struct list *list, size_t *count)
{
    size_t kept = 0;
    int is_copy = 0;

    for (size_t i = 0; list->copies.has && i < *count; i++) {
        TRY(shard_is_copy(list->connection, &list->copies, list->keys[i].cust_no, &is_copy));
        if (!is_copy)
            keep(list, i, kept++);
    }
    if (list->copies.has)
        *count = kept;
    return TL_OK;
}

tl_status list_show_rows(struct list *list, size_t rows)
{
    size_t count = find_rows(list, rows), first = 0;

    TRY(keep_work(list, &count));
    TRY(keep_own(list, &count));
    while (first < count && !list->stopped) {
        const size_t wanted = list->left < LIST_BATCH ? list->left + 1 : LIST_BATCH;
        const size_t some = count - first < wanted ? count - first : wanted;

        TRY(show_batch(list, first, some));
        first += some;
    }
    return TL_OK;
}

/* Shows the steps of a trade, from its rows and their history.  Reads only. */

db_answer store_timeline(db *connection, const tl_key *key, db_result *result)
{
    char retry_op[TL_OP_MAX + sizeof TL_RETRY_SUFFIX];

    snprintf(retry_op, sizeof retry_op, "%s%s", key->op_code, TL_RETRY_SUFFIX);
    return SQL_RUN(connection, result, timeline, .cust_no = db_text(key->cust_no),
                   .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code),
                   .retry_op = db_text(retry_op));
}

#define AT(member) COLUMN_timeline_##member

static void step_read(tl_step *to, const db_result *result, size_t row)
{
    TL_STEP_MAP(RECORD_READ);
}

tl_status tl_timeline(tl_client *client, const tl_key *key, tl_step_fn each, void *context)
{
    RESULT rows = DB_RESULT_INIT;

    TRY(read_check_each(each != NULL));
    TRY(read_of_trade(client, key, store_timeline, "reading the log of the trade", &rows));
    for (size_t row = 0; row < rows.rows; row++) {
        tl_step one;

        step_read(&one, &rows, row);
        if (each(context, &one) != 0)
            break;
    }
    return TL_OK;
}

/* What a list ends with: how many rows, how much money, and from where to go on.  Pure. */

/* ------------------------------------------------------------------- money -- */

/* As by hand, from the last digit on. */
void tl_sum_add(char sum[TL_SUM_TEXT], const char *digits)
{
    char to[TL_SUM_TEXT];
    size_t left = sum != NULL ? strlen(sum) : 0, right = digits != NULL ? strlen(digits) : 0,
           at = sizeof to - 1;
    unsigned carry = 0;

    to[at] = '\0';
    while (sum != NULL && at > 0 && (left > 0 || right > 0 || carry > 0)) {
        const unsigned digit = (left > 0 ? (unsigned)(sum[--left] - '0') : 0) +
                               (right > 0 ? (unsigned)(digits[--right] - '0') : 0) + carry;

        to[--at] = (char)('0' + digit % 10);
        carry = digit / 10;
    }
    if (sum != NULL)
        memmove(sum, to + at, sizeof to - at);
}

static tl_money *money_of(tl_list_end *end, const char *currency)
{
    tl_money *money;

    for (unsigned i = 0; i < end->money_count; i++)
        if (strcmp(end->money[i].currency, currency) == 0)
            return &end->money[i];
    if (end->money_count == TL_MONEY_MAX)
        return NULL;
    money = &end->money[end->money_count++];
    *money = (tl_money){.sum_minor = "0"};
    text_copy(money->currency, sizeof money->currency, currency);
    return money;
}

void tl_list_end_add(tl_list_end *end, const char *currency, int64_t amount_minor)
{
    tl_money *money =
        end != NULL && currency != NULL && currency[0] != '\0' ? money_of(end, currency) : NULL;
    char digits[24];

    if (end == NULL)
        return;
    end->trades++;
    if (money == NULL)
        return;
    money->trades++;
    if (amount_minor > 0) {
        snprintf(digits, sizeof digits, "%" PRId64, amount_minor);
        tl_sum_add(money->sum_minor, digits);
    }
}

void list_end_add(tl_list_end *end, const tl_view *view)
{
    end->rows++;
    if (view->lane == 'S')
        tl_list_end_add(end, view->currency, view->amount_minor);
}

/* -------------------------------------------------------------------- next -- */

/* "c.1795175922322971.text.CUST.SERIAL.OP": the source as a letter, then the place.  Whatever is no
 * letter, digit, '-' or '_' is two digits behind a '~'. */
char *list_next_put(char *to, const char *from)
{
    *to++ = '.';
    for (; *from != '\0'; from++) {
        if (isalnum((unsigned char)*from) || *from == '-' || *from == '_')
            *to++ = *from;
        else
            to += sprintf(to, "~%02x", (unsigned)(unsigned char)*from);
    }
    *to = '\0';
    return to;
}

void list_next_write(char to[TL_NEXT_TEXT], enum list_source source, const store_list_place *place)
{
    char *end = to + sprintf(to, "%c.%" PRId64, 'a' + (int)source, place->us);

    _Static_assert(1 + 21 + 4 + 3 * (63 + TL_CUST_MAX + TL_SERIAL_MAX + TL_OP_MAX) < TL_NEXT_TEXT,
                   "there is room for every byte as three");
    end = list_next_put(end, place->text);
    end = list_next_put(end, place->cust_no);
    end = list_next_put(end, place->serial_no);
    list_next_put(end, place->op_code);
}

/* Reads up to the next '.', or to the end; NULL: it is none of ours. */
const char *list_next_take(const char *from, char *to, size_t space)
{
    size_t size = 0;

    if (from == NULL || *from != '.')
        return NULL;
    for (from++; *from != '\0' && *from != '.'; from++) {
        int c = (unsigned char)*from;

        if (c == '~') {
            c = words_hex_byte(from + 1);
            from += 2;
        }
        if (size + 1 >= space || c <= 0)
            return NULL;
        to[size++] = (char)c;
    }
    to[size] = '\0';
    return from;
}

int list_next_read(const char *next, enum list_source *source, store_list_place *place)
{
    const char letter = next[0];
    char *end;

    memset(place, 0, sizeof *place);
    if (letter < 'a' || letter >= 'a' + (int)LIST_SOURCES || next[1] != '.' ||
        !isdigit((unsigned char)next[2]))
        return 0;
    *source = (enum list_source)(letter - 'a');
    place->us = strtoll(next + 2, &end, 10);
    next = list_next_take(end, place->text, sizeof place->text);
    next = list_next_take(next, place->cust_no, sizeof place->cust_no);
    next = list_next_take(next, place->serial_no, sizeof place->serial_no);
    next = list_next_take(next, place->op_code, sizeof place->op_code);
    return next != NULL && *next == '\0' && place->us <= STRETCH_END_US;
}
