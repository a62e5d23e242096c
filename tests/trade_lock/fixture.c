#include "fixture.h"

#include "support/theme.h"

tl_client *client_of(const char *option_file, unsigned flags)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_status status;

    options.config_file = option_file;
    options.program = "test";
    options.flags = flags;
    status = tl_client_open(&client, &options);
    if (status != TL_OK)
        server_panic("no client: %s: %s", tl_status_name(status), tl_error_message());
    return client;
}

tl_client *client_new(const fixture *f, unsigned flags)
{
    return client_of(database_option_file(f->db), flags);
}

void fixture_open(fixture *f, const char *settings)
{
    f->db = database_new(server_shared(), settings);
    f->client = client_new(f, TL_CLIENT_NO_JANITOR);
    f->other = client_new(f, TL_CLIENT_NO_JANITOR);
    f->sql = database_connect(f->db);
}

void fixture_close(fixture *f)
{
    tl_client_close(f->client);
    tl_client_close(f->other);
    mysql_close(f->sql);
    database_free(f->db);
}

tl_lock *lock_new(tl_client *client, const char *serial, const char *cust,
                  const tl_lock_options *options)
{
    tl_key key = {serial, cust, "WITHDRAW"};
    tl_lock *lock = NULL;
    tl_status status = tl_lock_new(&lock, client, &key, options);

    if (status != TL_OK)
        server_panic("no handle: %s", tl_error_message());
    return lock;
}

tl_lock_options sync_options(const char *payload)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.max_hold_ms = 60000;
    options.payload = payload;
    options.payload_size = payload != NULL ? strlen(payload) : 0;
    options.channel = "fastpay";
    return options;
}

const tl_lock_options *sync_plainly(void)
{
    static _Thread_local tl_lock_options options;

    options = sync_options("x");
    return &options;
}

tl_lock_options retry_options(void)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.lane = TL_LANE_RETRY;
    options.max_hold_ms = 60000;
    return options;
}

tl_lock *ask(tl_client *client, const char *serial, const char *cust,
             const tl_lock_options *options, tl_status *status)
{
    tl_lock *lock = lock_new(client, serial, cust, options);

    *status = tl_lock_ask(lock, 0);
    return lock;
}

tl_lock *granted(tl_client *client, const char *serial, const char *cust,
                 const tl_lock_options *options)
{
    tl_status status;
    tl_lock *lock = ask(client, serial, cust, options, &status);

    if (status != TL_GRANTED)
        server_panic("not granted: %s: %s", tl_status_name(status), tl_error_message());
    return lock;
}

tl_status finish(tl_lock *lock, tl_outcome outcome, tl_proof proof)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = outcome;
    ending.proof = proof;
    return tl_lock_finish(lock, &ending);
}

void assert_row(const fixture *f, const char *serial, const char *cust, const char *op,
                const char *expected)
{
    database_expect_text(f->sql, strcmp(expected, "-") == 0 ? "none" : expected,
                         "SELECT CONCAT_WS(' ', status, epoch, sends) FROM trade_lock WHERE "
                         "cust_no='%s' AND serial_no='%s' AND op_code='%s'",
                         cust, serial, op);
}

void assert_log_whole(const fixture *f)
{
    char *headless;

    database_expect(
        f->sql, 0,
        "SELECT COUNT(*) FROM (SELECT rev - LAG(rev) OVER w AS step, CAST(fence AS SIGNED) - "
        "LAG(fence) OVER w AS rise FROM trade_lock_log WINDOW w AS (PARTITION BY cust_no, "
        "serial_no, op_code ORDER BY rev)) x WHERE step <> 1 OR rise < 0");
    /* With 1 where a test typed it. */
    headless = database_text(
        f->sql, "SELECT GROUP_CONCAT(serial_no, ' ', op_code, ' ', first, ' made at ', "
                "t.created_at) FROM (SELECT cust_no, serial_no, op_code, MIN(rev) AS "
                "first FROM trade_lock_log GROUP BY cust_no, serial_no, op_code) l JOIN "
                "trade_lock t USING (cust_no, serial_no, op_code) WHERE l.first <> 1 AND "
                "l.first <> " DATABASE_MADE_REV);
    if (headless != NULL)
        fail_msg("%s", headless);
}

long long server_counter(const fixture *f, const char *name)
{
    return database_counter(f->sql, name);
}

void await_granting(tl_client *client, const char *serial, const char *cust)
{
    tl_status status = TL_ASK_CHANNEL;

    for (int i = 0; i < 1200 && status != TL_GRANTED; i++) {
        tl_lock *lock;

        lock = ask(client, text_of("%s-%d", serial, i).is, cust, SYNC, &status);
        if (status == TL_GRANTED)
            assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
        if (status != TL_GRANTED)
            usleep(50 * 1000);
    }
    assert_status(status, TL_GRANTED);
}

tl_status ask_now(tl_client *client, const char *serial)
{
    tl_status status;

    tl_lock_free(ask(client, serial, "c1", SYNC, &status));
    return status;
}

void await_grant(tl_client *client, const char *serial)
{
    tl_lock *lock = lock_new(client, serial, "c1", SYNC);
    tl_status status = tl_lock_ask(lock, 0);

    for (int i = 0; i < 6000 && status != TL_GRANTED; i++) {
        usleep(10 * 1000);
        status = tl_lock_ask(lock, 0);
    }
    if (status != TL_GRANTED)
        print_message("%s: %s\n", tl_status_name(status), tl_error_message());
    assert_status(status, TL_GRANTED);
    tl_lock_free(lock);
}

int has_row(MYSQL *sql, const char *serial)
{
    return (int)database_number(sql, "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s'",
                                serial);
}

/* ------------------------------------------------------------------------- the doctor -- */

struct heard {
    const char *check;
    char found[160], sentence[512];
    int level; /* -1: it was not told */
};

static int hear(void *context, const tl_finding *finding)
{
    struct heard *h = context;

    if (strcmp(finding->check, h->check) != 0)
        return 0;
    h->level = (int)finding->level;
    snprintf(h->found, sizeof h->found, "%s", finding->found);
    snprintf(h->sentence, sizeof h->sentence, "%s", finding->sentence);
    return 0;
}

static int finds(tl_client *client, struct heard *h, int level, const char *found, const char *part)
{
    h->level = -1;
    h->found[0] = h->sentence[0] = '\0';
    (void)tl_doctor(client, hear, h);
    return h->level == level && strcmp(h->found, found) == 0 && strstr(h->sentence, part) != NULL;
}

void expect_finding(tl_client *client, const char *check, int level, const char *found,
                    const char *part)
{
    struct heard h = {.check = check};

    if (!finds(client, &h, level, found, part))
        fail_msg("%s: level %d, '%s': %s", check, h.level, h.found, h.sentence);
}

void await_finding(tl_client *client, const char *check, int level, const char *found,
                   const char *part)
{
    struct heard h = {.check = check};

    for (int i = 0; i < 400 && !finds(client, &h, level, found, part); i++)
        usleep(50 * 1000);
    if (!finds(client, &h, level, found, part))
        fail_msg("%s: level %d, '%s': %s", check, h.level, h.found, h.sentence);
}
