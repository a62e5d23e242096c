/* What is made of a declaration, and each one that is refused, with its sentence. */
#include "books/books.h"
#include "support/theme.h"

#define NAME "s"
#define PREFIX "statement \"" NAME "\": "

static tl_status declare(book_statement *out, const char *sql, const char *values)
{
    const tl_statement given = {.name = NAME, .sql = sql, .values = values};

    return book_declare(out, &given);
}

static void expect_refused(const tl_statement *given, const char *sentence)
{
    book_statement statement;
    tl_status status = book_declare(&statement, given);

    if (status != TL_INVALID || strcmp(tl_error_message(), sentence) != 0)
        fail_msg("\"%s\" with \"%s\":\n  got      %s, %s\n  expected %s", given->sql,
                 given->values != NULL ? given->values : "", tl_status_name(status),
                 tl_error_message(), sentence);
    book_statement_free(&statement);
}

/* ----------------------------------------------------------------------------------- texts -- */

#define CHANGED " AND (@tl_changed := CONCAT(@tl_changed, ?, LEFT('', RAND()), ' ')) IS NOT NULL"

/* marks and sort: a letter for each value, 'A' the first one of the trade's own, 'a' the first
 * declared one, '#' the number of the line. */
struct made {
    const char *sql, *values;
    const char *one, *many; /* many: NULL if it is the same */
    const char *marks, *sort;
};

static const struct made all_made[] = {
    {"INSERT INTO t (x, y, z) VALUES (:p, 'a :p ? ; -- @', :cust_no)", "p text",
     "INSERT INTO t (x, y, z) VALUES (?, 'a :p ? ; -- @', ?)", NULL, "aB", "aB"},
    {"  insert into d.t values(:p,:p , (SELECT MAX(n) FROM u WHERE k = :epoch ORDER BY n LIMIT "
     "1))\n",
     " p int ",
     "insert into d.t values(?,? , (SELECT MAX(n) FROM u WHERE k = ? ORDER BY n LIMIT 1))", NULL,
     "aaD", "aD"},
    {"UPDATE t SET x = x + :amount_minor WHERE k = :cust_no", NULL,
     "UPDATE t SET x = x + ? WHERE k = ?", "UPDATE t SET x = x + ? WHERE (k = ?)" CHANGED, "GB#",
     "B"},
    {"UPDATE `d`.`a``b` SET x = :q, y = :p, z = :q WHERE k = :p AND l = :r OR k = :p ",
     "p int, q text,r bytes",
     "UPDATE `d`.`a``b` SET x = ?, y = ?, z = ? WHERE k = ? AND l = ? OR k = ?",
     "UPDATE `d`.`a``b` SET x = ?, y = ?, z = ? WHERE (k = ? AND l = ? OR k = ?)" CHANGED,
     "babaca#", "ac"},
    {"DELETE FROM t WHERE k IN (SELECT k FROM u WHERE w = :serial_no ORDER BY k LIMIT 1)", "",
     "DELETE FROM t WHERE k IN (SELECT k FROM u WHERE w = ? ORDER BY k LIMIT 1)",
     "DELETE FROM t WHERE (k IN (SELECT k FROM u WHERE w = ? ORDER BY k LIMIT 1))" CHANGED, "A#",
     "A"},
    {"DELETE FROM `2fa` WHERE a IN (1, 1e5, 1.5e+3, .5, 0x4F, 0b01, x'41', :epoch)", NULL,
     "DELETE FROM `2fa` WHERE a IN (1, 1e5, 1.5e+3, .5, 0x4F, 0b01, x'41', ?)",
     "DELETE FROM `2fa` WHERE (a IN (1, 1e5, 1.5e+3, .5, 0x4F, 0b01, x'41', ?))" CHANGED, "D#",
     "D"},
    {"UPDATE t SET n = n + 1 WHERE id = 1", NULL, "UPDATE t SET n = n + 1 WHERE id = 1",
     "UPDATE t SET n = n + 1 WHERE (id = 1)" CHANGED, "#", ""},
    /* Words that are no keywords there. */
    {"UPDATE t SET `limit` = :p, t.order = 1 WHERE t.returning = \"LIMIT\" AND `where` = 'ORDER'",
     "p int",
     "UPDATE t SET `limit` = ?, t.order = 1 WHERE t.returning = \"LIMIT\" AND `where` = 'ORDER'",
     "UPDATE t SET `limit` = ?, t.order = 1 WHERE (t.returning = \"LIMIT\" AND `where` = "
     "'ORDER')" CHANGED,
     "a#", ""},
    {"UPDATE t SET x = (SELECT y FROM u WHERE z = :p LIMIT 1) WHERE k = :q", "p int, q int",
     "UPDATE t SET x = (SELECT y FROM u WHERE z = ? LIMIT 1) WHERE k = ?",
     "UPDATE t SET x = (SELECT y FROM u WHERE z = ? LIMIT 1) WHERE (k = ?)" CHANGED, "ab#", "b"},
    /* Quotes and backslashes in strings; letters that are not ASCII. */
    {"DELETE FROM t WHERE a = 'it''s \\' :p' AND b = \"\"\":p\\\\\" AND c = :p", "p text",
     "DELETE FROM t WHERE a = 'it''s \\' :p' AND b = \"\"\":p\\\\\" AND c = ?",
     "DELETE FROM t WHERE (a = 'it''s \\' :p' AND b = \"\"\":p\\\\\" AND c = ?)" CHANGED, "a#",
     "a"},
    {"DELETE FROM konto_\xc3\xa4 WHERE c=:p-1.5e-3", "p int",
     "DELETE FROM konto_\xc3\xa4 WHERE c=?-1.5e-3",
     "DELETE FROM konto_\xc3\xa4 WHERE (c=?-1.5e-3)" CHANGED, "a#", "a"},
};

