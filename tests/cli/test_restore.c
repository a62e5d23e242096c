/* The operator's way through a restore, by two real accounts with the command. */
#include "operators.h"

#include <tradelock/admin.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static output *restore_by(int who, const char *verb)
{
    return RUN("restore", verb, "--reason", "the backup of Monday", "--actor",
               who == ANN ? "Ann" : "Bob", "--config", operators.config[who]);
}

static void restore_says(int who, const char *verb, int code, const char *words)
{
    output *o = restore_by(who, verb);

    EXPECT_CODE(o, code);
    if (code == 0)
        EXPECT_WORDS(o, words);
    else
        assert_non_null(strstr(o->err, words));
    output_free(o);
}

static void status_says(const char *words)
{
    output *o = RUN("restore", "status", "--config", operators.config[BOB]);

    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, words);
    output_free(o);
}

static void file_statement(const char *path, int code, const char *words)
{
    output *o = RUN("evidence", "add", "--statement", path, "--op", WITHDRAW_OP, "--source",
                    "statement of Monday", "--config", operators.config[ANN]);

    EXPECT_CODE(o, code);
    EXPECT_WORDS(o, words);
    output_free(o);
}

static void write_statement(char *path)
{
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    assert_non_null(file);
    fprintf(file, "serial_no,cust_no,channel_ref\nGONE1,C1,ref-1\nGONE2,C1,ref-2\n"
                  "HANGS,C1,ref-3\n");
    fclose(file);
}

/* What ends a restore is the procedure's, which looks whether two of them agreed. */
static void nobody_goes_round_it(void)
{
    static const char *const tries[] = {
        "UPDATE tl_schema SET restored_at = NULL, server_identity = 'x'",
        "UPDATE tl_schema SET accepted_no = restore_no",
        "UPDATE tl_restore SET account = 'bob@localhost'",
        "INSERT INTO tl_restore (step, account) VALUES ('confirmed', 'bob@localhost')",
        "INSERT INTO tl_restore (restore_no, step, reason) VALUES (1, 'confirmed', 'r')",
        "DELETE FROM tl_restore",
        "CALL tl_restore_accept(1000, UUID())",
    };
    MYSQL *ann = mysql_init(NULL);

    assert_non_null(ann);
    assert_non_null(mysql_real_connect(ann, NULL, operators.user[ANN], "secret",
                                       database_name(operators.h.db), 0,
                                       server_socket(server_shared()), 0));
    assert_int_equal(mysql_query(ann, "START TRANSACTION"), 0);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
        assert_int_not_equal(mysql_query(ann, tries[i]), 0);
    mysql_close(ann);
}

static void test_the_whole_way(void **state)
{
    char path[] = "/tmp/tradelock-statement-XXXXXX";
    output *o;

    (void)state;
    operators_make_doubtful("HANGS");
    write_statement(path);
    restore_says(ANN, "accept", 1, "no restore is declared or found");
    file_statement(path, 1, "2 without a trade");
    restore_says(ANN, "declare", 0, "Declared.");
    status_says("A restore was declared at ");
    status_says("Nobody has proposed");
    status_says("in doubt");
    o = RUN("doctor", "--config", operators.config[ANN]);
    EXPECT_CODE(o, 5);
    EXPECT_WORDS(o, "a restore is declared or found and not accepted");
    output_free(o);
    file_statement(path, 0, "2 rows made that were lost, 0 filed, 1 known already");
    file_statement(path, 0, "0 rows made that were lost, 0 filed, 3 known already");
    restore_says(ANN, "accept", 0, "Proposed.");
    restore_says(ANN, "accept", 0, "Proposed.");
    status_says("proposed at ");
    nobody_goes_round_it();
    restore_says(BOB, "accept", 0, "Accepted. 1 trades are in process");
    restore_says(BOB, "accept", 1, "no restore is declared or found");
    status_says("No restore is declared or found.");
    o = RUN("doctor", "--config", operators.config[ANN]);
    EXPECT_CODE(o, 0);
    output_free(o);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_whole_way),
    };

    return server_run_tests(tests, operators_set_up, operators_tear_down);
}
