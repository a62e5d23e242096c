/*
 * Ways to carry many steps in one statement and one commit, on one connection: what the library's
 * groups could be made of.  A cycle asks for --group new trades with one statement and ends them
 * with another, on the same schema, history included.
 */
#include "bench.h"

#include <mysql.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_MAX 1024
#define PARAMETERS 9
#define TOKEN 16

static const char columns[] =
    "(cust_no, serial_no, op_code, lane, status, step, thread_no, session_id, token, "
    "fence, rev, sends, max_hold_until, send_until, next_run_at, fingerprint, payload, "
    "created_at, updated_at) ";
static const char prepared_row[] =
    "(?, ?, 'WITHDRAW', 'S', ?, ?, '01234567-89ab-4cde-8f01-23456789abcd', ?, ?, ?, "
    "fence, "
    "1, UTC_TIMESTAMP(6) + INTERVAL ? * 1000 MICROSECOND, max_hold_until, "
    "max_hold_until, "
    "REPEAT('f', 32), ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))";
/* As the group of sql/step/ask.sql, with the columns that an ending always sets; the token is the
 * verdict. */
static const char update[] =
    " ON DUPLICATE KEY UPDATE token = IF(VALUES(step) = 'end' AND status = 'P' AND fence "
    "= "
    "VALUES(fence) AND token = VALUES(payload), VALUES(token), token), "
    "status = IF(token = VALUES(token), VALUES(status), status), "
    "step = IF(token = VALUES(token), VALUES(step), step), "
    "fence = IF(token = VALUES(token), fence + 1, fence), "
    "rev = IF(token = VALUES(token), rev + 1, rev), "
    "max_hold_until = IF(token = VALUES(token), VALUES(max_hold_until), max_hold_until), "
    "updated_at = IF(token = VALUES(token), VALUES(updated_at), updated_at)";
static const char returning[] = " RETURNING token, fence, epoch";

/* ------------------------------------------------------------ what is written -- */

typedef struct row {
    char cust[32], serial[64];
    unsigned char token[TOKEN], next[TOKEN];
    unsigned long long fence;
} row;

static row rows[GROUP_MAX];
static MYSQL *connection;
static MYSQL_STMT *statement;
static char *text;
static size_t text_size, text_space;

static int by_key(const void *left, const void *right)
{
    return strcmp(((const row *)left)->cust, ((const row *)right)->cust);
}

/* As random as it must be to be unlike the others. */
static unsigned char next_byte(void)
{
    static uint64_t state = 88172645463325252ULL;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned char)(state >> 32);
}

static void make_rows(uint64_t number)
{
    for (unsigned i = 0; i < bench.group; i++) {
        uint64_t n = number * bench.group + i;

        bench_key(0, n, rows[i].serial, rows[i].cust);
        for (int byte = 0; byte < TOKEN; byte++)
            rows[i].token[byte] = next_byte();
        memcpy(rows[i].next, rows[i].token, TOKEN);
        rows[i].next[0] ^= 1;
        rows[i].fence = 1795000000000000ULL + n;
    }
    /* In the order of the key, as the library sorts its groups. */
    qsort(rows, bench.group, sizeof *rows, by_key);
}

static void start_text(void)
{
    text_size = 0;
}

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...)
{
    va_list arguments;

    if (text_space - text_size < 4096) {
        char *larger = realloc(text, text_space = text_space * 2 + 65536);

        if (larger == NULL)
            bench_fail("out of memory");
        text = larger;
    }
    va_start(arguments, format);
    text_size += (size_t)vsnprintf(text + text_size, text_space - text_size, format, arguments);
    va_end(arguments);
}

