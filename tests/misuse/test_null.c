/*
 * Every exported function, with NULL for each of its pointers in turn, and with structs that were
 * not filled in.  A call that fails says TL_INVALID and a sentence, one that cannot fail does
 * nothing or answers as if there were nothing there, and none of them ends the process.
 *
 * The table is complete by tests/header/test_exports: it compares the names and how many pointers
 * each function takes with what the headers declare.
 */
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/books.h>
#include <tradelock/callback.h>
#include <tradelock/layer.h>
#include <tradelock/row_lock.h>
#include <tradelock/workflow.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a call answered that has no status. */
#define NEUTRAL (-1) /* nothing, as it should */
#define WRONG (-2)

/* Which pointer is NULL in this call, the first is 1; 0: none, for what is not filled in. */
static int null;
/* It is one that may be. */
static int may_be_null;

static int note(void)
{
    return may_be_null = 1;
}

#define N(number, value) (null == (number) ? NULL : (value))
#define MAY(number, value) (null == (number) && note() ? NULL : (value))
#define EMPTY(got) (((got) == 0) ? NEUTRAL : WRONG)
#define NO_TEXT(got) (neutral_text(got))

/* What valid arguments are made of; in the child. */
static struct {
    MYSQL *sql, *in_transaction;
    tl_client *client;
    tl_lock *fresh, *held, *retry;
    tl_mutex *mutex, *held_mutex;
    tl_rw *rw, *held_rw;
    tl_workflows *workflows, *empty;
    tl_worker *worker;
    tl_books *books;
    tl_book *book;
    tl_fleet *fleet; /* of one shard, the same database */
    tl_fleet_workflows *all;
    tl_fleet_worker *all_worker;
} have;

static database *db;
static char fleet_file[640];

static const tl_key key = {"S-1", "C-1", "WITHDRAW"};
/* Of this child: one that was ended before it holds its own for a while. */
static char one[32], two[32], serial[32];
static const char *const names[] = {one, two};

static int neutral_text(const char *text)
{
    return text != NULL && text[0] == '\0' ? NEUTRAL : WRONG;
}

static int some_text(const char *text)
{
    return text != NULL && text[0] != '\0' ? NEUTRAL : WRONG;
}

/* ------------------------------------------------------------------- callbacks -- */

static tl_status in_transaction(void *context, struct st_mysql *connection)
{
    (void)context;
    (void)connection;
    return TL_OK;
}

static void when_done(void *context, tl_lock *lock, tl_status status)
{
    (void)context;
    (void)lock;
    (void)status;
}

static tl_execute pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_SUCCEEDED;
}

static int told(void *context, const tl_progress *progress)
{
    (void)context;
    (void)progress;
    return 0;
}

#define LOOK(name, type)                                                                           \
    static int name(void *context, const type *what)                                               \
    {                                                                                              \
        (void)context;                                                                             \
        (void)what;                                                                                \
        return 0;                                                                                  \
    }
LOOK(each_view, tl_view)
LOOK(each_step, tl_step)
LOOK(each_evidence, tl_evidence_row)
LOOK(each_resolution, tl_resolution_row)
LOOK(each_violation, tl_violation)
LOOK(each_finding, tl_finding)
LOOK(each_resource, tl_resource_view)
LOOK(each_holder, tl_holder_view)
LOOK(each_operation, char)

/* --------------------------------------------------------------------- structs -- */

static tl_client_options client_options(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    options.config_file = database_option_file(db);
    options.flags = TL_CLIENT_NO_JANITOR;
    return options;
}

static tl_lock_options lock_options(void)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.max_hold_ms = 60000;
    options.payload = "1";
    options.payload_size = 1;
    return options;
}

static tl_ending ending_of(tl_outcome outcome)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = outcome;
    return ending;
}

static tl_workflow workflow(void)
{
    tl_workflow it = TL_WORKFLOW_INIT;

    it.op_code = "WITHDRAW";
    it.channel.name = "fastpay";
    it.channel.idempotent = 1;
    it.execute = pay;
    return it;
}

static tl_request request(void)
{
    tl_request it = TL_REQUEST_INIT;

    it.key = (tl_key){"S-9", "C-9", "WITHDRAW"};
    it.payload = "1";
    it.payload_size = 1;
    return it;
}

static tl_statement statement(void)
{
    return (tl_statement){.name = "note",
                          .sql = "INSERT INTO note VALUES (:id, :what)",
                          .values = "id int, what text"};
}

static tl_mutex_options mutex_options(void)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;

    options.max_hold_ms = 60000;
    return options;
}

static tl_rw_options rw_options(void)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;

    options.max_hold_ms = 60000;
    return options;
}

static tl_evidence evidence(void)
{
    tl_evidence it = {.version = TL_EVIDENCE_VERSION};

    it.key = key;
    it.outcome = "PENDING";
    it.source = "test";
    return it;
}

static tl_resolution resolution(void)
{
    return (tl_resolution){.version = TL_RESOLUTION_VERSION,
                           .key = key,
                           .fence = 1,
                           .decision = TL_DECISION_FAILED,
                           .actor = "anna",
                           .reason = "test"};
}

static tl_claim_options claim_options(void)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;

    options.op_code = "WITHDRAW";
    options.max_hold_ms = 1000;
    return options;
}

/* ------------------------------------------------------------- the functions -- */

#define CALL(name) static int call_##name(void)

/* Sentences of printf's kind are not literal here. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"

CALL(tl_answer_clear)
{
    tl_answer answer = TL_ANSWER_INIT;

    tl_answer_clear(N(1, &answer));
    return NEUTRAL;
}

CALL(tl_answer_sentence)
{
    tl_answer answer = TL_ANSWER_INIT;

    return tl_answer_sentence(N(1, &answer))[0] == '\0' ? NEUTRAL : WRONG;
}

CALL(tl_attempt_left_ms)
{
    tl_attempt attempt = {.until_ms = 0};

    return EMPTY(tl_attempt_left_ms(N(1, &attempt)));
}

CALL(tl_audit_with)
{
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};
    tl_payment payment = {.serial_no = "S-1", .cust_no = "C-1", .op_code = "WITHDRAW"};

    return (int)tl_audit_with(N(1, have.client), N(2, &payment), 1, MAY(3, each_violation),
                              MAY(4, told), MAY(5, &counts), N(6, &counts));
}

CALL(tl_audit_archive)
{
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};
    tl_payment payment = {.serial_no = "S-1", .cust_no = "C-1", .op_code = "WITHDRAW"};
    tl_audit_scope scope = TL_AUDIT_SCOPE_INIT;
    tl_archived archived;

    scope.archive = "/nowhere";
    scope.payments = &payment;
    scope.payment_count = 1;
    return (int)tl_audit_archive(N(1, have.client), N(2, &scope), MAY(3, each_violation),
                                 MAY(4, told), MAY(5, &counts), N(6, &counts), MAY(7, &archived));
}

CALL(tl_audit)
{
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};
    tl_payment payment = {.serial_no = "S-1", .cust_no = "C-1", .op_code = "WITHDRAW"};

    return (int)tl_audit(N(1, have.client), N(2, &payment), 1, MAY(3, each_violation),
                         MAY(4, &counts), N(5, &counts));
}

CALL(tl_audit_close)
{
    tl_closing it = {
        .version = TL_CLOSING_VERSION, .finding = "0", .actor = "anna", .reason = "test"};

    return (int)tl_audit_close(N(1, have.client), N(2, &it));
}

CALL(tl_book_bytes)
{
    tl_book_bytes(N(1, have.book), N(2, "what"), N(3, "x"), 1);
    return NEUTRAL;
}

CALL(tl_book_check)
{
    tl_book_clear(have.book);
    return (int)tl_book_check(N(1, have.book));
}

CALL(tl_book_clear)
{
    tl_book_clear(N(1, have.book));
    return NEUTRAL;
}

CALL(tl_book_free)
{
    tl_book_free(N(1, have.book));
    return NEUTRAL;
}

CALL(tl_book_int)
{
    tl_book_int(N(1, have.book), N(2, "id"), 1);
    return NEUTRAL;
}

CALL(tl_book_line)
{
    tl_book_line(N(1, have.book), N(2, "note"));
    return NEUTRAL;
}

CALL(tl_book_new)
{
    tl_book *book = NULL;

    return (int)tl_book_new(N(1, &book), N(2, have.books));
}

CALL(tl_book_null)
{
    tl_book_null(N(1, have.book), N(2, "id"));
    return NEUTRAL;
}

CALL(tl_book_refuse)
{
    tl_book_refuse(N(1, have.book), TL_REFUSED);
    return NEUTRAL;
}

CALL(tl_book_text)
{
    tl_book_text(N(1, have.book), N(2, "what"), N(3, "x"));
    return NEUTRAL;
}

CALL(tl_books_new)
{
    tl_statement it = statement();
    tl_books *books = NULL;

    return (int)tl_books_new(N(1, &books), N(2, have.client), N(3, &it), 1);
}

CALL(tl_channel_key)
{
    char out[TL_CHANNEL_KEY_MAX + 1];

    return (int)tl_channel_key(N(1, out), 64, N(2, "site"), N(3, "fastpay"), N(4, &key), 1);
}

CALL(tl_claim_due)
{
    tl_claim_options options = claim_options();
    tl_lock *locks[TL_CLAIM_MAX];
    size_t count = 1;

    return (int)tl_claim_due(N(1, have.client), N(2, &options), N(3, locks), N(4, &count));
}

CALL(tl_class_name)
{
    return some_text(tl_class_name((tl_class)99));
}

CALL(tl_client_alive_ms)
{
    return EMPTY(tl_client_alive_ms(N(1, have.client)));
}

CALL(tl_client_attach)
{
    return (int)tl_client_attach(N(1, have.client));
}

CALL(tl_client_close)
{
    tl_client_close(N(1, have.client));
    return NEUTRAL;
}

CALL(tl_client_completed)
{
    tl_completion completions[2];

    return EMPTY(tl_client_completed(N(1, have.client), N(2, completions), 2));
}

CALL(tl_client_completed_fd)
{
    return EMPTY(tl_client_completed_fd(N(1, have.client)) + 1);
}

CALL(tl_client_detach)
{
    tl_client_detach(N(1, have.client));
    return NEUTRAL;
}

CALL(tl_client_log)
{
    tl_client_log(N(1, have.client), TL_INFO, MAY(2, &key), 0, N(3, "%s"), "a line");
    return NEUTRAL;
}

CALL(tl_client_loss_fd)
{
    return EMPTY(tl_client_loss_fd(N(1, have.client)) + 1);
}

CALL(tl_client_open)
{
    tl_client_options options = client_options();
    tl_client *client = NULL;

    return (int)tl_client_open(N(1, &client), N(2, &options));
}

CALL(tl_client_policy)
{
    const tl_policy *policy = tl_client_policy(N(1, have.client));

    return policy != NULL && policy->attempts == 0 ? NEUTRAL : WRONG;
}

CALL(tl_client_session)
{
    return NO_TEXT(tl_client_session(N(1, have.client)));
}

CALL(tl_client_site)
{
    return NO_TEXT(tl_client_site(N(1, have.client)));
}

CALL(tl_client_stats)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    return (int)tl_client_stats(N(1, have.client), N(2, &stats));
}

CALL(tl_calls_count)
{
    tl_calls_count(N(1, NULL), 0, 1);
    return NEUTRAL;
}

static const char *const answers[] = {"YES"};

CALL(tl_calls_of)
{
    const tl_calls_names counted = {"bank", "WITHDRAW", "execute", answers, 1};
    tl_calls *calls;

    return (int)tl_calls_of(N(1, &calls), N(2, have.client), N(3, &counted));
}

CALL(tl_account_look)
{
    tl_account account = TL_ACCOUNT_INIT;

    return (int)tl_account_look(N(1, have.client), N(2, &account));
}

CALL(tl_doctor)
{
    return (int)tl_doctor(N(1, have.client), N(2, each_finding), MAY(3, &have));
}

CALL(tl_error_message)
{
    return tl_error_message() != NULL ? NEUTRAL : WRONG;
}

CALL(tl_error_report)
{
    return (int)tl_error_report(TL_INVALID, MAY(1, "%s"), "a sentence");
}

CALL(tl_evidence_add)
{
    tl_evidence it = evidence();

    return (int)tl_evidence_add(N(1, have.client), N(2, &it));
}

CALL(tl_evidence_list)
{
    return (int)tl_evidence_list(N(1, have.client), N(2, &key), N(3, each_evidence), MAY(4, &have));
}

CALL(tl_grant_roles)
{
    return (int)tl_grant_roles(N(1, have.client));
}

CALL(tl_holder_list)
{
    return (int)tl_holder_list(N(1, have.client), MAY(2, one), 0, 1, N(3, each_holder),
                               MAY(4, &have));
}

CALL(tl_holder_state_name)
{
    return some_text(tl_holder_state_name((tl_holder_state)99));
}

CALL(tl_holder_unlock)
{
    return (int)tl_holder_unlock(N(1, have.client), N(2, one), 1, 1, N(3, "anna"), N(4, "test"));
}

CALL(tl_list)
{
    tl_filter filter = {.version = TL_FILTER_VERSION};

    return (int)tl_list(N(1, have.client), N(2, &filter), N(3, each_view), MAY(4, &have));
}

static int each_part(void *context, const tl_batch_part *part)
{
    (void)context, (void)part;
    return 0;
}

CALL(tl_batch)
{
    return (int)tl_batch(N(1, have.client), N(2, "b"), 0, 0, N(3, each_part), MAY(4, &have));
}

CALL(tl_batch_part_is_open)
{
    tl_batch_part part = {.state = TL_STATE_SUCCEEDED};

    return EMPTY(tl_batch_part_is_open(N(1, &part)));
}

CALL(tl_list_page)
{
    tl_filter filter = {.version = TL_FILTER_VERSION};
    tl_list_end end;

    return (int)tl_list_page(N(1, have.client), N(2, &filter), N(3, each_view), MAY(4, &have),
                             MAY(5, &end));
}

CALL(tl_lock_arm)
{
    return (int)tl_lock_arm(N(1, have.retry), 1000);
}

CALL(tl_lock_ask)
{
    return (int)tl_lock_ask(N(1, have.fresh), 0);
}

CALL(tl_lock_ask_book)
{
    return (int)tl_lock_ask_book(N(1, have.fresh), N(2, have.book), 0);
}

CALL(tl_lock_ask_book_submit)
{
    if (null > 2) /* would be carried out */
        return note() ? (int)TL_OK : WRONG;
    return (int)tl_lock_ask_book_submit(N(1, have.fresh), N(2, have.book), MAY(3, when_done),
                                        MAY(4, &have));
}

