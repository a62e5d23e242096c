/*
 * Declared statements against a real schema: what is refused when books are made, with the
 * administrator's account and with a service's; and that what is not refused can be run.
 */
#include "books/books.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/admin.h>

static struct {
    server *own;
    database *db;
    MYSQL *sql;
    tl_client *admin, *service;
    char account[32];
} f;

static tl_client *client_of(const char *suffix)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(f.db);
    options.group_suffix = suffix;
    options.flags = TL_CLIENT_NO_SESSION;
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("no client: %s", tl_error_message());
    return client;
}

/* An account with the role of services, and with some rights on their tables. */
static void make_account(void)
{
    FILE *file = fopen(database_option_file(f.db), "ae");

    if (file == NULL)
        server_panic("the option file cannot be opened");
    snprintf(f.account, sizeof f.account, "b%ld", (long)getpid());
    fprintf(file, "[tradelock-client-service]\nsocket=%s\nuser=%s\npassword=secret\ndatabase=%s\n",
            server_socket(f.own), f.account, database_name(f.db));
    fclose(file);
    if (tl_grant_roles(f.admin) != TL_OK)
        server_panic("the roles: %s", tl_error_message());
    database_run(f.sql,
                 "CREATE USER %s@localhost IDENTIFIED BY 'secret';"
                 "GRANT {database}_application TO %s@localhost;"
                 "SET DEFAULT ROLE {database}_application FOR %s@localhost;"
                 "GRANT SELECT, UPDATE ON account TO %s@localhost;"
                 "GRANT INSERT (id, payee), SELECT (id) ON orders TO %s@localhost;"
                 "GRANT INSERT, DELETE ON log TO %s@localhost",
                 f.account, f.account, f.account, f.account, f.account, f.account);
}

FIXTURE(setup)
{
    f.own = server_start(NULL); /* its prepared statements are counted */
    f.db = database_new(f.own, NULL);
    f.sql = database_connect(f.db);
    database_run(
        f.sql,
        "CREATE TABLE account (cust_no VARCHAR(64) PRIMARY KEY, balance BIGINT NOT NULL,"
        " frozen BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;"
        "CREATE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, payee VARCHAR(99),"
        " fee BIGINT) ENGINE = InnoDB;"
        "CREATE TABLE log (id BIGINT PRIMARY KEY AUTO_INCREMENT, at TIMESTAMP INVISIBLE,"
        " what TEXT, n INT) ENGINE = InnoDB;"
        "CREATE TABLE kinds (i INT PRIMARY KEY DEFAULT 0, a TINYINT, b SMALLINT, c MEDIUMINT, d "
        "BIGINT,"
        " e DECIMAL(20, 4), f FLOAT, g DOUBLE, h YEAR, j BOOL, k BIT(8), l CHAR(9),"
        " m VARCHAR(9), n TINYTEXT, o TEXT, p MEDIUMTEXT, q LONGTEXT, r ENUM('x'),"
        " s SET('x'), t DATE, u TIME, v DATETIME, w TIMESTAMP, x JSON, y BINARY(9),"
        " z VARBINARY(9), aa TINYBLOB, ab BLOB, ac MEDIUMBLOB, ad LONGBLOB, ae UUID,"
        " af INET6) ENGINE = InnoDB;"
        "CREATE TABLE needs (a INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b INT NOT NULL DEFAULT 0,"
        " c INT, `d e` INT NOT NULL, f INT AS (c + 1) STORED, g TIMESTAMP, h DATETIME NOT NULL"
        " DEFAULT NOW(), i ENUM('x') NOT NULL, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " t TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, t))"
        " ENGINE = InnoDB WITH SYSTEM VERSIONING;"
        "CREATE TABLE my (a INT) ENGINE = MyISAM;"
        "CREATE TABLE ar (a INT) ENGINE = Aria;"
        "CREATE TABLE me (a INT) ENGINE = MEMORY;"
        "CREATE TABLE versions (a INT) ENGINE = InnoDB WITH SYSTEM VERSIONING;"
        "CREATE TABLE `odd ``name``` (`odd ``a``` INT, `where` INT) ENGINE = InnoDB;"
        "CREATE TABLE sums (id INT PRIMARY KEY, a BIGINT UNSIGNED, b DECIMAL(20, 4), i INT, c "
        "FLOAT,"
        " d DOUBLE, e TIME, f BIGINT AS (a + 1) STORED, g BIGINT AS (a), h TIMESTAMP NULL ON UPDATE"
        " NOW()) ENGINE = InnoDB WITH SYSTEM VERSIONING;"
        "CREATE SEQUENCE seq;"
        "CREATE VIEW rich AS SELECT * FROM account WHERE balance > 0");
    f.admin = client_of(NULL);
    make_account();
    f.service = client_of("-service");
}

