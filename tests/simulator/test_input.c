/* Bad requests pay nothing and get one sentence; so do bad command lines and ledgers. */
#include "fixture.h"
#include "support/theme.h"

#include <fcntl.h>
#include <sys/stat.h>

#define NAMES "\"channel_key\":\"K\",\"serial_no\":\"S\",\"cust_no\":\"C\",\"op_code\":\"W\","
#define REST "\"currency\":\"EUR\",\"payee\":\"x\""
#define AMOUNT "amount_minor must be a whole number from 1 to 9223372036854775807"

static const struct bad_body {
    const char *body;
    const char *sentence; /* or its beginning, before ... */
} bad_bodies[] = {
    {"", "the body is not JSON..."},
    {"{", "the body is not JSON..."},
    {"[]", "the body must be one JSON object"},
    {"\"\\u0000\"", "the body is not JSON..."},
    {"{" NAMES "\"amount_minor\":1," REST "} x", "the body is not JSON..."},
    {"{" NAMES "\"amount_minor\":1,\"amount_minor\":2," REST "}", "the body is not JSON..."},
    {"{}", "channel_key is missing"},
    {"{" NAMES REST "}", "amount_minor is missing"},
    {"{" NAMES "\"amount_minor\":0," REST "}", AMOUNT},
    {"{" NAMES "\"amount_minor\":-5," REST "}", AMOUNT},
    {"{" NAMES "\"amount_minor\":1.5," REST "}", AMOUNT},
    {"{" NAMES "\"amount_minor\":1e3," REST "}", AMOUNT},
    {"{" NAMES "\"amount_minor\":\"12\"," REST "}", AMOUNT},
    {"{" NAMES "\"amount_minor\":null," REST "}", AMOUNT},
    {"{" NAMES "\"amount_minor\":9223372036854775808," REST "}",
     "the body is not JSON: too big..."},
    {"{" NAMES "\"amount_minor\":1e999," REST "}", "the body is not JSON: real number..."},
    {"{" NAMES "\"amount_minor\":1,\"currency\":\"eur\",\"payee\":\"x\"}",
     "currency must be three capital letters"},
    {"{" NAMES "\"amount_minor\":1,\"currency\":\"EURO\",\"payee\":\"x\"}",
     "currency must be three capital letters"},
    {"{" NAMES "\"amount_minor\":1,\"currency\":\"EUR\",\"payee\":\"\"}",
     "payee must be a string of 1 to 256 bytes without control characters"},
    {"{" NAMES "\"amount_minor\":1,\"currency\":\"EUR\",\"payee\":\"a\\nb\"}",
     "payee must be a string of 1 to 256 bytes without control characters"},
    {"{" NAMES "\"amount_minor\":1,\"expires_at\":5," REST "}",
     "there is no field \"expires_at\" here"},
    {"{" NAMES "\"amount_minor\":1,\"expires_at_ms\":-5," REST "}",
     "expires_at_ms must be a whole number from 1 to 9223372036854775807"},
    {"{\"channel_key\":\"a b\"}", "channel_key must be a string of 1 to 128 visible ASCII "
                                  "characters without blanks"},
    {"{\"channel_key\":\"\"}", "channel_key must be..."},
    {"{\"channel_key\":7}", "channel_key must be..."},
    {"{\"channel_key\":\"\xc3\xa4\"}", "channel_key must be..."},
    {"{\"channel_key\":\"\xff\"}", "the body is not JSON..."},
    {"{\"\xc3\xa4\":1}", "there is no field \"??\" here"},
};

static void expect_sentence(const char *method, const char *path, const char *body, long status,
                            const char *sentence)
{
    struct answer answer = sim_ask(&sim, method, path, body, 10000);
    const char *found = json_string_value(json_object_get(answer.json, "error"));
    const char *dots = strstr(sentence, "...");

    if (!found || answer.status != status)
        print_error("%s %s: %ld %s\n", path, body ? body : "", answer.status, answer.text);
    assert_int_equal(answer.status, status);
    assert_non_null(found);
    if (dots)
        assert_memory_equal(found, sentence, (size_t)(dots - sentence));
    else
        assert_string_equal(found, sentence);
    answer_free(&answer);
}