static const char *hex(const unsigned char bytes[TOKEN])
{
    static char both[2][2 * TOKEN + 1];
    static int turn;
    char *out = both[turn ^= 1];

    for (int i = 0; i < TOKEN; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", bytes[i]);
    return out;
}

/* The server answers with a row for each row. */
static void run_built(unsigned answers)
{
    int more = mysql_real_query(connection, text, text_size);

    if (more != 0)
        bench_fail("%s: %.300s", mysql_error(connection), text);
    while (more == 0) {
        MYSQL_RES *result = mysql_store_result(connection);

        if (result != NULL && mysql_num_rows(result) != answers)
            bench_fail("%u rows came back", (unsigned)mysql_num_rows(result));
        mysql_free_result(result);
        more = mysql_next_result(connection);
    }
    if (more > 0)
        bench_fail("%s: %.300s", mysql_error(connection), text);
}

static void prepare_built(void)
{
    statement = mysql_stmt_init(connection);
    if (statement == NULL || mysql_stmt_prepare(statement, text, text_size) != 0)
        bench_fail("prepare: %s", mysql_error(connection));
}

static int open_plain(const bench_options *options)
{
    if (options->group > GROUP_MAX)
        bench_fail("at most %d rows", GROUP_MAX);
    connection = sql_connect(options);
    return 0;
}

/* Every cycle ended all that it asked for, or the way measured is not a way. */
static void check_table(const char *table)
{
    char sql[256];

    snprintf(sql, sizeof sql,
             "SELECT COUNT(*) FROM %s WHERE status <> 'Y' AND serial_no LIKE "
             "'%s-%%'",
             table, bench.run_name);
    if (sql_number(connection, sql) != 0)
        bench_fail("not all endings were written");
    bench_note("group", bench.group);
}

static void check(void)
{
    check_table("trade_lock");
}

static void close_plain(void)
{
    if (statement != NULL)
        mysql_stmt_close(statement);
    mysql_close(connection);
    free(text);
}

/* ------------------------------------------------------------- multi-row text -- */

static void add_text_row(const row *r, int ends)
{
    add("('%s', '%s', 'WITHDRAW', 'S', '%s', '%s', "
        "'01234567-89ab-4cde-8f01-23456789abcd', %s, x'%s', %llu, fence, 1, "
        "UTC_TIMESTAMP(6) + INTERVAL %s * 1000 MICROSECOND, max_hold_until, "
        "max_hold_until, REPEAT('f', 32), %s%s', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
        r->cust, r->serial, ends ? "Y" : "P", ends ? "end" : "ask",
        ends ? "NULL" : "'01234567-89ab-4cde-8f01-23456789abcd'", hex(ends ? r->next : r->token),
        r->fence, ends ? "NULL" : "60000", ends ? "x'" : "'", ends ? hex(r->token) : "100.00 EUR");
}

static void run_text(int ends)
{
    start_text();
    add("INSERT INTO trade_lock %sVALUES ", columns);
    for (unsigned i = 0; i < bench.group; i++) {
        add("%s", i > 0 ? "," : "");
        add_text_row(&rows[i], ends);
    }
    add("%s%s", update, returning);
    run_built(bench.group);
}

static int text_cycle(unsigned caller, uint64_t number)
{
    (void)caller;
    make_rows(number);
    run_text(0);
    run_text(1);
    return (int)bench.group;
}

const contestant contestant_values_text = {.name = "values-text",
                                           .what = "multi-row VALUES as text",
                                           .open = open_plain,
                                           .cycle = text_cycle,
                                           .close = close_plain,
                                           .after = check};

/* --------------------------------------------------------- multi-row, prepared -- */

static MYSQL_BIND *binds;
static unsigned long (*sizes)[PARAMETERS];
static long long hold_ms = 60000;

static int open_prepared(const bench_options *options)
{
    open_plain(options);
    start_text();
    add("INSERT INTO trade_lock %sVALUES ", columns);
    for (unsigned i = 0; i < options->group; i++)
        add("%s%s", i > 0 ? "," : "", prepared_row);
    add("%s%s", update, returning);
    prepare_built();
    binds = calloc((size_t)options->group * PARAMETERS, sizeof *binds);
    sizes = calloc(options->group, sizeof *sizes);
    if (binds == NULL || sizes == NULL)
        bench_fail("out of memory");
    return 0;
}

static void bind_value(MYSQL_BIND *bind, enum enum_field_types type, const void *value,
                       unsigned long *size, unsigned long bytes)
{
    *size = bytes;
    bind->buffer_type = value != NULL ? type : MYSQL_TYPE_NULL;
    bind->buffer = (void *)(uintptr_t)value;
    bind->buffer_length = bytes;
    bind->length = size;
}

static void bind_row(MYSQL_BIND *b, unsigned long size[PARAMETERS], const row *r, int ends)
{
    static const char session[] = "01234567-89ab-4cde-8f01-23456789abcd";

    bind_value(&b[0], MYSQL_TYPE_STRING, r->cust, &size[0], strlen(r->cust));
    bind_value(&b[1], MYSQL_TYPE_STRING, r->serial, &size[1], strlen(r->serial));
    bind_value(&b[2], MYSQL_TYPE_STRING, ends ? "Y" : "P", &size[2], 1);
    bind_value(&b[3], MYSQL_TYPE_STRING, ends ? "end" : "ask", &size[3], 3);
    bind_value(&b[4], MYSQL_TYPE_STRING, ends ? NULL : session, &size[4], sizeof session - 1);
    bind_value(&b[5], MYSQL_TYPE_BLOB, ends ? r->next : r->token, &size[5], TOKEN);
    bind_value(&b[6], MYSQL_TYPE_LONGLONG, &r->fence, &size[6], sizeof r->fence);
    bind_value(&b[7], MYSQL_TYPE_LONGLONG, ends ? NULL : &hold_ms, &size[7], sizeof hold_ms);
    bind_value(&b[8], MYSQL_TYPE_BLOB, ends ? (const void *)r->token : "100.00 EUR", &size[8],
               ends ? TOKEN : 10);
}

static void execute_rows(unsigned answers)
{
    if (mysql_stmt_bind_param(statement, binds) != 0 || mysql_stmt_execute(statement) != 0)
        bench_fail("execute: %s", mysql_stmt_error(statement));
    if (mysql_stmt_store_result(statement) != 0 || mysql_stmt_num_rows(statement) != answers)
        bench_fail("%u rows came back", (unsigned)mysql_stmt_num_rows(statement));
    mysql_stmt_free_result(statement);
}

static int prepared_cycle(unsigned caller, uint64_t number)
{
    (void)caller;
    make_rows(number);
    for (int ends = 0; ends <= 1; ends++) {
        for (unsigned i = 0; i < bench.group; i++)
            bind_row(&binds[(size_t)i * PARAMETERS], sizes[i], &rows[i], ends);
        execute_rows(bench.group);
    }
    return (int)bench.group;
}

static void close_prepared(void)
{
    free(binds);
    free(sizes);
    close_plain();
}

const contestant contestant_values_prepared = {.name = "values-prepared",
                                               .what = "multi-row VALUES, prepared",
                                               .open = open_prepared,
                                               .cycle = prepared_cycle,
                                               .close = close_prepared,
                                               .after = check};

/* ----------------------------------------- one row prepared, bound to arrays -- */

/* A column of a bulk: for text an array of pointers, for numbers an array of them. */
static const char *pointers[PARAMETERS][GROUP_MAX];
static unsigned long lengths[PARAMETERS][GROUP_MAX];
static unsigned long long numbers[2][GROUP_MAX];
static char indicators[PARAMETERS][GROUP_MAX];

static int open_bulk(const bench_options *options)
{
    open_plain(options);
    start_text();
    add("INSERT INTO trade_lock %sVALUES %s%s%s", columns, prepared_row, update, returning);
    prepare_built();
    binds = calloc(PARAMETERS, sizeof *binds);
    if (binds == NULL)
        bench_fail("out of memory");
    return 0;
}

/* Turns the row's own bindings by a quarter. */
static void add_to_columns(unsigned at, const row *r, int ends)
{
    MYSQL_BIND own[PARAMETERS] = {0};
    unsigned long size[PARAMETERS];

    bind_row(own, size, r, ends);
    for (int i = 0; i < PARAMETERS; i++) {
        int null = own[i].buffer_type == MYSQL_TYPE_NULL;

        indicators[i][at] = null ? STMT_INDICATOR_NULL : STMT_INDICATOR_NONE;
        lengths[i][at] = null ? 0 : size[i];
        if (i == 6 || i == 7)
            numbers[i - 6][at] = null ? 0 : *(const unsigned long long *)own[i].buffer;
        else
            pointers[i][at] = null ? "" : own[i].buffer;
    }
}

static void run_bulk(int ends)
{
    for (unsigned i = 0; i < bench.group; i++)
        add_to_columns(i, &rows[i], ends);
    for (int i = 0; i < PARAMETERS; i++) {
        int number = i == 6 || i == 7;

        binds[i].buffer_type = number             ? MYSQL_TYPE_LONGLONG
                               : i == 5 || i == 8 ? MYSQL_TYPE_BLOB
                                                  : MYSQL_TYPE_STRING;
        binds[i].buffer = number ? (void *)numbers[i - 6] : (void *)pointers[i];
        binds[i].length = lengths[i];
        binds[i].u.indicator = indicators[i];
    }
    mysql_stmt_attr_set(statement, STMT_ATTR_ARRAY_SIZE, &bench.group);
    execute_rows(bench.group);
}

static int bulk_cycle(unsigned caller, uint64_t number)
{
    (void)caller;
    make_rows(number);
    run_bulk(0);
    run_bulk(1);
    return (int)bench.group;
}

const contestant contestant_bulk = {.name = "bulk",
                                    .what = "one row prepared, bound to arrays",
                                    .open = open_bulk,
                                    .cycle = bulk_cycle,
                                    .close = close_prepared,
                                    .after = check};

/* ----------------------------------------------- one parameter, JSON_TABLE -- */

/* The charset must be spelled out, or each row scans the table. */
static const char json_table[] =
    "SELECT c, s, 'WITHDRAW', 'S', y, p, '01234567-89ab-4cde-8f01-23456789abcd', u, "
    "UNHEX(t), f, f, 1, UTC_TIMESTAMP(6) + INTERVAL h * 1000 MICROSECOND, "
    "UTC_TIMESTAMP(6) + INTERVAL h * 1000 MICROSECOND, "
    "UTC_TIMESTAMP(6) + INTERVAL h * 1000 MICROSECOND, REPEAT('f', 32), UNHEX(l), "
    "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM JSON_TABLE(?, '$[*]' COLUMNS ("
    "c VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[0]', "
    "s VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[1]', "
    "y CHAR(1) CHARACTER SET ascii COLLATE ascii_bin PATH '$[2]', "
    "p VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin PATH '$[3]', "
    "u CHAR(36) CHARACTER SET ascii PATH '$[4]', t CHAR(32) CHARACTER SET ascii PATH "
    "'$[5]', "
    "f BIGINT UNSIGNED PATH '$[6]', h BIGINT PATH '$[7]', "
    "l VARCHAR(255) CHARACTER SET ascii PATH '$[8]')) AS j";

static int open_json(const bench_options *options)
{
    open_plain(options);
    start_text();
    add("INSERT INTO trade_lock %s%s%s%s", columns, json_table, update, returning);
    prepare_built();
    binds = calloc(1, sizeof *binds);
    if (binds == NULL)
        bench_fail("out of memory");
    return 0;
}

static void run_json(int ends)
{
    unsigned long size;

    start_text();
    for (unsigned i = 0; i < bench.group; i++) {
        const row *r = &rows[i];

        add("%s[\"%s\",\"%s\",\"%s\",\"%s\",%s,\"%s\",%llu,%s,\"%s\"]", i > 0 ? "," : "[", r->cust,
            r->serial, ends ? "Y" : "P", ends ? "end" : "ask",
            ends ? "null" : "\"01234567-89ab-4cde-8f01-23456789abcd\"",
            hex(ends ? r->next : r->token), r->fence, ends ? "null" : "60000",
            ends ? hex(r->token) : "3130302e303020455552");
    }
    add("]");
    bind_value(binds, MYSQL_TYPE_STRING, text, &size, text_size);
    execute_rows(bench.group);
}

static int json_cycle(unsigned caller, uint64_t number)
{
    (void)caller;
    make_rows(number);
    run_json(0);
    run_json(1);
    return (int)bench.group;
}

const contestant contestant_json_table = {.name = "json-table",
                                          .what = "one parameter, JSON_TABLE, prepared",
                                          .open = open_json,
                                          .cycle = json_cycle,
                                          .close = close_prepared,
                                          .after = check};

/* ------------------------------------- hot columns apart from cold ones, text -- */

static void add_hot_row(const row *r, int ends)
{
    add("('%s', '%s', 'WITHDRAW', 'S', '%s', '%s', "
        "'01234567-89ab-4cde-8f01-23456789abcd', %s, x'%s', %llu, fence, 1, "
        "UTC_TIMESTAMP(6) + INTERVAL %s * 1000 MICROSECOND, max_hold_until, "
        "max_hold_until, %s%s%s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
        r->cust, r->serial, ends ? "Y" : "P", ends ? "end" : "ask",
        ends ? "NULL" : "'01234567-89ab-4cde-8f01-23456789abcd'", hex(ends ? r->next : r->token),
        r->fence, ends ? "NULL" : "60000", ends ? "x'" : "", ends ? hex(r->token) : "NULL",
        ends ? "'" : "");
}

static void add_hot(int ends)
{
    add("INSERT INTO bench_hot (cust_no, serial_no, op_code, lane, status, step, "
        "thread_no, "
        "session_id, token, fence, rev, sends, max_hold_until, send_until, next_run_at, "
        "held, created_at, updated_at) VALUES ");
    for (unsigned i = 0; i < bench.group; i++) {
        add("%s", i > 0 ? "," : "");
        add_hot_row(&rows[i], ends);
    }
    /* The same, but for the column in which the token of the hold rides. */
    add("%.*s", (int)(strstr(update, "VALUES(payload)") - update), update);
    add("VALUES(held)%s%s", strstr(update, "VALUES(payload)") + sizeof "VALUES(payload)" - 1,
        returning);
}

/* Two tables and one commit, in one round trip. */
static void run_hot_ask(void)
{
    start_text();
    add("BEGIN NOT ATOMIC START TRANSACTION; ");
    add_hot(0);
    add("; INSERT INTO bench_cold (cust_no, serial_no, op_code, fingerprint, payload) "
        "VALUES ");
    for (unsigned i = 0; i < bench.group; i++)
        add("%s('%s', '%s', 'WITHDRAW', REPEAT('f', 32), '100.00 EUR')", i > 0 ? "," : "",
            rows[i].cust, rows[i].serial);
    add("; COMMIT; END");
    run_built(bench.group);
}

static int hot_cycle(unsigned caller, uint64_t number)
{
    (void)caller;
    make_rows(number);
    run_hot_ask();
    start_text();
    add_hot(1);
    run_built(bench.group);
    return (int)bench.group;
}

static void check_hot(void)
{
    check_table("bench_hot");
}

const contestant contestant_hot_cold = {
    .name = "hot-cold",
    .what = "multi-row VALUES as text, payload and other cold columns in a second table",
    .open = open_plain,
    .cycle = hot_cycle,
    .close = close_plain,
    .after = check_hot};