FIXTURE(teardown)
{
    tl_client_close(f.admin);
    tl_client_close(f.service);
    database_run(f.sql, "DROP USER %s@localhost", f.account);
    mysql_close(f.sql);
    database_free(f.db);
    server_free(f.own);
}

static tl_status make_of(tl_client *client, const tl_statement *statement)
{
    tl_books *books = NULL;
    tl_status status = tl_books_new(&books, client, statement, 1);

    assert_int_equal(status == TL_OK, books != NULL);
    return status;
}

static tl_status make(tl_client *client, const char *sql, const char *values)
{
    return make_of(client, &(tl_statement){.name = "s", .sql = sql, .values = values});
}

static void expect_made(tl_client *client, const char *sql, const char *values)
{
    if (make(client, sql, values) != TL_OK)
        fail_msg("%s: %s", sql, tl_error_message());
    assert_string_equal(tl_error_message(), "");
}

static void expect_sentence(tl_status status, const char *sql, const char *says)
{
    const char *got = tl_error_message();

    if (status != TL_INVALID || strncmp(got, "statement \"s\": ", 15) != 0 ||
        strncmp(got + 15, says, strlen(says)) != 0)
        fail_msg("%s:\n  got      %s, %s\n  expected %s", sql, tl_status_name(status), got, says);
}

static void expect_refused(tl_client *client, const char *sql, const char *values, const char *says)
{
    expect_sentence(make(client, sql, values), sql, says);
}

/* ------------------------------------------------------------------------ the server's words -- */

#define SERVER "the server does not prepare it: "

