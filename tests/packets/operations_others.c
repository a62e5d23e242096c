/* The public calls that the other tables have not, each as one short life of its own: for every
 * allocation that fails within it.  Each life names a resource or a trade of its own, so that what
 * an earlier, failed one left is not in its way. */
#include "operations.h"

#include <tradelock/admin.h>
#include <tradelock/books.h>
#include <tradelock/layer.h>
#include <tradelock/row_lock.h>

#include "support/theme.h"

#include <poll.h>

static void prepare_nothing(scene *s)
{
    (void)s;
}

static void prepare_doubtful(scene *s)
{
    scene_past(s, TL_OUTCOME_UNKNOWN);
}

/* With an amount and a batch. */
static void prepare_doubtful_of_batch(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_UNKNOWN);
    tl_lock *lock = scene_granted(s, s->near, TL_LANE_SYNC, SCENE_PRICED);

    if (tl_lock_finish(lock, &ending) != TL_IN_DOUBT)
        server_panic("the past did not happen: %s", tl_error_message());
    tl_lock_free(lock);
}

static void prepare_handle(scene *s)
{
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, 0);
}

static void prepare_held(scene *s)
{
    s->lock = scene_granted(s, s->far, TL_LANE_SYNC, 0);
}

static const char *fresh_name(void)
{
    static char name[32];
    static unsigned number;

    snprintf(name, sizeof name, "memory-%u", ++number);
    return name;
}

/* A wrong answer, where no memory is an excuse. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tl_error_report(TL_INTERNAL, "not so: %s", #condition);                         \
    } while (0)

/* ------------------------------------------------------------------- handles -- */

static tl_status call_new(scene *s)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {s->serial, s->cust, "WITHDRAW"};
    tl_lock *lock = NULL;
    tl_status status;

    options.max_hold_ms = 1000;
    options.payload = "100 EUR";
    options.payload_size = 7;
    status = tl_lock_new(&lock, s->far, &key, &options);
    EXPECT((status == TL_OK) == (lock != NULL));
    tl_lock_free(lock);
    return status;
}

static tl_status call_attach(scene *s)
{
    tl_status status = tl_client_attach(s->far);

    if (status == TL_OK)
        tl_client_detach(s->far);
    return status;
}

static tl_status call_ask_waiting(scene *s)
{
    return tl_lock_ask(s->lock, 2000);
}

static tl_status await_completion_of(scene *s, const tl_lock *lock)
{
    struct pollfd done = {tl_client_completed_fd(s->far), POLLIN, 0};
    tl_completion completion;

    EXPECT(done.fd >= 0);
    while (tl_client_completed(s->far, &completion, 1) == 0)
        (void)poll(&done, 1, 100);
    EXPECT(completion.lock == lock);
    return completion.status;
}

static tl_status await_completion(scene *s)
{
    return await_completion_of(s, s->lock);
}

static tl_status call_ask_submit(scene *s)
{
    tl_status status = tl_lock_ask_submit(s->lock, NULL, NULL);

    return status == TL_OK ? await_completion(s) : status;
}

static tl_status call_finish_submit(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    tl_status status = tl_lock_finish_submit(s->lock, &ending, NULL, NULL);

    return status == TL_OK ? await_completion(s) : status;
}

static void prepare_booked(scene *s)
{
    scene_open_account(s, 100);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, SCENE_PRICED);
}

static tl_status call_ask_book_submit(scene *s)
{
    tl_book *book = scene_pages(s->far_books, PAGES_ASK);
    tl_status status =
        book != NULL ? tl_lock_ask_book_submit(s->lock, book, NULL, NULL) : TL_NO_MEMORY;

    if (status == TL_OK)
        status = await_completion(s);
    tl_book_free(book);
    return status;
}

static void prepare_booked_held(scene *s)
{
    prepare_booked(s);
    assert_int_equal(scene_ask_book(s->lock, s->far_books), TL_GRANTED);
}

static tl_status call_finish_book_submit(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    tl_book *book = scene_pages(s->far_books, PAGES_SUCCESS);
    tl_status status = book != NULL ? tl_lock_finish_book_submit(s->lock, &ending, book, NULL, NULL)
                                    : TL_NO_MEMORY;

    if (status == TL_OK)
        status = await_completion(s);
    tl_book_free(book);
    return status;
}

static tl_status call_put_back_submit(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_UNKNOWN);
    tl_status status = tl_lock_put_back_submit(s->lock, &ending, NULL, NULL, NULL);

    return status == TL_OK ? await_completion(s) : status;
}

static tl_status call_posting(scene *s)
{
    tl_posting *posting = NULL;
    tl_status status = tl_posting_new(&posting, s->far, s);

    EXPECT((status == TL_OK) == (posting != NULL));
    if (status != TL_OK)
        return status;
    tl_posting_complete(posting, TL_OK);
    return await_completion_of(s, NULL);
}

/* --------------------------------------------------------------------- books -- */

/* So many that the memory of the book grows several times. */
#define LINES 40

static tl_status fill_book(tl_book *book)
{
    char text[] = "a text of some length, so that it does not fit beside many others";

    for (int i = 0; i < LINES; i++) {
        tl_book_line(book, "strike out");
        tl_book_bytes(book, "bytes", text, sizeof text);
        tl_book_line(book, "note");
        tl_book_text(book, "text", text);
        tl_book_int(book, "number", i);
    }
    return tl_book_check(book);
}

/* Also a second time, with the memory that it has then. */
static tl_status fill_twice(tl_book *book)
{
    tl_status status = fill_book(book);

    tl_book_clear(book);
    EXPECT(tl_book_check(book) == TL_OK);
    return status == TL_OK ? fill_book(book) : status;
}

