/* How an audit reports what it found, and how it checks the history of rows.  Reads only. */
#include "admin/audit_report.h"

#include "admin/statements.h"
#include "base/sha256.h"
#include "base/text.h"
#include "client/read.h"
#include "store/bind.h"
#include "store/record.h"
#include "store/step.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Reports a finding of an audit: its name, which is the hash of its facts, and whether two accounts
 * have closed it.  It reads audit_closing, counts, and calls the function of whoever asked for the
 * audit.
 */

/* The moment of a clock jump is known only as exactly as the time between two looks. */
#define STEP_SLACK_US INT64_C(60000000)

/* Hashes the facts of a finding.  Two accounts close exactly this hash. */
static void name_finding(uint8_t finding[STORE_FINDING], const char *rule,
                         const store_audit_place *at, const char *sentence)
{
    char facts[1536];
    int size = snprintf(facts, sizeof facts, "%s\n%s\n%s\n%s\n%llu\n%s\n%lld\n%s", rule,
                        at->cust_no, at->serial_no, at->op_code,
                        (unsigned long long)(at->rev != 0 ? at->rev : at->row_rev), at->account,
                        (long long)at->logged_us, sentence);

    sha256_of(finding, facts, (size_t)size < sizeof facts ? (size_t)size : sizeof facts);
}

#define AT(member) COLUMN_audit_closing_##member

/* Reads whether the finding is closed.  If that cannot be read, the finding stays open, and the
 * audit fails at its end. */
static void look_closed(audit *self, const uint8_t finding[STORE_FINDING], tl_violation *to,
                        db_result *result)
{
    const size_t row = 0;
    tl_status status = read_status(self->connection,
                                   SQL_RUN(self->connection, result, audit_closing,
                                           .finding = db_bytes(finding, STORE_FINDING)),
                                   "reading what was closed");

    if (status != TL_OK && self->closings == TL_OK)
        self->closings = status;
    if (status != TL_OK || result->rows != 1)
        return;
    TL_VIOLATION_MAP(RECORD_READ)
}

#undef AT

/* Whether the rule is about what the channel paid. */
static int is_of_payment(const char *rule)
{
    static const char *const rules[] = {"unknown-payment", "unpaid-success", "paid-failure",
                                        "paid-twice",      "foreign-key",    "paid-amount",
                                        "returned"};

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i], rule) == 0)
            return 1;
    return 0;
}

static void count(tl_audit_counts *counts, const tl_violation *v)
{
    tl_audit_rule *at = counts->rules, *const end = at + counts->rule_count;

    counts->closed += v->closed != 0;
    counts->violations += !v->closed;
    counts->differences += !v->closed && v->is_of_payment;
    while (at < end && strcmp(at->rule, v->rule) != 0)
        at++;
    if (at == counts->rules + TL_AUDIT_RULES)
        return;
    if (at == end) {
        counts->rule_count++;
        text_copy(at->rule, sizeof at->rule, v->rule);
    }
    at->violations += !v->closed;
    at->closed += v->closed != 0;
}

void audit_report(audit *self, const char *rule, const store_audit_place *at, const char *format,
                  ...)
{
    char sentence[512], name[2 * STORE_FINDING + 1];
    uint8_t finding[STORE_FINDING];
    RESULT rows = DB_RESULT_INIT;
    va_list arguments;
    tl_violation violation = {.rule = rule,
                              .key = {at->serial_no, at->cust_no, at->op_code},
                              .rev = at->rev,
                              .sentence = sentence,
                              .account = at->account,
                              .logged_us = at->logged_us,
                              .finding = name,
                              .is_of_payment = is_of_payment(rule),
                              .proposed_by = "",
                              .proposed_reason = "",
                              .closed_by = "",
                              .closed_reason = ""};

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    name_finding(finding, rule, at, self->facts != NULL ? self->facts : sentence);
    self->facts = NULL;
    text_hex(name, finding, sizeof finding);
    look_closed(self, finding, &violation, &rows);
    count(self->counts, &violation);
    if (!self->stopped && self->each != NULL && self->each(self->context, &violation) != 0)
        self->stopped = 1;
}

void audit_tell(audit *self, const char *what, const char *table, uint64_t done)
{
    const tl_progress progress = {.what = what,
                                  .done = done,
                                  .of = table_rows(&self->tables, table),
                                  .found = self->counts->violations};

    if (self->progress != NULL && !self->stopped)
        self->stopped = self->progress(self->context, &progress) != 0;
}

