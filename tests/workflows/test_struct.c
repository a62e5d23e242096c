/* Structs by name: what is set is what C reads, what C has is what is read, and what is wrong is
 * refused with a sentence that names it. */
#include <tradelock/questions.h>
#include <tradelock/struct.h>
#include <tradelock/worker.h>

#include "support/theme.h"

static void *made(const char *type)
{
    void *of = NULL;

    assert_int_equal(tl_struct_new(&of, type), TL_OK);
    return of;
}

static void set_text(void *of, const char *field, const char *text)
{
    if (tl_struct_set_bytes(of, field, text, text != NULL ? strlen(text) : 0) != TL_OK)
        fail_msg("%s: %s", field, tl_error_message());
}

static int64_t number_of(const char *type, const void *of, const char *field)
{
    int64_t number = 0;

    if (tl_struct_number(type, of, field, &number) != TL_OK)
        fail_msg("%s: %s", field, tl_error_message());
    return number;
}

/* Asserts what is there, byte by byte. */
static void assert_bytes(const char *type, const void *of, const char *field, const void *wanted,
                         size_t size)
{
    const void *bytes = NULL;
    size_t found = 0;

    if (tl_struct_bytes(type, of, field, &bytes, &found) != TL_OK)
        fail_msg("%s: %s", field, tl_error_message());
    assert_int_equal(found, size);
    assert_true(wanted == NULL ? bytes == NULL : memcmp(bytes, wanted, size) == 0);
}

static void assert_says(tl_status got, tl_status wanted, const char *sentence)
{
    if (got != wanted || strstr(tl_error_message(), sentence) == NULL)
        fail_msg("%s, \"%s\", and not: %s", tl_status_name(got), tl_error_message(), sentence);
}

/* -------------------------------------------------------------------------- setting -- */

TEST(structs_begin_as_in_c)
{
    const tl_answer answer = TL_ANSWER_INIT;
    const tl_workflow workflow = TL_WORKFLOW_INIT;
    void *of_answer = made("tl_answer"), *of_workflow = made("tl_workflow");
    void *key = made("tl_key");

    assert_memory_equal(of_answer, &answer, sizeof answer);
    assert_memory_equal(of_workflow, &workflow, sizeof workflow);
    assert_memory_equal(key, &(tl_key){0}, sizeof(tl_key));
    tl_struct_free(of_answer);
    tl_struct_free(of_workflow);
    tl_struct_free(key);
    tl_struct_free(NULL);
}

TEST(a_request_is_copied_field_by_field)
{
    tl_request *request = made("tl_request");
    const unsigned char fingerprint[TL_FINGERPRINT] = {1, 2, 3};
    char serial_no[] = "S-1";

    set_text(request, "key.serial_no", serial_no);
    serial_no[0] = 'x';
    assert_string_equal(request->key.serial_no, "S-1");
    assert_bytes("tl_request", request, "key.serial_no", "S-1", 3);
    assert_bytes("tl_request", request, "key", &request->key, sizeof request->key);
    for (int i = 0; i < 3; i++) { /* the older copies are freed */
        assert_int_equal(tl_struct_set_bytes(request, "payload", "a\0b", 3), TL_OK);
        assert_memory_equal(request->payload, "a\0b", 3);
        assert_int_equal(request->payload_size, 3);
    }
    assert_bytes("tl_request", request, "payload", "a\0b", 3);
    assert_int_equal(tl_struct_set_bytes(request, "payload", "", 0), TL_OK);
    assert_non_null(request->payload);
    assert_int_equal(tl_struct_set_bytes(request, "payload", NULL, 0), TL_OK);
    assert_null(request->payload);
    assert_int_equal(tl_struct_set_bytes(request, "fingerprint", fingerprint, sizeof fingerprint),
                     TL_OK);
    assert_bytes("tl_request", request, "fingerprint", fingerprint, sizeof fingerprint);
    assert_int_equal(tl_struct_set_number(request, "reclaim_epoch", UINT32_MAX), TL_OK);
    assert_int_equal(request->reclaim_epoch, UINT32_MAX);
    assert_int_equal(number_of("tl_request", request, "reclaim_epoch"), UINT32_MAX);
    assert_int_equal(tl_struct_set_number(request, "amount_minor", INT64_MIN), TL_OK);
    assert_int_equal(number_of("tl_request", request, "amount_minor"), INT64_MIN);
    set_text(request, "currency", "EUR");
    set_text(request, "currency", NULL);
    assert_null(request->currency);
    assert_bytes("tl_request", request, "currency", NULL, 0);
    tl_struct_free(request);
}

static tl_execute_result pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context, (void)attempt, (void)reply;
    return TL_EXECUTE_SUCCEEDED;
}