TEST_IN(test_bad_bodies, set_up, tear_down)
{
    sim_start(&sim, NULL);
    for (size_t i = 0; i < sizeof(bad_bodies) / sizeof(bad_bodies[0]); i++)
        expect_sentence(NULL, "/v1/pay", bad_bodies[i].body, 400, bad_bodies[i].sentence);
    assert_int_equal(ledger_count(&sim, NULL), 0);
    assert_int_equal(sim_stat(&sim, "keys"), 0);
    /* Right at the limits all is well. */
    sim_expect(&sim, NULL, "/v1/pay", "{" NAMES "\"amount_minor\":9223372036854775807," REST "}",
               200, "outcome", "succeeded");
    assert_int_equal(ledger_count(&sim, "9223372036854775807"), 1);
}

static char *filled(size_t size)
{
    char *text = malloc(size + 1);

    assert_non_null(text);
    memset(text, ' ', size);
    text[size] = '\0';
    return text;
}

TEST_IN(test_big_bodies, set_up, tear_down)
{
    char *body = filled(16384);

    sim_start(&sim, NULL);
    memcpy(body, "{" NAMES "\"amount_minor\":1," REST "}",
           strlen("{" NAMES "\"amount_minor\":1," REST "}"));
    sim_expect(&sim, NULL, "/v1/pay", body, 200, "outcome", "succeeded");
    free(body);
    body = filled(16385);
    expect_sentence(NULL, "/v1/pay", body, 400, "the body is longer than 16384 bytes");
    free(body);
    body = filled(3000000);
    expect_sentence(NULL, "/v1/pay", body, 400, "the body is longer than 16384 bytes");
    free(body);
    /* Without end is not even read to the end. */
    body = filled(20000000);
    sim_expect(&sim, NULL, "/v1/pay", body, 0, NULL, NULL);
    free(body);
    assert_int_equal(ledger_count(&sim, NULL), 1);
}

TEST_IN(test_bad_paths, set_up, tear_down)
{
    char path[256];

    sim_start(&sim, NULL);
    expect_sentence(NULL, "/v1/nothing", NULL, 404, "there is no /v1/nothing here");
    expect_sentence(NULL, "/v1/%ff%00", NULL, 404, "there is no /v1/%ff%00 here");
    expect_sentence("GET", "/v1/pay", NULL, 405, "/v1/pay is asked with POST");
    expect_sentence("PUT", "/v1/faults", NULL, 405, "/v1/faults is asked with POST GET DELETE");
    expect_sentence("GET", "/v1/payments/K/cancel", NULL, 405, "a cancel is sent with POST");
    expect_sentence("DELETE", "/v1/payments/K", NULL, 405, "a payment is queried with GET");
    expect_sentence(NULL, "/v1/payments/", NULL, 400, "the channel key in the path...");
    expect_sentence(NULL, "/v1/payments/a%", NULL, 400, "the channel key in the path...");
    expect_sentence(NULL, "/v1/payments/a%4", NULL, 400, "the channel key in the path...");
    expect_sentence(NULL, "/v1/payments/a%4g", NULL, 400, "the channel key in the path...");
    expect_sentence(NULL, "/v1/payments/a%00", NULL, 400, "the channel key in the path...");
    expect_sentence(NULL, "/v1/payments/a%20b", NULL, 400, "the channel key in the path...");
    expect_sentence(NULL, "/v1/payments/a/b", NULL, 404, "there is no...");
    strcpy(path, "/v1/payments/");
    memset(path + 13, 'k', 128);
    path[13 + 128] = '\0';
    sim_expect(&sim, NULL, path, NULL, 404, "status", "not_found");
    strcat(path, "k");
    expect_sentence(NULL, path, NULL, 400, "the channel key in the path...");
    assert_int_equal(sim_stat(&sim, "keys"), 0);
}

