/* Writes what operators did: acts, and the rows of those that are about many trades. */
#include "admin/act.h"
#include "admin/words.h"

#include "base/error.h"
#include "base/text.h"
#include "client/read.h"
#include "store/bind.h"
#include "trade_lock/evidence.h"
#include "transition/task.h"

#include "sql_text.h"

#include <tradelock/admin/explain.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHAT_MAX 31
#define SAID_MAX 1023
#define COUNTS_MAX 1023

/* ---------------------------------------------------------------- checking -- */

tl_status act_check(uint64_t act_no, uint64_t row_no)
{
    return act_no != 0 && row_no != 0
               ? TL_OK
               : error_set(TL_INVALID, "an act and its rows are numbered from 1 on");
}

static int needs_no_reason(const char *what)
{
    return strcmp(what, "purge") == 0 || strcmp(what, "audit") == 0;
}

static tl_status check(const tl_act *act)
{
    if (act == NULL || act->version != TL_ACT_VERSION)
        return error_set(TL_INVALID, "act is NULL or its version is not set");
    if (act->what == NULL || act->what[0] == '\0' || strlen(act->what) > WHAT_MAX)
        return error_set(TL_INVALID, "an act is named in at most %d letters", WHAT_MAX);
    if (act->said != NULL && strlen(act->said) > SAID_MAX)
        return error_set(TL_INVALID, "what was asked for is longer than %d bytes", SAID_MAX);
    if (act->said != NULL && text_check_utf8("what was asked for", act->said) != TL_OK)
        return TL_INVALID;
    return read_check_person(
        act->actor, act->reason == NULL && needs_no_reason(act->what) ? "none" : act->reason);
}

static tl_status check_counts(const char *counts)
{
    return counts == NULL || strlen(counts) <= COUNTS_MAX
               ? TL_OK
               : error_set(TL_INVALID, "the counts are longer than %d bytes", COUNTS_MAX);
}

/* --------------------------------------------------------- beginning, ending -- */

tl_status act_begin(db *connection, const store_act *act, uint64_t planned, uint64_t *act_no)
{
    RESULT row = DB_RESULT_INIT;

    TRY(db_error_status(connection,
                        SQL_RUN(connection, NULL, act_begin, .what = db_text(act->what),
                                .said = db_text(act->said), .reason = db_text(act->reason),
                                .actor = db_text(act->actor), .log_no = db_text(act->log_no),
                                .planned = db_uint(planned)),
                        "beginning an act"));
    TRY(read_run(connection, &sql_act_begun, &row, "beginning an act"));
    *act_no = db_get_uint(&row, 0, 0);
    return TL_OK;
}

tl_status act_end(db *connection, uint64_t act_no, const char *counts)
{
    return act_no == 0 ? TL_OK
                       : read_status(connection,
                                     SQL_RUN(connection, NULL, act_end, .act_no = db_uint(act_no),
                                             .counts = db_text(counts)),
                                     "ending an act");
}

tl_status tl_act_begin(tl_client *client, const tl_act *act, uint64_t *act_no)
{
    READING at = {.client = client};

    TRY(read_begin(&at));
    if (act_no == NULL)
        return error_set(TL_INVALID, "act_no is NULL");
    TRY(check(act));
    return act_begin(at.connection,
                     &(store_act){.what = act->what,
                                  .said = act->said != NULL ? act->said : "",
                                  .reason = act->reason != NULL ? act->reason : "",
                                  .actor = act->actor,
                                  .log_no = words_or_null(tl_log_uuid())},
                     act->planned, act_no);
}

tl_status tl_act_end(tl_client *client, uint64_t act_no, const char *counts)
{
    READING at = {.client = client};

    TRY(read_begin(&at));
    TRY(act_check(act_no, 1));
    TRY(check_counts(counts));
    return act_end(at.connection, act_no, counts);
}

tl_status tl_act_note(tl_client *client, const tl_act *act, const char *counts)
{
    uint64_t act_no = 0;

    error_clear();
    TRY(check_counts(counts));
    TRY(tl_act_begin(client, act, &act_no));
    return tl_act_end(client, act_no, counts);
}

/* --------------------------------------------------------------------- rows -- */

struct writing {
    uint64_t act_no, row_no;
    store_act_row row;
};

/* A second time it does nothing, so that a lost answer needs no settling. */
static db_answer run_write(task *t, db *connection)
{
    const struct writing *w = t->context;

    TRY(db_begin(connection));
    TRY(store_act_write(connection, w->act_no, w->row_no, &w->row));
    return db_commit(connection);
}

static const char *why(tl_status status)
{
    switch (status) {
    case TL_LOST:
        return "moved on";
    case TL_BUSY:
        return "busy";
    case TL_ALREADY_DONE:
        return "succeeded";
    case TL_FAILED:
        return "failed";
    case TL_NOT_FOUND:
        return "not found";
    case TL_NO_TRADE:
        return "no lane";
    case TL_REFUSED:
        return "refused";
    case TL_EVIDENCE:
        return "evidence";
    case TL_CUSTOMER_BUSY:
        return "customer busy";
    default:
        return NULL;
    }
}

tl_status act_left_alone(tl_client *client, uint64_t act_no, uint64_t row_no, const tl_key *key,
                         uint64_t fence, tl_status status)
{
    static const task_kind kind = {.run = run_write};
    struct writing w = {.act_no = act_no,
                        .row_no = row_no,
                        .row = {.key = key, .fence = fence, .result = why(status), .done = 0}};
    task t = {.kind = &kind, .name = "writing a row of an act", .context = &w};
    char sentence[1024];

    if (w.row.result == NULL)
        return status;
    text_copy(sentence, sizeof sentence, tl_error_message());
    task_run(client->engine, &t, client->config.commit_ms);
    return t.verdict == VERDICT_APPLIED ? error_set(status, "%s", sentence) : t.status;
}