TEST(test_typing_errors)
{
    static const struct {
        const char *sql, *says;
    } bad[] = {
        {"UPDATE acount SET balance = 1 WHERE cust_no = :cust_no", SERVER "Table '"},
        {"UPDATE nowhere.account SET balance = 1 WHERE cust_no = :cust_no", SERVER "Table '"},
        {"UPDATE account SET balans = 1 WHERE cust_no = :cust_no",
         SERVER "Unknown column 'balans'"},
        {"UPDATE account SET balance = 1 WHERE custno = :cust_no",
         SERVER "Unknown column 'custno'"},
        {"UPDATE account SET balance = 1 WHERE cust_no == :cust_no",
         SERVER "You have an error in your SQL syntax"},
        {"UPDATE account SET balance = 1 WHERE cust_no = :cust_no AND",
         SERVER "You have an error in your SQL syntax"},
        {"UPDATE account SET balance = nofunction(:epoch) WHERE cust_no = :cust_no",
         SERVER "FUNCTION "},
        {"INSERT INTO orders (id, payee) VALUES (:epoch)", SERVER "Column count doesn't match"},
        {"INSERT INTO orders VALUES (:epoch)", SERVER "Column count doesn't match"},
        {"INSERT INTO orders (id, id) VALUES (:epoch, 1)", SERVER "Column 'id' specified twice"},
        {"INSERT INTO orders (id, pay) VALUES (:epoch, 1)", SERVER "Unknown column 'pay'"},
        {"DELETE FROM orders WHERE ids = :epoch", SERVER "Unknown column 'ids'"},
        {"DELETE FROM orders WHERE id = (SELECT id FROM nothing WHERE x = :epoch)",
         SERVER "Table '"},
        {"DELETE FROM orders WHERE id = :epoch UNION SELECT 1",
         SERVER "You have an error in your SQL syntax"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_refused(f.admin, bad[i].sql, NULL, bad[i].says);
}

TEST(test_missing_rights)
{
    expect_made(f.service, "UPDATE account SET balance = 1 WHERE cust_no = :cust_no", NULL);
    expect_refused(f.service, "DELETE FROM account WHERE cust_no = :cust_no", NULL,
                   SERVER "DELETE command denied to user");
    expect_refused(f.service, "INSERT INTO account (cust_no, balance) VALUES (:cust_no, 0)", NULL,
                   SERVER "INSERT command denied to user");
    expect_made(f.service, "INSERT INTO orders (id, payee) VALUES (:epoch, :cust_no)", NULL);
    expect_refused(f.service, "INSERT INTO orders (id, fee) VALUES (:epoch, 0)", NULL,
                   SERVER "INSERT command denied to user");
    expect_refused(f.service, "UPDATE orders SET payee = 'x' WHERE id = :epoch", NULL,
                   SERVER "UPDATE command denied to user");
    expect_made(f.service, "INSERT INTO log (what) VALUES (:cust_no)", NULL);
    /* The condition needs SELECT. */
    expect_refused(f.service, "DELETE FROM log WHERE n = :epoch", NULL,
                   SERVER "SELECT command denied to user");
}

/* ---------------------------------------------------------------------------------- tables -- */

TEST(test_tables)
{
    static const char together[] = "is of the engine ";
    char says[200];

    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"my", "ar", "me"};
        static const char *const engines[] = {"MyISAM", "Aria", "MEMORY"};
        char sql[100];

        snprintf(sql, sizeof sql, "UPDATE %s SET a = 1 WHERE a = :epoch", names[i]);
        snprintf(says, sizeof says,
                 "\"%s\" %s%s, whose rows are not committed and rolled back together with InnoDB's",
                 names[i], together, engines[i]);
        expect_refused(f.admin, sql, NULL, says);
        snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (:epoch)", names[i]);
        expect_refused(f.admin, sql, NULL, says);
    }
    expect_refused(f.admin, "UPDATE rich SET balance = 1 WHERE cust_no = :cust_no", NULL,
                   "\"rich\" is a view, or something else that is no table");
    expect_refused(f.admin, "INSERT INTO seq VALUES (:epoch, 1, 9, 1, 1, 0, 0, 0)", NULL,
                   "\"seq\" is a view, or something else that is no table");
    expect_made(f.admin, "UPDATE versions SET a = :epoch WHERE a = 1", NULL);
    expect_made(f.admin, "UPDATE `odd ``name``` SET `odd ``a``` = :epoch WHERE `where` = :epoch",
                NULL);
    expect_refused(f.admin, "DELETE FROM `odd ``name``` WHERE `odd ``a``` = :cust_no", NULL,
                   "the value \"cust_no\" is text, and the column \"odd `a`\" is int");
}

/* Each table of a fresh schema, so that none is forgotten. */
TEST(test_own_tables)
{
    MYSQL_RES *tables;
    MYSQL_ROW row;
    char sql[300], says[200];
    int count = 0;

    database_run(f.sql,
                 "CREATE DATABASE %s_other; CREATE TABLE %s_other.trade_lock (status CHAR(1))"
                 " ENGINE = InnoDB",
                 database_name(f.db), database_name(f.db));
    if (mysql_query(
            f.sql,
            "SELECT table_name, column_name FROM information_schema.columns"
            " NATURAL JOIN information_schema.tables"
            " WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
            " AND ordinal_position = 1 AND table_name NOT IN ('account', 'orders',"
            " 'log', 'kinds', 'my', 'ar', 'me', 'needs', 'versions', 'sums', 'odd `name`')") != 0)
        fail_msg("%s", mysql_error(f.sql));
    tables = mysql_store_result(f.sql);
    while ((row = mysql_fetch_row(tables)) != NULL) {
        snprintf(says, sizeof says, "\"%s\" is a table of tradelock's own", row[0]);
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s = NULL", row[0], row[1]);
        expect_refused(f.admin, sql, NULL, says);
        snprintf(sql, sizeof sql, "DELETE FROM `%s`.%s WHERE %s = NULL", database_name(f.db),
                 row[0], row[1]);
        expect_refused(f.admin, sql, NULL, says);
        count++;
    }
    mysql_free_result(tables);
    assert_int_equal(count, 31);
    expect_refused(f.service, "UPDATE trade_lock SET status = 'Y' WHERE serial_no = :serial_no",
                   NULL, "\"trade_lock\" is a table of tradelock's own");
    expect_refused(f.admin, "UPDATE trade_lock_state SET status = 'Y' WHERE serial_no = :serial_no",
                   NULL, "\"trade_lock_state\" is a view");
    /* Another database has its own. */
    snprintf(sql, sizeof sql, "DELETE FROM %s_other.trade_lock WHERE status = :cust_no",
             database_name(f.db));
    expect_made(f.admin, sql, NULL);
    database_run(f.sql, "DROP DATABASE %s_other", database_name(f.db));
}