static tl_status call_book(scene *s)
{
    static const tl_statement statements[] = {
        {.name = "note",
         .sql = "INSERT INTO ledger (serial_no, id) VALUES (:text, :number)",
         .values = "text text, number int"},
        {.name = "strike out",
         .sql = "DELETE FROM ledger WHERE HEX(serial_no) = :bytes",
         .values = "bytes bytes",
         .refused = "there is none"},
    };
    tl_books *books = NULL;
    tl_book *book = NULL;
    tl_status status = tl_books_new(&books, s->far, statements, 2);

    EXPECT((status == TL_OK) == (books != NULL));
    if (status == TL_OK)
        status = tl_book_new(&book, books);
    if (status == TL_OK)
        status = fill_twice(book);
    tl_book_free(book);
    return status;
}

/* ----------------------------------------------------------------- resources -- */

/* While the handle says that it has it, the row says so too. */
static int is_locked(scene *s, const char *resource, uint64_t fence)
{
    return database_number(s->sql,
                           "SELECT COUNT(*) FROM resource_lock WHERE resource = '%s' AND "
                           "status = 'L' AND fence = %llu",
                           resource, (unsigned long long)fence) == 1;
}

static tl_status guard(tl_mutex *mutex, MYSQL *connection)
{
    tl_status status;

    database_run(connection, "START TRANSACTION");
    status = tl_mutex_guard(mutex, connection, TL_GUARD_ANY_IDLE);
    database_run(connection, "ROLLBACK");
    return status;
}

static tl_status use_mutex(scene *s, tl_mutex *mutex, const char *resource)
{
    tl_status status = tl_mutex_lock(mutex, 0);

    if (status != TL_GRANTED)
        return status;
    EXPECT(is_locked(s, resource, tl_mutex_fence(mutex, resource)));
    status = tl_mutex_renew(mutex, 30000);
    if (status == TL_OK)
        status = guard(mutex, s->sql);
    if (status == TL_OK)
        status = tl_mutex_unlock(mutex);
    if (status == TL_OK)
        EXPECT(database_number(s->sql,
                               "SELECT COUNT(*) FROM resource_lock WHERE resource = '%s' "
                               "AND status = 'U'",
                               resource) == 1);
    return status;
}

static tl_status call_mutex(scene *s)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    const char *resource = fresh_name();
    tl_mutex *mutex = NULL;
    tl_status status;

    options.max_hold_ms = 60000;
    status = tl_mutex_new(&mutex, s->far, resource, &options);
    if (status == TL_OK)
        status = use_mutex(s, mutex, resource);
    tl_mutex_free(mutex);
    return status;
}

static tl_status call_mutex_waiting(scene *s)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    tl_mutex *mutex = NULL;
    tl_status status;

    options.lease_ms = 60000;
    status = tl_mutex_new(&mutex, s->far, fresh_name(), &options);
    if (status == TL_OK)
        status = tl_mutex_lock(mutex, 2000);
    tl_mutex_free(mutex);
    return status;
}

static tl_status call_set(scene *s)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    char first[32], second[32];
    const char *const names[] = {first, second};
    tl_mutex *mutex = NULL;
    tl_status status;

    snprintf(first, sizeof first, "%s", fresh_name());
    snprintf(second, sizeof second, "%s", fresh_name());
    options.max_hold_ms = 60000;
    status = tl_mutex_new_set(&mutex, s->far, names, 2, &options);
    if (status == TL_OK)
        status = tl_mutex_lock(mutex, 0);
    if (status == TL_GRANTED) {
        EXPECT(is_locked(s, first, tl_mutex_fence(mutex, first)));
        EXPECT(is_locked(s, second, tl_mutex_fence(mutex, second)));
        status = tl_mutex_unlock(mutex);
    }
    tl_mutex_free(mutex);
    return status;
}

static tl_status use_rw(scene *s, tl_rw *rw)
{
    tl_status status = tl_rw_write(rw, 0);

    if (status == TL_GRANTED)
        status = tl_rw_downgrade(rw);
    if (status == TL_OK)
        status = tl_rw_renew(rw, 30000);
    if (status == TL_OK) {
        database_run(s->sql, "START TRANSACTION");
        status = tl_rw_guard(rw, s->sql, TL_GUARD_ANY_IDLE);
        if (status == TL_OK)
            status = tl_rw_done(rw, s->sql, TL_GUARD_ANY_IDLE);
        database_run(s->sql, "ROLLBACK");
    }
    if (status == TL_OK)
        status = tl_rw_unlock(rw);
    if (status == TL_OK)
        status = tl_rw_read(rw, 2000);
    return status;
}

static tl_status call_rw(scene *s)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    tl_rw *rw = NULL;
    tl_status status;

    options.max_hold_ms = 60000;
    status = tl_rw_new(&rw, s->far, fresh_name(), &options);
    if (status == TL_OK)
        status = use_rw(s, rw);
    tl_rw_free(rw);
    return status;
}

static tl_status call_row(scene *s)
{
    tl_status status;

    database_run(s->sql, "START TRANSACTION");
    status = tl_row_lock(s->far, fresh_name(), s->sql, 0, TL_GUARD_ANY_IDLE);
    database_run(s->sql, "ROLLBACK");
    return status;
}

/* ----------------------------------------------------------------- operators -- */

static int each_part(void *context, const tl_batch_part *part)
{
    (void)context;
    (void)part;
    return 0;
}

static int each_view(void *context, const tl_view *view)
{
    (void)context;
    (void)view;
    return 0;
}

static int each_step(void *context, const tl_step *step)
{
    (void)context;
    (void)step;
    return 0;
}