static void letters(char *to, const unsigned char *values, unsigned count, const book_statement *of)
{
    for (unsigned i = 0; i < count; i++)
        *to++ = values[i] < BOOK_OWN_COUNT ? (char)('A' + values[i])
                : values[i] < BOOK_OWN_COUNT + of->value_count
                    ? (char)('a' + values[i] - BOOK_OWN_COUNT)
                    : '#';
    *to = '\0';
}

static void expect_made(const struct made *m)
{
    book_statement made;
    char got[300];

    if (declare(&made, m->sql, m->values) != TL_OK)
        fail_msg("%s: %s", m->sql, tl_error_message());
    assert_string_equal(made.one.text, m->one);
    assert_string_equal(made.many.text, m->many != NULL ? m->many : m->one);
    assert_int_equal(made.notes_lines, m->many != NULL);
    assert_int_equal(made.one.values, BOOK_OWN_COUNT + made.value_count);
    assert_int_equal(made.many.values, made.one.values + (m->many != NULL));
    assert_int_equal(made.many.mark_count, strlen(m->marks));
    assert_int_equal(made.one.mark_count, strlen(m->marks) - (m->many != NULL));
    letters(got, made.many.marks, made.many.mark_count, &made);
    assert_string_equal(got, m->marks);
    letters(got, made.sort, made.sort_count, &made);
    assert_string_equal(got, m->sort);
    book_statement_free(&made);
}

TEST(test_texts)
{
    for (size_t i = 0; i < sizeof all_made / sizeof all_made[0]; i++)
        expect_made(&all_made[i]);
}

TEST(test_fields)
{
    const tl_statement given = {.name = "freeze \xc3\xa4",
                                .sql = "UPDATE t SET a = :x, b = :y_2 WHERE c = :Z",
                                .values = "x int,\n y_2 text ,Z bytes",
                                .rows = 3,
                                .refused = "too little",
                                .shared = 7};
    static const struct {
        const char *name;
        book_type type;
    } values[] = {
        {"serial_no", BOOK_TEXT},   {"cust_no", BOOK_TEXT},     {"op_code", BOOK_TEXT},
        {"epoch", BOOK_INT},        {"channel_key", BOOK_TEXT}, {"channel_ref", BOOK_TEXT},
        {"amount_minor", BOOK_INT}, {"currency", BOOK_TEXT},    {"x", BOOK_INT},
        {"y_2", BOOK_TEXT},         {"Z", BOOK_BYTES}};
    book_statement made;

    assert_int_equal(book_declare(&made, &given), TL_OK);
    assert_string_equal(made.name, given.name);
    assert_string_equal(made.one.name, given.name);
    assert_string_equal(made.refused, given.refused);
    assert_ptr_not_equal(made.name, given.name);
    assert_int_equal(made.rows, 3);
    assert_int_equal(made.shared, 1);
    assert_int_equal(BOOK_OWN_COUNT + made.value_count, sizeof values / sizeof values[0]);
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_string_equal(book_value_name(&made, i), values[i].name);
        assert_int_equal(book_value_type(&made, i), values[i].type);
    }
    book_statement_free(&made);

    assert_int_equal(declare(&made, "DELETE FROM t WHERE a = :epoch", NULL), TL_OK);
    assert_int_equal(made.rows, 1);
    assert_int_equal(made.shared, 0);
    assert_null(made.refused);
    book_statement_free(&made);
}