/* A connection that has one, as a callback may leave it. */
TEST(test_temporary_table)
{
    static const char sql[] = "CREATE TEMPORARY TABLE passing (a INT) ENGINE = InnoDB";
    db *connection = NULL;

    assert_int_equal(pool_get(f.admin->connections, POOL_QUICK, 10000, &connection), TL_OK);
    assert_int_equal(db_run_text(connection, sql, sql, sizeof sql - 1, NULL), DB_DONE);
    pool_put(f.admin->connections, connection);
    assert_int_equal(make(f.admin, "DELETE FROM passing WHERE a = :epoch", NULL), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "\"passing\" is "));
}

/* ----------------------------------------------------------------------------------- types -- */

/* What each column of `kinds` takes: i, t and b for int, text and bytes. */
TEST(test_types)
{
    static const char takes[][4] = {"i", "i", "i",  "i",  "i",  "i",  "i",  "i",  "i",  "i", "itb",
                                    "t", "t", "t",  "t",  "t",  "t",  "t",  "t",  "t",  "t", "t",
                                    "t", "t", "tb", "tb", "tb", "tb", "tb", "tb", "tb", "tb"};
    static const char *const types[] = {"int", "text", "bytes"};
    MYSQL_RES *columns;
    MYSQL_ROW row;
    size_t at = 0;

    assert_int_equal(mysql_query(f.sql, "SELECT column_name, data_type FROM"
                                        " information_schema.columns WHERE table_schema ="
                                        " DATABASE() AND table_name = 'kinds' ORDER BY"
                                        " ordinal_position"),
                     0);
    columns = mysql_store_result(f.sql);
    for (; (row = mysql_fetch_row(columns)) != NULL; at++)
        for (size_t type = 0; type < 3; type++) {
            static const char *const forms[] = {"UPDATE kinds SET `%s` = :p WHERE i = 1",
                                                "DELETE FROM kinds WHERE `%s` <= :p",
                                                "INSERT INTO kinds (`%s`) VALUES (:p)"};
            char values[20], says[200], sql[100];

            snprintf(values, sizeof values, "p %s", types[type]);
            snprintf(says, sizeof says, "the value \"p\" is %s, and the column \"%s\" is %s",
                     types[type], row[0], row[1]);
            for (size_t form = 0; form < 3; form++) {
                const char *mark = strchr(forms[form], '%');

                snprintf(sql, sizeof sql, "%.*s%s%s", (int)(mark - forms[form]), forms[form],
                         row[0], mark + 2);
                if (strchr(takes[at], types[type][0]) != NULL)
                    expect_made(f.admin, sql, values);
                else
                    expect_refused(f.admin, sql, values, says);
            }
        }
    mysql_free_result(columns);
    assert_int_equal(at, sizeof takes / sizeof takes[0]);
}

