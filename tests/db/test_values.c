/* Values go to the server and come back as they were, by every road. */
#include "common.h"
#include "db/db_internal.h"
#include "support/theme.h"

static database *base;
static db *connection;

FIXTURE(set_up)
{
    base = database_new_empty(server_shared(), NULL);
    connection = open_at(database_option_file(base));
    EXPECT(connection,
           run_sql(connection,
                   "CREATE TABLE v (id INT PRIMARY KEY AUTO_INCREMENT, i BIGINT, "
                   "u BIGINT UNSIGNED, t VARCHAR(4000) CHARACTER SET utf8mb4 "
                   "COLLATE utf8mb4_nopad_bin, b MEDIUMBLOB)",
                   NULL),
           DB_DONE);
}

FIXTURE(tear_down)
{
    db_close(connection);
    database_free(base);
}

STATEMENT(insert_value, "INSERT INTO v (i, u, t, b) VALUES (?, ?, ?, ?) RETURNING i, u, t, b");
STATEMENT(select_last, "SELECT i, u, t, b FROM v ORDER BY id DESC LIMIT 1");

static void expect_cell(const db_result *result, size_t column, const db_value *value)
{
    size_t size;
    const void *bytes = db_get_bytes(result, 0, column, &size);

    assert_int_equal(db_is_null(result, 0, column), value->type == DB_NULL);
    switch (value->type) {
    case DB_NULL:
        assert_int_equal(size, 0);
        assert_string_equal(db_get_text(result, 0, column), "");
        break;
    case DB_INT:
        assert_true(db_get_int(result, 0, column) == value->int_value);
        break;
    case DB_UINT:
        assert_true(db_get_uint(result, 0, column) == (uint64_t)value->int_value);
        break;
    case DB_TEXT:
    case DB_BYTES:
        assert_int_equal(size, value->size);
        assert_memory_equal(bytes, value->data, size);
        assert_int_equal(((const char *)bytes)[size], '\0');
        break;
    }
}

/* Prepared with RETURNING, read again prepared, read as text, written as literals. */
static void round_trip(db_value i, db_value u, db_value t, db_value b)
{
    const db_value values[] = {i, u, t, b};
    db_result result = DB_RESULT_INIT;
    size_t column, size = 64;
    char *sql, *end;
    int pass;

    EXPECT(connection, db_run(connection, &insert_value, values, 4, &result), DB_DONE);
    for (pass = 0; pass < 4; pass++) {
        assert_int_equal(result.rows, 1);
        assert_int_equal(result.columns, 4);
        for (column = 0; column < 4; column++)
            expect_cell(&result, column, &values[column]);
        if (pass == 0)
            EXPECT(connection, db_run(connection, &select_last, NULL, 0, &result), DB_DONE);
        else
            EXPECT(connection, run_sql(connection, select_last.text, &result), DB_DONE);
        if (pass != 1)
            continue;
        for (column = 0; column < 4; column++)
            size += db_literal_size(&values[column]);
        sql = malloc(size);
        assert_non_null(sql);
        end = sql + sprintf(sql, "INSERT INTO v (i, u, t, b) VALUES (");
        for (column = 0; column < 4; column++) {
            end = db_literal(end, &values[column]);
            *end++ = column < 3 ? ',' : ')';
        }
        *end = '\0';
        assert_true((size_t)(end - sql) < size);
        EXPECT(connection, run_sql(connection, sql, &result), DB_DONE);
        assert_int_equal(result.affected, 1);
        free(sql);
        EXPECT(connection, run_sql(connection, select_last.text, &result), DB_DONE);
    }
    db_result_free(&result);
}

TEST(all_types)
{
    static char big[65536];
    char all[256], text[1025];
    size_t i;

    for (i = 0; i < sizeof(big); i++)
        big[i] = (char)(i * 31 + i / 256);
    for (i = 0; i < sizeof(all); i++)
        all[i] = (char)i;
    memset(text, 'x', sizeof(text) - 1);
    text[1024] = '\0';
    round_trip(db_null(), db_null(), db_text(NULL), db_bytes(NULL, 0));
    round_trip(db_int(0), db_uint(0), db_text(""), db_bytes("", 0));
    round_trip(db_int(INT64_MIN), db_uint(UINT64_MAX), db_text("it's \\ \"q\" \n\r\t\032 %"),
               db_bytes(all, sizeof(all)));
    round_trip(db_int(INT64_MAX), db_uint(1), db_text("\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xb0 "),
               db_bytes(big, sizeof(big)));
    round_trip(db_int(-1), db_uint(INT64_MAX), db_text(text), db_bytes(big, 255));
    text[257] = '\0';
    round_trip(db_int(1), db_uint(2), db_text(text), db_bytes(big, 256));
    text[256] = '\0';
    round_trip(db_int(1), db_uint(2), db_text(text), db_bytes(big, 257));
}

STATEMENT(other_types, "SELECT CAST('2024-02-29 23:59:59.123456' AS DATETIME(6)), "
                       "CAST('00000000-0000-4000-8000-00000000abcd' AS UUID), "
                       "SUM(12345678901234567890), CAST(7 AS DECIMAL(10,2)), "
                       "x'00ff', 1 = 1, NULL");

STATEMENT(many_rows, "SELECT seq, REPEAT(CHAR(64 + seq % 26), seq % 600) FROM seq_1_to_2000 "
                     "WHERE seq > ?");

STATEMENT(set_text, "UPDATE v SET t = ? WHERE id = 1");