CALL(tl_lock_ask_submit)
{
    return (int)tl_lock_ask_submit(N(1, have.held), MAY(2, when_done), MAY(3, &have));
}

CALL(tl_lock_ask_with)
{
    return (int)tl_lock_ask_with(N(1, have.held), MAY(2, in_transaction), MAY(3, &have), 0);
}

CALL(tl_lock_may_call)
{
    return (int)tl_lock_may_call(N(1, have.held));
}

CALL(tl_lock_probes)
{
    return tl_lock_probes(N(1, have.held)) == 0 ? NEUTRAL : 0;
}

CALL(tl_lock_heard)
{
    tl_lock_heard(N(1, have.held), 1);
    return NEUTRAL;
}

CALL(tl_lock_come_again_ms)
{
    return tl_lock_come_again_ms(N(1, have.held)) == 0 ? NEUTRAL : 0;
}

CALL(tl_lock_committed)
{
    return (int)tl_lock_committed(N(1, have.held), TL_COMMIT_OK);
}

CALL(tl_lock_finish)
{
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS);

    return (int)tl_lock_finish(N(1, have.held), N(2, &ending));
}

CALL(tl_lock_finish_book)
{
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS);

    return (int)tl_lock_finish_book(N(1, have.held), N(2, &ending), N(3, have.book), 1000);
}

CALL(tl_lock_finish_book_submit)
{
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS);

    if (null > 3) /* would be carried out */
        return note() ? (int)TL_OK : WRONG;
    return (int)tl_lock_finish_book_submit(N(1, have.held), N(2, &ending), N(3, have.book),
                                           MAY(4, when_done), MAY(5, &have));
}

CALL(tl_lock_finish_in)
{
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS);

    return (int)tl_lock_finish_in(N(1, have.held), N(2, have.in_transaction), N(3, &ending), 0);
}

CALL(tl_lock_finish_submit)
{
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS);

    if (null > 2) /* would be carried out */
        return note() ? (int)TL_OK : WRONG;
    return (int)tl_lock_finish_submit(N(1, have.held), N(2, &ending), MAY(3, when_done),
                                      MAY(4, &have));
}

CALL(tl_lock_finish_with)
{
    tl_ending ending = ending_of(TL_OUTCOME_UNKNOWN);

    return (int)tl_lock_finish_with(N(1, have.held), N(2, &ending), MAY(3, in_transaction),
                                    MAY(4, &have), 1000);
}

CALL(tl_lock_free)
{
    tl_lock_free(N(1, have.fresh));
    return NEUTRAL;
}

CALL(tl_lock_new)
{
    tl_lock_options options = lock_options();
    tl_lock *lock = NULL;

    return (int)tl_lock_new(N(1, &lock), N(2, have.client), N(3, &key), N(4, &options));
}

CALL(tl_lock_on_file)
{
    return tl_lock_on_file(N(1, have.held)) == 1 ? NEUTRAL : WRONG;
}

CALL(tl_lock_put_back)
{
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS);
    tl_findings findings = {0};

    return (int)tl_lock_put_back(N(1, have.held), N(2, &ending), MAY(3, &findings));
}

CALL(tl_lock_submit_within)
{
    tl_lock_submit_within(N(1, have.held), 0);
    return NEUTRAL;
}

CALL(tl_lock_put_back_submit)
{
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS);
    tl_findings findings = {0};

    return (int)tl_lock_put_back_submit(N(1, have.held), N(2, &ending), MAY(3, &findings),
                                        MAY(4, when_done), MAY(5, &have));
}

CALL(tl_lock_remaining_ms)
{
    return EMPTY(tl_lock_remaining_ms(N(1, have.held)));
}

CALL(tl_lock_settle)
{
    return (int)tl_lock_settle(N(1, have.held));
}

CALL(tl_lock_view)
{
    const tl_view *view = tl_lock_view(N(1, have.held));

    return view != NULL && view->status == ' ' && view->state == TL_STATE_ABSENT ? NEUTRAL : WRONG;
}

CALL(tl_log_prefix)
{
    return NO_TEXT(tl_log_prefix());
}

CALL(tl_log_uuid)
{
    return NO_TEXT(tl_log_uuid());
}

CALL(tl_may_send)
{
    return EMPTY(tl_may_send(N(1, have.held), 1));
}

static int take_text(void *context, const char *text, size_t size)
{
    (void)context;
    (void)text;
    (void)size;
    return 0;
}

CALL(tl_metrics_check_listen)
{
    return (int)tl_metrics_check_listen(N(1, "here"), N(2, "127.0.0.1:9464"));
}

CALL(tl_metrics_listen)
{
    return NO_TEXT(tl_metrics_listen(N(1, have.client)));
}

CALL(tl_metrics_write)
{
    return (int)tl_metrics_write(N(1, have.client), N(2, take_text), MAY(3, &have));
}

CALL(tl_metrics_write_database)
{
    return (int)tl_metrics_write_database(N(1, have.client), N(2, take_text), MAY(3, &have));
}

CALL(tl_migrate)
{
    tl_migrated migrated;

    return (int)tl_migrate(N(1, have.client), MAY(2, &migrated));
}

CALL(tl_mutex_depth)
{
    return EMPTY(tl_mutex_depth(N(1, have.held_mutex)));
}