/* ----------------------------------------------------------------------------- bad texts -- */

struct bad {
    const char *sql, *sentence;
};

#define VERB(word) "INSERT, UPDATE or DELETE is expected, and not \"" word "\""
#define UP "UPDATE t SET a = :epoch WHERE "
#define IN "INSERT INTO t (a) VALUES (:epoch)"

static const struct bad bad_texts[] = {
    /* Other statements. */
    {"", VERB("the end")},
    {" \n", VERB("the end")},
    {"SELECT 1", VERB("SELECT")},
    {"REPLACE INTO t VALUES (:epoch)", VERB("REPLACE")},
    {"COMMIT", VERB("COMMIT")},
    {"ROLLBACK", VERB("ROLLBACK")},
    {"SET autocommit = 1", VERB("SET")},
    {"CALL p(:epoch)", VERB("CALL")},
    {"CREATE TABLE t (a INT)", VERB("CREATE")},
    {"DROP TABLE t", VERB("DROP")},
    {"ALTER TABLE t ADD a INT", VERB("ALTER")},
    {"TRUNCATE t", VERB("TRUNCATE")},
    {"LOCK TABLES t WRITE", VERB("LOCK")},
    {"WITH x AS (SELECT 1) DELETE FROM t WHERE a = :epoch", VERB("WITH")},
    {"(DELETE FROM t WHERE a = :epoch)", VERB("(")},
    {"`UPDATE` t SET a = :epoch WHERE 1", VERB("`UPDATE`")},
    {"BEGIN NOT ATOMIC COMMIT", VERB("BEGIN")},
    {"EXECUTE IMMEDIATE 'COMMIT'", VERB("EXECUTE")},
    /* More than a statement, and what is no part of one. */
    {IN ";", "is one statement, and has no semicolon"},
    {IN "; COMMIT", "is one statement, and has no semicolon"},
    {UP "a = ?", "a value has a name, as in :amount_minor, and no question mark"},
    {UP "a = @x", "variables (@) are not taken"},
    {UP "a = @@autocommit", "variables (@) are not taken"},
    {"UPDATE t SET a = (@x := :epoch) WHERE b = 1", "variables (@) are not taken"},
    {UP "a = :=", "a colon is to be followed by the name of a value"},
    {UP "a = ::b", "a colon is to be followed by the name of a value"},
    {UP "a = : epoch", "a colon is to be followed by the name of a value"},
    {UP "a = :1", "a colon is to be followed by the name of a value"},
    {UP "a = 1 -- all", "comments are not taken"},
    {UP "a = 1--1", "comments are not taken"},
    {UP "a = 1 # all", "comments are not taken"},
    {UP "a = 1 /* all */", "comments are not taken"},
    {UP "a = 1 /*!40000 OR 1 */", "comments are not taken"},
    {UP "a = 1 /*M!100000 OR 1 */", "comments are not taken"},
    {UP "a = 'x", "the end of a string, or of a name in quotes, is missing"},
    {UP "a = 'x\\'", "the end of a string, or of a name in quotes, is missing"},
    {UP "a = \"x''", "the end of a string, or of a name in quotes, is missing"},
    {UP "`a = 1", "the end of a string, or of a name in quotes, is missing"},
    {UP "a = 1e5LIMIT 1", "\"1e5LIMIT\" begins with a digit: a name stands in backticks then, and "
                          "a number is followed by a blank"},
    {UP "a = .5LIMIT 1", "\"5LIMIT\" begins with a digit: a name stands in backticks then, and a "
                         "number is followed by a blank"},
    {UP "a = 1e-5ORDER BY b", "\"5ORDER\" begins with a digit: a name stands in backticks then, "
                              "and a number is followed by a blank"},
    {UP "a = 0x41RETURNING", "\"0x41RETURNING\" begins with a digit: a name stands in backticks "
                             "then, and a number is followed by a blank"},
    {"DELETE FROM 2fa WHERE a = :epoch", "\"2fa\" begins with a digit: a name stands in backticks "
                                         "then, and a number is followed by a blank"},
    {UP "(a = 1", "a parenthesis is not closed"},
    {UP "a = 1) OR (1 = 1", "a parenthesis is closed that was not opened"},
    {UP "a = 1)", "a parenthesis is closed that was not opened"},
    {UP "a = '\xff'", "its text: byte 36 is not UTF-8 (0xff)"},
    /* INSERT. */
    {"INSERT t VALUES (:epoch)", "INSERT INTO is expected, and not \"t\""},
    {"INSERT IGNORE INTO t VALUES (:epoch)", "INSERT IGNORE is not taken"},
    {"insert low_priority into t VALUES (:epoch)", "insert low_priority is not taken"},
    {"INSERT DELAYED INTO t VALUES (:epoch)", "INSERT DELAYED is not taken"},
    {"INSERT HIGH_PRIORITY INTO t VALUES (:epoch)", "INSERT HIGH_PRIORITY is not taken"},
    {"INSERT INTO", "the name of a table is expected, and not \"the end\""},
    {"INSERT INTO 't' VALUES (:epoch)", "the name of a table is expected, and not \"'t'\""},
    {"INSERT INTO :epoch VALUES (1)", "the name of a table is expected, and not \":epoch\""},
    {"INSERT INTO d. VALUES (:epoch)", "VALUES is expected, and not \"the end\""},
    {"INSERT INTO t SET a = :epoch", "is an INSERT ... SET; INSERT INTO ... VALUES is taken"},
    {"INSERT INTO t SELECT :epoch", "is an INSERT ... SELECT; INSERT INTO ... VALUES is taken"},
    {"INSERT INTO t (a) SELECT :epoch", "is an INSERT ... SELECT; INSERT INTO ... VALUES is taken"},
    {"INSERT INTO t (SELECT :epoch)", "is an INSERT ... SELECT; INSERT INTO ... VALUES is taken"},
    {"INSERT INTO t WITH x AS (SELECT 1) SELECT :epoch",
     "is an INSERT ... WITH; INSERT INTO ... VALUES is taken"},
    {"INSERT INTO t PARTITION (p) (a) VALUES (:epoch)",
     "VALUES is expected, and not \"PARTITION\""},
    {"INSERT INTO t (a) VALUE (:epoch)", "VALUES is expected, and not \"VALUE\""},
    {"INSERT INTO t (a) VALUES :epoch", "a row in parentheses is expected, and not \":epoch\""},
    {IN ", (2)", "inserts several rows; each line inserts one"},
    {IN " ON DUPLICATE KEY UPDATE a = 1", "ON DUPLICATE KEY UPDATE is not taken"},
    {IN " RETURNING a", "RETURNING is not taken"},
    {IN " UNION SELECT 1", "the end of the statement is expected, and not \"UNION\""},
    {"INSERT INTO t (a) VALUES (1)", "is an INSERT without a value"},
    {"INSERT INTO t () VALUES ()", "is an INSERT without a value"},
    /* UPDATE. */
    {"UPDATE IGNORE t SET a = :epoch WHERE 1", "UPDATE IGNORE is not taken"},
    {"UPDATE LOW_PRIORITY t SET a = :epoch WHERE 1", "UPDATE LOW_PRIORITY is not taken"},
    {"UPDATE t, u SET a = :epoch WHERE 1", "is of several tables; one statement changes one"},
    {"UPDATE t JOIN u ON t.a = u.a SET a = :epoch WHERE 1",
     "is of several tables; one statement changes one"},
    {"UPDATE t LEFT JOIN u USING (a) SET a = :epoch WHERE 1",
     "is of several tables; one statement changes one"},
    {"UPDATE (SELECT 1) x SET a = :epoch WHERE 1",
     "the name of a table is expected, and not \"(\""},
    {"UPDATE t AS x SET a = :epoch WHERE 1", "SET is expected, and not \"AS\""},
    {"UPDATE t SET a = :epoch", "has no WHERE"},
    {"UPDATE t SET a = (SELECT 1 FROM u WHERE b = :epoch)", "has no WHERE"},
    {"UPDATE t SET a = :epoch WHERE", "a condition behind WHERE is expected, and not \"the end\""},
    {"UPDATE t SET a = :epoch ORDER BY b", "ORDER is not taken"},
    {UP "b = 1 ORDER BY c", "ORDER is not taken"},
    {UP "b = 1 LIMIT 1", "LIMIT is not taken"},
    {UP "b = 1 limit :epoch", "limit is not taken"},
    /* DELETE. */
    {"DELETE t FROM t WHERE a = :epoch", "DELETE FROM is expected, and not \"t\""},
    {"DELETE QUICK FROM t WHERE a = :epoch", "DELETE QUICK is not taken"},
    {"DELETE IGNORE FROM t WHERE a = :epoch", "DELETE IGNORE is not taken"},
    {"DELETE FROM t, u USING t JOIN u WHERE a = :epoch",
     "is of several tables; one statement changes one"},
    {"DELETE FROM t USING t JOIN u WHERE a = :epoch",
     "is of several tables; one statement changes one"},
    {"DELETE FROM t.* USING t JOIN u WHERE a = :epoch",
     "the name of a table is expected, and not \"*\""},
    {"DELETE FROM t AS x WHERE a = :epoch", "WHERE is expected, and not \"AS\""},
    {"DELETE FROM t", "has no WHERE"},
    {"DELETE FROM t ORDER BY a LIMIT 1", "ORDER is not taken"},
    {"DELETE FROM t WHERE a = :epoch LIMIT 1", "LIMIT is not taken"},
    {"DELETE FROM t WHERE a = :epoch RETURNING a", "RETURNING is not taken"},
    /* What depends on the statement before, which in a group is another trade's. */
    {"INSERT INTO t (a, b) VALUES (:epoch, LAST_INSERT_ID())", "LAST_INSERT_ID is not taken"},
    {UP "a = (SELECT last_insert_id())", "last_insert_id is not taken"},
    {UP "a = ROW_COUNT()", "ROW_COUNT is not taken"},
    {UP "a = FOUND_ROWS()", "FOUND_ROWS is not taken"},
    {UP "a = LASTVAL(s)", "LASTVAL is not taken"},
    {UP "a = PREVIOUS VALUE FOR s", "PREVIOUS is not taken"},
    {UP "RELEASE_ALL_LOCKS() = 0", "RELEASE_ALL_LOCKS is not taken"},
    {UP "RELEASE_LOCK ('x') = 1", "RELEASE_LOCK is not taken"},
    {UP "GET_LOCK('x', 1) = 1", "GET_LOCK is not taken"},
};

