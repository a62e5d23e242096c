/* Every allocation of ours fails once: the answer is honest and nothing leaks.  And every round
 * trip passes the one function that a test can stop. */
#include "base/fault.h"
#include "common.h"
#include "support/theme.h"

static database *base;

FIXTURE(set_up)
{
    MYSQL *plain;

    base = database_new_empty(server_shared(), NULL);
    plain = database_connect(base);
    database_run(plain, "CREATE TABLE t (id INT PRIMARY KEY, b MEDIUMBLOB)");
    mysql_close(plain);
}

FIXTURE(tear_down)
{
    unsetenv("TL_FAULT_ALLOC");
    unsetenv("TL_FAULT_LOG");
    fault_reload();
    database_free(base);
}

STATEMENT(insert_row, "REPLACE INTO t VALUES (?, ?) RETURNING id, b");

static void fail_allocation(unsigned number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    setenv("TL_FAULT_ALLOC", text, 1);
    fault_reload();
}

/* TL_OK when all went well. */
static tl_status whole_life(db_answer *answer)
{
    static char big[3000];
    db_options options = options_at(database_option_file(base));
    db_value values[] = {db_int(1), db_bytes(big, sizeof(big))};
    db_result result = DB_RESULT_INIT;
    db *connection = NULL;
    tl_status status = db_open(&connection, &options);
    int pass;

    *answer = DB_DONE;
    for (pass = 0; status == TL_OK && pass < 2; pass++) {
        *answer = db_run(connection, &insert_row, values, 2, &result);
        if (*answer != DB_DONE)
            status = db_error_status(connection, *answer, "asking");
        if (*answer == DB_UNANSWERED)
            assert_false(db_usable(connection));
    }
    if (status == TL_OK)
        assert_int_equal(result.rows, 1);
    db_close(connection);
    db_result_free(&result);
    return status;
}

TEST(each_allocation_fails)
{
    unsigned number, before, after;
    tl_status status;
    db_answer answer;

    before = after = 0;
    for (number = 1; number < 100; number++) {
        fail_allocation(number);
        status = whole_life(&answer);
        if (fault_allocations() < number)
            break;
        if (answer == DB_NO_MEMORY)
            before++;
        if (answer == DB_UNANSWERED)
            after++;
        if (answer == DB_UNANSWERED)
            assert_int_equal(status, TL_UNKNOWN);
        else if (status != TL_OK) /* what can be done without is done without */
            assert_int_equal(status, TL_NO_MEMORY);
    }
    assert_in_range(number, 5, 99);
    assert_true(before > 0); /* nothing was sent */
    assert_true(after > 0);  /* sent, and there was no room for the answer */
}

static unsigned lines_with(const char *path, const char *part)
{
    char line[512];
    unsigned count = 0;
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        count += strstr(line, part) != NULL;
    fclose(file);
    return count;
}

TEST(every_round_trip_is_seen)
{
    char path[] = "/tmp/tradelock.passages.XXXXXX";
    int fd = mkstemp(path);
    db_value values[] = {db_int(1), db_bytes("x", 1)};
    db *connection;

    assert_true(fd >= 0);
    close(fd);
    unsetenv("TL_FAULT_ALLOC");
    setenv("TL_FAULT_LOG", path, 1);
    fault_reload();
    connection = open_at(database_option_file(base));
    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, db_run(connection, &insert_row, values, 2, NULL), DB_DONE);
    EXPECT(connection, db_run(connection, &insert_row, values, 2, NULL), DB_DONE);
    EXPECT(connection, db_commit(connection), DB_DONE);
    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    db_close(connection);
    unsetenv("TL_FAULT_LOG");
    fault_reload();
    assert_int_equal(lines_with(path, "connect\t"), 2);
    assert_int_equal(lines_with(path, "\tinsert_row\t"), 4);
    assert_int_equal(lines_with(path, "\tCOMMIT\tbefore"), 1);
    assert_int_equal(lines_with(path, "\tCOMMIT\tafter"), 1);
    assert_int_equal(lines_with(path, "\tROLLBACK\t"), 2);
    assert_int_equal(lines_with(path, "\tbefore"), lines_with(path, "\tafter"));
    unlink(path);
}

TESTS_OF(memory, set_up, tear_down)