TEST(lists_grow_by_the_next_number)
{
    tl_workflow *workflow = made("tl_workflow");
    const void *pointer;
    size_t size;

    set_text(workflow, "op_code", "WITHDRAW");
    set_text(workflow, "channel.name", "bank");
    assert_int_equal(tl_struct_set_number(workflow, "channel.idempotent", 1), TL_OK);
    assert_int_equal(tl_struct_set_pointer(workflow, "execute", (void *)(uintptr_t)pay), TL_OK);
    assert_true(workflow->execute == pay && workflow->channel.idempotent == 1);
    assert_int_equal(tl_struct_bytes("tl_workflow", workflow, "execute", &pointer, &size), TL_OK);
    assert_true(pointer == (void *)(uintptr_t)pay && size == 0);
    for (int i = 0; i < 12; i++) {
        char field[32];

        snprintf(field, sizeof field, "statements.%d.name", i);
        set_text(workflow, field, field);
        snprintf(field, sizeof field, "statements.%d.sql", i);
        set_text(workflow, field, "SELECT 1");
    }
    set_text(workflow, "statements.3.name", "fourth");
    assert_int_equal(workflow->statement_count, 12);
    assert_string_equal(workflow->statements[0].name, "statements.0.name");
    assert_string_equal(workflow->statements[3].name, "fourth");
    assert_string_equal(workflow->statements[11].sql, "SELECT 1");
    set_text(workflow, "former.0.channel.name", "older");
    assert_string_equal(workflow->former[0].channel.name, "older");
    assert_bytes("tl_workflow", workflow, "former.0.channel.name", "older", 5);
    assert_int_equal(tl_struct_set_number(workflow, "policy.schedule_ms.0", 100), TL_OK);
    assert_int_equal(tl_struct_set_number(workflow, "policy.schedule_ms.1", 300), TL_OK);
    assert_int_equal(workflow->policy.schedule_count, 2);
    assert_int_equal(workflow->policy.schedule_ms[1], 300);
    assert_int_equal(number_of("tl_workflow", workflow, "policy.schedule_ms.1"), 300);
    for (int i = 2; i < TL_SCHEDULE_MAX; i++) {
        char field[32];

        snprintf(field, sizeof field, "policy.schedule_ms.%d", i);
        assert_int_equal(tl_struct_set_number(workflow, field, i), TL_OK);
    }
    assert_says(tl_struct_set_number(workflow, "policy.schedule_ms.16", 1), TL_INVALID,
                "tl_policy.schedule_ms has 16 elements, of at most 16");
    assert_int_equal(workflow->policy.clock_margin_ms, 0);
    tl_struct_free(workflow);
}

/* -------------------------------------------------------------------------- reading -- */

TEST(what_callbacks_are_given_is_read)
{
    const tl_attempt attempt = {.key = {"S", "C", "OP"},
                                .payload = "p\0q",
                                .payload_size = 3,
                                .until_ms = 77,
                                .lane = TL_LANE_RETRY,
                                .channel_key = "k"};
    tl_view view = {.status = 'Y', .fence = UINT64_MAX, .holder_silent_ms = -1, .remark = "r"};
    tl_answer answer = TL_ANSWER_INIT;
    tl_reply *reply = calloc(1, sizeof *reply);

    assert_bytes("tl_attempt", &attempt, "key.op_code", "OP", 2);
    assert_bytes("tl_attempt", &attempt, "payload", "p\0q", 3);
    assert_bytes("tl_attempt", &attempt, "batch", NULL, 0);
    assert_int_equal(number_of("tl_attempt", &attempt, "until_ms"), 77);
    assert_int_equal(number_of("tl_attempt", &attempt, "lane"), TL_LANE_RETRY);
    assert_int_equal(tl_reply_ref(reply, "R1"), TL_OK);
    assert_int_equal(tl_reply_result(reply, "x\0y", 3), TL_OK);
    assert_bytes("tl_reply", reply, "channel_ref", "R1", 2);
    assert_bytes("tl_reply", reply, "result", "x\0y", 3);
    free(reply);
    memset(view.channel, 'c', sizeof view.channel); /* without an end */
    assert_bytes("tl_view", &view, "channel", view.channel, sizeof view.channel);
    assert_bytes("tl_view", &view, "fingerprint", view.fingerprint, TL_FINGERPRINT);
    answer.view = view;
    assert_bytes("tl_answer", &answer, "view", &answer.view, sizeof answer.view);
    assert_int_equal(number_of("tl_answer", &answer, "view.status"), 'Y');
    assert_int_equal(number_of("tl_answer", &answer, "view.holder_silent_ms"), -1);
    assert_bytes("tl_answer", &answer, "view.remark", "r", 1);
    assert_says(tl_struct_number("tl_view", &view, "fence", &(int64_t){0}), TL_INVALID,
                "tl_view.fence is beyond 63 bits");
}

