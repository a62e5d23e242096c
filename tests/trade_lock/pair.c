#include "pair.h"

#include "support/crew.h"
#include "support/theme.h"

#define A_DAY "86400000"

struct pair pair;
/* Option files, which are removed in the end. */
static char *paths[32];
static size_t path_count;

server *start_at(unsigned number, const char *option, unsigned *port)
{
    char at[64], id[64];
    const char *const options[] = {"--log-bin=binlog",
                                   option != NULL ? option : "--sync-binlog=1",
                                   "--sync-binlog=1",
                                   "--log-slave-updates=1",
                                   "--skip-networking=0",
                                   "--bind-address=127.0.0.1",
                                   "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                                   ("--rpl-semi-sync-master-timeout=" A_DAY),
                                   at,
                                   id,
                                   NULL};

    *port = server_free_port();
    snprintf(at, sizeof at, "--port=%u", *port);
    snprintf(id, sizeof id, "--server-id=%u", number);
    return server_start(options);
}

void follow(unsigned port, server *to, int acknowledges)
{
    MYSQL *sql = server_connect(to);

    database_run(sql,
                 "SET GLOBAL rpl_semi_sync_slave_enabled = %d; "
                 "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %u, "
                 "MASTER_SSL = 0, MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos; "
                 "START SLAVE; SET GLOBAL read_only = 1",
                 acknowledges, port);
    mysql_close(sql);
}

void replicate(server *from, unsigned port, server *to)
{
    MYSQL *sql = server_connect(from);

    database_run(sql, "CREATE USER IF NOT EXISTS replica@'%%'; "
                      "GRANT REPLICATION SLAVE ON *.* TO replica@'%%'");
    mysql_close(sql);
    follow(port, to, 1);
}

/* Why a server is not accepted. */
static void print_attestations(MYSQL *sql)
{
    char *text = database_text(
        sql, "SELECT COALESCE(GROUP_CONCAT(CONCAT_WS(' ', restore_no, session_id, "
             "COALESCE(attested_at, 'silent'), missing, kept, step, serial_no, op_code) SEPARATOR "
             "'\n'), '') FROM tl_attestation LEFT JOIN tl_attestation_missing "
             "USING (restore_no, session_id)");

    fprintf(stderr, "restore, session, attested, missing, kept, what:\n%s\n", text);
    free(text);
}

void await_number(MYSQL *sql, const char *query, long long wanted)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (database_number(sql, "%s", query) != wanted) {
        if (crew_now_ms() > end_ms) {
            print_attestations(sql);
            server_panic("%s never is %lld", query, wanted);
        }
        usleep(10 * 1000);
    }
}

void await_at(MYSQL *sql)
{
    char *position = database_text(pair.sql, "SELECT @@gtid_binlog_pos");

    assert_int_equal(
        database_number(sql, "SELECT MASTER_GTID_WAIT('%s', %d)", position, PATIENCE_MS / 1000), 0);
    free(position);
}

void await_copy(void)
{
    await_at(pair.sql_copy);
}

static const char *option_file_at(const char *socket, const char *settings)
{
    assert_true(path_count < sizeof paths / sizeof paths[0]);
    paths[path_count] = database_option_file_at(pair.db, socket, settings);
    return paths[path_count++];
}

const char *file_at_copy(void)
{
    return option_file_at(server_socket(pair.copy), BEATING);
}

const char *file_with(const char *hosts, const char *settings)
{
    const char *path = option_file_at("/nowhere", settings);
    FILE *file = fopen(path, "ae");

    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nuser=plain\npassword=plain\nhost=%s\n", hosts);
    fclose(file);
    return path;
}

const char *hosts_with(unsigned port)
{
    static char hosts[64];

    snprintf(hosts, sizeof hosts, "127.0.0.1:%u, 127.0.0.1:%u", pair.port_primary, port);
    return hosts;
}

const char *both(void)
{
    return hosts_with(pair.port_copy);
}

tl_client *open_with(const char *option_file, unsigned flags)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client;
    tl_status status;

    options.config_file = option_file;
    options.flags = TL_CLIENT_NO_JANITOR | flags;
    status = tl_client_open(&client, &options);
    if (status != TL_OK)
        fail_msg("%s: %s", tl_status_name(status), tl_error_message());
    return client;
}

void open_pair_with(int waits, const char *option)
{
    memset(&pair, 0, sizeof pair);
    pair.primary = start_at(1, option, &pair.port_primary);
    pair.copy = start_at(2, option, &pair.port_copy);
    replicate(pair.primary, pair.port_primary, pair.copy);
    pair.db = database_new(pair.primary, BEATING);
    database_note_server(pair.db);
    pair.sql = database_connect(pair.db);
    database_run(pair.sql,
                 "CREATE USER plain@'%%' IDENTIFIED BY 'plain'; "
                 "CREATE USER plain@localhost IDENTIFIED BY 'plain'; "
                 "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON %s.* TO plain@'%%'; "
                 "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON %s.* TO plain@localhost",
                 database_name(pair.db), database_name(pair.db));
    pair.sql_copy = server_connect(pair.copy);
    await_copy();
    database_run(pair.sql_copy, "USE %s", database_name(pair.db));
    if (waits) {
        database_run(pair.sql, "SET GLOBAL rpl_semi_sync_master_enabled = 1");
        database_run(pair.sql_copy, "STOP SLAVE; START SLAVE");
        await_number(pair.sql,
                     "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                     "WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS'",
                     1);
    }
    pair.first = open_with(file_with(both(), BEATING), 0);
    pair.second = open_with(file_with(both(), BEATING), 0);
}

