/*
 * Proves afterwards that the promises were kept.  It believes only the rows, their history, and the
 * channel's statement of what it paid.  Reads only.
 */
#include "admin/audit_archive.h"
#include "admin/sorted.h"
#include "admin/words.h"

#include "client/read.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/bind.h"

#include "sql_text.h"

#include <tradelock/admin/acts.h>
#include <tradelock/admin/audit.h>
#include <tradelock/admin/explain.h>
#include <tradelock/admin/trades.h>
#include <tradelock/money.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 2000

/* --------------------------------------------------------------- the payments -- */

static int by_trade(const void *left, const void *right)
{
    const tl_payment *a = ((const audit_paid *)left)->payment;
    const tl_payment *b = ((const audit_paid *)right)->payment;
    const int order = strcmp(a->cust_no, b->cust_no);

    return order != 0 ? order : strcmp(a->serial_no, b->serial_no);
}

static tl_status take_payments(audit_comparison *c)
{
    const tl_payment *payments = c->scope->payments;
    const size_t count = c->scope->payment_count;

    if (payments == NULL && count > 0)
        return error_set(TL_INVALID, "payments is NULL and payment_count is not 0");
    for (size_t i = 0; i < count; i++)
        if (payments[i].serial_no == NULL || payments[i].cust_no == NULL)
            return error_set(TL_INVALID, "payment %zu has no serial number or customer", i + 1);
    c->given = payments != NULL;
    c->audit->counts->payments = count;
    if (count == 0)
        return TL_OK;
    c->paid = memory_new(count * sizeof *c->paid);
    if (c->paid == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for %zu payments", count);
    for (size_t i = 0; i < count; i++)
        c->paid[i].payment = &payments[i];
    c->count = count;
    qsort(c->paid, count, sizeof *c->paid, by_trade);
    return TL_OK;
}

/* ------------------------------------------------------------------- the rows -- */

/* As tl_amount_differs() does in the database (sql/object/evidence.sql). */
static void compare_amount(audit_comparison *c, const audit_row *row, const tl_payment_amount *paid)
{
    const char *currency = paid->currency != NULL ? paid->currency : "";
    char amount[24] = "", told[TL_AMOUNT_TEXT], said[TL_AMOUNT_TEXT], facts[128];
    int differs =
        currency[0] != '\0' && row->currency[0] != '\0' && strcmp(currency, row->currency) != 0;

    if (paid->is_told) {
        snprintf(amount, sizeof amount, "%" PRId64, paid->amount_minor);
        differs |= row->amount_minor[0] != '\0' && strcmp(amount, row->amount_minor) != 0;
    }
    if (!differs)
        return;
    tl_sum_text(told, amount, currency[0] != '\0' ? currency : NULL);
    tl_sum_text(said, row->amount_minor, row->currency);
    snprintf(facts, sizeof facts, "the channel paid %s %s, and it is of %s %s, in minor units",
             amount, currency, row->amount_minor, row->currency);
    c->audit->facts = facts;
    audit_report(c->audit, "paid-amount", &row->at, "the channel paid %s, and it is of %s",
                 amount[0] != '\0' ? told : currency,
                 row->amount_minor[0] != '\0' ? said : "no amount");
}

static int came_back(const tl_payment *payment)
{
    return payment->amount.is_told && payment->amount.amount_minor < 0;
}

/* Counts the payments of one sync row, and reports one that names another key or amount, or came
 * back. */
static size_t match(audit_comparison *c, const audit_row *row)
{
    const store_audit_place *at = &row->at;
    const tl_payment trade = {.cust_no = at->cust_no, .serial_no = at->serial_no};
    const audit_paid key = {.payment = &trade};
    size_t matched = 0, i = sorted_place(&key, c->paid, c->count, sizeof key, by_trade);

    for (; i < c->count && by_trade(&c->paid[i], &key) == 0; i++) {
        const tl_payment *p = c->paid[i].payment;

        if (p->op_code != NULL && strcmp(p->op_code, at->op_code) != 0)
            continue;
        c->paid[i].has_row = 1;
        matched += !came_back(p);
        /* The row no longer has the keys of earlier epochs. */
        if (row->epoch == 1 && p->channel_key != NULL && row->channel_key[0] != '\0' &&
            strcmp(p->channel_key, row->channel_key) != 0)
            audit_report(c->audit, "foreign-key", at,
                         "the channel paid it under %s, which is not its key", p->channel_key);
        if (!came_back(p))
            compare_amount(c, row, &p->amount);
        else
            audit_report(c->audit, "returned", at,
                         "the channel gave %" PRIu64 " %s back, in minor units",
                         -(uint64_t)p->amount.amount_minor,
                         p->amount.currency != NULL ? p->amount.currency : "");
    }
    if (matched > 0)
        tl_list_end_add(c->audit->counts->paid, row->currency,
                        strtoll(row->amount_minor, NULL, 10));
    return matched;
}

/* Whether the statement has to name it. */
static int is_of_statement(const tl_audit_scope *scope, const audit_row *row)
{
    return (scope->op_code == NULL || strcmp(scope->op_code, row->at.op_code) == 0) &&
           (scope->channel == NULL || strcmp(scope->channel, row->channel) == 0) &&
           row->ended_us >= scope->since_us &&
           (scope->until_us == 0 || row->ended_us < scope->until_us);
}

/* What was paid for a copy is compared at the shard where the customer is. */
static int is_copy(audit_comparison *c, const audit_row *row)
{
    int is = 0;
    const tl_status status = shard_is_copy(c->audit->connection, &c->copies, row->at.cust_no, &is);

    if (status != TL_OK)
        c->slots = status;
    return is;
}

static void compare_row(audit_comparison *c, const audit_row *row)
{
    const size_t paid = match(c, row);

    if (row->status == 'F' && paid > 0 && !row->conflict)
        audit_report(c->audit, "paid-failure", &row->at,
                     "it failed with proof, and the channel paid it");
    if (row->status == 'Y' && paid == 0 && row->channel[0] != '\0' &&
        is_of_statement(c->scope, row) && !is_copy(c, row))
        audit_report(c->audit, "unpaid-success", &row->at,
                     "it succeeded, and the channel did not pay it");
}

/* The last amount other than the trade's that evidence of success tells; "": there is none, as where
 * the evidence lies in an archive. */
static void read_other_amount(const audit_comparison *c, const audit_row *row,
                              char to[TL_AMOUNT_TEXT])
{
    RESULT filed = DB_RESULT_INIT;
    char own[TL_AMOUNT_TEXT];

    to[0] = '\0';
    tl_sum_text(own, row->amount_minor, row->currency);
    if (SQL_RUN(c->audit->connection, &filed, evidence_list, .cust_no = db_text(row->at.cust_no),
                .serial_no = db_text(row->at.serial_no),
                .op_code = db_text(row->at.op_code)) != DB_DONE)
        return;
    for (size_t i = filed.rows; i-- > 0 && to[0] == '\0';)
        if (db_get_int(&filed, i, COLUMN_evidence_list_contradicts) == 2 &&
            !db_is_null(&filed, i, COLUMN_evidence_list_amount_minor))
            tl_amount_text(to, db_get_int(&filed, i, COLUMN_evidence_list_amount_minor),
                           db_get_text(&filed, i, COLUMN_evidence_list_currency));
    if (strcmp(to, own) == 0)
        to[0] = '\0';
}

static void report_contradicted(audit_comparison *c, const audit_row *row)
{
    static const char sentence[] = "it succeeded, and evidence tells of another payment, amount or "
                                   "outcome: two operators decide";
    char told[TL_AMOUNT_TEXT], own[TL_AMOUNT_TEXT];

    read_other_amount(c, row, told);
    c->audit->facts = sentence;
    if (told[0] == '\0')
        audit_report(c->audit, "contradicted", &row->at, "%s", sentence);
    else
        audit_report(c->audit, "contradicted", &row->at,
                     "it succeeded with %s, and evidence tells of %s: two operators decide",
                     tl_sum_text(own, row->amount_minor, row->currency), told);
}

void audit_check_row(audit_comparison *c, const audit_row *row)
{
    if (row->status == 'F' && row->success_filed && !row->conflict)
        audit_report(c->audit, "no-proof", &row->at,
                     "it failed although evidence of success had been filed");
    if (row->status == 'Y' && row->conflict)
        report_contradicted(c, row);
    if (c->given)
        compare_row(c, row);
}

static int is_first(const db_result *page, size_t row)
{
    return (int)db_get_int(page, row, AUDIT_ROW_IS_FIRST);
}

static void read_row(audit_row *to, const db_result *page, size_t row)
{
    *to = (audit_row){
        .status = db_get_text(page, row, AUDIT_LOG_STATUS)[0],
        .epoch = (uint32_t)db_get_uint(page, row, AUDIT_LOG_EPOCH),
        .channel_key = db_get_text(page, row, AUDIT_ROW_CHANNEL_KEY),
        .conflict = (int)db_get_int(page, row, AUDIT_ROW_CONFLICT),
        .channel = db_get_text(page, row, AUDIT_ROW_CHANNEL),
        .amount_minor = db_get_text(page, row, AUDIT_ROW_AMOUNT),
        .currency = db_get_text(page, row, AUDIT_ROW_CURRENCY),
        .ended_us = db_get_int(page, row, AUDIT_LOG_LOGGED_US),
        .success_filed = (int)db_get_int(page, row, AUDIT_ROW_SUCCESS_FILED),
        .is_sync = db_get_text(page, row, AUDIT_ROW_LANE)[0] == 'S',
        .repeatable = (int)db_get_int(page, row, AUDIT_ROW_REPEATABLE),
        .made_rev = db_get_uint(page, row, AUDIT_LOG_MADE_REV),
    };
    audit_take_place(&to->at, page, row);
}

static tl_status check_row(audit_comparison *c, const db_result *page, size_t row)
{
    audit_row it;

    if (is_first(page, row))
        return TL_OK;
    read_row(&it, page, row);
    c->audit->counts->rows++;
    if (!db_get_int(page, row, AUDIT_ROW_HAS_PAST))
        audit_row_steps(c->audit, page, row > 0 && is_first(page, row - 1) ? row - 1 : row, row);
    if (it.is_sync && db_get_int(page, row, AUDIT_ROW_UNSEEN))
        audit_report(c->audit, "unseen", &it.at,
                     "it is in process, and no janitor looks for its end");
    if (it.is_sync && db_get_int(page, row, AUDIT_ROW_UNATTENDED))
        audit_report(c->audit, "unseen", &it.at,
                     "it is in process, nobody holds it, and no worker will come for it");
    if (it.is_sync)
        audit_check_row(c, &it);
    return c->archive != NULL ? audit_lives_add(&c->lives, &it, 0, 0) : TL_OK;
}

static tl_status check_rows(audit_comparison *c)
{
    db *connection = c->audit->connection;
    store_audit_place place = {.rev = 0};
    RESULT page = DB_RESULT_INIT;

    do {
        TRY(read_status(connection,
                        SQL_RUN(connection, &page, audit_rows, .cust_no = db_text(place.cust_no),
                                .serial_no = db_text(place.serial_no),
                                .op_code = db_text(place.op_code), .most = db_uint(PAGE)),
                        "reading the rows"));
        for (size_t row = 0; row < page.rows && !c->audit->stopped; row++)
            TRY(check_row(c, &page, row));
        if (page.rows > 0)
            audit_take_place(&place, &page, page.rows - 1);
        audit_tell(c->audit, "rows", "trade_lock", c->audit->counts->rows);
    } while (page.rows >= PAGE && !c->audit->stopped);
    return TL_OK;
}

/* --------------------------------------------------------------- the statement -- */

static int same_trade(const audit_paid *left, const audit_paid *right)
{
    const tl_payment *a = left->payment, *b = right->payment;

    return by_trade(left, right) == 0 &&
           (a->op_code == NULL || b->op_code == NULL || strcmp(a->op_code, b->op_code) == 0);
}

/* Whether success of a trade that is not here was filed, and accepting a restore makes it. */
static tl_status look_filed(audit_comparison *c, const store_audit_place *at, int *waits)
{
    RESULT row = DB_RESULT_INIT;

    TRY(read_status(c->audit->connection,
                    SQL_RUN(c->audit->connection, &row, audit_waits,
                            .cust_no = db_ascii(at->cust_no), .serial_no = db_ascii(at->serial_no),
                            .op_code = db_ascii(at->op_code)),
                    "looking what was filed"));
    *waits = row.rows == 1 && db_get_int(&row, 0, 0) != 0;
    return TL_OK;
}

static tl_status check_statement(audit_comparison *c)
{
    for (size_t i = 0; i < c->count && !c->audit->stopped; i++) {
        const tl_payment *p = c->paid[i].payment;
        store_audit_place at;
        size_t times = 0, next = i;
        int is_known = c->paid[i].has_row;

        memset(&at, 0, sizeof at);
        text_copy(at.cust_no, sizeof at.cust_no, p->cust_no);
        text_copy(at.serial_no, sizeof at.serial_no, p->serial_no);
        text_copy(at.op_code, sizeof at.op_code, p->op_code);
        if (!is_known)
            TRY(look_filed(c, &at, &is_known));
        if (!is_known)
            audit_report(c->audit, "unknown-payment", &at,
                         "the channel %s (%s), and there is no such trade",
                         came_back(p) ? "gave it back" : "paid it",
                         p->channel_ref != NULL ? p->channel_ref : "no reference");
        if (i > 0 && same_trade(&c->paid[i - 1], &c->paid[i]))
            continue;
        for (; next < c->count && same_trade(&c->paid[next], &c->paid[i]); next++)
            times += !came_back(c->paid[next].payment);
        if (times > 1)
            audit_report(c->audit, "paid-twice", &at, "the channel paid it %zu times", times);
    }
    return TL_OK;
}

/* Reads what stands at the head of every audit: who, which server, when. */
static tl_status read_head(const audit *self)
{
    tl_audit_counts *counts = self->counts;
    RESULT row = DB_RESULT_INIT;

    TRY(read_run(self->connection, &sql_audit_run, &row, "asking who audits"));
    text_copy(counts->account, sizeof counts->account, db_get_text(&row, 0, 0));
    text_copy(counts->server, sizeof counts->server, db_get_text(&row, 0, 1));
    counts->at_us = db_get_int(&row, 0, 2);
    return TL_OK;
}

static void add_said(struct text_buffer *said, const char *option, const char *value)
{
    char printable[257];

    text_printable(printable, sizeof printable, value != NULL ? value : "");
    if (printable[0] != '\0')
        text_buffer_append_format(said, "%s--%s %s", said->size > 0 ? " " : "", option, printable);
}

/* The statement's name stands last, so that its blanks end nothing (sql/query/audit.sql). */
static void write_said(struct text_buffer *said, const tl_audit_scope *scope)
{
    char moment[TL_MOMENT_TEXT];

    add_said(said, "archive", scope->archive);
    add_said(said, "op", scope->op_code);
    add_said(said, "channel", scope->channel);
    add_said(said, "since", tl_moment_text(moment, scope->since_us, 0));
    add_said(said, "until", tl_moment_text(moment, scope->until_us, 0));
    add_said(said, "statement", scope->statement);
}

static void write_counts(struct text_buffer *to, const tl_audit_counts *counts)
{
    text_buffer_append_format(to,
                              "rows=%" PRIu64 " steps=%" PRIu64 " payments=%" PRIu64
                              " violations=%" PRIu64 " differences=%" PRIu64 " closed=%" PRIu64,
                              counts->rows, counts->steps, counts->payments, counts->violations,
                              counts->differences, counts->closed);
    for (unsigned i = 0; i < counts->rule_count; i++)
        if (counts->rules[i].violations > 0)
            text_buffer_append_format(to, " %s=%" PRIu64, counts->rules[i].rule,
                                      counts->rules[i].violations);
}

/* Puts a complete audit on record. */
static tl_status note(tl_client *client, const tl_audit_scope *scope, const tl_audit_counts *counts)
{
    TEXT said = {.size = 0}, came_to = {.size = 0};
    tl_act act = TL_ACT_INIT;

    write_said(&said, scope);
    write_counts(&came_to, counts);
    act.what = "audit";
    act.said = said.data;
    act.actor = scope->actor;
    return said.failed || came_to.failed
               ? error_set(TL_NO_MEMORY, "out of memory for the record of the audit")
               : tl_act_note(client, &act, came_to.data);
}

static tl_status compare(audit_comparison *c)
{
    audit *self = c->audit;

    TRY(read_head(self));
    if (c->archive != NULL)
        TRY(audit_archive_look(c));
    TRY(read_run(self->connection, &sql_clock_steps, &self->back, "reading the clock jumps"));
    if (c->given)
        TRY(shard_copies_read(self->connection, &c->copies));
    if (self->progress != NULL)
        TRY(read_run(self->connection, &sql_metrics_tables, &self->tables,
                     "asking how large the tables are"));
    /* First the rows, then their history: a row that is changed for the first time meanwhile is
     * read twice, but never missed. */
    TRY(check_rows(c));
    if (!self->stopped)
        TRY(audit_history(self));
    /* Last the archive: what a purge has moved there meanwhile was read before, or is there. */
    if (c->archive != NULL && !self->stopped)
        TRY(audit_archive(c));
    if (c->given)
        TRY(check_statement(c));
    TRY(c->slots);
    return self->stopped ? error_set(TL_REFUSED, "it was stopped") : self->closings;
}

static int audit_all(void *context)
{
    return (int)compare(context);
}

static tl_status check_scope(const tl_audit_scope *scope)
{
    if (scope == NULL || scope->version != TL_AUDIT_SCOPE_VERSION)
        return error_set(TL_INVALID, "scope is NULL or its version is not set");
    if (scope->until_us != 0 && scope->until_us <= scope->since_us)
        return error_set(TL_INVALID, "until_us is not after since_us");
    return scope->actor != NULL ? read_check_person(scope->actor, "none") : TL_OK;
}

tl_status tl_audit(tl_client *client, const tl_audit_scope *scope, tl_violation_fn each,
                   tl_progress_fn progress, void *context, tl_audit_counts *counts,
                   tl_archived *archived)
{
    tl_audit_counts counted = TL_AUDIT_COUNTS_INIT;
    audit self = {
        .each = each,
        .context = context,
        .counts = &counted,
        .closings = TL_OK,
        .back = DB_RESULT_INIT,
        .progress = progress,
        .tables = DB_RESULT_INIT,
    };
    audit_comparison c = {.audit = &self, .scope = scope};
    READING at = {.client = client};
    tl_status status;

    error_clear();
    if (counts == NULL || counts->version != TL_AUDIT_COUNTS_VERSION)
        return error_set(TL_INVALID, "counts is NULL or its version is not set");
    counted.paid = counts->paid;
    TRY(check_scope(scope));
    c.archive = scope->archive;
    TRY(read_begin(&at));
    self.connection = at.connection;
    status = take_payments(&c);
    if (status == TL_OK)
        status = read_and_show(audit_all, &c);
    memory_free(c.paid);
    audit_lives_free(&c.lives);
    db_result_free(&self.back);
    db_result_free(&self.tables);
    read_end(&at);
    if (status == TL_OK && scope->actor != NULL)
        counted.noted = note(client, scope, &counted);
    if (status == TL_OK)
        *counts = counted;
    if (status == TL_OK && archived != NULL)
        *archived = c.archived;
    return status;
}
