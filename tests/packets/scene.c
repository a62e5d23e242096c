#include "scene_books.h"

#include "base/clock.h"
#include "session/session.h"
#include "trade_lock/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOLD_MS 60000
#define COMMON                                                                                     \
    "beat_ms=20s\nsession_ms=60s\nconnect_timeout_s=1\nread_timeout_s=1\n"                         \
    "business_lock_wait_s=1\n"
#define PATIENT COMMON "pool_wait_ms=3s\ncommit_ms=3s\n"
/* One connection for its calls and for what follows its beats: which of a server's connections are
 * a far client's can be told by counting. */
#define NEAR PATIENT "pool_size=1\n"
/* Few connections, so that groups form. */
#define FAR PATIENT "pool_size=3\n"
#define HASTY COMMON "pool_size=3\npool_wait_ms=60\ncommit_ms=60\n"

static unsigned trades;

static tl_client *open_client(const char *file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = file;
    options.program = "packets";
    options.flags = TL_CLIENT_NO_JANITOR;
    /* A second for a connection is little on a machine that has much to do. */
    for (int tries = 0; tries < 30; tries++) {
        tl_status status = tl_client_open(&client, &options);

        if (status == TL_OK)
            return client;
        if (status != TL_UNREACHABLE)
            break;
    }
    server_panic("no client: %s", tl_error_message());
}

tl_client *scene_client(scene *s)
{
    return open_client(database_option_file(s->db));
}

void scene_open(scene *s, server *where)
{
    memset(s, 0, sizeof *s);
    s->where = where != NULL ? where : server_shared();
    s->db = database_new(s->where, NEAR);
    s->line = wire_start(server_socket(s->where));
    s->patient_file = database_option_file_at(s->db, wire_socket(s->line), FAR);
    s->hasty_file = database_option_file_at(s->db, wire_socket(s->line), HASTY);
    s->sql = database_connect(s->db);
    database_run(s->sql, "CREATE TABLE ledger (id INT AUTO_INCREMENT PRIMARY KEY, "
                         "serial_no VARCHAR(64) NOT NULL, note VARCHAR(16) NOT NULL DEFAULT '', "
                         "KEY (serial_no)) ENGINE=InnoDB");
    scene_books_open(s);
    s->near = scene_client(s);
}

void scene_close(scene *s)
{
    tl_client_close(s->near);
    mysql_close(s->sql);
    wire_free(s->line);
    unlink(s->patient_file);
    unlink(s->hasty_file);
    free(s->patient_file);
    free(s->hasty_file);
    database_free(s->db);
}

void scene_next_trade(scene *s)
{
    trades++;
    snprintf(s->serial, sizeof s->serial, "s%u", trades);
    snprintf(s->cust, sizeof s->cust, "c%u", trades);
    s->stage = 0;
    s->opened = 0;
}

/* A far client that could not end its session within its second, as on a busy machine, leaves one
 * that is silent.  A client that begins beside it claims nothing for two of its beats, which are
 * long here (client/clock_watch.c); an observer would have ended it by then.  One that falls silent
 * while the client begins is such a one too: whoever lives has beaten much later than that. */
static void end_silent_sessions(scene *s)
{
    database_run(s->sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE ended_at IS NULL "
                 "AND alive_until < UTC_TIMESTAMP(6) + INTERVAL 10 SECOND AND session_id <> '%s'",
                 session_id(s->near->session));
}

void scene_begin(scene *s, int hasty)
{
    end_silent_sessions(s);
    s->far = open_client(hasty ? s->hasty_file : s->patient_file);
    s->far_books = NULL;
    scene_next_trade(s);
}

void scene_end_trade(scene *s)
{
    for (size_t i = 0; i < s->claimed_count; i++)
        tl_lock_free(s->claimed[i]);
    s->claimed_count = 0;
    tl_lock_free(s->lock);
    s->lock = NULL;
    if (s->caller != NULL)
        mysql_close(s->caller);
    s->caller = NULL;
}

void scene_end(scene *s)
{
    scene_end_trade(s);
    tl_client_close(s->far);
    s->far = NULL;
    wire_reset(s->line);
}