CALL(tl_mutex_fence)
{
    if (null == 2) /* then it is the first one's */
        return tl_mutex_fence(have.held_mutex, NULL) != 0 ? NEUTRAL : WRONG;
    return EMPTY(tl_mutex_fence(N(1, have.held_mutex), N(2, one)));
}

CALL(tl_mutex_free)
{
    tl_mutex_free(N(1, have.mutex));
    return NEUTRAL;
}

CALL(tl_mutex_guard)
{
    return (int)tl_mutex_guard(N(1, have.held_mutex), N(2, have.in_transaction), 0);
}

CALL(tl_mutex_lock)
{
    return (int)tl_mutex_lock(N(1, have.mutex), 0);
}

CALL(tl_mutex_new)
{
    tl_mutex_options options = mutex_options();
    tl_mutex *mutex = NULL;

    return (int)tl_mutex_new(N(1, &mutex), N(2, have.client), N(3, one), N(4, &options));
}

CALL(tl_mutex_new_set)
{
    tl_mutex_options options = mutex_options();
    tl_mutex *mutex = NULL;

    return (int)tl_mutex_new_set(N(1, &mutex), N(2, have.client), N(3, names), 2, N(4, &options));
}

CALL(tl_mutex_remaining_ms)
{
    return EMPTY(tl_mutex_remaining_ms(N(1, have.held_mutex)));
}

CALL(tl_mutex_renew)
{
    return (int)tl_mutex_renew(N(1, have.held_mutex), 1000);
}

CALL(tl_mutex_unlock)
{
    return (int)tl_mutex_unlock(N(1, have.held_mutex));
}

CALL(tl_mutex_view)
{
    const tl_resource_view *view = tl_mutex_view(N(1, have.mutex));

    return view != NULL && view->resource[0] == '\0' ? NEUTRAL : WRONG;
}

CALL(tl_lane_overdue)
{
    tl_overdue overdue;

    return (int)tl_lane_overdue(N(1, have.client), N(2, "WITHDRAW"), 1000, N(3, &overdue));
}

CALL(tl_next_due_ms)
{
    int64_t due_ms;

    return (int)tl_next_due_ms(N(1, have.client), N(2, "WITHDRAW"), N(3, &due_ms));
}

CALL(tl_suspects_due)
{
    int due;

    return (int)tl_suspects_due(N(1, have.client), N(2, "WITHDRAW"), N(3, &due));
}

CALL(tl_operations)
{
    return (int)tl_operations(N(1, have.client), N(2, each_operation), MAY(3, &have));
}

CALL(tl_not_paid)
{
    return tl_not_paid((tl_status)999) ? WRONG : NEUTRAL;
}

CALL(tl_paid)
{
    return tl_paid((tl_status)999) ? WRONG : NEUTRAL;
}

CALL(tl_proof_name)
{
    return some_text(tl_proof_name((tl_proof)99));
}

CALL(tl_proof_text)
{
    return some_text(tl_proof_text((tl_proof)99));
}

CALL(tl_purge_with)
{
    tl_purge_options options = TL_PURGE_OPTIONS_INIT;
    tl_purged purged;

    options.older_ms = INT64_C(31622400000);
    return (int)tl_purge_with(N(1, have.client), N(2, &options), MAY(3, &purged));
}

CALL(tl_purge)
{
    tl_purged purged;

    return (int)tl_purge(N(1, have.client), INT64_C(31622400000), MAY(2, &purged));
}

CALL(tl_reap)
{
    tl_reaped reaped;

    if (null == 2) /* would look on for a session's time-out */
        return note() ? (int)TL_OK : WRONG;
    return (int)tl_reap(N(1, have.client), MAY(2, &reaped));
}

CALL(tl_reply_ref)
{
    tl_reply reply = {.result_size = 0};

    return (int)tl_reply_ref(N(1, &reply), N(2, "R-1"));
}

CALL(tl_reply_remark)
{
    tl_reply reply = {.result_size = 0};

    tl_reply_remark(N(1, &reply), N(2, "%s"), "a remark");
    return NEUTRAL;
}

CALL(tl_reply_retry_after)
{
    tl_reply reply = {.result_size = 0};

    return (int)tl_reply_retry_after(N(1, &reply), 1);
}

CALL(tl_reply_result)
{
    tl_reply reply = {.result_size = 0};

    return (int)tl_reply_result(N(1, &reply), N(2, "r"), 1);
}

CALL(tl_resolution_confirm)
{
    tl_resolution it = resolution();

    return (int)tl_resolution_confirm(N(1, have.client), N(2, &it));
}

CALL(tl_resolution_list)
{
    return (int)tl_resolution_list(N(1, have.client), N(2, &key), N(3, each_resolution),
                                   MAY(4, &have));
}

CALL(tl_resolution_propose)
{
    tl_resolution it = resolution();

    return (int)tl_resolution_propose(N(1, have.client), N(2, &it));
}

CALL(tl_resolution_refuse)
{
    return (int)tl_resolution_refuse(N(1, have.client), N(2, &key), 1, N(3, "test"));
}

CALL(tl_resource_list)
{
    tl_resource_filter filter = {.version = TL_RESOURCE_FILTER_VERSION};

    return (int)tl_resource_list(N(1, have.client), MAY(2, &filter), N(3, each_resource),
                                 MAY(4, &have));
}

CALL(tl_resource_show)
{
    return (int)tl_resource_show(N(1, have.client), N(2, one), N(3, each_resource), MAY(4, &have));
}

CALL(tl_resource_state_name)
{
    return some_text(tl_resource_state_name((tl_resource_state)99));
}

CALL(tl_resource_unlock)
{
    return (int)tl_resource_unlock(N(1, have.client), N(2, one), 1, N(3, "anna"), N(4, "test"));
}

CALL(tl_restore_accept)
{
    uint64_t doubtful;

    return (int)tl_restore_accept(N(1, have.client), N(2, "anna"), N(3, "test"), MAY(4, &doubtful));
}

static int each_trade(void *context, const tl_restore_count *count)
{
    (void)context;
    (void)count;
    return 0;
}

CALL(tl_restore_accepted_us)
{
    return EMPTY(tl_restore_accepted_us(N(1, have.client)));
}

CALL(tl_restore_status)
{
    tl_restore state = {.version = TL_RESTORE_VERSION};

    return (int)tl_restore_status(N(1, have.client), N(2, &state), MAY(3, each_trade),
                                  MAY(4, &have));
}

CALL(tl_restore_declare)
{
    return (int)tl_restore_declare(N(1, have.client), N(2, "anna"), N(3, "test"));
}

static int each_missing(void *context, const tl_missing *missing)
{
    (void)context;
    (void)missing;
    return 0;
}

CALL(tl_restore_missing)
{
    return (int)tl_restore_missing(N(1, have.client), 1, N(2, each_missing), MAY(3, &have));
}

/* It is the accepted server. */
CALL(tl_promote)
{
    return (int)tl_promote(N(1, have.client), 0, N(2, "anna"), N(3, "test"));
}

CALL(tl_retry_now)
{
    return (int)tl_retry_now(N(1, have.client), N(2, &key), 1, N(3, "anna"), N(4, "test"));
}

CALL(tl_row_lock)
{
    return (int)tl_row_lock(N(1, have.client), N(2, "row"), N(3, have.in_transaction), 0, 0);
}

CALL(tl_rw_done)
{
    return (int)tl_rw_done(N(1, have.held_rw), N(2, have.in_transaction), 0);
}

CALL(tl_rw_downgrade)
{
    return (int)tl_rw_downgrade(N(1, have.held_rw));
}

CALL(tl_rw_fence)
{
    return EMPTY(tl_rw_fence(N(1, have.held_rw)));
}

CALL(tl_rw_free)
{
    tl_rw_free(N(1, have.rw));
    return NEUTRAL;
}

CALL(tl_rw_guard)
{
    return (int)tl_rw_guard(N(1, have.held_rw), N(2, have.in_transaction), 0);
}

CALL(tl_rw_held)
{
    return EMPTY((int)tl_rw_held(N(1, have.held_rw)));
}

CALL(tl_rw_new)
{
    tl_rw_options options = rw_options();
    tl_rw *rw = NULL;

    return (int)tl_rw_new(N(1, &rw), N(2, have.client), N(3, one), N(4, &options));
}

CALL(tl_rw_read)
{
    return (int)tl_rw_read(N(1, have.rw), 0);
}

CALL(tl_rw_remaining_ms)
{
    return EMPTY(tl_rw_remaining_ms(N(1, have.held_rw)));
}

CALL(tl_rw_renew)
{
    return (int)tl_rw_renew(N(1, have.held_rw), 1000);
}

CALL(tl_rw_unlock)
{
    return (int)tl_rw_unlock(N(1, have.held_rw));
}

CALL(tl_rw_view)
{
    const tl_holder_view *view = tl_rw_view(N(1, have.rw));

    return view != NULL && view->resource[0] == '\0' ? NEUTRAL : WRONG;
}

CALL(tl_rw_write)
{
    return (int)tl_rw_write(N(1, have.rw), 0);
}

CALL(tl_show_as_of)
{
    return (int)tl_show_as_of(N(1, have.client), N(2, &key), TL_LANE_SYNC, 1, N(3, each_view),
                              MAY(4, &have));
}

CALL(tl_show)
{
    return (int)tl_show(N(1, have.client), N(2, &key), TL_LANE_SYNC, N(3, each_view),
                        MAY(4, &have));
}

CALL(tl_show_many)
{
    return (int)tl_show_many(N(1, have.client), N(2, &key), 1, N(3, each_view), MAY(4, &have));
}

CALL(tl_state_name)
{
    return some_text(tl_state_name((tl_state)99));
}

CALL(tl_status_class)
{
    return tl_status_class((tl_status)999) == TL_CLASS_BROKEN ? NEUTRAL : WRONG;
}

CALL(tl_status_name)
{
    return some_text(tl_status_name((tl_status)999));
}

CALL(tl_status_text)
{
    return some_text(tl_status_text((tl_status)999));
}

CALL(tl_thread_uuid)
{
    return some_text(tl_thread_uuid());
}