/* libmariadb believes the length of a cell, however long its row is. */
TEST(a_cell_ends_with_its_row)
{
    static const struct {
        const char *bytes;
        size_t size;
        int is_whole;
    } rows[] = {
        {"\0\0\3abc12345678", 14, 1},
        {"\0\0\3abc12345678", 13, 0},
        {"\0\0\0"
         "12345678",
         11, 1},
        {"\0\4"
         "12345678",
         10, 1},
        {"\0\14", 2, 1},
        {"\0", 1, 0},
        {"\0\10\373", 3, 0},
        {"\0\10\377", 3, 0},
        {"\0\10\374\1\0x", 6, 1},
        {"\0\10\374\1", 4, 0},
        {"\0\10\375\0\0\1x", 7, 0},
        {"\0\10\376\0\0\0\200\0\0\0\0x", 12, 0},
        {"\0\10\376\377\377\377\377\377\377\377\377x", 12, 0},
        {"\0\10\376\1\0\0\0\0\0\0\0x", 12, 1},
    };
    const MYSQL_FIELD fields[] = {{.type = MYSQL_TYPE_VAR_STRING}, {.type = MYSQL_TYPE_LONGLONG}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *exact = malloc(rows[i].size);
        const MYSQL_ROWS row = {.data = (MYSQL_ROW)(void *)exact, .length = rows[i].size};

        memcpy(exact, rows[i].bytes, rows[i].size);
        if (db_row_is_whole(&row, fields, 2) != rows[i].is_whole)
            fail_msg("row %zu", i);
        free(exact);
    }
}

TEST(types_that_come_as_text)
{
    db_result result = DB_RESULT_INIT;
    size_t size;
    int pass;

    for (pass = 0; pass < 2; pass++) {
        if (pass == 0)
            EXPECT(connection, db_run(connection, &other_types, NULL, 0, &result), DB_DONE);
        else
            EXPECT(connection, run_sql(connection, other_types.text, &result), DB_DONE);
        assert_int_equal(result.columns, 7);
        assert_string_equal(db_get_text(&result, 0, 0), "2024-02-29 23:59:59.123456");
        assert_string_equal(db_get_text(&result, 0, 1), "00000000-0000-4000-8000-00000000abcd");
        assert_true(db_get_uint(&result, 0, 2) == UINT64_C(12345678901234567890));
        assert_string_equal(db_get_text(&result, 0, 3), "7.00");
        assert_int_equal(db_get_int(&result, 0, 3), 7);
        assert_memory_equal(db_get_bytes(&result, 0, 4, &size), "\0\xff", 2);
        assert_int_equal(size, 2);
        assert_int_equal(db_get_int(&result, 0, 5), 1);
        assert_string_equal(db_get_text(&result, 0, 5), "1");
        assert_true(db_is_null(&result, 0, 6));
    }
    /* outside the result */
    assert_true(db_is_null(&result, 1, 0));
    assert_true(db_is_null(&result, 0, 7));
    assert_int_equal(db_get_int(&result, 9, 9), 0);
    db_result_free(&result);
    db_result_free(NULL);
}

TEST(results_grow_and_are_used_again)
{
    db_result result = DB_RESULT_INIT;
    db_value from;
    size_t row, size;
    int64_t number;

    from = db_int(0);
    EXPECT(connection, db_run(connection, &many_rows, &from, 1, &result), DB_DONE);
    assert_int_equal(result.rows, 2000);
    assert_int_equal(result.affected, 2000);
    for (row = 0; row < result.rows; row++) {
        number = db_get_int(&result, row, 0);
        assert_int_equal(number, row + 1);
        db_get_bytes(&result, row, 1, &size);
        assert_int_equal(size, number % 600);
        if (size)
            assert_int_equal(db_get_text(&result, row, 1)[size - 1], 64 + number % 26);
    }
    from = db_int(1999);
    EXPECT(connection, db_run(connection, &many_rows, &from, 1, &result), DB_DONE);
    assert_int_equal(result.rows, 1);
    assert_int_equal(db_get_int(&result, 0, 0), 2000);
    from = db_int(2000);
    EXPECT(connection, db_run(connection, &many_rows, &from, 1, &result), DB_DONE);
    assert_int_equal(result.rows, 0);
    db_result_free(&result);
}

TEST(many_columns_and_parameters)
{
    enum { COUNT = 150 };
    char sql[COUNT * 2 + 16] = "SELECT ?";
    const struct sql_text wide = {.name = "wide", .text = sql};
    db_value values[COUNT];
    db_result result = DB_RESULT_INIT;
    size_t i;
    int pass;

    for (i = 0; i < COUNT; i++) {
        values[i] = i % 2 ? db_int((int64_t)i) : db_text("even");
        if (i)
            strcat(sql, ",?");
    }
    for (pass = 0; pass < 2; pass++) {
        EXPECT(connection, db_run(connection, &wide, values, COUNT, &result), DB_DONE);
        assert_int_equal(result.columns, COUNT);
        for (i = 0; i < COUNT; i++) {
            if (i % 2)
                assert_int_equal(db_get_int(&result, 0, i), i);
            else
                assert_string_equal(db_get_text(&result, 0, i), "even");
        }
    }
    EXPECT(connection, db_run(connection, &wide, values, COUNT - 1, &result), DB_ERROR);
    assert_true(db_usable(connection));
    db_result_free(&result);
}

TEST(affected_are_changed_rows)
{
    db_value value = db_text("changed once");
    db_result result = DB_RESULT_INIT;

    EXPECT(connection, db_run(connection, &set_text, &value, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 1);
    EXPECT(connection, db_run(connection, &set_text, &value, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 0);
    EXPECT(connection, db_run_nowait(connection, &set_text, &value, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 0);
    EXPECT(connection, db_run(connection, &set_text, &value, 1, NULL), DB_DONE);
    db_result_free(&result);
}

TESTS_OF(values, set_up, tear_down)