TEST(test_bad_texts)
{
    char sentence[600];

    for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++) {
        const tl_statement given = {.name = NAME, .sql = bad_texts[i].sql};

        snprintf(sentence, sizeof sentence, PREFIX "%s", bad_texts[i].sentence);
        expect_refused(&given, sentence);
    }
}

/* ---------------------------------------------------------------------------- bad sums -- */

#define FORM                                                                                       \
    "is summed, and is not of the form UPDATE table SET column = column + :value WHERE column = "  \
    "value AND ..., with names in ASCII"
#define ASKS "is summed, and its condition asks for what it changes"

static const struct bad bad_sums[] = {
    {"UPDATE t SET a = a * :v WHERE id = 1", FORM},
    {"UPDATE t SET a = b + :v WHERE id = 1", FORM},
    {"UPDATE t SET a = :v + a WHERE id = 1", FORM},
    {"UPDATE t SET a = a + 1, b = :v WHERE id = 1", FORM},
    {"UPDATE t SET a = a + :v, b = b + 1 WHERE id = 1", FORM},
    {"UPDATE t SET a = a + :v * 2 WHERE id = 1", FORM},
    {"UPDATE t SET a = a + (:v) WHERE id = 1", FORM},
    {"UPDATE t SET a = a + (SELECT :v) WHERE id = 1", FORM},
    {"UPDATE t SET a = 'a' + :v WHERE id = 1", FORM},
    {"UPDATE t SET t.a = t.a + :v WHERE id = 1", FORM},
    {"INSERT INTO t (a) VALUES (:v)", FORM},
    {"DELETE FROM t WHERE a = :v", FORM},
    {"UPDATE t SET a = a - :v WHERE id = 1 AND a >= 10", FORM},
    {"UPDATE t SET a = a - :v WHERE id = 1 OR b = 2", FORM},
    {"UPDATE t SET a = a - :v WHERE id = b", FORM},
    {"UPDATE t SET a = a - :v WHERE id = f(1)", FORM},
    {"UPDATE t SET a = a - :v WHERE id = (SELECT 1)", FORM},
    {"UPDATE t SET a = a - :v WHERE (id = 1)", FORM},
    {"UPDATE t SET a = a - :v WHERE id = 1 AND", FORM},
    {"UPDATE t SET a = a - :v WHERE id = 1 AND t.a = 10", FORM},
    {"UPDATE t SET \xc3\xbc = \xc3\xbc - :v WHERE id = 1", FORM},
    {"UPDATE t SET a = a - :v WHERE id = 1 AND `\xc3\xbc` = 1", FORM},
    {"UPDATE t SET a = a - :v WHERE id = 1 AND `A` = 10", ASKS},
    {"UPDATE t SET a = a - :v WHERE id = 1 AND most = :v", ASKS},
};