/* p is text and n an int, in every place where they are judged. */
TEST(test_places)
{
    static const struct {
        const char *sql;
        char wrong; /* the value; or 0 */
        const char *column;
    } all[] = {
        {"INSERT INTO orders (id, payee, fee) VALUES (:n, :p, :n)", 0, NULL},
        {"INSERT INTO orders (id, payee, fee) VALUES (:p, :p, :n)", 'p', "id"},
        {"INSERT INTO orders (id, payee, fee) VALUES (NULL, :n, LENGTH(:p))", 'n', "payee"},
        {"INSERT INTO orders (orders.payee, `fee`) VALUES (:p, :p)", 'p', "fee"},
        {"INSERT INTO orders (id, payee) VALUES (IF(:n, (1), LENGTH(CONCAT(:p, ','))), :n)", 'n',
         "payee"},
        {"INSERT INTO orders (payee, FEE) VALUES (CONCAT(:p, :n), :p)", 'p', "fee"},
        {"INSERT INTO orders VALUES (:n, :p, :p)", 'p', "fee"},
        {"INSERT INTO orders VALUES (:n, :n, LENGTH(:p))", 'n', "payee"},
        {"INSERT INTO orders VALUES (:n, :p, :n)", 0, NULL},
        /* A column that an INSERT without a list leaves out. */
        {"INSERT INTO log VALUES (:n, :p, :n)", 0, NULL},
        {"INSERT INTO log VALUES (:n, :n, LENGTH(:p))", 'n', "what"},
        {"UPDATE orders SET payee = :p, fee = :n WHERE id = :n", 0, NULL},
        {"UPDATE orders SET fee = fee + :n, payee = :n WHERE id = LENGTH(:p)", 'n', "payee"},
        {"UPDATE orders SET payee = :p WHERE orders.id = :p AND fee = :n", 'p', "id"},
        {"UPDATE orders SET fee = :n WHERE id = 1 OR (fee = 2 AND (payee <> :p OR :p < fee))", 'p',
         "fee"},
        {"UPDATE orders SET fee = 1 WHERE NOT :n <=> `orders`.`payee` AND payee = :p", 'n',
         "payee"},
        /* Expressions, other tables, and what is no column are not judged. */
        {"UPDATE orders SET fee = fee - :n WHERE LENGTH(payee) + fee = :p", 0, NULL},
        {"UPDATE orders SET fee = :p + :n WHERE fee = :p + 0 AND CONCAT(id, fee) = :p", 0, NULL},
        {"UPDATE orders SET fee = :n WHERE id = (SELECT balance FROM account WHERE cust_no = :p AND"
         " balance = :p)",
         0, NULL},
        {"DELETE FROM orders WHERE payee = :p AND id IN (:n)", 0, NULL},
        {"DELETE FROM orders WHERE payee = :p AND id = :n", 0, NULL},
        {"DELETE FROM orders WHERE id = :p AND fee = :n", 'p', "id"},
    };
    char says[200];

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *values = strstr(all[i].sql, ":p") == NULL ? "n int" : "p text, n int";

        if (strstr(all[i].sql, ":n") == NULL)
            values = "p text";
        snprintf(says, sizeof says, "the value \"%c\" is %s, and the column \"%s\" is",
                 all[i].wrong, all[i].wrong == 'p' ? "text" : "int",
                 all[i].column != NULL ? all[i].column : "");
        if (all[i].wrong)
            expect_refused(f.admin, all[i].sql, values, says);
        else
            expect_made(f.admin, all[i].sql, values);
    }
}

TEST(test_own_values)
{
    expect_refused(f.admin, "UPDATE account SET balance = 0 WHERE cust_no = :amount_minor", NULL,
                   "the value \"amount_minor\" is int, and the column \"cust_no\" is varchar");
    expect_refused(f.service, "UPDATE account SET balance = :serial_no WHERE cust_no = :cust_no",
                   NULL, "the value \"serial_no\" is text, and the column \"balance\" is bigint");
    expect_made(f.admin,
                "UPDATE account SET balance = :amount_minor + :epoch WHERE cust_no ="
                " CONCAT(:serial_no, :op_code, :channel_key, :channel_ref, :currency)",
                NULL);
}

/* ------------------------------------------------------------------------------------- sums -- */

/* Only where the sum does what its lines do. */
TEST(test_sums)
{
    static const struct {
        const char *sql, *says; /* says NULL: it is taken */
    } sums[] = {
        {"UPDATE sums SET a = a + :v WHERE id = 1", NULL},
        {"UPDATE sums SET i = i + :v WHERE id = 1", NULL},
        {"UPDATE sums SET b = B - :v WHERE id = :epoch AND c = '1'", NULL},
        {"UPDATE sums SET c = c + :v WHERE id = 1", "column \"c\" is no integer and no DECIMAL"},
        {"UPDATE sums SET d = d + :v WHERE id = 1", "column \"d\" is no integer and no DECIMAL"},
        {"UPDATE sums SET e = e + :v WHERE id = 1", "column \"e\" is no integer and no DECIMAL"},
        {"UPDATE sums SET a = a + :v WHERE id = 1 AND f = 3",
         "column \"f\" is generated or changes by itself"},
        {"UPDATE sums SET a = a + :v WHERE `G` = 3 AND id = 1",
         "column \"`G`\" is generated or changes by itself"},
        {"UPDATE sums SET a = a + :v WHERE id = 1 AND h = '2026-01-01'",
         "column \"h\" is generated or changes by itself"},
        {"UPDATE sums SET a = a + :v WHERE id = 1 AND row_start = '2026-01-01'",
         "the account does not see its column \"row_start\""},
    };
    char says[200];

    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        tl_status status = make_of(
            f.admin,
            &(tl_statement){
                .name = "s", .sql = sums[i].sql, .values = "v int", .shared = 1, .summed = 1});

        snprintf(says, sizeof says, "is summed, and %s%s",
                 sums[i].says != NULL && strncmp(sums[i].says, "col", 3) == 0 ? "its " : "",
                 sums[i].says != NULL ? sums[i].says : "");
        if (sums[i].says != NULL)
            expect_sentence(status, sums[i].sql, says);
        else if (status != TL_OK)
            fail_msg("%s: %s", sums[i].sql, tl_error_message());
    }
}

