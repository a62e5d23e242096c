/* The input file of the withdraw service: amounts, columns, bad lines, and the answers. */
#include "rows.h"

#include "support/theme.h"

/* ---------------------------------------------------------------------- amounts -- */

static void amount_is(const char *text, int64_t expected)
{
    int64_t amount_minor = 0;

    assert_null(withdraw_amount_read(&amount_minor, text));
    assert_int_equal(amount_minor, expected);
}

static void amount_fails(const char *text, const char *expected)
{
    int64_t amount_minor = 77;
    const char *problem = withdraw_amount_read(&amount_minor, text);

    if (problem == NULL || strcmp(problem, expected) != 0)
        fail_msg("'%s': %s", text, problem != NULL ? problem : "(taken)");
    assert_int_equal(amount_minor, 77);
}

TEST(reads_amounts)
{
    amount_is("1", 1);
    amount_is("12345", 12345);
    amount_is("9223372036854775807", INT64_MAX);
}

TEST(refuses_what_is_no_amount)
{
    amount_fails("", "the amount is empty");
    amount_fails("0", "the amount is zero");
    amount_fails("-0", "the amount is negative");
    amount_fails("-5", "the amount is negative");
    amount_fails("007", "the amount begins with a zero");
    amount_fails("9223372036854775808", "the amount is too large");
    amount_fails("99999999999999999999999999", "the amount is too large");
    amount_fails("+5", "the amount is not a whole number of minor units");
    amount_fails(" 5", "the amount is not a whole number of minor units");
    amount_fails("5 ", "the amount is not a whole number of minor units");
    amount_fails("1.50", "the amount is not a whole number of minor units");
    amount_fails("1e3", "the amount is not a whole number of minor units");
    amount_fails("0x10", "the amount is not a whole number of minor units");
    amount_fails("ten", "the amount is not a whole number of minor units");
    amount_fails("-", "the amount is not a whole number of minor units");
    amount_fails("--5", "the amount is not a whole number of minor units");
}

/* ------------------------------------------------------------------------ lines -- */

static int read_bytes(rows *all, const char *bytes, size_t size, char *problem)
{
    FILE *file = fmemopen((void *)(uintptr_t)bytes, size, "rb");
    int result;

    assert_non_null(file);
    memset(all, 0, sizeof *all);
    result = rows_read(all, file, "in.csv", problem, 256);
    fclose(file);
    return result;
}

/* One line after the header. */
static void read_line(rows *all, const char *line)
{
    char text[16384], problem[256];
    int size = snprintf(text, sizeof text, "%s\n%s\n", ROWS_HEADER, line);

    assert_in_range(size, 1, sizeof text - 1);
    assert_int_equal(read_bytes(all, text, (size_t)size, problem), 0);
}

static void line_fails(const char *line, const char *sentence)
{
    rows all;

    read_line(&all, line);
    assert_int_equal(all.count, 1);
    if (all.list[0].kind != ROW_BAD || strcmp(all.list[0].sentence, sentence) != 0)
        fail_msg("'%s': %s", line, all.list[0].sentence != NULL ? all.list[0].sentence : "(taken)");
    rows_free(&all);
}

static void payee_is(const char *line, const char *payee)
{
    rows all;

    read_line(&all, line);
    assert_int_equal(all.count, 1);
    if (all.list[0].kind != ROW_OPEN)
        fail_msg("'%s': %s", line, all.list[0].sentence);
    assert_string_equal(all.list[0].order.payee, payee);
    rows_free(&all);
}

