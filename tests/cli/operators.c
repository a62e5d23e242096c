#include "operators.h"

#include "support/theme.h"

#include <sys/stat.h>

struct operators operators;

static void make_account(int who, const char *name, const char *role)
{
    FILE *file;
    mode_t mask = umask(077);

    snprintf(operators.user[who], sizeof operators.user[who], "%s%07ld", name, (long)getpid());
    snprintf(operators.config[who], sizeof operators.config[who], "%s.%s", operators.admin, name);
    database_run(operators.h.sql, "CREATE USER %s@localhost IDENTIFIED BY 'secret'",
                 operators.user[who]);
    database_run(operators.h.sql, "GRANT %s TO %s@localhost", role, operators.user[who]);
    database_run(operators.h.sql, "SET DEFAULT ROLE %s FOR %s@localhost", role,
                 operators.user[who]);
    file = fopen(operators.config[who], "we");
    umask(mask);
    if (file == NULL)
        server_panic("%s cannot be written", operators.config[who]);
    fprintf(file,
            "[tradelock-client]\nsocket=%s\nuser=%s\npassword=secret\ndatabase=%s\n"
            "[tradelock]\nsite=test\n",
            server_socket(server_shared()), operators.user[who], database_name(operators.h.db));
    fclose(file);
}

void operators_grant(void)
{
    ENDS(RUN("migrate", "--grants", "--config", operators.admin), 0);
}

void operators_come(void)
{
    operators.admin = database_option_file(operators.h.db);
    operators_grant();
    make_account(ANN, "ann", "{database}_operator");
    make_account(BOB, "bob", "{database}_operator");
    make_account(SERVICE, "svc", "{database}_application");
}

void operators_go(void)
{
    for (int who = 0; who < ACCOUNTS; who++) {
        database_run(operators.h.sql, "DROP USER %s@localhost", operators.user[who]);
        unlink(operators.config[who]);
    }
}

int operators_set_up(void **state)
{
    (void)state;
    house_open(&operators.h, WITHDRAW_IDEMPOTENT, HOUSE_PATIENT_SETTINGS, NULL);
    house_account(&operators.h, "C1", 1000);
    operators_come();
    return 0;
}

int operators_tear_down(void **state)
{
    (void)state;
    operators_go();
    house_close(&operators.h);
    return 0;
}

unsigned long long operators_fence(const char *serial)
{
    return (unsigned long long)database_number(
        operators.h.sql, "SELECT fence FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'",
        serial);
}

output *operators_decide_in(const char *environment, int who, const char *verb, const char *serial,
                            const char *as, unsigned long long fence)
{
    char number[24];
    const char *const arguments[] = {"resolve",
                                     verb,
                                     serial,
                                     "C1",
                                     WITHDRAW_OP,
                                     "--as",
                                     as,
                                     "--fence",
                                     number,
                                     "--reason",
                                     "the bank's letter",
                                     "--actor",
                                     who == ANN ? "Ann" : "Bob",
                                     "--config",
                                     operators.config[who],
                                     NULL};

    snprintf(number, sizeof number, "%llu", fence);
    return command_run(environment, arguments);
}

void operators_decide(int who, const char *verb, const char *serial, const char *as,
                      unsigned long long fence)
{
    ENDS(operators_decide_in(NULL, who, verb, serial, as, fence), 0);
}

void operators_refused(int who, const char *verb, const char *serial, const char *as,
                       unsigned long long fence, const char *words)
{
    EXPECT_REFUSED(operators_decide_in(NULL, who, verb, serial, as, fence), 1, words);
}

/* Decided by both about the row as it is. */
void operators_decide_together(const char *serial, const char *as)
{
    unsigned long long fence = operators_fence(serial);

    operators_decide(ANN, "propose", serial, as, fence);
    operators_decide(BOB, "confirm", serial, as, fence);
}

/* The request never arrived, and nobody knows that. */
void operators_make_doubtful(const char *serial)
{
    house_rule(&operators.h, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(&operators.h, serial, "C1", 100, TL_IN_DOUBT);
    /* As if the time in which the sender could still send were over. */
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, "
                 "step = 'test' WHERE serial_no = '%s' AND lane = 'S'",
                 serial);
}

void operators_make_failed(const char *serial)
{
    house_rule(&operators.h, "{\"kind\":\"decline\"}");
    house_expect(&operators.h, serial, "C1", 100, TL_FAILED);
}

void operators_say_paid(const char *serial, const char *ref)
{
    ENDS(RUN("evidence", "add", serial, "C1", WITHDRAW_OP, "--outcome", "SUCCEEDED", "--ref", ref,
             "--amount", "1.00 EUR", "--source", "statement", "--config", operators.config[ANN]),
         1);
}

void operators_audit(int code, const char *words)
{
    ENDS(RUN("audit", "--config", operators.config[ANN]), code, words);
}

long long operators_conflict(const char *serial)
{
    return database_number(operators.h.sql,
                           "SELECT conflict FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'",
                           serial);
}

long long statistic(const char *user, const char *column)
{
    while (database_number(operators.h.sql,
                           "SELECT COUNT(*) FROM information_schema.processlist "
                           "WHERE user = '%s' AND command <> 'Sleep'",
                           user) > 0)
        usleep(1000);
    return database_number(operators.h.sql,
                           "SELECT COALESCE(SUM(%s), 0) FROM "
                           "information_schema.user_statistics WHERE user = '%s'",
                           column, user);
}
