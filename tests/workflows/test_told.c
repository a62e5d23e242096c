/* What a workflow's answer and log tell: of an execute that took too long, of a key that was used
 * for something else, of the row after one's own ending. */
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/workflow.h>

static database *db;
static tl_client *client;
static tl_workflows *workflows;
static char warning[256], warned_serial[TL_SERIAL_MAX + 1];

static void keep_warning(void *context, const tl_log_line *line)
{
    (void)context;
    if (line->level != TL_WARNING)
        return;
    snprintf(warning, sizeof warning, "%s", line->message);
    snprintf(warned_serial, sizeof warned_serial, "%s", line->serial_no);
}

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    int64_t end_ms = crew_now_ms() + attempt->timeout_ms + 20;

    (void)context;
    while (attempt->key.serial_no[0] == 'L' && crew_now_ms() < end_ms)
        crew_sleep_ms(5);
    if (strcmp(attempt->key.serial_no, "L-said") == 0)
        tl_reply_remark(reply, "slow today");
    if (attempt->key.serial_no[0] == 'F')
        return TL_EXECUTE_DECLINED;
    return TL_EXECUTE_SUCCEEDED;
}

FIXTURE(setup)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_workflow workflow = TL_WORKFLOW_INIT;

    db = database_new(server_shared(), "execute_ms=50ms\n");
    options.config_file = database_option_file(db);
    options.log = keep_warning;
    CREW_STATUS(tl_client_open(&client, &options), TL_OK);
    CREW_STATUS(tl_workflows_new(&workflows, client), TL_OK);
    workflow.op_code = "WITHDRAW";
    workflow.channel.name = "fastpay";
    workflow.channel.idempotent = 1;
    workflow.execute = execute;
    CREW_STATUS(tl_workflow_register(workflows, &workflow), TL_OK);
}

FIXTURE(teardown)
{
    tl_workflows_free(workflows);
    tl_client_close(client);
    database_free(db);
}

static tl_status run(const char *serial, const char *payload, tl_answer *answer)
{
    tl_request request = TL_REQUEST_INIT;

    request.key = (tl_key){serial, "C-1", "WITHDRAW"};
    request.payload = payload;
    request.payload_size = strlen(payload);
    return tl_workflow_run(workflows, &request, answer);
}

TEST(test_an_execute_that_takes_too_long)
{
    tl_answer answer = TL_ANSWER_INIT;

    warning[0] = '\0';
    CREW_STATUS(run("S-1", "1", &answer), TL_SUCCEEDED);
    assert_string_equal(warning, "");
    assert_string_equal(answer.view.remark, "");
    tl_answer_clear(&answer);
    CREW_STATUS(run("L-silent", "1", &answer), TL_SUCCEEDED);
    assert_non_null(strstr(warning, "execute took "));
    assert_string_equal(warned_serial, "L-silent");
    assert_non_null(strstr(answer.view.remark, "instead of 50 ms"));
    tl_answer_clear(&answer);
    CREW_STATUS(run("L-said", "1", &answer), TL_SUCCEEDED);
    assert_string_equal(warned_serial, "L-said");
    assert_string_equal(answer.view.remark, "slow today");
    tl_answer_clear(&answer);
}

TEST(test_a_mismatch_tells_the_epoch)
{
    tl_answer answer = TL_ANSWER_INIT;

    CREW_STATUS(run("S-2", "1", &answer), TL_SUCCEEDED);
    tl_answer_clear(&answer);
    CREW_STATUS(run("S-2", "2", &answer), TL_MISMATCH);
    assert_int_equal(answer.view.epoch, 1);
    assert_string_equal(answer.view.channel_key, "");
    assert_int_equal(answer.view.result_size, 0);
    assert_int_equal(answer.view.payload_size, 0);
    tl_answer_clear(&answer);
}

TEST(test_the_view_is_of_afterwards)
{
    tl_answer answer = TL_ANSWER_INIT;

    CREW_STATUS(run("S-3", "1", &answer), TL_SUCCEEDED);
    assert_int_equal(answer.view.status, 'Y');
    assert_string_equal(tl_state_name(answer.view.state), "succeeded");
    assert_string_equal(tl_error_message(), "");
    tl_answer_clear(&answer);
    CREW_STATUS(run("F-1", "1", &answer), TL_FAILED);
    assert_int_equal(answer.view.status, 'F');
    assert_int_equal(answer.view.proof, 'D');
    tl_answer_clear(&answer);
}

TESTS_OF(told, setup, teardown)