TEST(takes_good_lines)
{
    rows all;

    read_line(&all, "W1,C1,WITHDRAW,1250,EUR,Anna");
    assert_int_equal(all.count, 1);
    assert_int_equal(all.list[0].kind, ROW_OPEN);
    assert_int_equal(all.list[0].line, 2);
    assert_string_equal(all.list[0].columns[COL_SERIAL], "W1");
    assert_string_equal(all.list[0].columns[COL_CUST], "C1");
    assert_int_equal(all.list[0].order.amount_minor, 1250);
    assert_string_equal(all.list[0].order.currency, "EUR");
    rows_free(&all);
    payee_is("W1,C1,WITHDRAW,1,EUR,\"Smith, John\"", "Smith, John");
    payee_is("W1,C1,WITHDRAW,1,EUR,\"the \"\"Bank\"\"\"", "the \"Bank\"");
    payee_is("\"W1\",\"C1\",\"WITHDRAW\",\"1\",\"EUR\",\"Anna\"", "Anna");
    payee_is("W1,C1,WITHDRAW,1,EUR, Anna ", " Anna ");
    payee_is("W1,C1,WITHDRAW,1,EUR,\" Anna \"", " Anna ");
    payee_is("W1,C1,WITHDRAW,1,EUR,Zo\xc3\xab", "Zo\xc3\xab");
    payee_is("W1,C1,WITHDRAW,1,EUR,Anna\r", "Anna");
}

TEST(answers_bad_lines)
{
    line_fails("", "the line is empty");
    line_fails("W1,C1,WITHDRAW,1,EUR", "the line does not have 6 columns");
    line_fails("W1,C1,WITHDRAW,1,EUR,Anna,x", "the line does not have 6 columns");
    line_fails("W1,C1,WITHDRAW,1,EUR,\"Anna", "a quote is not closed");
    line_fails("W1,C1,WITHDRAW,1,EUR,An\"na", "a quote stands in the wrong place");
    line_fails("W1,C1,WITHDRAW,1,EUR,\"An\"na", "a quote stands in the wrong place");
    line_fails("W1,C1,WITH\rDRAW,1,EUR,Anna", "a carriage return stands within the line");
    line_fails("W1,C1,DEPOSIT,1,EUR,Anna", "the operation is not known; WITHDRAW is");
    line_fails("W1,C1,withdraw,1,EUR,Anna", "the operation is not known; WITHDRAW is");
    line_fails("W1,C1,WITHDRAW,-1,EUR,Anna", "the amount is negative");
    line_fails("W1,C1,WITHDRAW,1,EURO,Anna", "the currency must be three capital letters");
    line_fails("W1,C1,WITHDRAW,1,eur,Anna", "the currency must be three capital letters");
    line_fails("W1,C1,WITHDRAW,1,EUR,", "the payee is empty");
    line_fails("W1,C1,WITHDRAW,1,EUR,A\tb", "the payee has a control character");
    line_fails("W1,C1,WITHDRAW,1,EUR,Zo\xeb", "the payee is not UTF-8");
}

TEST(answers_long_lines)
{
    char line[ROW_LINE_MAX + 200];

    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    line_fails(line, "the line is too long");
    strcpy(line, "W1,C1,WITHDRAW,1,EUR,");
    memset(line + strlen(line), 'x', WITHDRAW_PAYEE_MAX + 1);
    line[strlen("W1,C1,WITHDRAW,1,EUR,") + WITHDRAW_PAYEE_MAX + 1] = '\0';
    line_fails(line, "the payee is longer than 128 bytes");
}

TEST(a_bad_line_spoils_only_itself)
{
    static const char text[] = "\xef\xbb\xbf" ROWS_HEADER "\r\n"
                               "W1,C1,WITHDRAW,1,EUR,\"never closed\r\n"
                               "W2,C1,WITHDRAW,2,EUR,Anna\r\n"
                               "W3,\0,WITHDRAW,2,EUR,Anna\r\n"
                               "W4,C1,WITHDRAW,4,EUR,Anna\n";
    char problem[256];
    rows all;

    assert_int_equal(read_bytes(&all, text, sizeof text - 1, problem), 0);
    assert_int_equal(all.count, 4);
    assert_int_equal(all.list[0].kind, ROW_BAD);
    assert_int_equal(all.list[1].kind, ROW_OPEN);
    assert_int_equal(all.list[2].kind, ROW_BAD);
    assert_string_equal(all.list[2].sentence, "the line has a NUL byte");
    assert_int_equal(all.list[3].kind, ROW_OPEN);
    assert_int_equal(all.list[3].order.amount_minor, 4);
    rows_free(&all);
}