/* Pages of rows and of history both begin with the key. */
void audit_take_place(store_audit_place *place, const db_result *page, size_t row)
{
    text_copy(place->cust_no, sizeof place->cust_no, db_get_text(page, row, 0));
    text_copy(place->serial_no, sizeof place->serial_no, db_get_text(page, row, 1));
    text_copy(place->op_code, sizeof place->op_code, db_get_text(page, row, 2));
    place->rev = 0;
    place->row_rev = db_get_uint(page, row, AUDIT_LOG_REV);
    text_copy(place->account, sizeof place->account, db_get_text(page, row, AUDIT_LOG_ACCOUNT));
    place->logged_us = db_get_int(page, row, AUDIT_LOG_LOGGED_US);
}

int audit_clock_went_back(const audit *self, int64_t first_us, int64_t then_us)
{
    for (size_t row = 0; row < self->back.rows; row++)
        if (first_us - then_us <= -db_get_int(&self->back, row, 0) + STEP_SLACK_US &&
            then_us >= db_get_int(&self->back, row, 1) - STEP_SLACK_US)
            return 1;
    return 0;
}

/*
 * Checks the history of every row, step by step: which step may follow which.  Triggers that no
 * application account can get round keep what a step replaces, each step one rev above the one
 * before.  So a missing step shows, and so does one that nobody was entitled to.  Reads only.
 */

#define PAGE 2000

static int is_step(const audit_step *e, const char *name)
{
    return strcmp(e->step, name) == 0;
}

static void read_entry(audit_step *e, const db_result *page, size_t row)
{
    size_t size;
    const void *token = db_get_bytes(page, row, AUDIT_LOG_TOKEN, &size);

    memset(e, 0, sizeof *e);
    audit_take_place(&e->at, page, row);
    e->at.rev = db_get_uint(page, row, AUDIT_LOG_REV);
    text_copy(e->step, sizeof e->step, db_get_text(page, row, AUDIT_LOG_STEP));
    e->status = db_get_text(page, row, AUDIT_LOG_STATUS)[0];
    e->proof = db_get_text(page, row, AUDIT_LOG_PROOF)[0];
    text_copy(e->session_id, sizeof e->session_id, db_get_text(page, row, AUDIT_LOG_SESSION));
    if (size == STEP_TOKEN)
        memcpy(e->token, token, STEP_TOKEN);
    e->fence = db_get_uint(page, row, AUDIT_LOG_FENCE);
    e->epoch = (uint32_t)db_get_uint(page, row, AUDIT_LOG_EPOCH);
    e->logged_us = db_get_int(page, row, AUDIT_LOG_LOGGED_US);
    e->max_hold_us = db_get_int(page, row, AUDIT_LOG_MAX_HOLD_US);
    e->ended_us = db_get_int(page, row, AUDIT_LOG_ENDED_US);
    e->has_row = !db_is_null(page, row, AUDIT_LOG_MADE_REV);
    e->made_rev = db_get_uint(page, row, AUDIT_LOG_MADE_REV);
    e->operators = (int)db_get_int(page, row, AUDIT_LOG_OPERATORS);
}

/* ------------------------------------------------------------- the first step -- */

static int may_begin(const audit_step *e)
{
    static const char *const never[] = {"claim",   "arm",      "end",      "close",  "clock",
                                        "reclaim", "evidence", "operator", "by hand"};

    if (!text_is_retry_op(e->at.op_code))
        return is_step(e, "ask") || is_step(e, "reask") || is_step(e, "filed");
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (is_step(e, never[i]))
            return 0;
    return 1;
}

static void check_first(audit_steps *h, const audit_step *e)
{
    int begins = may_begin(e) && e->at.rev == e->fence;

    h->successes = 0;
    h->decided_failed = 0;
    h->first_rev = e->at.rev;
    if (!begins)
        audit_report(h->audit, "gap", &e->at,
                     "the history begins with '%s', which is never a row's first step", e->step);
    else if (e->status == 'Y' && !is_step(e, "filed"))
        audit_report(h->audit, "stale-success", &e->at,
                     "it was made as a success, and nobody held it");
    else if (e->status == 'F' && !text_is_retry_op(e->at.op_code))
        audit_report(h->audit, "no-proof", &e->at, "it was made as a failure, and nobody held it");
}

/* ----------------------------------------------------------- one after another -- */

