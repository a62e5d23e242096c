/* Accounts of the sample are opened by several services at once, wherever the settings lead. */
#include "accounts.h"

#include "support/database.h"
#include "support/theme.h"

#include <pthread.h>
#include <sys/stat.h>

#define CUSTOMERS 200
#define ROUNDS 10

struct service {
    const char *config;
    int round, turns_round; /* the customers in their order, or from the last on */
    int result;
    char problem[512];
};

static void *run(void *context)
{
    struct service *self = context;
    char names[CUSTOMERS][16], currency[] = "EUR";
    row list[CUSTOMERS];
    rows all = {list, CUSTOMERS, CUSTOMERS};

    memset(list, 0, sizeof list);
    for (int i = 0; i < CUSTOMERS; i++) {
        snprintf(names[i], sizeof names[i], "C%d-%d", self->round,
                 self->turns_round ? CUSTOMERS - i : i + 1);
        list[i].columns[COL_CUST] = names[i];
        list[i].columns[COL_CURRENCY] = currency;
    }
    self->result = accounts_open(self->config, &all, 100, self->problem, sizeof self->problem);
    return NULL;
}

TEST(of_two_services_at_once)
{
    database *db = *state;
    MYSQL *sql = database_connect(db);

    for (int round = 0; round < ROUNDS; round++) {
        struct service of[2] = {{database_option_file(db), round, 0, 0, ""},
                                {database_option_file(db), round, 1, 0, ""}};
        pthread_t threads[2];

        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, run, &of[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_string_equal(of[0].result == 0 ? "" : of[0].problem, "");
        assert_string_equal(of[1].result == 0 ? "" : of[1].problem, "");
    }
    assert_int_equal(database_number(sql, "SELECT COUNT(*) FROM account"), CUSTOMERS * ROUNDS);
    mysql_close(sql);
}

/* As the library reads it: a list of hosts, with ports, the first of which is gone. */
TEST(at_a_host_of_a_list)
{
    database *db = *state;
    struct service of = {"", ROUNDS, 0, 0, ""};
    char path[] = "/tmp/tl-accounts-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");

    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nhost=127.0.0.1:1, %s\nuser=root\ndatabase=%s\n",
            server_socket(server_shared()), database_name(db));
    fclose(file);
    of.config = path;
    run(&of);
    assert_string_equal(of.result == 0 ? "" : of.problem, "");
    file = fopen(path, "we");
    fprintf(file, "[tradelock-client]\nhost=127.0.0.1:1\nuser=root\ndatabase=x\n");
    fclose(file);
    run(&of);
    assert_int_equal(of.result, -1);
    assert_non_null(strstr(of.problem, "'127.0.0.1'"));
    unlink(path);
}

FIXTURE(set_up)
{
    database *db = database_new(server_shared(), NULL);
    MYSQL *sql = database_connect(db);

    database_run(sql, "CREATE TABLE account (cust_no VARCHAR(32) NOT NULL, currency CHAR(3) NOT "
                      "NULL, balance_minor BIGINT NOT NULL, PRIMARY KEY (cust_no, currency))");
    mysql_close(sql);
    *state = db;
}

FIXTURE(tear_down)
{
    database_free(*state);
}

TESTS_OF(accounts, set_up, tear_down)