TEST_IN(test_bad_rules, set_up, tear_down)
{
    sim_start(&sim, NULL);
    expect_sentence(NULL, "/v1/faults", "[]", 400, "a fault rule must be one JSON object");
    expect_sentence(NULL, "/v1/faults", "{}", 400,
                    "kind must be the name of a fault, such as drop_after");
    expect_sentence(NULL, "/v1/faults", "{\"kind\":\"none\"}", 400, "kind must be...");
    expect_sentence(NULL, "/v1/faults", "{\"kind\":\"slow\",\"cout\":1}", 400,
                    "there is no field \"cout\" here");
    expect_sentence(NULL, "/v1/faults", "{\"kind\":\"slow\",\"endpoint\":\"pray\"}", 400,
                    "endpoint must be pay, query or cancel");
    expect_sentence(NULL, "/v1/faults", "{\"kind\":\"decline\",\"endpoint\":\"query\"}", 400,
                    "the fault decline does not happen to a query request");
    expect_sentence(NULL, "/v1/faults", "{\"kind\":\"slow\",\"count\":-1}", 400,
                    "count must be a whole number from 0 to 2147483647");
    expect_sentence(NULL, "/v1/faults", "{\"rate\":1.5}", 400, "rate must be a number from 0 to 1");
    pay_expect(&sim, "K", 200, "outcome", "succeeded");
}

static const struct bad_line {
    const char *arguments[8];
    const char *sentence;
} bad_lines[] = {
    {{NULL}, "--ledger FILE is missing; see --help"},
    {{"--legder", "x", NULL}, "there is no option --legder; see --help"},
    {{"--ledger", NULL}, "--ledger needs a value; see --help"},
    {{"--ledger", "x", "more", NULL}, "\"more\" is not an option; see --help"},
    {{"--ledger", "x", "--kind", "odd", NULL}, "--kind must be idempotent, window or plain"},
    {{"--ledger", "x", "--listen", "8080", NULL},
     "--listen must be an IPv4 address and a port, such as 127.0.0.1:8080"},
    {{"--ledger", "x", "--listen", "127.0.0.1:70000", NULL},
     "--listen must be an IPv4 address and a port, such as 127.0.0.1:8080"},
    {{"--ledger", "x", "--faults", "2", NULL}, "--faults must be a number from 0 to 1"},
    {{"--ledger", "x", "--faults", "nan", NULL}, "--faults must be a number from 0 to 1"},
    {{"--ledger", "x", "--slow-ms", "-1", NULL},
     "--slow-ms must be a whole number from 0 to 3600000"},
    {{"--ledger", "x", "--seed", "1x", NULL},
     "--seed must be a whole number from 0 to 9223372036854775807"},
    {{"--ledger", "x", "--rule", "{}", NULL},
     "--rule {}: kind must be the name of a fault, such as drop_after"},
    {{"--ledger", "x", "--rule", "{", NULL}, "--rule {: it is not JSON: "},
};

static void expect_exit(const char *const arguments[], int status, const char *sentence)
{
    char *output, *line = NULL;

    assert_int_equal(sim_run(arguments, &output), status);
    assert_true(asprintf(&line, "tradelock-simulator: %s", sentence) > 0);
    if (strncmp(output, line, strlen(line)) != 0)
        print_error("%s\nis not %s\n", output, line);
    assert_int_equal(strncmp(output, line, strlen(line)), 0);
    assert_int_equal(text_count(output, "\n"), 1);
    free(line);
    free(output);
}

TEST_IN(test_bad_command_lines, set_up, tear_down)
{
    for (size_t i = 0; i < sizeof(bad_lines) / sizeof(bad_lines[0]); i++)
        expect_exit(bad_lines[i].arguments, 2, bad_lines[i].sentence);
    assert_int_not_equal(access("x", F_OK), 0);
}

TEST_IN(test_help_and_version, set_up, tear_down)
{
    static const char *const help[] = {"--help", NULL}, *const version[] = {"--version", NULL};
    char *output;

    assert_int_equal(sim_run(help, &output), 0);
    assert_int_equal(strncmp(output, "usage: tradelock-simulator ", 27), 0);
    free(output);
    assert_int_equal(sim_run(version, &output), 0);
    assert_int_equal(strncmp(output, "tradelock-simulator ", 20), 0);
    free(output);
}