static int each_sentence(void *context, const tl_sentence *sentence)
{
    (void)context, (void)sentence;
    return 0;
}

static int each_waiting(void *context, const tl_waiting *waiting)
{
    (void)context, (void)waiting;
    return 0;
}

static int each_channel(void *context, const tl_channel_state *channel)
{
    (void)context, (void)channel;
    return 0;
}

static int each_session(void *context, const tl_session_row *session)
{
    (void)context, (void)session;
    return 0;
}

static int each_proposal(void *context, const tl_proposal *proposal)
{
    (void)context, (void)proposal;
    return 0;
}

CALL(tl_overview_read)
{
    tl_overview overview = TL_OVERVIEW_INIT;

    return (int)tl_overview_read(N(1, have.client), N(2, &overview), N(3, each_waiting),
                                 MAY(4, &have));
}

static int each_pause(void *context, const tl_pause_row *row)
{
    (void)context, (void)row;
    return 0;
}

CALL(tl_pause_list)
{
    return (int)tl_pause_list(N(1, have.client), N(2, each_pause), MAY(3, &have));
}

CALL(tl_channel_pause)
{
    tl_pause it = {
        .version = TL_PAUSE_VERSION, .channel = "bank", .actor = "anna", .reason = "test"};

    return (int)tl_channel_pause(N(1, have.client), N(2, &it));
}

CALL(tl_channel_resume)
{
    tl_pause it = {
        .version = TL_PAUSE_VERSION, .channel = "bank", .actor = "anna", .reason = "test"};

    return (int)tl_channel_resume(N(1, have.client), N(2, &it));
}

CALL(tl_channel_limit)
{
    tl_limit it = {.version = TL_LIMIT_VERSION,
                   .channel = "bank",
                   .sends = 1,
                   .actor = "anna",
                   .reason = "test"};

    return (int)tl_channel_limit(N(1, have.client), N(2, &it));
}

CALL(tl_channel_breaker)
{
    tl_breaker it = {.version = TL_BREAKER_VERSION,
                     .channel = "bank",
                     .unknowns = 1,
                     .actor = "anna",
                     .reason = "test"};

    return (int)tl_channel_breaker(N(1, have.client), N(2, &it));
}

CALL(tl_channel_add)
{
    return (int)tl_channel_add(N(1, have.client), N(2, "bank"), N(3, "WITHDRAW"), NULL);
}

CALL(tl_channel_may_probe)
{
    return tl_channel_may_probe(N(1, have.client), N(2, "bank"), N(3, "WITHDRAW")) == 0 ? NEUTRAL
                                                                                        : 0;
}

CALL(tl_channel_check)
{
    return (int)tl_channel_check(N(1, have.client), MAY(2, "bank"), N(3, "WITHDRAW"));
}

CALL(tl_channel_list)
{
    tl_pace pace = TL_PACE_INIT;

    return (int)tl_channel_list(N(1, have.client), MAY(2, &pace), N(3, each_channel),
                                MAY(4, &have));
}

CALL(tl_session_list)
{
    return (int)tl_session_list(N(1, have.client), N(2, each_session), MAY(3, &have));
}

CALL(tl_act_begin)
{
    static const tl_act act = {
        .version = TL_ACT_VERSION, .what = "retry", .actor = "anna", .reason = "test"};
    uint64_t act_no;

    return (int)tl_act_begin(N(1, have.client), N(2, &act), N(3, &act_no));
}

CALL(tl_act_note)
{
    static const tl_act act = {
        .version = TL_ACT_VERSION, .what = "retry", .actor = "anna", .reason = "test"};

    return (int)tl_act_note(N(1, have.client), N(2, &act), MAY(3, "left=0"));
}

CALL(tl_act_end)
{
    return (int)tl_act_end(N(1, have.client), 1, MAY(2, "left=0"));
}

CALL(tl_act_retry)
{
    return (int)tl_act_retry(N(1, have.client), 1, 1, N(2, &key), 1);
}

CALL(tl_act_evidence)
{
    static const tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                                         .key = {"S", "C", "WITHDRAW"},
                                         .outcome = "PENDING",
                                         .source = "test"};
    static const tl_payment_view seen = {.status = ' '};

    return (int)tl_act_evidence(N(1, have.client), 1, 1, N(2, &evidence), N(3, &seen));
}

CALL(tl_evidence_file)
{
    static const tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                                         .key = {"S", "C", "WITHDRAW"},
                                         .outcome = "PENDING",
                                         .source = "test"};

    return (int)tl_evidence_file(N(1, have.client), N(2, &evidence), N(3, "anna"));
}

static int each_act(void *context, const tl_act_view *act)
{
    (void)context;
    (void)act;
    return 0;
}

CALL(tl_act_list)
{
    tl_act_filter filter = TL_ACT_FILTER_INIT;
    char next[TL_NEXT_TEXT];

    return (int)tl_act_list(N(1, have.client), N(2, &filter), N(3, each_act), MAY(4, &have),
                            MAY(5, next));
}

static int each_act_row(void *context, const tl_act_row *row)
{
    (void)context;
    (void)row;
    return 0;
}

CALL(tl_act_row_list)
{
    return (int)tl_act_row_list(N(1, have.client), 1, 0, 1, N(2, each_act_row), MAY(3, &have));
}

static int each_paid(void *context, const tl_payment_view *paid)
{
    (void)context;
    (void)paid;
    return 0;
}

LOOK(each_shard, char)
LOOK(each_customer, tl_slot_customer)
CALL(tl_shards)
{
    return (int)tl_shards(N(1, database_option_file(db)), N(2, each_shard), MAY(3, &have));
}
LOOK(each_slot, tl_slot_row)
/* Nothing is joined or moved: the names are missing, and the database is of no fleet. */
CALL(tl_fleet_join)
{
    static const tl_fleet_joining joining = {.version = TL_FLEET_JOINING_VERSION, .fleet = "f"};
    tl_client *shards[] = {have.client};
    tl_fleet_joined joined;

    return (int)tl_fleet_join(N(1, shards), 1, 0, N(2, &joining), MAY(3, &joined));
}
CALL(tl_fleet_named)
{
    char fleet[TL_FLEET_NAME_MAX + 1];

    return (int)tl_fleet_named(N(1, database_option_file(db)), N(2, fleet));
}
CALL(tl_slot_list)
{
    char fleet[TL_FLEET_NAME_MAX + 1], shard[TL_FLEET_NAME_MAX + 1];

    return (int)tl_slot_list(N(1, have.client), MAY(2, fleet), MAY(3, shard), N(4, each_slot),
                             MAY(5, &have));
}
CALL(tl_slot_move)
{
    static const tl_slot_moving moving = {
        .version = TL_SLOT_MOVING_VERSION, .actor = "ann", .reason = "why"};
    tl_slot_moved moved;

    return (int)tl_slot_move(N(1, have.client), N(2, have.client), N(3, &moving), MAY(4, &moved));
}
CALL(tl_slot_take_back)
{
    static const tl_slot_moving moving = {
        .version = TL_SLOT_MOVING_VERSION, .actor = "ann", .reason = "why"};

    return (int)tl_slot_take_back(N(1, have.client), N(2, &moving));
}
CALL(tl_slot_give_up)
{
    static const tl_slot_moving moving = {
        .version = TL_SLOT_MOVING_VERSION, .actor = "ann", .reason = "why"};

    return (int)tl_slot_give_up(N(1, have.client), N(2, have.client), N(3, &moving));
}
CALL(tl_slot_clean)
{
    static const tl_slot_cleaning cleaning = {
        .version = TL_SLOT_CLEANING_VERSION, .actor = "ann", .reason = "why"};
    tl_slot_moved removed;

    return (int)tl_slot_clean(N(1, have.client), N(2, have.client), N(3, &cleaning),
                              MAY(4, &removed));
}
CALL(tl_slot_owner)
{
    static const tl_slot_claim claims[] = {{"owned", 1, SIZE_MAX}};

    (void)tl_slot_owner(N(1, claims), 1);
    return NEUTRAL;
}
CALL(tl_slots_of)
{
    static const char *const customers[] = {"C"};
    unsigned slots[1];

    return (int)tl_slots_of(N(1, have.client), N(2, customers), 1, N(3, slots));
}
CALL(tl_slot_customers)
{
    return (int)tl_slot_customers(N(1, have.client), N(2, each_customer), MAY(3, &have));
}
CALL(tl_paid_list)
{
    static const tl_payment payment = {.serial_no = "S", .cust_no = "C", .op_code = "WITHDRAW"};

    return (int)tl_paid_list(N(1, have.client), N(2, &payment), 1, N(3, each_paid), MAY(4, &have));
}

CALL(tl_list_end_add)
{
    static tl_list_end end;

    tl_list_end_add(N(1, &end), N(2, "EUR"), 1);
    return NEUTRAL;
}

CALL(tl_sum_add)
{
    char sum[TL_SUM_TEXT] = "1";

    tl_sum_add(N(1, sum), N(2, "1"));
    return NEUTRAL;
}

CALL(tl_inbox)
{
    return (int)tl_inbox(N(1, have.client), N(2, each_proposal), MAY(3, &have));
}

CALL(tl_explain)
{
    return (int)tl_explain(N(1, have.client), N(2, &key), N(3, each_sentence), MAY(4, &have));
}

CALL(tl_trade_read)
{
    tl_trade_each each = TL_TRADE_EACH_INIT;

    each.row = each_view;
    each.sentence = each_sentence;
    return (int)tl_trade_read(N(1, have.client), N(2, &key), N(3, &each), MAY(4, &have),
                              MAY(5, &(int){0}));
}

CALL(tl_timeline)
{
    return (int)tl_timeline(N(1, have.client), N(2, &key), N(3, each_step), MAY(4, &have));
}

CALL(tl_business_op_size)
{
    return EMPTY(tl_business_op_size(N(1, "A_RETRY")) - (null == 1 ? 0 : 1));
}

CALL(tl_shell_quote)
{
    char to[8];

    return tl_shell_quote(MAY(1, to), null == 1 ? 0 : sizeof to, MAY(2, "a")) > 0 ? NEUTRAL : WRONG;
}

