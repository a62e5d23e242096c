/* What the tests of connections share. */
#ifndef TESTS_DB_COMMON_H
#define TESTS_DB_COMMON_H

#include "db/db.h"
#include "sql_text.h"
#include "support/database.h"

#include "support/theme.h"

#define STATEMENT(variable, sql)                                                                   \
    static const struct sql_text variable = {.name = #variable, .text = (sql)}

static inline db_options options_at(const char *option_file)
{
    db_options options = {.option_file = option_file,
                          .group = "tradelock-client",
                          .lock_wait_s = 5,
                          .idle_transaction_s = 30,
                          .connect_timeout_s = 10,
                          .read_timeout_s = 20};

    return options;
}

static inline db *open_with(const db_options *options)
{
    db *connection = NULL;
    tl_status status = db_open(&connection, options);

    if (status != TL_OK)
        fail_msg("db_open: %s: %s", tl_status_name(status), tl_error_message());
    return connection;
}

static inline db *open_at(const char *option_file)
{
    db_options options = options_at(option_file);

    return open_with(&options);
}

/* The answer, with the connection's error when it is not the expected one. */
static inline void expect_answer(db *connection, db_answer answer, db_answer expected,
                                 const char *file, int line)
{
    if (answer != expected)
        print_error("%s:%d: answer %d, not %d; error %u: %s\n", file, line, (int)answer,
                    (int)expected, db_errno(connection), db_error(connection));
    _assert_int_equal((uintmax_t)answer, (uintmax_t)expected, file, line);
}
#define EXPECT(connection, answer, expected)                                                       \
    expect_answer(connection, answer, expected, __FILE__, __LINE__)

static inline db_answer run_sql(db *connection, const char *sql, db_result *result)
{
    return db_run_text(connection, "test", sql, strlen(sql), result);
}

static inline void expect_message(const char *part)
{
    if (!strstr(tl_error_message(), part))
        fail_msg("'%s' is not in: %s", part, tl_error_message());
}

#endif