static void write_ledger(const char *text)
{
    FILE *file = fopen(sim.ledger, "we");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

#define FIRST "{\"seq\":1,\"type\":\"ledger\",\"at\":\"2026-01-31T23:59:59.000001Z\",\"format\":"
#define PAID(seq, at)                                                                              \
    "{\"seq\":" seq ",\"type\":\"paid\",\"at\":\"" at "\",\"channel_ref\":\"P2\","                 \
    "\"channel_key\":\"K\",\"serial_no\":\"S\",\"cust_no\":\"C\",\"op_code\":\"W\","               \
    "\"amount_minor\":5,\"currency\":\"EUR\",\"payee\":\"x\"}\n"

static const struct bad_ledger {
    const char *text;
    const char *sentence;
} bad_ledgers[] = {
    {"hello\n", ":1: not a line of a ledger: not a JSON object"},
    {FIRST "2}\n", ":1: not a line of a ledger: format must be a whole number from 1 to 1"},
    {PAID("1", "2026-01-31T23:59:59.000001Z"),
     ":1: not a line of a ledger: the first line, and no other, must be of type ledger"},
    {FIRST "1}\n" PAID("1", "2026-01-31T23:59:59.000001Z"),
     ":2: not a line of a ledger: seq 1 follows 1"},
    {FIRST "1}\n" PAID("2", "2026-02-31T23:59:59.000001Z"),
     ":2: not a line of a ledger: at must be a time such as 2026-01-31T23:59:59.123456Z"},
    {FIRST "1}\n{\"seq\":2}\n",
     ":2: not a line of a ledger: at must be a time such as 2026-01-31T23:59:59.123456Z"},
};

TEST_IN(test_bad_ledgers, set_up, tear_down)
{
    const char *const arguments[] = {"--ledger", sim.ledger, NULL};
    char sentence[256];

    for (size_t i = 0; i < sizeof(bad_ledgers) / sizeof(bad_ledgers[0]); i++) {
        write_ledger(bad_ledgers[i].text);
        snprintf(sentence, sizeof(sentence), "%s%s", sim.ledger, bad_ledgers[i].sentence);
        expect_exit(arguments, 1, sentence);
    }
    unlink(sim.ledger);
    assert_int_equal(mkfifo(sim.ledger, 0600), 0);
    snprintf(sentence, sizeof(sentence), "the ledger %s is not a regular file", sim.ledger);
    expect_exit(arguments, 1, sentence);
}

TEST_IN(test_bad_files, set_up, tear_down)
{
    const char *const full[] = {"--ledger", "/dev/full", NULL};
    const char *const nowhere[] = {"--ledger", "/nowhere/ledger", NULL};
    const char *const no_export[] = {"--export-csv", "/nowhere/ledger", NULL};
    const char *const port[] = {"--ledger", sim.ledger, "--port-file", "/nowhere/p", NULL};
    const char *const requests[] = {"--ledger", sim.ledger, "--request-log", "/nowhere/r", NULL};

    expect_exit(full, 1, "the ledger /dev/full is not a regular file");
    expect_exit(nowhere, 1, "cannot open the ledger /nowhere/ledger: No such file or");
    expect_exit(no_export, 1, "cannot open the ledger /nowhere/ledger: No such file or");
    expect_exit(port, 1, "cannot write the port file /nowhere/p: No such file or");
    expect_exit(requests, 1, "cannot open the request log /nowhere/r: No such file or");
}

TEST_IN(test_port_in_use, set_up, tear_down)
{
    char address[64], other[128], sentence[128];
    const char *const arguments[] = {"--ledger", other, "--listen", address, NULL};

    sim_start(&sim, NULL);
    snprintf(other, sizeof(other), "%s/other", sim.directory);
    snprintf(address, sizeof(address), "127.0.0.1:%u", sim.port);
    snprintf(sentence, sizeof(sentence), "cannot listen on %s: Address already in use", address);
    expect_exit(arguments, 1, sentence);
    unlink(other);
}

TESTS_OF(input, NULL, NULL)