TEST(refuses_another_header)
{
    static const char *const headers[] = {"serial,cust,op\n", "\n", "W1,C1,WITHDRAW,1,E,A\n",
                                          ROWS_HEADER ",more\n"};
    char problem[256];
    rows all;

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        assert_int_equal(read_bytes(&all, headers[i], strlen(headers[i]), problem), -1);
        assert_string_equal(problem, "in.csv:1: the header must be " ROWS_HEADER);
        rows_free(&all);
    }
}

/* A file that is picked up while it is uploaded: nobody pays a payee that was cut. */
TEST(refuses_a_cut_file)
{
    static const char text[] = ROWS_HEADER "\nW1,C1,WITHDRAW,1,EUR,A\nW2,C1,WITHDRAW,1,EUR,Ann";
    char problem[256];
    rows all;

    assert_int_equal(read_bytes(&all, text, strlen(text), problem), -1);
    assert_string_equal(problem, "in.csv:3: the last line has no end: the file may be cut");
    rows_free(&all);
}

/* ---------------------------------------------------------------------- answers -- */

TEST(counts_each_answer_once)
{
    assert_int_equal(answer_kind(TL_SUCCEEDED, 1), ROW_NEW);
    assert_int_equal(answer_kind(TL_FAILED, 1), ROW_NEW);
    assert_int_equal(answer_kind(TL_FAILED, 0), ROW_REPEATED);
    assert_int_equal(answer_kind(TL_UNKNOWN, 1), ROW_NEW);
    assert_int_equal(answer_kind(TL_UNKNOWN, 0), ROW_ERROR);
    assert_int_equal(answer_kind(TL_ALREADY_DONE, 0), ROW_REPEATED);
    assert_int_equal(answer_kind(TL_IN_DOUBT, 0), ROW_REPEATED);
    assert_int_equal(answer_kind(TL_MISMATCH, 0), ROW_MISMATCH);
    assert_int_equal(answer_kind(TL_REFUSED, 0), ROW_REFUSED);
    assert_int_equal(answer_kind(TL_INVALID, 0), ROW_BAD);
    assert_int_equal(answer_kind(TL_SESSION_LOST, 0), ROW_ERROR);
}

TEST(writes_what_can_be_read_again)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rows all;

    read_line(&all, "W1,C1,WITHDRAW,1,EUR,\"Smith, \"\"John\"\"\"\nW2,C1");
    all.list[0].kind = ROW_NEW;
    all.list[0].status = TL_SUCCEEDED;
    strcpy(all.list[0].final, "succeeded");
    assert_int_equal(answers_write(file, &all), 0);
    fclose(file);
    assert_string_equal(text,
                        ANSWERS_HEADER "\n"
                                       "W1,C1,WITHDRAW,1,EUR,\"Smith, \"\"John\"\"\",succeeded,"
                                       "succeeded,new,\n"
                                       "W2,C1,,,,,bad,,bad,"
                                       "the line does not have 6 columns\n");
    free(text);
    rows_free(&all);
}

TEST(orders_come_back_as_they_went)
{
    withdraw_order order = {.amount_minor = INT64_MAX, .currency = "EUR"}, back;
    char *payload;

    strcpy(order.payee, "Zo\xc3\xab \"x\", Ltd.");
    payload = withdraw_order_write(&order);
    assert_int_equal(withdraw_order_read(&back, payload, strlen(payload)), 1);
    assert_int_equal(back.amount_minor, INT64_MAX);
    assert_string_equal(back.payee, order.payee);
    assert_string_equal(back.currency, "EUR");
    assert_int_equal(withdraw_order_read(&back, payload, strlen(payload) - 1), 0);
    assert_int_equal(withdraw_order_read(&back, "{}", 2), 0);
    assert_int_equal(withdraw_order_read(&back, "", 0), 0);
    free(payload);
    /* One that may not be asked for any more is brought to its end. */
    strcpy(order.payee, "DE88370400440532013000");
    assert_non_null(withdraw_order_problem(&order));
    payload = withdraw_order_write(&order);
    assert_int_equal(withdraw_order_read(&back, payload, strlen(payload)), 1);
    free(payload);
}

TESTS_OF(rows, NULL, NULL)
