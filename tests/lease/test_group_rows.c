/*
 * A lock or an unlock leaves the same row and the same history in a group as alone, and so does one
 * that is refused: for every row that it can meet, each is done to one of two twins.
 */
#include "fixture.h"

#include "db/db.h"
#include "store/lease.h"
#include "support/theme.h"

#define ERROR_SIGNALED 1644
/* The tokens of the holds, of the step, and of nobody. */
#define HELD_TOKEN "held-held-held-h"
#define NEW_TOKEN "new-new-new-new-"
#define OTHER_TOKEN "other-other-othe"
#define NEIGHBOURS 3
#define PAST "UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE"
#define TO_COME "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
#define OLD_THREAD "'33333333-1111-4111-8111-111111111111'"
#define SESSION "'a0000000-0000-4000-8000-00000000000a'"

static fixture f;
static db *connection;

FIXTURE(setup)
{
    db_options options = {.group = "tradelock-client",
                          .idle_transaction_s = 60,
                          .connect_timeout_s = 10,
                          .read_timeout_s = 60};

    fixture_open(&f, NULL);
    options.option_file = database_option_file(f.db);
    if (db_open(&connection, &options) != TL_OK)
        server_panic("%s", tl_error_message());
}

FIXTURE(teardown)
{
    db_close(connection);
    fixture_close(&f);
}

/* What the twins are before the step: status, session, and the ends of the lease, the hold and the
 * minimum hold; no status: absent. */
struct before {
    const char *what, *status, *session, *lease, *max_hold, *free;
    int is_lockable; /* without being named */
};

static const struct before befores[] = {
    {"absent", NULL, NULL, NULL, NULL, NULL, 1},
    {"unlocked", "U", "NULL", "NULL", "NULL", "NULL", 1},
    {"unlocked and kept", "U", "NULL", "NULL", "NULL", TO_COME, 0},
    {"unlocked, kept long ago", "U", "NULL", "NULL", "NULL", PAST, 0},
    {"held by a session", "L", SESSION, "NULL", TO_COME, "NULL", 0},
    {"held by a session, too long", "L", SESSION, "NULL", PAST, "NULL", 0},
    {"held by a session, too long, and kept", "L", SESSION, "NULL", PAST, TO_COME, 0},
    {"held by nobody", "L", "NULL", "NULL", TO_COME, "NULL", 0},
    {"held by a lease", "L", SESSION, TO_COME, TO_COME, PAST, 0},
    {"held by a lease that is over", "L", SESSION, PAST, TO_COME, PAST, 0},
};

static void make(const struct before *b, const char *name)
{
    if (b->status == NULL)
        return;
    database_run(f.sql,
                 "INSERT INTO resource_lock (resource, status, step, thread_no, log_no, "
                 "session_id, token, fence, rev, lease_until, max_hold_until, free_at, "
                 "payload, remark, actor, locked_at, created_at, updated_at) "
                 "VALUES ('%s', '%s', 'lock', " OLD_THREAD ", NULL, %s, '%s', 7000, 9000, %s, "
                 "%s, %s, 'old', 'old', 'old', '2026-01-02', '2026-01-01', '2026-01-03')",
                 name, b->status, b->session, HELD_TOKEN, b->lease, b->max_hold, b->free);
}

/* The twins are those of the same moment. */
static void make_twins(const struct before *b)
{
    database_run(f.sql, "DELETE FROM resource_lock; DELETE FROM resource_log");
    database_run(f.sql, "SET timestamp = UNIX_TIMESTAMP(SYSDATE(6))");
    make(b, "alone");
    make(b, "group");
    database_run(f.sql, "SET timestamp = DEFAULT");
}

static lease_step step_of(const char *const *name, const char *held, int min_hold)
{
    return (lease_step){.names = name,
                        .count = 1,
                        .token = (const uint8_t *)NEW_TOKEN,
                        .held_token = (const uint8_t *)held,
                        .thread_no = "11111111-1111-4111-8111-111111111111",
                        .log_no = "22222222-1111-4111-8111-111111111111",
                        .session_id = "b0000000-0000-4000-8000-00000000000b",
                        .by_session = !min_hold,
                        .over_ms = 30000,
                        .max_hold_ms = 60000,
                        .min_hold_ms = min_hold ? 5000 : 0,
                        .payload = "new",
                        .payload_size = min_hold ? 3 : 0,
                        .remark = "new",
                        .actor = min_hold ? "new" : NULL};
}