static void expect_no_sum(const tl_statement *given, const char *sentence)
{
    char whole[300];

    snprintf(whole, sizeof whole, PREFIX "%s", sentence);
    expect_refused(given, whole);
}

TEST(test_bad_sums)
{
    static const char sum[] = "UPDATE t SET `a` = A - :v WHERE id = :id";
    static const char of_trade[] = "UPDATE t SET a = a + :amount_minor WHERE id = :cust_no";
    book_statement made;

    for (size_t i = 0; i < sizeof bad_sums / sizeof bad_sums[0]; i++)
        expect_no_sum(
            &(tl_statement){
                .name = NAME, .sql = bad_sums[i].sql, .values = "v int", .shared = 1, .summed = 1},
            bad_sums[i].sentence);
    expect_no_sum(&(tl_statement){.name = NAME, .sql = sum, .values = "v int, id int", .summed = 1},
                  "is summed, and not shared");
    expect_no_sum(&(tl_statement){.name = NAME,
                                  .sql = sum,
                                  .values = "v int, id int",
                                  .shared = 1,
                                  .summed = 1,
                                  .refused = "poor"},
                  "is summed, and cannot refuse a single trade");
    expect_no_sum(
        &(tl_statement){
            .name = NAME, .sql = sum, .values = "v text, id int", .shared = 1, .summed = 1},
        "is summed, and its value is no int");
    assert_int_equal(book_declare(&made, &(tl_statement){.name = NAME,
                                                         .sql = sum,
                                                         .values = "id int, v int",
                                                         .shared = 1,
                                                         .summed = 1}),
                     TL_OK);
    assert_true(made.summed);
    assert_string_equal(book_value_name(&made, made.addend), "v");
    book_statement_free(&made);
    assert_int_equal(
        book_declare(&made,
                     &(tl_statement){.name = NAME, .sql = of_trade, .shared = 1, .summed = 1}),
        TL_OK);
    assert_int_equal(made.addend, BOOK_OWN_amount_minor);
    book_statement_free(&made);
}

