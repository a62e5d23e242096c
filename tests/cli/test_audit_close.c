/* Two operators close what an audit found, so that it finds nothing until the facts change. */
#include "operators.h"
#include "fields.h"
#include "support/theme.h"

static char statement[] = "/tmp/tl-statement-XXXXXX";

static json_t *audit(const char *closed, int code)
{
    output *o = closed != NULL ? RUN("audit", "--json", "--closed", "--statement", statement,
                                     "--config", operators.config[ANN])
                               : RUN("audit", "--json", "--statement", statement, "--config",
                                     operators.config[ANN]);
    json_t *document;

    EXPECT_CODE(o, code);
    document = output_json(o);
    output_free(o);
    return document;
}

static long long number_of(const json_t *document, const char *name)
{
    return json_integer_value(json_object_get(document, name));
}

static void expect_counts(int code, long long violations, long long closed)
{
    json_t *document = audit(NULL, code);

    assert_int_equal(json_array_size(json_object_get(document, "violations")), violations);
    assert_int_equal(number_of(document, "closed"), closed);
    json_decref(document);
}

static const char *text_of(const json_t *violation, const char *name)
{
    const char *text = json_string_value(json_object_get(violation, name));

    return text != NULL ? text : "";
}

/* The name of the one open finding of this rule. */
static void name_of(char name[80], const char *rule)
{
    json_t *document = audit(NULL, 1), *violation;
    size_t i;

    name[0] = '\0';
    json_array_foreach(json_object_get(document, "violations"), i, violation)
    {
        if (strcmp(text_of(violation, "rule"), rule) == 0)
            snprintf(name, 80, "%s", text_of(violation, "finding"));
    }
    json_decref(document);
    assert_int_equal(strlen(name), 64);
}

static output *close_as(int who, const char *verb, const char *name)
{
    return RUN("audit", "close", verb, name, "--reason", "the bank's letter", "--actor", "boss",
               "--statement", statement, "--config", operators.config[who]);
}

static void close_finding(int who, const char *verb, const char *name)
{
    ENDS(close_as(who, verb, name), 0);
}

static void refused(int who, const char *verb, const char *name, const char *words)
{
    EXPECT_REFUSED(close_as(who, verb, name), 1, words);
}

static void say_paid(const char *lines)
{
    FILE *file = fopen(statement, "we");

    assert_non_null(file);
    fprintf(file, "serial_no,cust_no\n%s", lines);
    fclose(file);
}

static void change_by_hand(const char *serial)
{
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET remark = CONCAT(COALESCE(remark, ''), '!') WHERE "
                 "serial_no = '%s' AND lane = 'S'",
                 serial);
}

TEST(test_two_close_a_finding)
{
    char name[80];

    close(mkstemp(statement));
    say_paid("");
    operators_make_failed("F1");
    expect_counts(0, 0, 0);
    change_by_hand("F1");
    name_of(name, "by-hand");
    refused(BOB, "confirm", name, "nobody has proposed");
    close_finding(ANN, "propose", name);
    close_finding(ANN, "propose", name);
    refused(BOB, "propose", name, "has proposed that already");
    refused(ANN, "confirm", name, "cannot confirm it");
    expect_counts(1, 1, 0);
    /* As many digits as the table shows are enough. */
    name[16] = '\0';
    close_finding(BOB, "confirm", name);
    close_finding(BOB, "confirm", name);
    refused(ANN, "propose", "0123456789abcdef", "finds nothing of that name");
    expect_counts(0, 0, 1);
    ENDS(RUN("audit", "--closed", "--config", operators.config[ANN]), 0,
         "1 closed by two operators", "audited by ", operators.user[ANN], operators.user[BOB],
         "the bank's letter");
}

/* Another revision is another finding; what was closed stays closed. */
TEST(test_what_changes_is_open_again)
{
    change_by_hand("F1");
    expect_counts(1, 1, 1);
}

/* What only the statement says is bound to the row as it is, and to what it says. */
TEST(test_what_a_statement_says)
{
    char name[80];

    name_of(name, "by-hand");
    close_finding(ANN, "propose", name);
    close_finding(BOB, "confirm", name);
    operators_make_failed("F2");
    say_paid("F2,C1\n");
    name_of(name, "paid-failure");
    close_finding(BOB, "propose", name);
    close_finding(ANN, "confirm", name);
    expect_counts(0, 0, 3);
    say_paid("F2,C1\nF2,C1\n");
    name_of(name, "paid-twice");
    database_run(operators.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test' WHERE "
                                  "serial_no = 'F2' AND lane = 'S'");
    say_paid("F2,C1\n");
    name_of(name, "paid-failure");
}

/* In plain SQL, too, nobody closes alone or in another's name. */
TEST(test_sql_is_refused_too)
{
#define HALF(column, part, value)                                                                  \
    "INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, rev, "           \
    "reason, actor, thread_no" column ") VALUES (REPEAT('x', 32), " part                           \
    ", 'gap', 'C1', 'S', 'O', 1, 'r', 'a', UUID()" value ")"
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {HALF("", "2", ""), "nobody has proposed"},
        {HALF("", "1", ""), NULL},
        {HALF("", "2", ""), "cannot confirm"},
        {HALF(", account", "2", ", 'bob@localhost'"), "denied"},
        {HALF(", closed_at", "2", ", '2001-01-01'"), "denied"},
        {"UPDATE audit_closing SET part = 2", "denied"},
        {"DELETE FROM audit_closing", "denied"},
    };
    MYSQL *ann = mysql_init(NULL);

    assert_non_null(mysql_real_connect(ann, NULL, operators.user[ANN], "secret",
                                       database_name(operators.h.db), 0,
                                       server_socket(server_shared()), 0));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int failed = mysql_query(ann, cases[i].sql) != 0;

        assert_int_equal(failed, cases[i].words != NULL);
        if (cases[i].words != NULL && strstr(mysql_error(ann), cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].sql, mysql_error(ann));
    }
    mysql_close(ann);
}

static void expect_usage(const char *words, output *o)
{
    EXPECT_SENTENCE(o, 2, words);
    output_free(o);
}

TEST(test_usage)
{
    expect_usage("`close propose FINDING`", RUN("audit", "close", "propose"));
    expect_usage("`close propose FINDING`", RUN("audit", "close", "undo", "0123456789"));
    expect_usage("named by the digits", RUN("audit", "close", "confirm", "0123"));
    expect_usage("--reason is missing", RUN("audit", "close", "confirm", "0123456789"));
}

TEST(test_fields_are_listed)
{
    json_t *set = json_object(), *document = audit("closed", 1);
    char name[80], archive[] = "/tmp/tl-audit-XXXXXX";
    output *o;

    fields_add(set, document);
    json_decref(document);
    assert_non_null(mkdtemp(archive));
    ENDS(RUN("purge", "--older", "400d", "--archive", archive, "--config", operators.config[ANN]),
         0);
    o = RUN("audit", "--json", "--archive", archive, "--config", operators.config[ANN]);
    document = output_json(o);
    fields_add(set, document);
    json_decref(document);
    output_free(o);
    fields_expect(set, "audit");
    json_decref(set);
    name_of(name, "paid-failure");
    o = RUN("audit", "close", "propose", name, "--reason", "r", "--json", "--statement", statement,
            "--config", operators.config[ANN]);
    EXPECT_CODE(o, 0);
    set = json_object();
    document = output_json(o);
    fields_add(set, document);
    fields_expect(set, "audit close");
    json_decref(set);
    json_decref(document);
    output_free(o);
    unlink(statement);
}

TESTS_OF(audit_close, operators_set_up, operators_tear_down)