static int each_evidence(void *context, const tl_evidence_row *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int each_operation(void *context, const char *op_code)
{
    (void)context;
    (void)op_code;
    return 0;
}

static int each_violation(void *context, const tl_violation *violation)
{
    (void)context;
    (void)violation;
    return 0;
}

static int each_finding(void *context, const tl_finding *finding)
{
    (void)context;
    (void)finding;
    return 0;
}

static int each_resource(void *context, const tl_resource_view *view)
{
    (void)context;
    (void)view;
    return 0;
}

static int each_holder(void *context, const tl_holder_view *view)
{
    (void)context;
    (void)view;
    return 0;
}

static int each_sentence(void *context, const tl_sentence *sentence)
{
    (void)context;
    (void)sentence;
    return 0;
}

static int each_waiting(void *context, const tl_waiting *waiting)
{
    (void)context;
    (void)waiting;
    return 0;
}

static int each_channel(void *context, const tl_channel_state *channel)
{
    (void)context;
    (void)channel;
    return 0;
}

static int each_pause(void *context, const tl_pause_row *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int each_session(void *context, const tl_session_row *session)
{
    (void)context;
    (void)session;
    return 0;
}

static int each_proposal(void *context, const tl_proposal *proposal)
{
    (void)context;
    (void)proposal;
    return 0;
}

static tl_status call_overview(scene *s)
{
    tl_key key = {s->serial, s->cust, "WITHDRAW"};
    tl_overview overview = TL_OVERVIEW_INIT;
    tl_pace pace = TL_PACE_INIT;
    tl_trade_each each = TL_TRADE_EACH_INIT;
    tl_status status;

    each.row = each_view;
    each.sentence = each_sentence;
    status = tl_trade_read(s->far, &key, &each, NULL, NULL);
    if (status == TL_OK)
        status = tl_overview_read(s->far, &overview, each_waiting, NULL);
    if (status == TL_OK)
        status = tl_channel_list(s->far, &pace, each_channel, NULL);
    if (status == TL_OK)
        status = tl_pause_list(s->far, each_pause, NULL);
    if (status == TL_OK)
        status = tl_session_list(s->far, each_session, NULL);
    return status == TL_OK ? tl_inbox(s->far, each_proposal, NULL) : status;
}

/* Not enough memory to look is not "there is nothing". */
static tl_status call_looks(scene *s)
{
    tl_filter filter = {.version = TL_FILTER_VERSION, .cust = s->cust};
    tl_key key = {s->serial, s->cust, "WITHDRAW"};
    tl_status status = tl_list(s->far, &filter, each_view, NULL);
    tl_account account = TL_ACCOUNT_INIT;
    tl_overdue overdue;
    int64_t due_ms;
    int suspects;
    char near[TL_SERIAL_MAX + 1], kinds[TL_FIND_KINDS_TEXT];

    filter.log_uuid = "11111111-1111-4111-8111-111111111111";
    if (status == TL_OK)
        status = tl_list(s->far, &filter, each_view, NULL);
    filter = (tl_filter){.version = TL_FILTER_VERSION, .serial = s->serial};
    if (status == TL_OK)
        status = tl_list_page(s->far, &filter, each_view, NULL, NULL);
    if (status == TL_OK)
        status = tl_batch(s->far, "scene", 0, 0, each_part, NULL);
    filter = (tl_filter){.version = TL_FILTER_VERSION, .find = s->serial};
    if (status == TL_OK)
        status = tl_list(s->far, &filter, each_view, NULL);
    if (status == TL_OK)
        status = tl_find_kinds(&filter, kinds);
    if (status == TL_OK)
        status = tl_find_near(s->far, &filter, near);
    filter = (tl_filter){.version = TL_FILTER_VERSION};
    if (status == TL_OK)
        status = tl_list(s->far, &filter, each_view, NULL);
    if (status == TL_OK)
        status = tl_show(s->far, &key, TL_LANE_SYNC, each_view, NULL);
    if (status == TL_OK)
        status = tl_show_many(s->far, &key, 1, each_view, NULL);
    if (status == TL_OK)
        status =
            tl_show_as_of(s->far, &key, TL_LANE_SYNC, INT64_C(4000000000000000), each_view, NULL);
    if (status == TL_OK)
        status = tl_timeline(s->far, &key, each_step, NULL);
    if (status == TL_OK)
        status = tl_evidence_list(s->far, &key, each_evidence, NULL);
    if (status == TL_OK)
        status = tl_operations(s->far, each_operation, NULL);
    if (status == TL_OK)
        status = tl_account_look(s->far, &account);
    if (status == TL_OK)
        status = tl_next_due_ms(s->far, "WITHDRAW", &due_ms);
    if (status == TL_OK)
        status = tl_suspects_due(s->far, "WITHDRAW", &suspects);
    if (status == TL_OK)
        status = tl_lane_overdue(s->far, "WITHDRAW", 0, &overdue);
    return status;
}

static tl_status call_looks_at_resources(scene *s)
{
    tl_status status = tl_resource_list(s->far, NULL, each_resource, NULL);

    if (status == TL_OK)
        status = tl_holder_list(s->far, NULL, 0, 0, each_holder, NULL);
    if (status == TL_OK && tl_resource_show(s->far, "none", each_resource, NULL) != TL_NOT_FOUND)
        status = TL_NO_MEMORY;
    return status;
}

static tl_status call_audit(scene *s)
{
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};
    tl_payment paid = {.serial_no = "nobody", .cust_no = "c0", .op_code = "WITHDRAW"};
    tl_audit_scope scope = TL_AUDIT_SCOPE_INIT;
    tl_status status;

    scope.payments = &paid;
    scope.payment_count = 1;
    status = tl_audit(s->far, &scope, each_violation, NULL, NULL, &counts, NULL);
    /* The one payment of no row is named. */
    if (status == TL_OK)
        EXPECT(counts.violations > 0);
    return status;
}

static int each_report_row(void *context, const tl_report_row *row)
{
    *(uint64_t *)context += row->trades;
    return 0;
}

static int each_report_line(void *context, const tl_report_line *line)
{
    (void)line;
    ++*(uint64_t *)context;
    return 0;
}

/* By the server's sums, and trade by trade. */
static tl_status call_report(scene *s)
{
    tl_report_scope scope = {.version = TL_REPORT_SCOPE_VERSION, .by = TL_REPORT_STATE};
    tl_report_gaps gaps;
    uint64_t counted = 0, told = 0;
    tl_status status;

    scope.at = TL_REPORT_BOOKED;
    status = tl_report(s->far, &scope, each_report_row, &counted, &gaps);
    if (status == TL_OK)
        status = tl_report_lines(s->far, &scope, each_report_line, &told, &gaps);
    if (status == TL_OK)
        EXPECT(counted == told);
    return status;
}

/* Each time another finding; the second half can only be refused. */
static tl_status call_audit_close(scene *s)
{
    char finding[65];
    tl_closing closing = {.version = TL_CLOSING_VERSION,
                          .finding = finding,
                          .rule = "gap",
                          .key = {s->serial, s->cust, "WITHDRAW"},
                          .actor = "anna",
                          .reason = "test"};
    tl_status status;

    if (s->stage == 0)
        s->opened = database_number(s->sql, "SELECT COUNT(*) FROM audit_closing");
    s->stage = 1;
    snprintf(finding, sizeof finding, "%064llx", (unsigned long long)s->opened);
    status = tl_audit_close(s->far, &closing);
    if (status != TL_OK)
        return status;
    closing.confirms = 1;
    status = tl_audit_close(s->far, &closing);
    return status == TL_REFUSED ? TL_OK : status;
}

static tl_status call_doctor(scene *s)
{
    tl_status status = tl_doctor(s->far, each_finding, NULL);

    /* What the tests' server is, is not the question. */
    return status == TL_SERVER_UNSAFE ? TL_OK : status;
}

static uint64_t fence_of(scene *s)
{
    return (uint64_t)database_number(s->sql,
                                     "SELECT fence FROM trade_lock WHERE cust_no = '%s' AND "
                                     "op_code = 'WITHDRAW'",
                                     s->cust);
}

static tl_status call_retry_now(scene *s)
{
    tl_key key = {s->serial, s->cust, "WITHDRAW"};

    return tl_retry_now(s->far, &key, fence_of(s), "anna", "test");
}

static tl_status call_moved_on(scene *s)
{
    tl_key key = {s->serial, s->cust, "WITHDRAW"};
    const tl_status status = tl_moved_on(s->far, &key, fence_of(s) - 1);

    return status == TL_LOST ? TL_OK : status;
}

/* The rule of a shard, and nothing else of it. */
static void prepare_slots(scene *s)
{
    database_run(s->sql,
                 "CREATE OR REPLACE FUNCTION tl_customer_slot(cust VARCHAR(32) CHARACTER SET ascii "
                 "COLLATE ascii_nopad_bin) RETURNS SMALLINT UNSIGNED DETERMINISTIC NO SQL "
                 "SQL SECURITY INVOKER RETURN CRC32(cust) %% 1024");
}

static int each_shard(void *context, const char *shard)
{
    (void)context;
    (void)shard;
    return 0;
}

static int each_customer(void *context, const tl_slot_customer *customer)
{
    (void)context;
    (void)customer;
    return 0;
}

static tl_status call_slots(scene *s)
{
    static const char *const customers[] = {"C1", "C2"};
    unsigned slots[2];
    tl_status status = tl_shards(s->patient_file, each_shard, NULL);

    if (status == TL_OK)
        status = tl_slots_of(s->far, customers, 2, slots);
    return status == TL_OK ? tl_slot_customers(s->far, each_customer, NULL) : status;
}

/* A customer who is in none of the slots that would be taken: the database stays as it is. */
static void prepare_fleet(scene *s)
{
    prepare_slots(s);
    database_run(s->sql,
                 "INSERT IGNORE INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                 "step, thread_no, token, fence, rev, created_at, updated_at) VALUES "
                 "('stranger', 's', 'FLEET', 'S', 'Y', 'ask', UUID(), RANDOM_BYTES(16), "
                 "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence, "
                 "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
}

static int each_slot(void *context, const tl_slot_row *row)
{
    (void)context;
    (void)row;
    return 0;
}

static tl_status refused(tl_status status)
{
    return status == TL_REFUSED ? TL_OK : status == TL_OK ? TL_INTERNAL : status;
}

static tl_status call_fleet(scene *s)
{
    static const unsigned char none[TL_FLEET_SLOTS] = {0};
    static const char *const tables[] = {"nothing"};
    static const tl_slot_claim claim = {"owned", 1, SIZE_MAX};
    char fleet[TL_FLEET_NAME_MAX + 1], shard[TL_FLEET_NAME_MAX + 1];
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
    tl_slot_moving moving = TL_SLOT_MOVING_INIT;
    tl_slot_cleaning cleaning = TL_SLOT_CLEANING_INIT;
    tl_status status = tl_fleet_named(s->patient_file, fleet);

    joining.fleet = "fleet";
    joining.shard = "shard";
    joining.slots = none;
    moving.actor = moving.reason = "test";
    moving.tables = tables;
    if (status == TL_OK)
        status = refused(tl_fleet_join(&s->far, 1, 0, &joining, NULL));
    if (status == TL_OK)
        status = tl_slot_list(s->far, fleet, shard, each_slot, NULL);
    if (status == TL_OK)
        status = refused(tl_slot_move(s->far, s->far, &moving, NULL));
    if (status == TL_OK && tl_slot_owner(&claim, 1) != 0)
        status = TL_INTERNAL;
    if (status == TL_OK)
        status = refused(tl_slot_give_up(s->far, s->far, &moving));
    cleaning.actor = cleaning.reason = "test";
    if (status == TL_OK)
        status = refused(tl_slot_clean(s->far, s->far, &cleaning, NULL));
    return status == TL_OK ? refused(tl_slot_take_back(s->far, &moving)) : status;
}

static int each_paid(void *context, const tl_payment_view *paid)
{
    (void)context;
    (void)paid;
    return 0;
}

static int each_act(void *context, const tl_act_view *act)
{
    (void)context;
    (void)act;
    return 0;
}

static int each_acted(void *context, const tl_act_row *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int each_trade(void *context, size_t number, const tl_key *key)
{
    (void)context;
    (void)number;
    (void)key;
    return 0;
}

static int each_proposed(void *context, const tl_proposed *proposed)
{
    (void)context;
    (void)proposed;
    return 0;
}

static tl_status look_at_acts(scene *s, uint64_t act_no)
{
    const tl_payment nobodys = {.serial_no = s->serial};
    const tl_payment payment = {.serial_no = s->serial, .cust_no = s->cust, .op_code = "WITHDRAW"};
    tl_act_filter filter = TL_ACT_FILTER_INIT;
    char next[TL_NEXT_TEXT];
    tl_status status = tl_paid_list(s->far, &payment, 1, each_paid, NULL);

    if (status == TL_OK)
        status = tl_payment_find(s->far, &nobodys, 1, NULL, each_trade, NULL);
    if (status == TL_OK)
        status = tl_act_list(s->far, &filter, each_act, NULL, next);
    return status == TL_OK ? tl_act_row_list(s->far, act_no, 0, 0, each_acted, NULL) : status;
}

/* An operation about two rows, and what is on record of it. */
static tl_status call_acts(scene *s)
{
    const tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                                  .key = {s->serial, s->cust, "WITHDRAW"},
                                  .outcome = "SUCCEEDED",
                                  .source = "test"};
    const tl_payment_view seen = {.fence = fence_of(s), .status = 'P', .epoch = 1};
    tl_act act = TL_ACT_INIT;
    uint64_t act_no = 0;
    tl_status status;

    act.what = "test";
    act.actor = "anna";
    act.reason = "test";
    act.planned = 2;
    status = tl_act_begin(s->far, &act, &act_no);
    if (status == TL_OK)
        status = tl_act_retry(s->far, act_no, 1, &evidence.key, fence_of(s));
    if (status == TL_OK)
        status = tl_act_evidence(s->far, act_no, 2, &evidence, &seen);
    if (status == TL_OK)
        status = tl_act_end(s->far, act_no, "done=2");
    if (status == TL_OK)
        status = tl_act_note(s->far, &act, "done=0");
    if (status == TL_OK)
        status = tl_evidence_file(s->far, &evidence, "anna");
    return status == TL_OK ? look_at_acts(s, act_no) : status;
}

/* As if the time in which the sender could still send were over. */
static void prepare_overdue(scene *s)
{
    prepare_doubtful(s);
    database_run(s->sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, "
                 "step = 'test', token = RANDOM_BYTES(16) WHERE cust_no = '%s' AND "
                 "lane = 'S'",
                 s->cust);
}

/* Another operator has proposed; only an administrator can write who that was. */
static void prepare_proposed(scene *s)
{
    prepare_overdue(s);
    database_run(s->sql,
                 "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, "
                 "verdict, part, fence, epoch, reason, actor, thread_no, account) "
                 "SELECT cust_no, serial_no, op_code, rev, 'F', 1, fence, epoch, 'test', "
                 "'bob', UUID(), 'bob@localhost' FROM trade_lock WHERE cust_no = '%s' "
                 "AND lane = 'S'",
                 s->cust);
}

static int each_resolution(void *context, const tl_resolution_row *row)
{
    unsigned *halves = context;

    *halves += row->decision == TL_DECISION_FAILED;
    return 0;
}

/* The fence that was seen stays the same over the repetitions. */
static tl_resolution resolution(scene *s)
{
    if (s->stage == 0)
        s->opened = database_number(s->sql,
                                    "SELECT fence FROM trade_lock WHERE cust_no = '%s' "
                                    "AND lane = 'S'",
                                    s->cust);
    s->stage = 1;
    return (tl_resolution){.version = TL_RESOLUTION_VERSION,
                           .key = {s->serial, s->cust, "WITHDRAW"},
                           .fence = (uint64_t)s->opened,
                           .decision = TL_DECISION_FAILED,
                           .actor = "anna",
                           .reason = "test"};
}

static tl_status count_halves(scene *s, unsigned expected)
{
    tl_key key = {s->serial, s->cust, "WITHDRAW"};
    unsigned halves = 0;
    tl_status status = tl_resolution_list(s->far, &key, each_resolution, &halves);

    if (status == TL_OK)
        EXPECT(halves == expected);
    return status;
}

static tl_status call_propose(scene *s)
{
    tl_resolution r = resolution(s);
    tl_status status = tl_resolution_propose(s->far, &r);

    return status == TL_OK ? count_halves(s, 1) : status;
}

/* What an earlier try proposed stands under the act of that try. */
static tl_status call_propose_many(scene *s)
{
    tl_resolution r = resolution(s);
    tl_act act = TL_ACT_INIT;
    uint64_t act_no = 0;
    tl_status status;

    act.what = "resolve propose";
    act.actor = r.actor;
    act.reason = r.reason;
    act.planned = 1;
    status = tl_act_begin(s->far, &act, &act_no);
    if (status == TL_OK)
        status = tl_act_resolve(s->far, act_no, 1, &r, 0);
    if (status == TL_OK || status == TL_BUSY)
        status = tl_act_end(s->far, act_no, "left=0");
    if (status == TL_OK)
        status = tl_proposed_list(s->far, act_no, each_proposed, NULL);
    return status == TL_OK ? count_halves(s, 1) : status;
}

static tl_status call_confirm(scene *s)
{
    tl_resolution r = resolution(s);
    tl_status status = tl_resolution_confirm(s->far, &r);

    return status == TL_OK ? count_halves(s, 2) : status;
}

/* A trade that is over, of a customer whom somebody else proposed to forget. */
static void prepare_forgotten(scene *s)
{
    prepare_nothing(s);
    database_run(
        s->sql, "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                "thread_no, token, fence, rev, created_at, updated_at) SELECT 'over', 'over', "
                "'WITHDRAW', 'S', 'Y', 'filed', UUID(), RANDOM_BYTES(16), 1, 1, '2001-01-01', "
                "'2001-01-01' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM trade_lock WHERE cust_no = "
                "'over'); INSERT INTO tl_act (what, said, reason, actor, account, begun_at) "
                "VALUES ('forget propose', tl_forget_name('over'), 'test', 'bob', "
                "'bob@localhost', UTC_TIMESTAMP(6))");
}