/* As a caller of its own statement hears it. */
static int alone(const lease_step *s, int unlocks)
{
    db_result result = DB_RESULT_INIT;
    uint64_t affected = 0;
    size_t size;
    int changed;

    if (unlocks) {
        assert_int_equal(store_mutexes.release(connection, s, &affected), DB_DONE);
        changed = affected == 1;
    } else {
        assert_int_equal(store_resource_ask(connection, s, &result), DB_DONE);
        changed = memcmp(db_get_bytes(&result, 0, 0, &size), NEW_TOKEN, 16) == 0;
    }
    db_result_free(&result);
    return changed;
}

/* Between neighbours, which are granted; -1: the server refused all. */
static int in_a_group(lease_step *s, int unlocks, uint64_t *fence)
{
    static const char *const names[NEIGHBOURS] = {"a", "b", "h"};
    lease_step steps[NEIGHBOURS];
    resource_row neighbours[NEIGHBOURS], own = {.step = s, .unlocks = unlocks};
    resource_row *rows[NEIGHBOURS + 1];
    db_answer answer;

    for (int i = 0; i < NEIGHBOURS; i++) {
        steps[i] = step_of(&names[i], HELD_TOKEN, i % 2);
        neighbours[i] = (resource_row){.step = &steps[i]};
        rows[i < 2 ? i : i + 1] = &neighbours[i];
    }
    rows[2] = &own;
    answer = store_resource_group(connection, rows, NEIGHBOURS + 1);
    if (answer != DB_DONE) {
        assert_int_equal(answer, DB_ERROR);
        assert_int_equal(db_errno(connection), ERROR_SIGNALED);
        return -1;
    }
    for (int i = 0; i < NEIGHBOURS; i++)
        assert_true(neighbours[i].changed);
    *fence = own.fence;
    return own.changed;
}

/* A moment that the step wrote is told as seen from it, another as it is; a fence or rev that
 * begins is told as seen from the moment at which the row was made. */
/* clang-format off */
#define MOMENT(c)                                                                        \
    "IFNULL(IF(TIMESTAMPDIFF(MICROSECOND, updated_at, " c ") IN (0, 5000000, 30000000, " \
    "60000000), TIMESTAMPDIFF(MICROSECOND, updated_at, " c "), " c "), '-')"
#define BEGUN(c)                                                                         \
    c " - IF(" c " > 10000, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at), 0)"
static const char row_text[] =
    "SELECT CONCAT_WS(' ', status, step, thread_no, IFNULL(log_no, '-'), "
    "IFNULL(session_id, '-'), token, " BEGUN("fence") ", " BEGUN("rev") ", "
    MOMENT("lease_until") ", " MOMENT("max_hold_until") ", " MOMENT("free_at") ", "
    "IFNULL(payload, '-'), IFNULL(remark, '-'), IFNULL(actor, '-'), "
    MOMENT("locked_at") ", " MOMENT("created_at") ", "
    "IF(updated_at < '2026-01-04', updated_at, 'now')) "
    "FROM resource_lock WHERE resource = ";
/* clang-format on */

static char *row_of(const char *name)
{
    char *text = database_text(f.sql, "%s'%s'", row_text, name);

    return text != NULL ? text : strdup("absent");
}

static char *log_of(const char *name)
{
    char *text =
        database_text(f.sql,
                      "SELECT GROUP_CONCAT(CONCAT_WS(' ', l.step, l.status, l.thread_no, "
                      "IFNULL(l.log_no, '-'), IFNULL(l.session_id, '-'), l.token, "
                      "CAST(r.fence AS SIGNED) - l.fence, CAST(r.rev AS SIGNED) - l.rev, "
                      "l.lease_until IS NULL, l.max_hold_until IS NULL, l.free_at IS NULL, "
                      "IFNULL(l.remark, '-'), IFNULL(l.actor, '-'), l.account) ORDER BY l.rev "
                      "SEPARATOR '; ') FROM resource_log l JOIN resource_lock r USING (resource) "
                      "WHERE resource = '%s'",
                      name);

    return text != NULL ? text : strdup("none");
}