/* What a row must be given; else the server refuses the first payment. */
TEST(test_needed_columns)
{
    expect_made(f.admin, "INSERT INTO needs (`D E`, needs.i) VALUES (:n, 'x')", "n int");
    expect_refused(f.admin, "INSERT INTO needs (c, i) VALUES (:n, 'x')", "n int",
                   "gives no value to the column \"d e\", which has no default");
    expect_refused(f.admin, "INSERT INTO needs (a, b, `d e`) VALUES (1, 2, :n)", "n int",
                   "gives no value to the column \"i\", which has no default");
    expect_refused(f.admin, "INSERT INTO needs () VALUES (:n)", "n int", SERVER "Column count");
    expect_refused(f.admin, "INSERT INTO account (balance) VALUES (:amount_minor)", NULL,
                   "gives no value to the column \"cust_no\", which has no default");
}

/* -------------------------------------------------------------------------------- as a whole -- */

TEST(test_several)
{
    tl_statement statements[TL_BOOK_STATEMENTS + 1];
    char names[TL_BOOK_STATEMENTS + 1][8];
    tl_books *books = NULL;

    for (unsigned i = 0; i <= TL_BOOK_STATEMENTS; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        statements[i] = (tl_statement){.name = names[i], .sql = "DELETE FROM log WHERE n = :epoch"};
    }
    assert_int_equal(tl_books_new(&books, f.admin, statements, TL_BOOK_STATEMENTS + 1), TL_INVALID);
    assert_string_equal(tl_error_message(), "65 statements are declared; 1 to 64 are possible");
    assert_int_equal(tl_books_new(&books, f.admin, statements, 0), TL_INVALID);
    statements[40].name = "n3";
    assert_int_equal(tl_books_new(&books, f.admin, statements, TL_BOOK_STATEMENTS), TL_INVALID);
    assert_string_equal(tl_error_message(), "statement \"n3\": is declared twice");
    statements[40] = (tl_statement){.name = "last", .sql = "DROP TABLE log"};
    assert_int_equal(tl_books_new(&books, f.admin, statements, 41), TL_INVALID);
    assert_null(books);
    assert_int_equal(tl_books_new(&books, f.admin, statements, 40), TL_OK);
    assert_int_equal(books->count, 40);
    assert_non_null(books->groups);
    assert_ptr_equal(books->client, f.admin);
}

TEST(test_arguments)
{
    const tl_statement statement = {.name = "s", .sql = "DELETE FROM log WHERE n = :epoch"};
    tl_books *books = NULL;

    assert_int_equal(tl_books_new(NULL, f.admin, &statement, 1), TL_INVALID);
    assert_int_equal(tl_books_new(&books, NULL, &statement, 1), TL_INVALID);
    assert_int_equal(tl_books_new(&books, f.admin, NULL, 1), TL_INVALID);
    assert_string_equal(tl_error_message(), "tl_books_new: out or statements is NULL");
    assert_null(books);
}

/* What was declared is copied, and no statement is left prepared or open. */
TEST(test_leaves_nothing)
{
    const long long before = database_counter(f.sql, "Prepared_stmt_count");
    char name[] = "n", sql[] = "DELETE FROM log WHERE n = :p", values[] = "p int";
    const tl_statement statement = {.name = name, .sql = sql, .values = values};
    tl_books *books = NULL;

    assert_int_equal(tl_books_new(&books, f.admin, &statement, 1), TL_OK);
    memset(name, 'x', sizeof name - 1);
    memset(sql, 'x', sizeof sql - 1);
    memset(values, 'x', sizeof values - 1);
    assert_string_equal(books->statements[0].name, "n");
    assert_string_equal(books->statements[0].one.text, "DELETE FROM log WHERE n = ?");
    assert_string_equal(book_value_name(&books->statements[0], BOOK_OWN_COUNT), "p");
    /* Only the two statements that look at the schema stay, once for each connection. */
    assert_in_range(database_counter(f.sql, "Prepared_stmt_count") - before, 0, 2);
    assert_int_equal(make(f.admin, "DELETE FROM log WHERE m = :epoch", NULL), TL_INVALID);
    assert_in_range(database_counter(f.sql, "Prepared_stmt_count") - before, 0, 2);
    assert_int_equal(pool_lent(f.admin->connections), 0);
}