CALL(tl_age_name)
{
    return NO_TEXT(tl_age_name(99));
}

CALL(tl_key_check)
{
    return (int)tl_key_check(N(1, &key));
}

CALL(tl_batch_check)
{
    return (int)tl_batch_check(N(1, "b"));
}

CALL(tl_writers_check)
{
    char resolved[TL_PATH];

    return (int)tl_writers_check(N(1, "/"), N(2, resolved));
}

CALL(tl_utf8_size)
{
    return EMPTY(tl_utf8_size(N(1, "a")));
}

CALL(tl_is_traceparent)
{
    return tl_is_traceparent(MAY(1, "")) ? WRONG : NEUTRAL;
}

CALL(tl_topic_name)
{
    return NO_TEXT(tl_topic_name((tl_topic)99));
}

CALL(tl_decision_name)
{
    return NO_TEXT(tl_decision_name((tl_decision)99));
}

CALL(tl_version)
{
    return some_text(tl_version());
}

CALL(tl_work_adopt)
{
    return (int)tl_work_adopt(N(1, tl_thread_uuid()));
}

CALL(tl_work_trace)
{
    tl_work_trace(MAY(1, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    return NEUTRAL;
}

CALL(tl_work_say)
{
    tl_work_say(MAY(1, &(tl_said){.currency = "EUR"}));
    return NEUTRAL;
}

CALL(tl_work_said)
{
    return EMPTY(tl_work_said() == NULL);
}

CALL(tl_work_traced)
{
    return NO_TEXT(tl_work_traced());
}

CALL(tl_work_begin)
{
    return EMPTY(tl_work_begin() - 1);
}

CALL(tl_work_end)
{
    tl_work_end(0);
    return NEUTRAL;
}

CALL(tl_worker_check)
{
    return (int)tl_worker_check(N(1, have.worker));
}

CALL(tl_worker_count)
{
    tl_worker_counts counts = {.version = TL_WORKER_COUNTS_VERSION};

    return (int)tl_worker_count(N(1, have.worker), N(2, &counts));
}

CALL(tl_worker_free)
{
    tl_worker_free(N(1, have.worker));
    return NEUTRAL;
}

CALL(tl_worker_start)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    return (int)tl_worker_start(N(1, &worker), N(2, have.workflows), N(3, &options));
}

CALL(tl_worker_stop)
{
    tl_worker_stop(N(1, have.worker));
    return NEUTRAL;
}

CALL(tl_worker_wait)
{
    return (int)tl_worker_wait(N(1, have.worker), 0);
}

CALL(tl_workflow_operation)
{
    return tl_workflow_operation(N(1, have.workflows), 0) == NULL ? NEUTRAL : WRONG;
}

CALL(tl_workflow_register)
{
    tl_workflow it = workflow();

    return (int)tl_workflow_register(N(1, have.workflows), N(2, &it));
}

CALL(tl_workflow_await)
{
    tl_trade trade = TL_TRADE_INIT;

    return (int)tl_workflow_await(N(1, have.workflows), N(2, &key), 1, N(3, &trade));
}

static int each_sum(void *context, const tl_batch_sum *sum)
{
    (void)context;
    (void)sum;
    return 0;
}

CALL(tl_workflow_batch)
{
    tl_batch_total total = TL_BATCH_TOTAL_INIT;

    return (int)tl_workflow_batch(N(1, have.workflows), N(2, "b"), N(3, &total), MAY(4, each_sum),
                                  MAY(5, &have));
}

static int each_of_trades(void *context, const tl_trade *trade)
{
    (void)context;
    (void)trade;
    return 0;
}

CALL(tl_workflow_list)
{
    tl_trades which = TL_TRADES_INIT;
    char next[TL_TRADES_NEXT];

    which.batch = "b";
    return (int)tl_workflow_list(N(1, have.workflows), N(2, &which), N(3, each_of_trades),
                                 MAY(4, &have), N(5, next));
}

CALL(tl_workflow_look)
{
    tl_trade trade = TL_TRADE_INIT;

    return (int)tl_workflow_look(N(1, have.workflows), N(2, &key), N(3, &trade));
}

CALL(tl_workflow_run)
{
    tl_request it = request();
    tl_answer answer = TL_ANSWER_INIT;

    return (int)tl_workflow_run(N(1, have.workflows), N(2, &it), N(3, &answer));
}

CALL(tl_posting_free)
{
    tl_posting_free(N(1, NULL));
    return NEUTRAL;
}

CALL(tl_posting_new)
{
    tl_posting *posting = NULL;
    const tl_status status = tl_posting_new(N(1, &posting), N(2, have.client), MAY(3, &have));

    tl_posting_free(posting);
    return (int)status;
}

CALL(tl_posting_put)
{
    tl_posting_put(N(1, NULL), TL_OK);
    return NEUTRAL;
}

CALL(tl_workflow_send_begin)
{
    tl_answer answer = TL_ANSWER_INIT;
    const tl_attempt *attempt = NULL;
    tl_reply *reply = NULL;

    return (int)tl_workflow_send_begin(N(1, have.workflows), N(2, &answer), N(3, &attempt),
                                       N(4, &reply));
}

CALL(tl_workflow_send_end)
{
    tl_answer answer = TL_ANSWER_INIT;

    return (int)tl_workflow_send_end(N(1, have.workflows), N(2, &answer), TL_EXECUTE_UNKNOWN);
}

CALL(tl_workflow_submit)
{
    tl_request it = request();
    tl_answer answer = TL_ANSWER_INIT;

    if (null > 3) /* would be carried out */
        return note() ? (int)TL_OK : WRONG;
    return (int)tl_workflow_submit(N(1, have.workflows), N(2, &it), N(3, &answer), MAY(4, &have));
}

CALL(tl_workflow_settle)
{
    tl_answer answer = TL_ANSWER_INIT;

    return (int)tl_workflow_settle(N(1, have.workflows), N(2, &answer));
}

CALL(tl_workflows_free)
{
    tl_workflows_free(N(1, have.empty));
    return NEUTRAL;
}

CALL(tl_workflows_new)
{
    tl_workflows *workflows = NULL;

    return (int)tl_workflows_new(N(1, &workflows), N(2, have.client));
}

/* ---------------------------------------------------------------------- a fleet -- */

static tl_fleet_options fleet_options(tl_client_options *client)
{
    tl_fleet_options options = TL_FLEET_OPTIONS_INIT;

    *client = client_options();
    client->config_file = fleet_file;
    options.client = client;
    return options;
}

static tl_status register_at_shard(void *context, const char *shard, tl_client *client,
                                   tl_workflows *workflows, void **state)
{
    tl_workflow it = workflow();

    (void)context;
    (void)shard;
    (void)client;
    (void)state;
    return tl_workflow_register(workflows, &it);
}

static tl_fleet_workflows_options all_options(void)
{
    tl_fleet_workflows_options options = TL_FLEET_WORKFLOWS_OPTIONS_INIT;

    options.fleet = have.fleet;
    options.open = register_at_shard;
    return options;
}

static tl_status on_shard(void *context, size_t shard, tl_client *client)
{
    (void)context;
    (void)shard;
    (void)client;
    return TL_OK;
}

CALL(tl_fleet_client)
{
    tl_client *client = NULL;

    return (int)tl_fleet_client(N(1, have.fleet), N(2, "C-1"), N(3, &client));
}

CALL(tl_fleet_close)
{
    tl_fleet_close(N(1, have.fleet));
    return NEUTRAL;
}

CALL(tl_fleet_confirm)
{
    return (int)tl_fleet_confirm(N(1, have.fleet), N(2, "C-1"), 0);
}

CALL(tl_fleet_count)
{
    size_t shards = 0;

    return (int)tl_fleet_count(N(1, fleet_file), N(2, &shards));
}

CALL(tl_fleet_look_again)
{
    return (int)tl_fleet_look_again(N(1, have.fleet));
}

CALL(tl_fleet_name)
{
    return NO_TEXT(tl_fleet_name(N(1, have.fleet)));
}

CALL(tl_fleet_open)
{
    tl_client_options client;
    tl_fleet_options options = fleet_options(&client);
    tl_fleet *fleet = NULL;

    return (int)tl_fleet_open(N(1, &fleet), N(2, &options));
}

CALL(tl_fleet_owner)
{
    size_t shard = 0;

    return (int)tl_fleet_owner(N(1, have.fleet), N(2, "C-1"), N(3, &shard));
}

CALL(tl_fleet_shard)
{
    return EMPTY(tl_fleet_shard(N(1, have.fleet), 0));
}

CALL(tl_fleet_shard_client)
{
    tl_client *client = NULL;

    return (int)tl_fleet_shard_client(N(1, have.fleet), 0, N(2, &client));
}

CALL(tl_fleet_size)
{
    return EMPTY(tl_fleet_size(N(1, have.fleet)));
}

CALL(tl_fleet_slot)
{
    return EMPTY(tl_fleet_slot(N(1, have.fleet), N(2, "C-1")) - TL_FLEET_SLOTS);
}

CALL(tl_fleet_watch_free)
{
    tl_fleet_watch_free(N(1, NULL));
    return NEUTRAL;
}

CALL(tl_fleet_watch_new)
{
    tl_fleet_watch *watch = NULL;
    tl_status status =
        tl_fleet_watch_new(N(1, &watch), N(2, have.fleet), N(3, on_shard), MAY(4, &have), 1000);

    if (status == TL_OK)
        tl_fleet_watch_free(watch);
    return (int)status;
}

CALL(tl_fleet_worker_check)
{
    return (int)tl_fleet_worker_check(N(1, have.all_worker));
}

CALL(tl_fleet_worker_count)
{
    tl_worker_counts counts = {.version = TL_WORKER_COUNTS_VERSION};

    return (int)tl_fleet_worker_count(N(1, have.all_worker), N(2, &counts));
}

CALL(tl_fleet_worker_count_at)
{
    tl_worker_counts counts = {.version = TL_WORKER_COUNTS_VERSION};

    return (int)tl_fleet_worker_count_at(N(1, have.all_worker), 0, N(2, &counts));
}

CALL(tl_fleet_worker_free)
{
    tl_fleet_worker_free(N(1, have.all_worker));
    return NEUTRAL;
}

CALL(tl_fleet_worker_start)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_fleet_worker *worker = NULL;

    return (int)tl_fleet_worker_start(N(1, &worker), N(2, have.all), N(3, &options));
}