static tl_status call_forget(scene *s)
{
    tl_forgotten forgotten;
    tl_status status = tl_forget_propose(s->far, "over", "ann", "request 17", NULL);

    if (status == TL_OK)
        status = tl_forget_confirm(s->far, "over", "ann", "request 17", &forgotten);
    if (status == TL_OK)
        EXPECT(forgotten.trades == 1 && forgotten.blanked <= 1);
    return status;
}

/* A decision that both have made, of a trade that nobody claims meanwhile. */
static void prepare_decided(scene *s)
{
    prepare_proposed(s);
    database_run(s->sql,
                 "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, "
                 "verdict, part, fence, epoch, reason, actor, thread_no, account) "
                 "SELECT cust_no, serial_no, op_code, rev, 'F', 2, fence, epoch, 'test', "
                 "'ann', UUID(), 'ann@localhost' FROM trade_resolution WHERE cust_no = "
                 "'%s'",
                 s->cust);
    s->opened = database_number(s->sql,
                                "SELECT rev FROM trade_resolution WHERE cust_no = '%s' AND "
                                "part = 2",
                                s->cust);
}

static tl_status call_refuse(scene *s)
{
    tl_key key = {s->serial, s->cust, "WITHDRAW"};
    tl_status status =
        tl_resolution_refuse(s->far, &key, (uint64_t)s->opened, "the channel: pending");

    return status == TL_OK ? count_halves(s, 3) : status;
}