tl_lock *scene_lock(scene *s, tl_client *client, tl_lane lane, unsigned flags)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {s->serial, s->cust, "WITHDRAW"};
    tl_lock *lock = NULL;

    options.lane = lane;
    options.flags = flags & ~(SCENE_PLAIN | SCENE_PRICED);
    options.max_hold_ms = HOLD_MS;
    if (lane == TL_LANE_SYNC && !(flags & TL_ASK_REPEATABLE)) {
        options.payload = "100 EUR";
        options.payload_size = 7;
        options.channel = flags & SCENE_PLAIN ? NULL : "fastpay";
    }
    if (flags & SCENE_PRICED) {
        options.amount_minor = SCENE_AMOUNT;
        options.currency = "EUR";
        options.batch = "scene";
    }
    if (flags & TL_ASK_RECLAIM)
        options.reclaim_epoch = 1;
    if (tl_lock_new(&lock, client, &key, &options) != TL_OK)
        server_panic("no handle: %s", tl_error_message());
    return lock;
}

tl_lock *scene_granted(scene *s, tl_client *client, tl_lane lane, unsigned flags)
{
    tl_lock *lock = scene_lock(s, client, lane, flags);
    tl_status status = tl_lock_ask(lock, 0);

    if (status != TL_GRANTED)
        server_panic("not granted: %s: %s", tl_status_name(status), tl_error_message());
    return lock;
}

tl_ending scene_ending(tl_outcome outcome)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = outcome;
    if (outcome == TL_OUTCOME_FAILURE)
        ending.proof = TL_PROOF_DECLINED;
    ending.retryable = outcome == TL_OUTCOME_FAILURE;
    return ending;
}

void scene_past(scene *s, tl_outcome outcome)
{
    tl_ending ending = scene_ending(outcome);
    tl_lock *lock = scene_granted(s, s->near, TL_LANE_SYNC, 0);

    if (tl_status_class(tl_lock_finish(lock, &ending)) == TL_CLASS_BROKEN)
        server_panic("the past did not happen: %s", tl_error_message());
    tl_lock_free(lock);
}

/* ------------------------------------------------------------ what is true -- */

void scene_row(scene *s, const char *op, char *to, size_t space)
{
    char *row = database_text(s->sql,
                              "SELECT CONCAT_WS(' ', status, epoch, sends) FROM "
                              "trade_lock WHERE cust_no='%s' AND serial_no='%s' AND "
                              "op_code='%s'",
                              s->cust, s->serial, op);

    snprintf(to, space, "%s", row != NULL ? row : "-");
    free(row);
}

long long scene_steps(scene *s)
{
    /* By serial number, as the history's key begins: of every trade that this customer can have. */
    return database_number(s->sql,
                           "SELECT COUNT(*) FROM trade_lock_log WHERE cust_no = '%s' AND "
                           "(serial_no = 's%s' OR serial_no LIKE 's%s-%%')",
                           s->cust, s->cust + 1, s->cust + 1);
}

long long scene_trade_steps(scene *s)
{
    return database_number(s->sql,
                           "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = '%s' AND "
                           "cust_no = '%s'",
                           s->serial, s->cust);
}

char *scene_story(scene *s)
{
    return database_text(s->sql,
                         "SELECT COALESCE(GROUP_CONCAT(CONCAT_WS(' ', TIME(logged_at), "
                         "HEX(token), fence, epoch, CONVERT(op_code USING utf8mb4), "
                         "CONVERT(step USING utf8mb4), CONVERT(status USING utf8mb4)) ORDER BY "
                         "logged_at SEPARATOR '; '), 'no step') FROM trade_lock_log "
                         "WHERE cust_no='%s'",
                         s->cust);
}

long long scene_ledger(scene *s)
{
    return database_number(s->sql, "SELECT COUNT(*) FROM ledger WHERE serial_no='%s'", s->serial);
}

static void to_hex(char *to, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        snprintf(to + 2 * i, 3, "%02X", bytes[i]);
}