static void assert_twins(char *(*tell)(const char *name))
{
    char *first = tell("alone"), *second = tell("group");

    assert_string_equal(first, second);
    free(first);
    free(second);
}

static void compare(const struct before *b, int unlocks, const char *held, int min_hold)
{
    static const char *const names[] = {"alone", "group"};
    lease_step own = step_of(&names[0], held, min_hold);
    lease_step shared = step_of(&names[1], held, min_hold);
    uint64_t fence = 0;
    int changed, in_group, expected = b->is_lockable;

    if (unlocks)
        expected = b->status != NULL && b->status[0] == 'L' && strcmp(held, HELD_TOKEN) == 0;
    make_twins(b);
    changed = alone(&own, unlocks);
    in_group = in_a_group(&shared, unlocks, &fence);
    if (changed != expected || in_group != (unlocks && b->status == NULL ? -1 : expected))
        fail_msg("%s, %s: alone %d, in a group %d", b->what, unlocks ? "unlock" : "lock", changed,
                 in_group);
    assert_twins(row_of);
    assert_twins(log_of);
    if (in_group == 1)
        database_expect(f.sql, (long long)fence,
                        "SELECT fence FROM resource_lock WHERE resource = 'group'");
    if (in_group == -1)
        database_expect(f.sql, 0, "SELECT COUNT(*) FROM resource_log");
}

#define FOR_EACH(b)                                                                                \
    for (const struct before *b = befores; b < befores + sizeof befores / sizeof *befores; b++)

TEST(test_a_lock_is_the_same)
{
    FOR_EACH(b)
    for (int min_hold = 0; min_hold < 2; min_hold++)
        compare(b, 0, HELD_TOKEN, min_hold);
}

TEST(test_an_unlock_is_the_same)
{
    FOR_EACH(b)
    {
        compare(b, 1, HELD_TOKEN, 1);
        compare(b, 1, OTHER_TOKEN, 1);
    }
}

/* Of one name: who has it gives it back, the next is granted it, who comes then is
 * refused.  And an absent one is made by the first. */
TEST(test_several_of_one_name)
{
    static const char *const names[] = {"absent", "absent", "alone", "alone", "alone"};
    static const int unlocks[] = {0, 0, 1, 0, 0}, changed[] = {1, 0, 1, 1, 0};
    uint8_t tokens[5][LEASE_TOKEN] = {"0", "1", "2", "3", "4"};
    lease_step steps[5];
    resource_row taken[5], *rows[5];

    make_twins(&befores[4]);
    for (int i = 0; i < 5; i++) {
        steps[i] = step_of(&names[i], HELD_TOKEN, 0);
        steps[i].token = tokens[i];
        taken[i] = (resource_row){.step = &steps[i], .unlocks = unlocks[i]};
        rows[i] = &taken[i];
    }
    assert_int_equal(store_resource_group(connection, rows, 5), DB_DONE);
    for (int i = 0; i < 5; i++)
        assert_int_equal(taken[i].changed, changed[i]);
    assert_int_equal(taken[2].fence, 7001);
    assert_int_equal(taken[3].fence, 7002);
    database_expect(f.sql, 2,
                    "SELECT COUNT(*) FROM resource_lock WHERE (resource = 'absent' AND HEX(token) "
                    "= RPAD('30', 32, '0')) OR (resource = 'alone' AND HEX(token) = RPAD('33', 32, "
                    "'0') AND fence = 7002 AND rev = 9002)");
    database_expect(f.sql, 700070017002,
                    "SELECT GROUP_CONCAT(fence ORDER BY rev SEPARATOR '') FROM resource_log WHERE "
                    "resource = 'alone'");
}

TESTS_OF(group_rows, setup, teardown)
