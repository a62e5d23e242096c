#include "fixture.h"

#include "support/client.h"
#include "support/theme.h"

tl_client *client_new(const fixture *f)
{
    return CLIENT(.config_file = database_option_file(f->db), .program = "test");
}

void fixture_open(fixture *f, const char *settings)
{
    f->db = database_new(server_shared(), settings);
    f->client = client_new(f);
    f->other = client_new(f);
    f->sql = database_connect(f->db);
}

void fixture_close(fixture *f)
{
    assert_log_whole(f);
    tl_client_close(f->client);
    tl_client_close(f->other);
    mysql_close(f->sql);
    database_free(f->db);
}

tl_mutex_options lease_options(int64_t lease_ms)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;

    options.lease_ms = lease_ms;
    options.max_hold_ms = 60000;
    return options;
}

tl_mutex *mutex_new(tl_client *client, const char *resource, const tl_mutex_options *options)
{
    tl_mutex *mutex = NULL;

    if (tl_mutex_new(&mutex, client, resource, options) != TL_OK)
        server_panic("no mutex: %s", tl_error_message());
    return mutex;
}

tl_mutex *locked(tl_client *client, const char *resource, const tl_mutex_options *options)
{
    tl_mutex *mutex = mutex_new(client, resource, options);
    tl_status status = tl_mutex_lock(mutex, 0);

    if (status != TL_GRANTED)
        server_panic("not granted: %s: %s", tl_status_name(status), tl_error_message());
    return mutex;
}

tl_status try_once(tl_client *client, const char *resource)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(client, resource, &options);
    tl_status status = tl_mutex_lock(mutex, 0);

    tl_mutex_free(mutex);
    return status;
}

MYSQL *caller_new(const fixture *f)
{
    MYSQL *caller = database_connect(f->db);

    database_run(caller, "SET idle_transaction_timeout = 60, "
                         "innodb_lock_wait_timeout = 20");
    database_run(caller, "START TRANSACTION");
    return caller;
}

void caller_run(MYSQL *caller, const char *sql)
{
    if (mysql_query(caller, sql) != 0)
        server_panic("%s: %s", sql, mysql_error(caller));
}

void assert_log_whole(const fixture *f)
{
    database_expect(f->sql, 0,
                    "SELECT COUNT(*) FROM (SELECT rev - LAG(rev) OVER w AS step, CAST(fence AS "
                    "SIGNED) - LAG(fence) OVER w AS rise FROM resource_log WINDOW w AS (PARTITION "
                    "BY resource ORDER BY rev)) x WHERE step <> 1 OR rise < 0");
    database_expect(f->sql, 0,
                    "SELECT COUNT(*) FROM resource_lock r LEFT JOIN resource_log l USING "
                    "(resource, rev) WHERE l.rev IS NULL OR l.status <> r.status");
    database_expect(f->sql, 0, "SELECT COUNT(*) FROM resource_log WHERE step = 'by hand'");
}

long long server_counter(const fixture *f, const char *name)
{
    return database_counter(f->sql, name);
}