static tl_status call_resource_unlock(scene *s)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    const char *resource = fresh_name();
    tl_mutex *mutex = NULL;
    tl_status status;

    options.lease_ms = 60000;
    status = tl_mutex_new(&mutex, s->far, resource, &options);
    if (status == TL_OK)
        status = tl_mutex_lock(mutex, 0);
    if (status == TL_GRANTED)
        status = tl_resource_unlock(s->far, resource, tl_mutex_fence(mutex, NULL), "anna", "test");
    tl_mutex_free(mutex);
    return status;
}

static tl_status call_holder_unlock(scene *s)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    const char *resource = fresh_name();
    tl_rw *rw = NULL;
    tl_status status;

    options.lease_ms = 60000;
    status = tl_rw_new(&rw, s->far, resource, &options);
    if (status == TL_OK)
        status = tl_rw_read(rw, 0);
    if (status == TL_GRANTED)
        status = tl_holder_unlock(s->far, resource, 1, tl_rw_fence(rw), "anna", "test");
    tl_rw_free(rw);
    return status;
}

static tl_status call_purge(scene *s)
{
    tl_purge_options options = TL_PURGE_OPTIONS_INIT;
    tl_purged purged;
    tl_status status;

    options.older_ms = INT64_C(31536000000);
    status = tl_purge(s->far, &options, &purged);
    options.only_counts = 1;
    return status == TL_OK ? tl_purge(s->far, &options, &purged) : status;
}