/* Two lines, of `columns` values each, in a transaction of their own: how many rows change. */
static uint64_t run_many(db *connection, const struct sql_text *many, const db_value *values)
{
    static const char begin[] = "SET @tl_changed = ''";
    const db_rows rows = {values, 2, many->values, 0};
    db_result result = DB_RESULT_INIT;
    uint64_t changed;

    assert_int_equal(db_run_text(connection, begin, begin, sizeof begin - 1, NULL), DB_DONE);
    assert_int_equal(db_begin(connection), DB_DONE);
    assert_int_equal(db_run_rows(connection, many, &rows, &result), DB_DONE);
    assert_int_equal(db_rollback(connection), DB_DONE);
    changed = result.affected;
    db_result_free(&result);
    return changed;
}

static uint64_t run_one(db *connection, const struct sql_text *one, const db_value *values)
{
    db_result result = DB_RESULT_INIT;
    uint64_t changed;

    assert_int_equal(db_begin(connection), DB_DONE);
    assert_int_equal(db_run(connection, one, values, one->values, &result), DB_DONE);
    assert_int_equal(db_rollback(connection), DB_DONE);
    changed = result.affected;
    db_result_free(&result);
    return changed;
}

/* What was checked can be run, alone and bound to arrays.  The declared values of two lines, the
 * first of which changes a row; so many change in all. */
static void run(db *connection, const char *sql, const char *declared, const db_value *values,
                uint64_t changed)
{
    const tl_statement given = {.name = "s", .sql = sql, .values = declared};
    db_value rows[2 * (BOOK_OWN_COUNT + 3)] = {{0}};
    tl_books *books = NULL;
    const book_statement *s;

    assert_int_equal(tl_books_new(&books, f.admin, &given, 1), TL_OK);
    s = books->statements;
    for (unsigned row = 0; row < 2; row++) {
        db_value *to = rows + row * s->many.values + BOOK_OWN_COUNT;

        for (unsigned i = 0; i < s->value_count; i++)
            to[i] = values[row * s->value_count + i];
        if (s->notes_lines)
            to[s->value_count] = db_int(row);
    }
    assert_int_equal(run_one(connection, &s->one, rows), 1);
    assert_int_equal(run_many(connection, &s->many, rows), changed);
}

/* The lines that found a row, each with a blank behind it. */
static const char *found(db *connection)
{
    static const char sql[] = "SELECT @tl_changed";
    static char text[100];
    db_result result = DB_RESULT_INIT;

    assert_int_equal(db_run_text(connection, sql, sql, sizeof sql - 1, &result), DB_DONE);
    snprintf(text, sizeof text, "%s", db_get_text(&result, 0, 0));
    db_result_free(&result);
    return text;
}

TEST(test_runs)
{
    const db_value inserted[] = {db_int(1), db_text("a"), db_int(2), db_text("b")};
    const db_value updated[] = {db_int(5), db_int(7), db_int(5), db_int(8)};
    db *connection = NULL;

    database_run(f.sql, "INSERT INTO orders VALUES (7, 'x', 0)");
    assert_int_equal(pool_get(f.admin->connections, POOL_BUSINESS, 10000, &connection), TL_OK);
    run(connection, "INSERT INTO orders (id, payee) VALUES (:n, :p)", "n int, p text", inserted, 2);
    run(connection, "UPDATE orders SET fee = :m WHERE id = :n", "m int, n int", updated, 1);
    assert_string_equal(found(connection), "0 ");
    run(connection, "DELETE FROM orders WHERE fee < :m AND id = :n", "m int, n int", updated, 1);
    assert_string_equal(found(connection), "0 ");
    pool_put(f.admin->connections, connection);
}

TESTS_OF(check, setup, teardown)