tl_status tl_act_evidence(tl_client *client, uint64_t act_no, uint64_t row_no,
                          const tl_evidence *evidence, const tl_payment_view *seen)
{
    evidence_act act = {.act_no = act_no, .row_no = row_no};
    tl_status status;

    error_clear();
    if (seen == NULL)
        return error_set(TL_INVALID, "seen is NULL");
    act.status = seen->status;
    act.epoch = seen->epoch;
    act.fence = seen->fence;
    status = act_check(act_no, row_no);
    if (status == TL_OK)
        status = evidence_file(client, evidence, &act);
    if (status == TL_LOST)
        status = tl_moved_on(client, &evidence->key, seen->fence);
    return status == TL_LOST || status == TL_NOT_FOUND
               ? act_left_alone(client, act_no, row_no, &evidence->key, seen->fence, status)
               : status;
}

tl_status tl_evidence_file(tl_client *client, const tl_evidence *evidence, const char *actor)
{
    const evidence_act act = {.actor = actor};

    error_clear();
    TRY(read_check_person(actor, "none"));
    return evidence_file(client, evidence, &act);
}

static const char *did(const char *name)
{
    static const char *const words[][2] = {{"operator", "made it due"},
                                           {"evidence", "filed evidence"},
                                           {"claim", "claimed it"},
                                           {"end", "ended an attempt"},
                                           {"resolve failed", "confirmed that it failed"},
                                           {"resolve paid", "confirmed that it was paid"},
                                           {"resolve clear", "cleared the conflict"}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i][0], name) == 0)
            return words[i][1];
    return "went on with it";
}

/* Evidence and people's words change a row, and not its fence. */
tl_status act_moved_on(db *connection, const tl_key *key, uint64_t seen)
{
    RESULT row = DB_RESULT_INIT;
    char ago[TL_SPAN_TEXT], fences[80] = "";
    uint64_t fence;

    TRY(read_status(connection,
                    SQL_RUN(connection, &row, last_step, .cust_no = db_text(key->cust_no),
                            .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code)),
                    "reading who moved the trade on"));
    if (row.rows == 0)
        return error_set(TL_NOT_FOUND, "there is no trade %s %s %s", key->serial_no, key->cust_no,
                         key->op_code);
    fence = db_get_uint(&row, 0, COLUMN_last_step_fence);
    if (fence != seen)
        snprintf(fences, sizeof fences, " (its fence is %" PRIu64 " now, not %" PRIu64 ")", fence,
                 seen);
    return error_set(TL_LOST, "the trade has moved on: %s %s %s ago%s; look at it again",
                     db_get_text(&row, 0, COLUMN_last_step_account),
                     did(db_get_text(&row, 0, COLUMN_last_step_step)),
                     tl_span_text(ago, db_get_int(&row, 0, COLUMN_last_step_ago_us), TL_SPAN_WORDS),
                     fences);
}

tl_status tl_moved_on(tl_client *client, const tl_key *key, uint64_t fence)
{
    READING at = {.client = client};
    char retry_op[TL_OP_MAX + 1];

    TRY(read_begin(&at));
    TRY(read_key(key, retry_op));
    return act_moved_on(at.connection, key, fence);
}

/* The record that a purge leaves, and the purge of such records. */

#define PAGE 200
#define DAY_MS 86400000

tl_status act_purge_begin(db *connection, int64_t older_ms, int archives, uint64_t *act_no)
{
    const char *with = archives ? " --archive" : "";
    char said[64];
    const store_act act = {.what = "purge", .said = said, .reason = "", .actor = ""};

    if (older_ms % DAY_MS == 0)
        snprintf(said, sizeof said, "--older %" PRId64 "d%s", older_ms / DAY_MS, with);
    else
        snprintf(said, sizeof said, "--older %" PRId64 "ms%s", older_ms, with);
    return act_begin(connection, &act, 0, act_no);
}

static tl_status purge_acts(db *connection, int64_t older_ms, uint64_t *removed)
{
    RESULT result = DB_RESULT_INIT;
    uint64_t page = PAGE;

    while (page >= PAGE) {
        TRY(read_status(connection,
                        SQL_RUN(connection, NULL, purge_acts, .older_ms = db_int(older_ms),
                                .most = db_uint(PAGE)),
                        "purging acts"));
        TRY(read_run(connection, &sql_purge_acts_result, &result, "reading what was purged"));
        page = db_get_uint(&result, 0, 0);
        *removed += page;
    }
    return TL_OK;
}

tl_status act_purge_end(db *connection, int64_t older_ms, const archive_dir *archive,
                        uint64_t act_no, const tl_purged *purged)
{
    char counts[320], sets[32 + ARCHIVE_SHA] = "";
    uint64_t acts = 0;

    TRY(archive != NULL ? TL_OK : purge_acts(connection, older_ms, &acts));
    if (archive != NULL && archive->last > 0)
        snprintf(sets, sizeof sets, " sets=%" PRIu32 " sha256=%s", archive->last,
                 archive->last_sha);
    snprintf(counts, sizeof counts,
             "trades=%" PRIu64 " resources=%" PRIu64 " sessions=%" PRIu64 " acts=%" PRIu64
             " looked_at=%" PRIu64 "%s",
             purged->trades, purged->resources, purged->sessions, acts, purged->looked_at, sets);
    return act_end(connection, act_no, counts);
}