/* Old trades go into an archive, and both are audited.  What an earlier try left unfinished is gone
 * on with; of a key that comes again the revision is higher, as always. */
static tl_status call_purge_archive(scene *s)
{
    tl_audit_scope scope = TL_AUDIT_SCOPE_INIT;
    static char path[] = "/tmp/tl-archive-XXXXXX";
    static int has_path;
    tl_purge_options options = TL_PURGE_OPTIONS_INIT;
    tl_audit_counts counts = TL_AUDIT_COUNTS_INIT;
    tl_archived written, read_again;
    tl_purged purged;
    char command[64];
    tl_status status;

    if (!has_path && mkdtemp(path) == NULL)
        server_panic("no directory for an archive");
    has_path = 1;
    database_run(s->sql,
                 "SET @rev = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)); "
                 "REPLACE INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, created_at, updated_at, first_rev) VALUES ('old', "
                 "'old', 'WITHDRAW', 'S', 'Y', 'filed', UUID(), RANDOM_BYTES(16), @rev, @rev, "
                 "'2001-01-01', '2001-01-01', NULL); DELETE FROM trade_lock_past WHERE cust_no = "
                 "'old'; INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, "
                 "step, status, thread_no, token, fence, epoch, attempts, claims, sends, conflict, "
                 "proof, account) VALUES ('old', 'old', 'WITHDRAW', @rev - 1, '2001-01-01', "
                 "'filed', 'Y', UUID(), RANDOM_BYTES(16), @rev - 1, 1, 0, 0, 0, 0, '-', '')");
    options.older_ms = INT64_C(31536000000);
    scope.archive = path;
    options.archive = path;
    options.archived = &written;
    status = tl_purge(s->far, &options, &purged);
    if (status == TL_OK)
        status = tl_audit(s->far, &scope, each_violation, NULL, NULL, &counts, &read_again);
    if (status == TL_OK) {
        EXPECT(read_again.trades > 0);
        snprintf(command, sizeof command, "rm -rf %s/0*", path);
        EXPECT(system(command) == 0);
    }
    return status;
}