CALL(tl_fleet_worker_stop)
{
    tl_fleet_worker_stop(N(1, have.all_worker));
    return NEUTRAL;
}

CALL(tl_fleet_worker_wait)
{
    return (int)tl_fleet_worker_wait(N(1, have.all_worker), 0);
}

CALL(tl_fleet_workflow_await)
{
    tl_trade trade = TL_TRADE_INIT;

    return (int)tl_fleet_workflow_await(N(1, have.all), N(2, &key), 1, N(3, &trade));
}

CALL(tl_fleet_workflow_look)
{
    tl_trade trade = TL_TRADE_INIT;

    return (int)tl_fleet_workflow_look(N(1, have.all), N(2, &key), N(3, &trade));
}

CALL(tl_fleet_workflow_run)
{
    tl_request it = request();
    tl_answer answer = TL_ANSWER_INIT;

    return (int)tl_fleet_workflow_run(N(1, have.all), N(2, &it), N(3, &answer));
}

CALL(tl_fleet_workflow_settle)
{
    tl_answer answer = TL_ANSWER_INIT;

    return (int)tl_fleet_workflow_settle(N(1, have.all), N(2, &answer));
}

CALL(tl_fleet_workflows_at)
{
    tl_workflows *registry = NULL;

    return (int)tl_fleet_workflows_at(N(1, have.all), 0, N(2, &registry));
}

CALL(tl_fleet_workflows_free)
{
    tl_fleet_workflows_free(N(1, have.all));
    return NEUTRAL;
}

CALL(tl_fleet_workflows_new)
{
    tl_fleet_workflows_options options = all_options();
    tl_fleet_workflows *all = NULL;

    return (int)tl_fleet_workflows_new(N(1, &all), N(2, &options));
}

CALL(tl_fleet_workflows_of)
{
    tl_workflows *registry = NULL;

    return (int)tl_fleet_workflows_of(N(1, have.all), N(2, "C-1"), N(3, &registry));
}

/* --------------------------------------------------- what is not filled in -- */

static int without_key(int part)
{
    tl_lock_options options = lock_options();
    tl_key parts[] = {{NULL, "C", "W"}, {"S", NULL, "W"}, {"S", "C", NULL}};
    tl_lock *lock = NULL;

    return (int)tl_lock_new(&lock, have.client, &parts[part], &options);
}

CALL(lock_without_serial)
{
    return without_key(0);
}

CALL(lock_without_customer)
{
    return without_key(1);
}

CALL(lock_without_operation)
{
    return without_key(2);
}

CALL(lock_options_of_zeroes)
{
    tl_lock_options options = {.version = 0};
    tl_lock *lock = NULL;

    return (int)tl_lock_new(&lock, have.client, &key, &options);
}

CALL(ending_of_zeroes)
{
    tl_ending ending = {.version = 0};

    return (int)tl_lock_finish(have.held, &ending);
}

CALL(client_without_a_file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    return (int)tl_client_open(&client, &options);
}

CALL(client_options_of_zeroes)
{
    tl_client_options options = {.version = 0};
    tl_client *client = NULL;

    return (int)tl_client_open(&client, &options);
}

CALL(stats_without_a_version)
{
    tl_stats stats = {.version = 0};

    return (int)tl_client_stats(have.client, &stats);
}

CALL(log_line_without_a_key)
{
    tl_client_log(have.client, TL_INFO, &(tl_key){NULL, NULL, NULL}, 0, "%s", "a line");
    return NEUTRAL;
}

CALL(evidence_of_zeroes)
{
    tl_evidence it = {.version = TL_EVIDENCE_VERSION};

    return (int)tl_evidence_add(have.client, &it);
}

CALL(evidence_without_an_outcome)
{
    tl_evidence it = evidence();

    it.outcome = NULL;
    return (int)tl_evidence_add(have.client, &it);
}

CALL(evidence_without_a_source)
{
    tl_evidence it = evidence();

    it.source = NULL;
    return (int)tl_evidence_add(have.client, &it);
}

CALL(filter_of_zeroes)
{
    tl_filter filter = {.version = 0};

    return (int)tl_list(have.client, &filter, each_view, NULL);
}

CALL(resolution_of_zeroes)
{
    tl_resolution it = {.version = TL_RESOLUTION_VERSION};

    return (int)tl_resolution_propose(have.client, &it);
}

CALL(payment_without_a_serial)
{
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};
    tl_payment payments[] = {{.serial_no = "S-1", .cust_no = "C-1"}, {.serial_no = NULL}};

    return (int)tl_audit(have.client, payments, 2, each_violation, NULL, &counts);
}

CALL(counts_without_a_version)
{
    tl_audit_counts counts = {.version = 0};

    return (int)tl_audit(have.client, NULL, 0, each_violation, NULL, &counts);
}

CALL(claim_without_an_operation)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_lock *locks[1];
    size_t count = 1;

    options.max_hold_ms = 1000;
    return (int)tl_claim_due(have.client, &options, locks, &count);
}

CALL(channel_key_without_a_key)
{
    char out[TL_CHANNEL_KEY_MAX + 1];

    return (int)tl_channel_key(out, 64, "site", "fastpay", &(tl_key){NULL, NULL, NULL}, 1);
}

CALL(books_of_zeroes)
{
    tl_statement it = {.name = NULL};
    tl_books *books = NULL;

    return (int)tl_books_new(&books, have.client, &it, 1);
}

CALL(statement_without_text)
{
    tl_statement it = {.name = "note"};
    tl_books *books = NULL;

    return (int)tl_books_new(&books, have.client, &it, 1);
}

CALL(set_with_a_hole)
{
    const char *const with_a_hole[] = {one, NULL};
    tl_mutex_options options = mutex_options();
    tl_mutex *mutex = NULL;

    return (int)tl_mutex_new_set(&mutex, have.client, with_a_hole, 2, &options);
}

CALL(mutex_options_of_zeroes)
{
    tl_mutex_options options = {.version = 0};
    tl_mutex *mutex = NULL;

    return (int)tl_mutex_new(&mutex, have.client, one, &options);
}

CALL(rw_options_of_zeroes)
{
    tl_rw_options options = {.version = 0};
    tl_rw *rw = NULL;

    return (int)tl_rw_new(&rw, have.client, one, &options);
}

CALL(workflow_of_zeroes)
{
    tl_workflow it = {.version = 0};

    return (int)tl_workflow_register(have.empty, &it);
}

CALL(workflow_without_names)
{
    tl_workflow it = TL_WORKFLOW_INIT;

    return (int)tl_workflow_register(have.empty, &it);
}

CALL(workflow_without_execute)
{
    tl_workflow it = workflow();

    it.execute = NULL;
    return (int)tl_workflow_register(have.empty, &it);
}

CALL(request_of_zeroes)
{
    tl_request it = {.version = TL_REQUEST_VERSION};
    tl_answer answer = TL_ANSWER_INIT;

    return (int)tl_workflow_run(have.workflows, &it, &answer);
}

CALL(answer_of_zeroes)
{
    tl_request it = request();
    tl_answer answer = {.version = 0};

    return (int)tl_workflow_run(have.workflows, &it, &answer);
}

CALL(nothing_to_settle)
{
    tl_answer answer = TL_ANSWER_INIT;

    return (int)tl_workflow_settle(have.workflows, &answer);
}

CALL(worker_of_an_empty_registry)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    return (int)tl_worker_start(&worker, have.empty, &options);
}

CALL(worker_options_of_zeroes)
{
    tl_worker_options options = {.version = 0};
    tl_worker *worker = NULL;

    return (int)tl_worker_start(&worker, have.workflows, &options);
}

/* ------------------------------------------------------------------- the table -- */

/* How many of a function's arguments are pointers; 0 with a call that is made once. */
#define FUNCTION(name, pointers) {#name, pointers, call_##name}
#define HALF(name) {#name, 0, call_##name}

