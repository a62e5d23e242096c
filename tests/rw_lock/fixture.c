#include "rw_lock/fixture.h"

#include "support/theme.h"

tl_rw_options rw_options(int64_t lease_ms)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;

    options.lease_ms = lease_ms;
    options.max_hold_ms = 60000;
    return options;
}

tl_rw *rw_new(tl_client *client, const char *resource, int64_t lease_ms)
{
    tl_rw_options options = rw_options(lease_ms);
    tl_rw *rw = NULL;

    if (tl_rw_new(&rw, client, resource, &options) != TL_OK)
        server_panic("no lock: %s", tl_error_message());
    return rw;
}

static tl_rw *locked_for(tl_rw *rw, tl_status (*ask)(tl_rw *rw, int64_t wait_ms))
{
    tl_status status = ask(rw, 0);

    if (status != TL_GRANTED)
        server_panic("not granted: %s: %s", tl_status_name(status), tl_error_message());
    return rw;
}

tl_rw *reading(tl_client *client, const char *resource, int64_t lease_ms)
{
    return locked_for(rw_new(client, resource, lease_ms), tl_rw_read);
}

tl_rw *writing(tl_client *client, const char *resource, int64_t lease_ms)
{
    return locked_for(rw_new(client, resource, lease_ms), tl_rw_write);
}

static tl_status try_for(tl_client *client, const char *resource,
                         tl_status (*ask)(tl_rw *rw, int64_t wait_ms), int64_t wait_ms)
{
    tl_rw *rw = rw_new(client, resource, 0);
    tl_status status = ask(rw, wait_ms);

    tl_rw_free(rw);
    return status;
}

tl_status try_read(tl_client *client, const char *resource)
{
    return try_for(client, resource, tl_rw_read, 0);
}

tl_status try_write(tl_client *client, const char *resource)
{
    return try_for(client, resource, tl_rw_write, 0);
}

tl_status write_when_free(tl_client *client, const char *resource)
{
    return try_for(client, resource, tl_rw_write, 60000);
}

void assert_holders_whole(const fixture *f, int by_hand)
{
    assert_int_equal(database_number(f->sql,
                                     "SELECT COUNT(*) FROM (SELECT rev - LAG(rev) OVER w AS step, "
                                     "CAST(fence AS SIGNED) - LAG(fence) OVER w AS rise "
                                     "FROM resource_holder_log WINDOW w AS "
                                     "(PARTITION BY resource, slot ORDER BY rev)) x "
                                     "WHERE step <> 1 OR rise < 0"),
                     0);
    assert_int_equal(database_number(f->sql, "SELECT COUNT(*) FROM resource_holder h LEFT JOIN "
                                             "resource_holder_log l USING (resource, slot, rev) "
                                             "WHERE l.rev IS NULL OR l.status <> h.status"),
                     0);
    /* Each grant has a fence of its own. */
    assert_int_equal(database_number(f->sql,
                                     "SELECT COUNT(*) FROM (SELECT 1 FROM resource_holder_log "
                                     "WHERE step IN ('read', 'write') "
                                     "GROUP BY resource, fence HAVING COUNT(*) > 1) x"),
                     0);
    assert_int_equal(database_number(f->sql, "SELECT COUNT(*) FROM resource_holder_log "
                                             "WHERE step = 'by hand'"),
                     by_hand);
}