/* ---------------------------------------------------------------------------- bad values -- */

#define HOW "its values are declared as \"name type, name type\", and not as "

static const struct {
    const char *values, *sentence;
} bad_values[] = {
    {NULL, "the value \":p\" is not declared"},
    {"q int", "the value \":p\" is not declared"},
    {"P int", "the value \":p\" is not declared"},
    {"p int, q int", "the value \"q\" is declared and not used"},
    {"p int, p int", "the value \"p\" is declared twice"},
    {"p int, p text", "the value \"p\" is declared twice"},
    {"p int, cust_no text",
     "the value \"cust_no\" is known from the trade, and not to be declared"},
    {"p integer", "the value \"p\" is of type \"integer\"; there are int, text and bytes"},
    {"p INT", "the value \"p\" is of type \"INT\"; there are int, text and bytes"},
    {"p", HOW "\"p\""},
    {"p int,", "a value is missing behind the last comma"},
    {"p int, ", "a value is missing behind the last comma"},
    {",p int", HOW "\",p int\""},
    {"p int,,q int", HOW "\",q int\""},
    {"p int q int", HOW "\"p int q int\""},
    {"p int NOT NULL", HOW "\"p int NOT NULL\""},
    {":p int", HOW "\":p int\""},
    {"1p int", HOW "\"1p int\""},
    {"p-q int", HOW "\"p-q int\""},
    {"p int\xc3", "its values: byte 6 is not UTF-8 (0xc3)"},
};