static const struct entry {
    const char *name;
    int pointers;
    int (*call)(void);
} table[] = {
    FUNCTION(tl_answer_clear, 1),
    FUNCTION(tl_answer_sentence, 1),
    FUNCTION(tl_attempt_left_ms, 1),
    FUNCTION(tl_audit, 5),
    FUNCTION(tl_audit_with, 6),
    FUNCTION(tl_audit_archive, 7),
    FUNCTION(tl_audit_close, 2),
    FUNCTION(tl_book_bytes, 3),
    FUNCTION(tl_book_check, 1),
    FUNCTION(tl_book_clear, 1),
    FUNCTION(tl_book_free, 1),
    FUNCTION(tl_book_int, 2),
    FUNCTION(tl_book_line, 2),
    FUNCTION(tl_book_new, 2),
    FUNCTION(tl_book_null, 2),
    FUNCTION(tl_book_refuse, 1),
    FUNCTION(tl_book_text, 3),
    FUNCTION(tl_books_new, 3),
    FUNCTION(tl_calls_count, 1),
    FUNCTION(tl_calls_of, 3),
    FUNCTION(tl_channel_add, 3),
    FUNCTION(tl_channel_breaker, 2),
    FUNCTION(tl_channel_check, 3),
    FUNCTION(tl_channel_key, 4),
    FUNCTION(tl_channel_limit, 2),
    FUNCTION(tl_channel_may_probe, 3),
    FUNCTION(tl_channel_pause, 2),
    FUNCTION(tl_channel_resume, 2),
    FUNCTION(tl_pause_list, 3),
    FUNCTION(tl_claim_due, 4),
    FUNCTION(tl_class_name, 0),
    FUNCTION(tl_client_alive_ms, 1),
    FUNCTION(tl_client_attach, 1),
    FUNCTION(tl_client_close, 1),
    FUNCTION(tl_client_completed, 2),
    FUNCTION(tl_client_completed_fd, 1),
    FUNCTION(tl_client_detach, 1),
    FUNCTION(tl_client_log, 3),
    FUNCTION(tl_client_loss_fd, 1),
    FUNCTION(tl_client_open, 2),
    FUNCTION(tl_client_policy, 1),
    FUNCTION(tl_client_session, 1),
    FUNCTION(tl_client_site, 1),
    FUNCTION(tl_client_stats, 2),
    FUNCTION(tl_account_look, 2),
    FUNCTION(tl_doctor, 3),
    FUNCTION(tl_error_message, 0),
    FUNCTION(tl_error_report, 1),
    FUNCTION(tl_evidence_add, 2),
    FUNCTION(tl_evidence_list, 4),
    FUNCTION(tl_grant_roles, 1),
    FUNCTION(tl_holder_list, 4),
    FUNCTION(tl_holder_state_name, 0),
    FUNCTION(tl_holder_unlock, 4),
    FUNCTION(tl_list, 4),
    FUNCTION(tl_list_page, 5),
    FUNCTION(tl_batch, 4),
    FUNCTION(tl_batch_part_is_open, 1),
    FUNCTION(tl_lock_arm, 1),
    FUNCTION(tl_lock_ask, 1),
    FUNCTION(tl_lock_ask_book, 2),
    FUNCTION(tl_lock_ask_book_submit, 4),
    FUNCTION(tl_lock_ask_submit, 3),
    FUNCTION(tl_lock_ask_with, 3),
    FUNCTION(tl_lock_come_again_ms, 1),
    FUNCTION(tl_lock_heard, 1),
    FUNCTION(tl_lock_may_call, 1),
    FUNCTION(tl_lock_probes, 1),
    FUNCTION(tl_lock_committed, 1),
    FUNCTION(tl_lock_finish, 2),
    FUNCTION(tl_lock_finish_book, 3),
    FUNCTION(tl_lock_finish_in, 3),
    FUNCTION(tl_lock_finish_submit, 4),
    FUNCTION(tl_lock_finish_with, 4),
    FUNCTION(tl_lock_free, 1),
    FUNCTION(tl_lock_new, 4),
    FUNCTION(tl_lock_on_file, 1),
    FUNCTION(tl_lock_put_back, 3),
    FUNCTION(tl_lock_remaining_ms, 1),
    FUNCTION(tl_lock_settle, 1),
    FUNCTION(tl_lock_view, 1),
    FUNCTION(tl_log_prefix, 0),
    FUNCTION(tl_log_uuid, 0),
    FUNCTION(tl_may_send, 1),
    FUNCTION(tl_metrics_check_listen, 2),
    FUNCTION(tl_metrics_listen, 1),
    FUNCTION(tl_metrics_write, 3),
    FUNCTION(tl_metrics_write_database, 3),
    FUNCTION(tl_migrate, 2),
    FUNCTION(tl_mutex_depth, 1),
    FUNCTION(tl_mutex_fence, 2),
    FUNCTION(tl_mutex_free, 1),
    FUNCTION(tl_mutex_guard, 2),
    FUNCTION(tl_mutex_lock, 1),
    FUNCTION(tl_mutex_new, 4),
    FUNCTION(tl_mutex_new_set, 4),
    FUNCTION(tl_mutex_remaining_ms, 1),
    FUNCTION(tl_mutex_renew, 1),
    FUNCTION(tl_mutex_unlock, 1),
    FUNCTION(tl_mutex_view, 1),
    FUNCTION(tl_lane_overdue, 3),
    FUNCTION(tl_next_due_ms, 3),
    FUNCTION(tl_suspects_due, 3),
    FUNCTION(tl_operations, 3),
    FUNCTION(tl_not_paid, 0),
    FUNCTION(tl_paid, 0),
    FUNCTION(tl_proof_name, 0),
    FUNCTION(tl_proof_text, 0),
    FUNCTION(tl_act_begin, 3),
    FUNCTION(tl_act_end, 2),
    FUNCTION(tl_act_evidence, 3),
    FUNCTION(tl_act_list, 5),
    FUNCTION(tl_act_note, 3),
    FUNCTION(tl_act_retry, 2),
    FUNCTION(tl_act_row_list, 3),
    FUNCTION(tl_evidence_file, 3),
    FUNCTION(tl_list_end_add, 2),
    FUNCTION(tl_sum_add, 2),
    FUNCTION(tl_paid_list, 4),
    FUNCTION(tl_purge, 2),
    FUNCTION(tl_purge_with, 3),
    FUNCTION(tl_reap, 2),
    FUNCTION(tl_reply_ref, 2),
    FUNCTION(tl_reply_remark, 2),
    FUNCTION(tl_reply_retry_after, 1),
    FUNCTION(tl_reply_result, 2),
    FUNCTION(tl_resolution_confirm, 2),
    FUNCTION(tl_resolution_list, 4),
    FUNCTION(tl_resolution_propose, 2),
    FUNCTION(tl_resolution_refuse, 3),
    FUNCTION(tl_resource_list, 4),
    FUNCTION(tl_resource_show, 4),
    FUNCTION(tl_resource_state_name, 0),
    FUNCTION(tl_resource_unlock, 4),
    FUNCTION(tl_restore_accept, 4),
    FUNCTION(tl_restore_accepted_us, 1),
    FUNCTION(tl_restore_status, 4),
    FUNCTION(tl_restore_declare, 3),
    FUNCTION(tl_restore_missing, 3),
    FUNCTION(tl_promote, 3),
    FUNCTION(tl_retry_now, 4),
    FUNCTION(tl_row_lock, 3),
    FUNCTION(tl_rw_done, 2),
    FUNCTION(tl_rw_downgrade, 1),
    FUNCTION(tl_rw_fence, 1),
    FUNCTION(tl_rw_free, 1),
    FUNCTION(tl_rw_guard, 2),
    FUNCTION(tl_rw_held, 1),
    FUNCTION(tl_rw_new, 4),
    FUNCTION(tl_rw_read, 1),
    FUNCTION(tl_rw_remaining_ms, 1),
    FUNCTION(tl_rw_renew, 1),
    FUNCTION(tl_rw_unlock, 1),
    FUNCTION(tl_rw_view, 1),
    FUNCTION(tl_rw_write, 1),
    FUNCTION(tl_show, 4),
    FUNCTION(tl_show_many, 4),
    FUNCTION(tl_show_as_of, 4),
    FUNCTION(tl_state_name, 0),
    FUNCTION(tl_status_class, 0),
    FUNCTION(tl_status_name, 0),
    FUNCTION(tl_status_text, 0),
    FUNCTION(tl_thread_uuid, 0),
    FUNCTION(tl_explain, 4),
    FUNCTION(tl_trade_read, 5),
    FUNCTION(tl_overview_read, 4),
    FUNCTION(tl_channel_list, 4),
    FUNCTION(tl_session_list, 3),
    FUNCTION(tl_shards, 3),
    FUNCTION(tl_slots_of, 3),
    FUNCTION(tl_fleet_join, 3),
    FUNCTION(tl_fleet_named, 2),
    FUNCTION(tl_slot_list, 5),
    FUNCTION(tl_slot_move, 4),
    FUNCTION(tl_slot_take_back, 2),
    FUNCTION(tl_slot_give_up, 3),
    FUNCTION(tl_slot_clean, 4),
    FUNCTION(tl_slot_owner, 1),
    FUNCTION(tl_slot_customers, 3),
    FUNCTION(tl_inbox, 3),
    FUNCTION(tl_timeline, 4),
    FUNCTION(tl_business_op_size, 1),
    FUNCTION(tl_shell_quote, 2),
    FUNCTION(tl_age_name, 0),
    FUNCTION(tl_utf8_size, 1),
    FUNCTION(tl_key_check, 1),
    FUNCTION(tl_batch_check, 1),
    FUNCTION(tl_writers_check, 2),
    FUNCTION(tl_decision_name, 0),
    FUNCTION(tl_is_traceparent, 1),
    FUNCTION(tl_topic_name, 0),
    FUNCTION(tl_version, 0),
    FUNCTION(tl_work_adopt, 1),
    FUNCTION(tl_work_trace, 1),
    FUNCTION(tl_work_traced, 0),
    FUNCTION(tl_work_say, 1),
    FUNCTION(tl_work_said, 0),
    FUNCTION(tl_work_begin, 0),
    FUNCTION(tl_work_end, 0),
    FUNCTION(tl_worker_check, 1),
    FUNCTION(tl_worker_count, 2),
    FUNCTION(tl_worker_free, 1),
    FUNCTION(tl_worker_start, 3),
    FUNCTION(tl_worker_stop, 1),
    FUNCTION(tl_worker_wait, 1),
    FUNCTION(tl_workflow_operation, 1),
    FUNCTION(tl_workflow_register, 2),
    FUNCTION(tl_workflow_await, 3),
    FUNCTION(tl_workflow_send_begin, 4),
    FUNCTION(tl_workflow_send_end, 2),
    FUNCTION(tl_workflow_submit, 4),
    FUNCTION(tl_posting_free, 1),
    FUNCTION(tl_posting_new, 3),
    FUNCTION(tl_posting_put, 1),
    FUNCTION(tl_lock_finish_book_submit, 5),
    FUNCTION(tl_lock_put_back_submit, 5),
    FUNCTION(tl_lock_submit_within, 1),
    FUNCTION(tl_workflow_batch, 5),
    FUNCTION(tl_workflow_list, 5),
    FUNCTION(tl_workflow_look, 3),
    FUNCTION(tl_workflow_run, 3),
    FUNCTION(tl_workflow_settle, 2),
    FUNCTION(tl_workflows_free, 1),
    FUNCTION(tl_workflows_new, 2),
    FUNCTION(tl_fleet_client, 3),
    FUNCTION(tl_fleet_close, 1),
    FUNCTION(tl_fleet_confirm, 2),
    FUNCTION(tl_fleet_count, 2),
    FUNCTION(tl_fleet_look_again, 1),
    FUNCTION(tl_fleet_name, 1),
    FUNCTION(tl_fleet_open, 2),
    FUNCTION(tl_fleet_owner, 3),
    FUNCTION(tl_fleet_shard, 1),
    FUNCTION(tl_fleet_shard_client, 2),
    FUNCTION(tl_fleet_size, 1),
    FUNCTION(tl_fleet_slot, 2),
    FUNCTION(tl_fleet_watch_free, 1),
    FUNCTION(tl_fleet_watch_new, 4),
    FUNCTION(tl_fleet_worker_check, 1),
    FUNCTION(tl_fleet_worker_count, 2),
    FUNCTION(tl_fleet_worker_count_at, 2),
    FUNCTION(tl_fleet_worker_free, 1),
    FUNCTION(tl_fleet_worker_start, 3),
    FUNCTION(tl_fleet_worker_stop, 1),
    FUNCTION(tl_fleet_worker_wait, 1),
    FUNCTION(tl_fleet_workflow_await, 3),
    FUNCTION(tl_fleet_workflow_look, 3),
    FUNCTION(tl_fleet_workflow_run, 3),
    FUNCTION(tl_fleet_workflow_settle, 2),
    FUNCTION(tl_fleet_workflows_at, 2),
    FUNCTION(tl_fleet_workflows_free, 1),
    FUNCTION(tl_fleet_workflows_new, 2),
    FUNCTION(tl_fleet_workflows_of, 3),
    HALF(lock_without_serial),
    HALF(lock_without_customer),
    HALF(lock_without_operation),
    HALF(lock_options_of_zeroes),
    HALF(ending_of_zeroes),
    HALF(client_without_a_file),
    HALF(client_options_of_zeroes),
    HALF(stats_without_a_version),
    HALF(log_line_without_a_key),
    HALF(evidence_of_zeroes),
    HALF(evidence_without_an_outcome),
    HALF(evidence_without_a_source),
    HALF(filter_of_zeroes),
    HALF(resolution_of_zeroes),
    HALF(payment_without_a_serial),
    HALF(counts_without_a_version),
    HALF(claim_without_an_operation),
    HALF(channel_key_without_a_key),
    HALF(books_of_zeroes),
    HALF(statement_without_text),
    HALF(set_with_a_hole),
    HALF(mutex_options_of_zeroes),
    HALF(rw_options_of_zeroes),
    HALF(workflow_of_zeroes),
    HALF(workflow_without_names),
    HALF(workflow_without_execute),
    HALF(request_of_zeroes),
    HALF(answer_of_zeroes),
    HALF(nothing_to_settle),
    HALF(worker_of_an_empty_registry),
    HALF(worker_options_of_zeroes),
};