static void check_order(audit_steps *h, const audit_step *e)
{
    const audit_step *last = &h->last;

    if (e->at.rev <= last->at.rev)
        audit_report(h->audit, "gap", &e->at, "revision %llu does not follow revision %llu",
                     (unsigned long long)e->at.rev, (unsigned long long)last->at.rev);
    else if (e->at.rev != last->at.rev + 1)
        audit_report(h->audit, "gap", &e->at,
                     "%llu steps are missing between revisions %llu and %llu",
                     (unsigned long long)(e->at.rev - last->at.rev - 1),
                     (unsigned long long)last->at.rev, (unsigned long long)e->at.rev);
    if (e->fence < last->fence)
        audit_report(h->audit, "fence", &e->at, "the fence fell from %llu to %llu",
                     (unsigned long long)last->fence, (unsigned long long)e->fence);
    else if (e->fence == last->fence && memcmp(e->token, last->token, STEP_TOKEN) != 0)
        audit_report(h->audit, "fence", &e->at, "the holder changed and the fence stayed at %llu",
                     (unsigned long long)e->fence);
    if (is_step(e, "by hand"))
        audit_report(h->audit, "by-hand", &e->at, "the row was changed by hand");
    if (is_step(e, "deleted"))
        audit_report(h->audit, "removed", &e->at, "the row was removed by hand");
}

static int is_later(const audit_steps *h, int64_t first_us, const audit_step *e)
{
    return first_us <= e->logged_us || audit_clock_went_back(h->audit, first_us, e->logged_us);
}

static int holder_was_dead(const audit_steps *h, const audit_step *e)
{
    const audit_step *last = &h->last;

    return is_later(h, last->max_hold_us, e) ||
           (last->ended_us != 0 && is_later(h, last->ended_us, e));
}

/* Whether nobody held the row any more.  Only a repeatable trade is taken over from a dead holder;
 * any other row is opened first. */
static int hold_was_over(const audit_steps *h, const audit_step *e)
{
    return is_step(e, "reask") && holder_was_dead(h, e);
}

static void check_holds(audit_steps *h, const audit_step *e)
{
    const audit_step *last = &h->last;
    int other = strcmp(e->session_id, last->session_id) != 0 || is_step(e, "claim") ||
                is_step(e, "reclaim") || is_step(e, "reask");

    if (e->status == 'P' && e->session_id[0] != '\0' && last->status == 'P' &&
        last->session_id[0] != '\0' && other && !hold_was_over(h, e))
        audit_report(h->audit, "overlap", &e->at,
                     "session %s got the lock while session %s held it", e->session_id,
                     last->session_id);
    /* The next holder then held the lock together with the one that was still alive. */
    if (is_step(e, "reap") && last->status == 'P' && last->session_id[0] != '\0' &&
        !holder_was_dead(h, e))
        audit_report(h->audit, "overlap", &e->at,
                     "it was taken from session %s as from a dead one, which lived",
                     last->session_id);
}

/* Checks that a decision was made by two operators, and that each decision made one step. */
static void check_operators(audit_steps *h, const audit_step *e)
{
    const audit_step *last = &h->last;
    int resolved = strncmp(e->step, "resolve ", 8) == 0;

    if (e->epoch != last->epoch)
        h->decided_failed = 0;
    if (resolved && e->operators < 2)
        audit_report(h->audit, "one-operator", &e->at,
                     "'%s' was not proposed by one account and confirmed by another", e->step);
    if (resolved && e->fence != last->fence + 1)
        audit_report(h->audit, "fence", &e->at,
                     "operators decided and the fence did not rise by one");
    if (is_step(e, "resolve failed"))
        h->decided_failed = 1;
    if (e->proof == 'O' && last->proof != 'O' && !h->decided_failed)
        audit_report(h->audit, "one-operator", &e->at,
                     "it failed because two operators decided, and they did not");
}