void open_pair(int waits)
{
    open_pair_with(waits, NULL);
}

void close_pair(void)
{
    const fixture promoted = {.db = pair.db, .sql = pair.sql_copy};

    tl_client_close(pair.ops);
    tl_client_close(pair.second);
    tl_client_close(pair.first);
    mysql_close(pair.sql);
    assert_log_whole(&promoted);
    mysql_close(pair.sql_copy);
    server_free(pair.copy);
    database_forget(pair.db);
    while (path_count > 0) {
        remove(paths[--path_count]);
        free(paths[path_count]);
    }
    server_free(pair.primary);
    memset(&pair, 0, sizeof pair);
}

uint64_t beats(tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(client, &stats), TL_OK);
    return stats.beats;
}

void await_rounds(void)
{
    const uint64_t one = beats(pair.first) + 4, other = beats(pair.second) + 4;

    AWAIT_WHILE(beats(pair.first) < one || beats(pair.second) < other);
    usleep(200 * 1000);
}

uint64_t beats_unreachable(tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(client, &stats), TL_OK);
    return stats.beats_unreachable;
}

void await_unreachable(tl_client *client, uint64_t times)
{
    AWAIT_WHILE(beats_unreachable(client) < times);
}

void stop_writes(void)
{
    const uint64_t mine = beats_unreachable(pair.first), other = beats_unreachable(pair.second);

    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_unreachable(pair.first, mine + 1);
    await_unreachable(pair.second, other + 1);
    await_copy();
}

void apply_all(void)
{
    char *position;

    database_run(pair.sql_copy, "STOP SLAVE IO_THREAD");
    position = database_replication(pair.sql_copy, "Gtid_IO_Pos");
    assert_non_null(position);
    assert_int_equal(database_number(pair.sql_copy, "SELECT MASTER_GTID_WAIT('%s', %d)", position,
                                     PATIENCE_MS / 1000),
                     0);
    free(position);
}

void await_stopped_at(const char *table)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    char *found = NULL;

    do {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
        free(found);
        found = database_replication(pair.sql_copy, "Last_SQL_Error");
    } while (found[0] == '\0');
    assert_non_null(strstr(found, "Error_code: 1032"));
    assert_non_null(strstr(found, table));
    free(found);
}

void set_position(void)
{
    char *position = database_text(pair.sql, "SELECT @@gtid_binlog_pos");

    database_run(pair.sql_copy, "STOP SLAVE; RESET MASTER; SET GLOBAL gtid_slave_pos = '%s'",
                 position);
    free(position);
}

void take_writes(void)
{
    database_run(pair.sql_copy, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

void open_ops(void)
{
    pair.ops = open_with(file_at_copy(), TL_CLIENT_NO_SESSION);
}

void promote_as(int fenced)
{
    if (pair.ops == NULL)
        open_ops();
    assert_status(tl_promote(pair.ops, fenced, "hook", "the primary is gone"), TL_OK);
}

void promote(void)
{
    promote_as(0);
}

int is_restored(void)
{
    return database_number(pair.sql_copy, "SELECT tl_restored()") != 0;
}

void await_accepted(void)
{
    await_number(pair.sql_copy, "SELECT tl_restored()", 0);
    assert_int_equal(
        database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'proved'"), 1);
    assert_int_equal(
        database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'confirmed'"),
        0);
}

static int64_t attested(void)
{
    return database_number(pair.sql_copy,
                           "SELECT COUNT(*) FROM tl_attestation WHERE attested_at IS NOT NULL");
}

void expect_veto(int64_t sessions)
{
    AWAIT_WHILE(attested() < sessions);
    usleep(QUIET_MS * 1000);
    assert_true(is_restored());
    assert_int_not_equal(ask_now(pair.first, "vetoed"), TL_GRANTED);
    assert_false(has_row(pair.sql_copy, "vetoed"));
}

static int take_found(void *context, const tl_missing *missing)
{
    struct found *found = context;

    found->rows++;
    found->unattested += !missing->attested;
    found->not_kept += missing->not_kept;
    if (missing->cust_no[0] != '\0') {
        found->steps++;
        snprintf(found->serial, sizeof found->serial, "%s", missing->serial_no);
        snprintf(found->token, sizeof found->token, "%s", missing->token);
    }
    if (!missing->attested)
        snprintf(found->whose, sizeof found->whose, "%s", missing->whose);
    return 0;
}

struct found what_is_missing(void)
{
    struct found found;
    tl_restore state = TL_RESTORE_INIT;

    memset(&found, 0, sizeof found);
    assert_status(tl_restore_status(pair.ops, &state, NULL, NULL), TL_OK);
    assert_status(tl_restore_missing(pair.ops, state.number, take_found, &found), TL_OK);
    return found;
}

void accept_as_two(void)
{
    database_propose(pair.sql_copy);
    assert_status(tl_restore_accept(pair.ops, "bob", "compared", NULL), TL_OK);
}

void end_mine(void)
{
    database_run(pair.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_by = session_id, "
                 "ended_on = CONCAT_WS(' ', @@hostname, @@server_id, @@datadir) "
                 "WHERE session_id = '%s'",
                 tl_client_session(pair.first));
}