static tl_status call_migrate(scene *s)
{
    tl_migrated migrated;

    return tl_migrate(s->far, &migrated);
}

static tl_status call_grant_roles(scene *s)
{
    return tl_grant_roles(s->far);
}

static tl_status call_stats(scene *s)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    return tl_client_stats(s->far, &stats);
}

static int take_text(void *context, const char *text, size_t size)
{
    (void)text;
    *(size_t *)context += size;
    return 0;
}

static tl_status call_metrics(scene *s)
{
    static const char *const answers[] = {"UNKNOWN", "SUCCEEDED"};
    const tl_calls_names names = {s->serial, "WITHDRAW", "execute", answers, 2};
    tl_calls *calls;
    size_t size = 0;
    tl_status status;

    /* One more counter each time, since they live as long as the client. */
    status = tl_calls_of(&calls, s->far, &names);
    if (status == TL_OK)
        status = tl_metrics_write(s->far, take_text, &size);
    return status == TL_OK ? tl_metrics_write_database(s->far, take_text, &size) : status;
}

/* Another channel each time, whose name the last call that failed made known perhaps. */
static tl_status call_pause(scene *s)
{
    tl_pause pause = {
        .version = TL_PAUSE_VERSION, .channel = s->cust, .actor = "anna", .reason = "test"};
    tl_limit limit = {.version = TL_LIMIT_VERSION,
                      .channel = s->cust,
                      .sends = 5,
                      .actor = "anna",
                      .reason = "test"};
    tl_breaker breaker = {.version = TL_BREAKER_VERSION,
                          .channel = s->cust,
                          .unknowns = 5,
                          .actor = "anna",
                          .reason = "test"};
    tl_status status = tl_channel_add(s->far, s->cust, "WITHDRAW", NULL);

    if (status == TL_OK)
        status = tl_channel_limit(s->far, &limit);
    if (status == TL_OK || status == TL_ALREADY_DONE)
        status = tl_channel_breaker(s->far, &breaker);
    if (status == TL_OK || status == TL_ALREADY_DONE)
        status = tl_channel_pause(s->far, &pause);
    if (status == TL_OK || status == TL_ALREADY_DONE)
        status = tl_channel_resume(s->far, &pause);
    return status == TL_OK ? tl_channel_check(s->far, NULL, "WITHDRAW") : status;
}

static int count_nothing(void *context, const tl_restore_count *count)
{
    (void)context;
    (void)count;
    return 0;
}

static int count_no_missing(void *context, const tl_missing *missing)
{
    (void)context;
    (void)missing;
    return 0;
}

static tl_status call_restore(scene *s)
{
    uint64_t doubtful;
    tl_restore state = {.version = TL_RESTORE_VERSION};
    tl_status status = tl_restore_declare(s->far, "anna", "test");

    if (status == TL_OK)
        status = tl_restore_status(s->far, &state, count_nothing, NULL);
    if (status == TL_OK)
        status = tl_restore_missing(s->far, state.number, count_no_missing, NULL);
    if (status != TL_OK)
        return status;
    database_propose(s->sql);
    return tl_restore_accept(s->far, "anna", "test", &doubtful);
}

/* The accepted server was another one. */
static void prepare_promoted(scene *s)
{
    s->lock = NULL;
    database_run(s->sql, "UPDATE tl_schema SET identity = 'elsewhere 1 /nowhere/'");
}

static tl_status call_promote(scene *s)
{
    const tl_status status = tl_promote(s->far, 1, "anna", "test");

    if (status != TL_OK)
        return status;
    EXPECT(database_number(s->sql, "SELECT COUNT(*) FROM tl_restore WHERE step = 'promoted' AND "
                                   "restore_no = (SELECT restore_no FROM tl_schema)") == 1);
    /* It is this one again, for whatever comes next. */
    database_run(s->sql, "UPDATE tl_schema SET identity = tl_identity(), accepted_no = restore_no");
    return status;
}