TEST(constants_have_the_numbers_of_the_headers)
{
    int64_t number = 7;

    assert_int_equal(tl_constant("TL_MISMATCH", &number), TL_OK);
    assert_int_equal(number, TL_MISMATCH);
    assert_int_equal(tl_constant("TL_PROOF_DECLINED", &number), TL_OK);
    assert_int_equal(number, TL_PROOF_DECLINED);
    assert_int_equal(tl_constant("TL_QUERY_NOT_FOUND", &number), TL_OK);
    assert_int_equal(number, TL_QUERY_NOT_FOUND);
    assert_says(tl_constant("TL_EXECUTE_PAID", &number), TL_INVALID,
                "\"TL_EXECUTE_PAID\" is no constant");
    assert_int_equal(number, TL_QUERY_NOT_FOUND);
}

/* -------------------------------------------------------------------------- mistakes -- */

TEST(mistakes_are_named_and_change_nothing)
{
    tl_request *request = made("tl_request");
    tl_workflow *workflow = made("tl_workflow");
    tl_answer *answer = made("tl_answer");
    const tl_request request_before = *request;
    const tl_workflow workflow_before = *workflow;
    const void *bytes;
    size_t size;
    int64_t number;
    void *out = &number;

    assert_says(tl_struct_new(&out, "tl_requests"), TL_INVALID, "\"tl_requests\" is no struct");
    assert_says(tl_struct_new(&out, "tl_attempt"), TL_INVALID, "tl_attempt is only given to");
    assert_ptr_equal(out, &number);
    assert_says(tl_struct_set_number(request, "amount", 1), TL_INVALID,
                "tl_request has no field amount, but key payload fingerprint");
    assert_says(tl_struct_set_number(request, "version", 1), TL_INVALID, "no field version");
    assert_says(tl_struct_set_number(request, "amount_minor.x", 1), TL_INVALID,
                "tl_request.amount_minor has no fields");
    assert_says(tl_struct_set_number(request, "key.", 1), TL_INVALID, "tl_key has no field , but");
    assert_says(tl_struct_set_number(request, "key", 1), TL_INVALID, "key is a struct");
    assert_says(tl_struct_set_number(request, "currency", 1), TL_INVALID,
                "tl_request.currency is a text or bytes, for tl_struct_set_bytes()");
    assert_says(tl_struct_set_bytes(request, "amount_minor", "1", 1), TL_INVALID, "is a number");
    assert_says(tl_struct_set_pointer(request, "remark", request), TL_INVALID, "is a text");
    assert_says(tl_struct_set_bytes(request, "currency", "E\0R", 3), TL_INVALID, "NUL inside");
    assert_says(tl_struct_set_bytes(request, "payload", NULL, 1), TL_INVALID, "NULL has no 1");
    assert_says(tl_struct_set_bytes(request, "fingerprint", "x", 1), TL_INVALID, "has 32 bytes");
    assert_says(tl_struct_set_number(request, "reclaim_epoch", -1), TL_INVALID,
                "tl_request.reclaim_epoch is 0 to 4294967295, not -1");
    assert_says(tl_struct_set_number(request, "reclaim_epoch", INT64_C(1) << 32), TL_INVALID,
                "not 4294967296");
    assert_says(tl_struct_set_number(workflow, "exclusive", INT64_C(1) << 31), TL_INVALID,
                "-2147483648 to 2147483647");
    assert_says(tl_struct_set_bytes(workflow, "statements.1.sql", "x", 1), TL_INVALID,
                "tl_workflow.statements has 0 elements, of at most 64");
    assert_says(tl_struct_set_bytes(workflow, "statements.sql", "x", 1), TL_INVALID, "elements");
    assert_says(tl_struct_set_bytes(workflow, "statements.-1.sql", "x", 1), TL_INVALID, "elements");
    assert_says(tl_struct_set_bytes(workflow, "statements.18446744073709551616.sql", "x", 1),
                TL_INVALID, "elements");
    assert_says(tl_struct_set_number(answer, "status", 1), TL_INVALID,
                "tl_answer is set by the call that answers with it");
    assert_says(tl_struct_bytes("tl_workflow", workflow, "statements.0.sql", &bytes, &size),
                TL_NOT_FOUND, "has 0 elements");
    assert_says(tl_struct_bytes("tl_request", request, "wait_ms", &bytes, &size), TL_INVALID,
                "tl_struct_number()");
    assert_says(tl_struct_number("tl_request", request, "label", &number), TL_INVALID, "a text");
    assert_memory_equal(request, &request_before, sizeof request_before);
    assert_memory_equal(workflow, &workflow_before, sizeof workflow_before);
    tl_struct_free(request);
    tl_struct_free(workflow);
    tl_struct_free(answer);
}

TESTS_OF(struct, NULL, NULL)