#define ENTRIES (sizeof table / sizeof table[0])

/* ------------------------------------------------------------------- the child -- */

static void take_locks(void)
{
    tl_lock_options options = lock_options();
    tl_mutex_options of_mutex = mutex_options();
    tl_rw_options of_rw = rw_options();
    tl_key held = {serial, serial, "WITHDRAW"};

    snprintf(one, sizeof one, "one-%ld", (long)getpid());
    snprintf(two, sizeof two, "two-%ld", (long)getpid());
    snprintf(serial, sizeof serial, "S-%ld", (long)getpid());
    CREW_STATUS(tl_lock_new(&have.fresh, have.client, &key, &options), TL_OK);
    CREW_STATUS(tl_lock_new(&have.held, have.client, &held, &options), TL_OK);
    CREW_STATUS(tl_lock_ask(have.held, 0), TL_GRANTED);
    options.lane = TL_LANE_RETRY;
    CREW_STATUS(tl_lock_new(&have.retry, have.client, &key, &options), TL_OK);
    CREW_STATUS(tl_mutex_new(&have.mutex, have.client, two, &of_mutex), TL_OK);
    CREW_STATUS(tl_mutex_new(&have.held_mutex, have.client, one, &of_mutex), TL_OK);
    CREW_STATUS(tl_mutex_lock(have.held_mutex, 0), TL_GRANTED);
    CREW_STATUS(tl_rw_new(&have.rw, have.client, two, &of_rw), TL_OK);
    CREW_STATUS(tl_rw_new(&have.held_rw, have.client, one, &of_rw), TL_OK);
    CREW_STATUS(tl_rw_read(have.held_rw, 0), TL_GRANTED);
}

static void open_fleet(void)
{
    tl_client_options client;
    tl_fleet_options options = fleet_options(&client);
    tl_worker_options of_worker = TL_WORKER_OPTIONS_INIT;
    tl_fleet_workflows_options of_all;

    CREW_STATUS(tl_fleet_open(&have.fleet, &options), TL_OK);
    of_all = all_options();
    CREW_STATUS(tl_fleet_workflows_new(&have.all, &of_all), TL_OK);
    CREW_STATUS(tl_fleet_worker_start(&have.all_worker, have.all, &of_worker), TL_OK);
}

static void open_all(void)
{
    tl_client_options options = client_options();
    tl_statement note = statement();
    tl_worker_options of_worker = TL_WORKER_OPTIONS_INIT;
    tl_workflow it = workflow();

    CREW_STATUS(tl_client_open(&have.client, &options), TL_OK);
    have.sql = database_connect(db);
    have.in_transaction = database_connect(db);
    database_run(have.in_transaction, "SET idle_transaction_timeout = 10; BEGIN");
    CREW_STATUS(tl_workflows_new(&have.workflows, have.client), TL_OK);
    CREW_STATUS(tl_workflow_register(have.workflows, &it), TL_OK);
    CREW_STATUS(tl_workflows_new(&have.empty, have.client), TL_OK);
    CREW_STATUS(tl_worker_start(&have.worker, have.workflows, &of_worker), TL_OK);
    CREW_STATUS(tl_books_new(&have.books, have.client, &note, 1), TL_OK);
    CREW_STATUS(tl_book_new(&have.book, have.books), TL_OK);
    take_locks();
    open_fleet();
}

/* What parent and child know of each other. */
struct shared {
    size_t entry;
    int null, wrong, calls;
};

/* Whether the answer is one that such a call may have. */
static int is_right(const struct entry *entry, int got)
{
    if (got == NEUTRAL)
        return 1;
    if (got == WRONG)
        return 0;
    if (may_be_null)
        return 1;
    if (null == 0)
        return tl_status_class((tl_status)got) == TL_CLASS_CALLER && tl_error_message()[0] != '\0';
    return got == (int)TL_INVALID && tl_error_message()[0] != '\0' && entry != NULL;
}

static void call(struct shared *shared, size_t number)
{
    const struct entry *entry = &table[number];
    int got;

    null = shared->null;
    may_be_null = 0;
    tl_work_end(0);
    (void)tl_error_report(TL_OK, "%s", "");
    got = entry->call();
    shared->calls++;
    if (is_right(entry, got))
        return;
    shared->wrong++;
    fprintf(stderr, "%s, argument %d: %s \"%s\"\n", entry->name, null,
            got >= 0 ? tl_status_name((tl_status)got) : "an answer that is not neutral",
            tl_error_message());
}

/* From where the child before this one was ended. */
static void call_all(void *context, int unused)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    struct shared *shared = context;

    (void)unused;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
    open_all();
    for (;;) {
        call(shared, shared->entry);
        if (++shared->null <= table[shared->entry].pointers)
            continue;
        if (++shared->entry == ENTRIES)
            _exit(0);
        shared->null = table[shared->entry].pointers > 0;
    }
}

static void test_no_pointer_ends_the_process(void **state)
{
    struct shared *shared = crew_share(sizeof *shared);
    int ended = 0;

    (void)state;
    shared->null = 1;
    while (shared->entry < ENTRIES) {
        int status = 0;
        pid_t child = crew_fork(call_all, shared, 0);

        assert_int_equal(waitpid(child, &status, 0), child);
        if (status == 0)
            break;
        /* Under a sanitizer it is an exit. */
        print_error("%s, argument %d: ended by %s %d\n", table[shared->entry].name, shared->null,
                    WIFSIGNALED(status) ? "signal" : "exit",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        ended++;
        if (++shared->null > table[shared->entry].pointers) {
            shared->entry++;
            shared->null = shared->entry < ENTRIES && table[shared->entry].pointers > 0;
        }
    }
    print_message("%d calls of %zu entries, %d wrong, %d ended the process\n", shared->calls,
                  ENTRIES, shared->wrong, ended);
    assert_int_equal(shared->wrong + ended, 0);
    crew_unshare(shared, sizeof *shared);
}

/* The database becomes the one shard of a fleet, with all customers. */
static void make_fleet(void)
{
    tl_client_options options = client_options();
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
    tl_fleet_joined joined;
    tl_client *client = NULL;
    FILE *file;

    options.flags |= TL_CLIENT_NO_SESSION;
    joining.fleet = "payouts";
    joining.shard = "a";
    assert_int_equal(tl_client_open(&client, &options), TL_OK);
    assert_int_equal(tl_fleet_join(&client, 1, 0, &joining, &joined), TL_OK);
    tl_client_close(client);
    snprintf(fleet_file, sizeof fleet_file, "%s.fleet", database_option_file(db));
    file = fopen(fleet_file, "we");
    assert_non_null(file);
    fprintf(file,
            "[tradelock]\nsession_ms=30s\nfleet=payouts\nshards=a\n[tradelock-client]\nuser=%s\n"
            "database=%s\n[tradelock-client-a]\nsocket=%s\n",
            server_user(server_shared()), database_name(db), server_socket(server_shared()));
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    MYSQL *sql;

    (void)state;
    db = database_new(server_shared(), "session_ms=30s\n");
    sql = database_connect(db);
    database_run(sql, "CREATE TABLE note (id INT PRIMARY KEY, what TEXT) ENGINE = InnoDB");
    mysql_close(sql);
    make_fleet();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(fleet_file);
    database_free(db);
    return 0;
}

TEST_MAIN(null)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_pointer_ends_the_process),
    };

    return server_report(cmocka_run_group_tests(tests, setup, teardown));
}