/* Checks the rules that hold only for the row that decides. */
static void check_endings(audit_steps *h, const audit_step *e)
{
    const audit_step *last = &h->last;

    if (is_step(e, "reask"))
        h->successes = 0;
    if (last->status == 'Y' && !is_step(e, "reask") &&
        !(e->status == 'Y' && (is_step(e, "evidence") || is_step(e, "resolve clear") ||
                               is_step(e, "moved") || is_step(e, "deleted"))))
        audit_report(h->audit, "after-success", &e->at,
                     "the trade had succeeded, and '%s' followed", e->step);
    if (e->status == 'Y' && last->status != 'Y') {
        if (h->successes++ > 0)
            audit_report(h->audit, "succeeded-twice", &e->at, "the trade succeeded a second time");
        if (!is_step(e, "end") || last->session_id[0] == '\0' || last->status != 'P' ||
            e->fence != last->fence + 1)
            audit_report(h->audit, "stale-success", &e->at,
                         "it succeeded by nobody who held it under the newest fence");
    }
    if (e->status == 'F' && last->status != 'F' &&
        (e->proof == '-' || strcmp(tl_proof_name((tl_proof)e->proof), "?") == 0 ||
         !is_step(e, "end")))
        audit_report(h->audit, "no-proof", &e->at, "it failed without a proof");
    if (e->status == 'P' && last->status == 'F' && !is_step(e, "reclaim") && !is_step(e, "reask") &&
        !is_step(e, "resolve paid"))
        audit_report(h->audit, "reopened", &e->at,
                     "a proven failure was opened again, and nobody reclaimed it");
}

/* ------------------------------------------------------------------ the last step -- */

void audit_end_steps(audit_steps *h)
{
    const audit_step *last = &h->last;

    if (!h->has_last)
        return;
    h->has_last = 0;
    if (!last->has_row) {
        if (!is_step(last, "deleted"))
            audit_report(h->audit, "removed", &last->at, "there is a history, and the row is gone");
    } else if (h->first_rev != last->made_rev) {
        audit_report(h->audit, "gap", &last->at,
                     "the row was made at revision %llu, its history begins at %llu",
                     (unsigned long long)last->made_rev, (unsigned long long)h->first_rev);
    }
}

static int is_same_row(const audit_steps *h, const audit_step *e)
{
    return h->has_last && strcmp(e->at.cust_no, h->last.at.cust_no) == 0 &&
           strcmp(e->at.serial_no, h->last.at.serial_no) == 0 &&
           strcmp(e->at.op_code, h->last.at.op_code) == 0;
}

/* Whether this step was read already: the only step of a row ended a page, and begins the next one
 * since the row was changed in between. */
static int was_read_before(const audit_steps *h, const audit_step *e)
{
    return is_same_row(h, e) && e->at.rev == h->last.at.rev &&
           memcmp(e->token, h->last.token, STEP_TOKEN) == 0;
}

void audit_take_step(audit_steps *h, const audit_step *e)
{
    int same = is_same_row(h, e);

    h->audit->counts->steps++;
    h->audit->counts->grants += e->status == 'P' && (is_step(e, "ask") || is_step(e, "claim") ||
                                                     is_step(e, "reask") || is_step(e, "reclaim"));
    if (!same)
        audit_end_steps(h);
    if (!same || is_step(&h->last, "deleted")) {
        check_first(h, e);
        if (same && e->fence <= h->last.fence)
            audit_report(h->audit, "fence", &e->at,
                         "a new life of the key does not begin above the old one");
    } else {
        check_order(h, e);
        check_holds(h, e);
        if (!text_is_retry_op(e->at.op_code)) {
            check_operators(h, e);
            check_endings(h, e);
        }
    }
    h->last = *e;
    h->has_last = 1;
}

tl_status audit_history(audit *self)
{
    audit_steps h = {.audit = self};
    store_audit_place place = {.rev = 0};
    RESULT page = DB_RESULT_INIT;

    do {
        TRY(read_status(
            self->connection,
            SQL_RUN(self->connection, &page, audit_log, .serial_no = db_text(place.serial_no),
                    .cust_no = db_text(place.cust_no), .op_code = db_text(place.op_code),
                    .rev = db_uint(place.rev), .most = db_uint(PAGE)),
            "reading the history"));
        for (size_t row = 0; row < page.rows && !self->stopped; row++) {
            audit_step e;

            read_entry(&e, &page, row);
            if (row > 0 || !was_read_before(&h, &e))
                audit_take_step(&h, &e);
            place = e.at;
        }
        audit_tell(self, "steps of history", "trade_lock_past", self->counts->steps);
    } while (page.rows >= PAGE && !self->stopped);
    if (!self->stopped)
        audit_end_steps(&h);
    return TL_OK;
}

void audit_row_steps(audit *self, const db_result *page, size_t first, size_t last)
{
    audit_steps h = {.audit = self};

    for (size_t row = first; row <= last; row++) {
        audit_step e;

        read_entry(&e, page, row);
        audit_take_step(&h, &e);
    }
    audit_end_steps(&h);
}