/* The row must carry what the handle believes, and last at least as long. */
const char *scene_hold_problem(scene *s, tl_lock *lock)
{
    static char problem[400];
    char token[2 * STEP_TOKEN + 1], expected[200];
    int64_t before_ms = clock_boottime_ms(), remaining_ms = tl_lock_remaining_ms(lock);
    int64_t row_ms;
    char *row =
        database_text(s->sql,
                      "SELECT CONCAT_WS(' ', status, HEX(token), fence, epoch, session_id) FROM "
                      "trade_lock WHERE cust_no='%s' AND serial_no='%s' AND op_code='%s'",
                      lock->cust_no, lock->serial_no, lock_row_op(lock));

    to_hex(token, lock->grant.token, STEP_TOKEN);
    snprintf(expected, sizeof expected, "P %s %llu %u %s", token,
             (unsigned long long)lock->grant.fence, lock->epoch,
             session_id(lock->base.client->session));
    row_ms = database_number(s->sql,
                             "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), "
                             "max_hold_until) DIV 1000 FROM trade_lock WHERE cust_no='%s' "
                             "AND serial_no='%s' AND op_code='%s'",
                             lock->cust_no, lock->serial_no, lock_row_op(lock));
    problem[0] = '\0';
    if (row == NULL || strcmp(row, expected) != 0)
        snprintf(problem, sizeof problem, "the row is '%s', the handle '%s'",
                 row != NULL ? row : "-", expected);
    else if (tl_lock_view(lock)->fence != lock->grant.fence)
        snprintf(problem, sizeof problem, "the view has another fence");
    else if (remaining_ms == 0)
        snprintf(problem, sizeof problem, "granted, and nothing of max_hold is left");
    else if (remaining_ms > row_ms + (clock_boottime_ms() - before_ms) + 2)
        snprintf(problem, sizeof problem, "the handle believes in %lld ms, the row %lld",
                 (long long)remaining_ms, (long long)row_ms);
    free(row);
    return problem;
}

MYSQL *scene_caller(scene *s)
{
    MYSQL *caller = mysql_init(NULL);
    unsigned timeout_s = 1;

    if (caller == NULL)
        server_panic("out of memory");
    mysql_options(caller, MYSQL_READ_DEFAULT_FILE, s->patient_file);
    mysql_options(caller, MYSQL_READ_DEFAULT_GROUP, "client");
    mysql_options(caller, MYSQL_OPT_READ_TIMEOUT, &timeout_s);
    mysql_options(caller, MYSQL_INIT_COMMAND, "SET idle_transaction_timeout = 600");
    if (mysql_real_connect(caller, NULL, NULL, NULL, NULL, 0, NULL, 0) == NULL) {
        mysql_close(caller);
        return NULL;
    }
    return caller;
}

tl_status scene_book(void *context, struct st_mysql *connection)
{
    const scene *s = context;
    char sql[100];

    snprintf(sql, sizeof sql, "INSERT INTO ledger (serial_no) VALUES ('%s')", s->serial);
    if (mysql_query(connection, sql) == 0)
        return TL_OK;
    switch (mysql_errno(connection)) {
    case 1205:
    case 1213:
    case 1020:
        return TL_TRY_AGAIN;
    default:
        return TL_SERVER_ERROR;
    }
}

long long scene_log_problems(scene *s)
{
    return database_number(s->sql,
                           "SELECT COUNT(*) FROM (SELECT rev - LAG(rev) OVER w AS step, "
                           "CAST(fence AS SIGNED) - LAG(fence) OVER w AS rise FROM trade_lock_log "
                           "WINDOW w AS (PARTITION BY cust_no, serial_no, op_code ORDER BY rev)) x "
                           "WHERE step <> 1 OR rise < 0") +
           database_number(s->sql, "SELECT COUNT(*) FROM (SELECT cust_no, serial_no, op_code, "
                                   "MIN(rev) AS first FROM trade_lock_log GROUP BY cust_no, "
                                   "serial_no, op_code) l JOIN trade_lock t USING (cust_no, "
                                   "serial_no, op_code) WHERE l.first <> " DATABASE_MADE_REV) +
           database_number(s->sql, "SELECT COUNT(*) FROM (SELECT 1 FROM trade_lock_log WHERE step "
                                   "NOT IN ('evidence', 'restored') GROUP BY cust_no, serial_no, "
                                   "op_code, token "
                                   "HAVING COUNT(*) > 1) x");
}