static const operation operations[] = {
    {"handle", 0, prepare_nothing, call_new, TL_OK, "-", "-", 0, 0, NULL},
    {"attach", 0, prepare_nothing, call_attach, TL_OK, "-", "-", 0, 0, NULL},
    {"ask waiting", OPERATION_GRANTS, prepare_handle, call_ask_waiting, TL_GRANTED, "P 1 1", "-", 1,
     0, NULL},
    {"ask submitted", OPERATION_GRANTS, prepare_handle, call_ask_submit, TL_GRANTED, "P 1 1", "-",
     1, 0, NULL},
    {"finish submitted", 0, prepare_held, call_finish_submit, TL_SUCCEEDED, "Y 1 1", "-", 1, 0,
     NULL},
    {"ask submitted with a book", OPERATION_GRANTS, prepare_booked, call_ask_book_submit,
     TL_GRANTED, "P 1 1", "-", 1, 1, NULL},
    {"finish submitted with a book", 0, prepare_booked_held, call_finish_book_submit, TL_SUCCEEDED,
     "Y 1 1", "-", 1, 1, NULL},
    {"put back submitted", 0, prepare_held, call_put_back_submit, TL_IN_DOUBT, "P 1 1", "F 1 0", 2,
     0, NULL},
    {"posting", 0, prepare_nothing, call_posting, TL_OK, "-", "-", 0, 0, NULL},
    {"book", 0, prepare_nothing, call_book, TL_OK, "-", "-", 0, 0, NULL},
    {"mutex", 0, prepare_nothing, call_mutex, TL_OK, "-", "-", 0, 0, NULL},
    {"mutex waiting", OPERATION_SPEAKS, prepare_nothing, call_mutex_waiting, TL_GRANTED, "-", "-",
     0, 0, NULL},
    {"set of mutexes", 0, prepare_nothing, call_set, TL_OK, "-", "-", 0, 0, NULL},
    {"read-write lock", 0, prepare_nothing, call_rw, TL_GRANTED, "-", "-", 0, 0, NULL},
    {"row lock", 0, prepare_nothing, call_row, TL_GRANTED, "-", "-", 0, 0, NULL},
    {"looks", 0, prepare_doubtful_of_batch, call_looks, TL_OK, "P 1 1", "F 1 0", 0, 0, NULL},
    {"overview", OPERATION_SPEAKS, prepare_doubtful, call_overview, TL_OK, "P 1 1", "F 1 0", 0, 0,
     NULL},
    {"pause", OPERATION_SPEAKS, prepare_nothing, call_pause, TL_OK, "-", "-", 0, 0, NULL},
    {"looks at resources", OPERATION_SPEAKS, prepare_nothing, call_looks_at_resources, TL_OK, "-",
     "-", 0, 0, NULL},
    {"a fleet", OPERATION_PARTS | OPERATION_SPEAKS, prepare_fleet, call_fleet, TL_OK, "-", "-",
     SWEEP_ANY_STEPS, 0, NULL},
    {"customers' slots", 0, prepare_slots, call_slots, TL_OK, "-", "-", 0, 0, NULL},
    {"audit", 0, prepare_nothing, call_audit, TL_OK, "-", "-", 0, 0, NULL},
    {"report", 0, prepare_nothing, call_report, TL_OK, "-", "-", 0, 0, NULL},
    {"closing", OPERATION_SPEAKS, prepare_nothing, call_audit_close, TL_OK, "-", "-", 0, 0, NULL},
    {"doctor", OPERATION_SPEAKS, prepare_nothing, call_doctor, TL_OK, "-", "-", 0, 0, NULL},
    {"retry now", OPERATION_PARTS, prepare_doubtful, call_retry_now, TL_OK, "P 1 1", "F 1 0",
     SWEEP_ANY_STEPS, 0, NULL},
    {"moved on", OPERATION_SPEAKS, prepare_doubtful, call_moved_on, TL_OK, "P 1 1", "F 1 0", 0, 0,
     NULL},
    {"acts", OPERATION_PARTS, prepare_doubtful, call_acts, TL_OK, "P 1 1", "F 1 0", SWEEP_ANY_STEPS,
     0, NULL},
    {"proposal", 0, prepare_overdue, call_propose, TL_OK, "P 1 1", "F 1 0", 0, 0, NULL},
    {"proposal of many", OPERATION_PARTS, prepare_overdue, call_propose_many, TL_OK, "P 1 1",
     "F 1 0", 0, 0, NULL},
    {"confirmation", OPERATION_PARTS, prepare_proposed, call_confirm, TL_OK, "P 1 1", "F 1 0", 2, 0,
     NULL},
    {"refusal", OPERATION_SPEAKS, prepare_decided, call_refuse, TL_OK, "P 1 1", "F 1 0", 0, 0,
     NULL},
    {"forgetting", OPERATION_SPEAKS, prepare_forgotten, call_forget, TL_OK, "-", "-", 0, 0, NULL},
    {"unlock by an operator", OPERATION_SPEAKS, prepare_nothing, call_resource_unlock, TL_OK, "-",
     "-", 0, 0, NULL},
    {"unlock of a reader by an operator", OPERATION_SPEAKS, prepare_nothing, call_holder_unlock,
     TL_OK, "-", "-", 0, 0, NULL},
    {"purge", 0, prepare_nothing, call_purge, TL_OK, "-", "-", 0, 0, NULL},
    {"purge into an archive", 0, prepare_nothing, call_purge_archive, TL_OK, "-", "-", 0, 0, NULL},
    {"migrate", 0, prepare_nothing, call_migrate, TL_OK, "-", "-", 0, 0, NULL},
    {"grant roles", 0, prepare_nothing, call_grant_roles, TL_OK, "-", "-", 0, 0, NULL},
    {"stats", 0, prepare_nothing, call_stats, TL_OK, "-", "-", 0, 0, NULL},
    {"metrics", 0, prepare_nothing, call_metrics, TL_OK, "-", "-", 0, 0, NULL},
    /* The last: other clients grant nothing until they notice that it is over. */
    {"promote", 0, prepare_promoted, call_promote, TL_OK, "-", "-", 0, 0, NULL},
    {"restore", 0, prepare_nothing, call_restore, TL_OK, "-", "-", 0, 0, NULL},
};

const struct operations operations_others = {"others", operations,
                                             sizeof operations / sizeof *operations};
