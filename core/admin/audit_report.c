/*
 * Reports a finding of an audit: its name, which is the hash of its facts, and whether two accounts
 * have closed it.  It reads audit_closing, counts, and calls the function of whoever asked for the
 * audit.
 */
#include "admin/audit_report.h"

#include "client/read.h"

#include "admin/statements.h"

#include "base/sha256.h"
#include "base/text.h"
#include "store/record.h"

#include "sql_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    tl_status status =
        read_status(self->connection, store_audit_closing(self->connection, finding, result),
                    "reading what was closed");

    if (status != TL_OK && self->closings == TL_OK)
        self->closings = status;
    if (status != TL_OK || result->rows != 1)
        return;
    TL_VIOLATION_MAP(RECORD_READ)
}

#undef AT

void audit_report(audit *self, const char *rule, const store_audit_place *at, const char *format,
                  ...)
{
    char sentence[512], name[2 * STORE_FINDING + 1];
    uint8_t finding[STORE_FINDING];
    db_result rows = DB_RESULT_INIT;
    va_list arguments;
    tl_violation violation = {.rule = rule,
                              .key = {at->serial_no, at->cust_no, at->op_code},
                              .rev = at->rev,
                              .sentence = sentence,
                              .account = at->account,
                              .logged_us = at->logged_us,
                              .finding = name,
                              .proposed_by = "",
                              .proposed_reason = "",
                              .closed_by = "",
                              .closed_reason = ""};

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    name_finding(finding, rule, at, sentence);
    text_hex(name, finding, sizeof finding);
    look_closed(self, finding, &violation, &rows);
    if (violation.closed)
        self->counts->closed++;
    else
        self->counts->violations++;
    if (!self->stopped && self->each != NULL && self->each(self->context, &violation) != 0)
        self->stopped = 1;
    db_result_free(&rows);
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