TEST(test_bad_values)
{
    char sentence[600];

    for (size_t i = 0; i < sizeof bad_values / sizeof bad_values[0]; i++) {
        const tl_statement given = {
            .name = NAME, .sql = "DELETE FROM t WHERE a = :p", .values = bad_values[i].values};

        snprintf(sentence, sizeof sentence, PREFIX "%s", bad_values[i].sentence);
        expect_refused(&given, sentence);
    }
}

/* ":v0, :v1 ..." or "v0 int, v1 int ...". */
static void list(char *to, size_t space, const char *format, unsigned count)
{
    size_t used = 0;

    for (unsigned i = 0; i < count; i++) {
        used += (size_t)snprintf(to + used, space - used, i > 0 ? ", " : "%s", "");
        used += (size_t)snprintf(to + used, space - used, format[0] == ':' ? ":v%u" : "v%u int", i);
    }
}

TEST(test_number_of_values)
{
    char sql[4100], values[4000], names[4000];

    for (unsigned count = TL_BOOK_VALUES; count <= TL_BOOK_VALUES + 1; count++) {
        const tl_statement given = {.name = NAME, .sql = sql, .values = values};
        book_statement made;

        list(names, sizeof names, ":", count);
        list(values, sizeof values, "v", count);
        snprintf(sql, sizeof sql, "INSERT INTO t VALUES (%s)", names);
        if (count > TL_BOOK_VALUES) {
            expect_refused(&given, PREFIX "more than 64 values are declared");
            continue;
        }
        assert_int_equal(book_declare(&made, &given), TL_OK);
        assert_int_equal(made.one.values, 72);
        assert_int_equal(made.sort_count, 64);
        book_statement_free(&made);
    }
}

TEST(test_number_of_marks)
{
    char sql[4000] = "UPDATE t SET a = :epoch WHERE a IN (0";
    const tl_statement given = {.name = NAME, .sql = sql};
    book_statement made;

    for (unsigned i = 1; i < 254; i++)
        strcat(sql, ", :epoch");
    strcat(sql, ")");
    assert_int_equal(book_declare(&made, &given), TL_OK);
    assert_int_equal(made.one.mark_count, 254);
    assert_int_equal(made.many.mark_count, 255);
    assert_int_equal(made.sort_count, 1);
    book_statement_free(&made);
    strcat(sql, " AND a = :epoch");
    expect_refused(&given, PREFIX "has more than 254 places for values");
}

/* ------------------------------------------------------------------------------ the rest -- */

TEST(test_bad_rest)
{
    static const char update[] = "UPDATE t SET a = :epoch WHERE b = 1";
    static const char insert[] = "INSERT INTO t VALUES (:epoch)";
    static const char long_name[] =
        "0123456789012345678901234567890123456789012345678901234567890123_";
    static const struct {
        tl_statement given;
        const char *sentence;
    } all[] = {
        {{.name = NULL, .sql = update}, "a statement has no name"},
        {{.name = "", .sql = update}, "a statement has no name"},
        {{.name = long_name, .sql = update}, "the name of a statement is longer than 64 bytes"},
        {{.name = "a\xc3(", .sql = update}, "the name of a statement: byte 2 is not UTF-8 (0xc3)"},
        {{.name = NAME, .sql = NULL}, PREFIX "has no text"},
        {{.name = NAME, .sql = update, .rows = 1001}, PREFIX "changes more than 1000 rows"},
        {{.name = NAME, .sql = insert, .rows = 2},
         PREFIX "is an INSERT, which changes one row, and not 2"},
        {{.name = NAME, .sql = insert, .refused = "no"},
         PREFIX "is an INSERT, which refuses nothing"},
        {{.name = NAME, .sql = update, .refused = ""}, PREFIX "its reason to refuse is empty"},
        {{.name = NAME, .sql = update, .refused = "\xff"},
         PREFIX "its reason to refuse: byte 1 is not UTF-8 (0xff)"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_refused(&all[i].given, all[i].sentence);
}

TESTS_OF(declare, NULL, NULL)
