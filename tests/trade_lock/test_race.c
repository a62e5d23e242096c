/*
 * Many threads of several processes at one trade, round after round: exactly one is granted, and
 * every other answer is the one that the row gives.
 *
 *     --processes=4 --threads=4 --rounds=15 --sales=60
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#define OTHER_CONTENTS 4 /* every fourth thread asks for another amount */
#define CUSTOMERS 3

/* What racing threads tell each other; one race at a time. */
struct board {
    pthread_barrier_t barrier;
    int granted, wrong;
    int winner, winner_contents;
    uint64_t fence;
    char session[TL_UUID_TEXT];
    uint64_t deadlocks, asks;
    int inside[CUSTOMERS]; /* who holds a trade of each customer */
};

struct scene {
    fixture f;
    struct board *board;
    int processes, threads;
    long rounds, sales;
};

struct hand {
    struct scene *scene;
    tl_client *client;
    int process;
};

/* Which way a round goes. */
enum way { WAY_SUCCESS, WAY_DECLINE, WAY_UNKNOWN, WAYS };

static void meet(struct board *board)
{
    pthread_barrier_wait(&board->barrier);
}

static int me(const struct hand *hand, int number)
{
    return hand->process * hand->scene->threads + number;
}

static int contents_of(int who)
{
    return who % OTHER_CONTENTS == OTHER_CONTENTS - 1;
}

static tl_lock_options options_of(int who)
{
    return sync_options(contents_of(who) ? "other" : "x");
}

/* The refused compare what they heard with what the winner says. */
static void check_refusal(const struct board *board, const tl_lock *lock, tl_status status, int who)
{
    const tl_view *view = tl_lock_view(lock);

    if (contents_of(who) != board->winner_contents && !(status == TL_BUSY && view->being_decided)) {
        CREW_STATUS(status, TL_MISMATCH);
        return;
    }
    CREW_STATUS(status, TL_BUSY);
    if (view->being_decided)
        return;
    CREW_CHECK(view->status == 'P' && view->fence == board->fence);
    CREW_CHECK(strcmp(view->session_id, board->session) == 0);
}

/* All ask at once; gives back the lock to the one that was granted it, else NULL. */
static tl_lock *race(const struct hand *hand, int who, const char *serial,
                     const tl_lock_options *options, int same_contents)
{
    struct board *board = hand->scene->board;
    tl_lock *lock = lock_new(hand->client, serial, "race", options);
    tl_status status;
    int granted;

    meet(board);
    if (who == 0)
        board->granted = 0;
    meet(board);
    status = tl_lock_ask(lock, 0);
    granted = status == TL_GRANTED;
    if (granted) {
        __atomic_add_fetch(&board->granted, 1, __ATOMIC_SEQ_CST);
        board->winner = who;
        board->winner_contents = contents_of(who);
        board->fence = tl_lock_view(lock)->fence;
        strcpy(board->session, tl_client_session(hand->client));
    }
    meet(board);
    CREW_CHECK(board->granted == 1);
    if (!granted && same_contents)
        CREW_STATUS(status, TL_BUSY);
    else if (!granted)
        check_refusal(board, lock, status, who);
    meet(board);
    if (granted)
        return lock;
    tl_lock_free(lock);
    return NULL;
}

static void end_first(tl_lock *lock, enum way way)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = way == WAY_SUCCESS   ? TL_OUTCOME_SUCCESS
                     : way == WAY_DECLINE ? TL_OUTCOME_FAILURE
                                          : TL_OUTCOME_UNKNOWN;
    ending.proof = way == WAY_DECLINE ? TL_PROOF_DECLINED : TL_PROOF_NONE;
    ending.retryable = 1;
    ending.result = way == WAY_SUCCESS ? "receipt" : NULL;
    ending.result_size = way == WAY_SUCCESS ? 7 : 0;
    CREW_STATUS(tl_lock_finish(lock, &ending), way == WAY_SUCCESS   ? TL_SUCCEEDED
                                               : way == WAY_DECLINE ? TL_FAILED
                                                                    : TL_IN_DOUBT);
    tl_lock_free(lock);
}

/* After the ending everybody hears how it ended. */
static void ask_after(const struct hand *hand, int who, const char *serial, enum way way)
{
    static const tl_status expected[WAYS] = {TL_ALREADY_DONE, TL_FAILED, TL_IN_DOUBT};
    const struct board *board = hand->scene->board;
    tl_lock_options options = options_of(who);
    tl_status status;
    tl_lock *lock = ask(hand->client, serial, "race", &options, &status);

    CREW_STATUS(status, contents_of(who) == board->winner_contents ? expected[way] : TL_MISMATCH);
    if (status == TL_ALREADY_DONE)
        CREW_CHECK(tl_lock_view(lock)->result_size == 7 &&
                   memcmp(tl_lock_view(lock)->result, "receipt", 7) == 0);
    if (status == TL_FAILED)
        CREW_CHECK(tl_lock_view(lock)->proof == TL_PROOF_DECLINED);
    tl_lock_free(lock);
}

/* F -> P, the next epoch, by one of all who saw the failure. */
static void race_to_reclaim(const struct hand *hand, int who, const char *serial)
{
    struct board *board = hand->scene->board;
    tl_lock_options options = sync_options(board->winner_contents ? "other" : "x");
    tl_lock *lock;

    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = race(hand, who, serial, &options, 1);
    if (lock == NULL)
        return;
    CREW_CHECK(tl_lock_view(lock)->epoch == 2);
    CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

/* One compensating attempt gets in, says "again", and the next one does. */
static void race_to_compensate(const struct hand *hand, int who, const char *serial)
{
    tl_lock_options options = retry_options();

    for (uint32_t attempt = 1; attempt <= 2; attempt++) {
        tl_lock *lock = race(hand, who, serial, &options, 1);

        if (lock == NULL)
            continue;
        CREW_CHECK(tl_lock_view(lock)->attempts == attempt);
        if (attempt == 1)
            CREW_STATUS(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_NONE), TL_IN_DOUBT);
        else
            CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
}

static void one_round(const struct hand *hand, int who, long round)
{
    enum way way = (enum way)(round % WAYS);
    tl_lock_options options = options_of(who);
    tl_lock *lock;
    const struct text serial = text_of("r-%ld", round);

    lock = race(hand, who, serial.is, &options, 0);
    if (lock != NULL)
        end_first(lock, way);
    meet(hand->scene->board);
    ask_after(hand, who, serial.is, way);
    meet(hand->scene->board);
    if (way == WAY_DECLINE)
        race_to_reclaim(hand, who, serial.is);
    else if (way == WAY_UNKNOWN)
        race_to_compensate(hand, who, serial.is);
}

static void race_hand(void *context, int number)
{
    const struct hand *hand = context;

    for (long round = 0; round < hand->scene->rounds; round++)
        one_round(hand, me(hand, number), round);
}

static void count_deadlocks(const struct hand *hand)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    CREW_STATUS(tl_client_stats(hand->client, &stats), TL_OK);
    __atomic_add_fetch(&hand->scene->board->deadlocks, stats.deadlocks, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&hand->scene->board->asks, stats.asks, __ATOMIC_SEQ_CST);
}

static void race_process(void *context, int number)
{
    struct hand hand = {.scene = context, .process = number};

    hand.client = client_new(&hand.scene->f, 0);
    crew_threads(hand.scene->threads, race_hand, &hand);
    count_deadlocks(&hand);
    tl_client_close(hand.client);
}

/* ------------------------------------------------------- one for each customer -- */

static void sell(void *context, int number)
{
    const struct hand *hand = context;
    tl_lock_options options = sync_options("x");
    unsigned seed = (unsigned)me(hand, number) + 1;

    options.flags = TL_ASK_EXCLUSIVE;
    for (long sale = 0; sale < hand->scene->sales; sale++) {
        int customer = rand_r(&seed) % CUSTOMERS;
        int *inside = &hand->scene->board->inside[customer];
        tl_status status;
        tl_lock *lock;
        const struct text serial = text_of("x-%d-%ld", me(hand, number), sale);

        lock = ask(hand->client, serial.is, text_of("x%d", customer).is, &options, &status);
        if (status == TL_GRANTED) {
            CREW_CHECK(__atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST) == 1);
            __atomic_sub_fetch(inside, 1, __ATOMIC_SEQ_CST);
            CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        } else {
            CREW_STATUS(status, TL_CUSTOMER_BUSY);
        }
        tl_lock_free(lock);
    }
}

static void sell_process(void *context, int number)
{
    struct hand hand = {.scene = context, .process = number};

    if (number < hand.scene->processes) {
        hand.client = client_new(&hand.scene->f, 0);
        crew_threads(hand.scene->threads, sell, &hand);
        count_deadlocks(&hand);
        tl_client_close(hand.client);
        __atomic_add_fetch(&hand.scene->board->winner, 1, __ATOMIC_SEQ_CST);
        return;
    }
    /* The last process looks on.  It locks what it sees: a read view that is made while others commit
     * may lack the first of two commits. */
    hand.scene->f.sql = database_connect(hand.scene->f.db);
    database_run(hand.scene->f.sql, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    while (__atomic_load_n(&hand.scene->board->winner, __ATOMIC_SEQ_CST) < hand.scene->processes) {
        CREW_CHECK(database_number(hand.scene->f.sql,
                                   "SELECT COUNT(*) FROM trade_lock WHERE status = 'P' AND cust_no "
                                   "LIKE 'x%%' GROUP BY cust_no HAVING COUNT(*) > 1 "
                                   "LOCK IN SHARE MODE SKIP LOCKED") == 0);
        crew_sleep_ms(2);
    }
    mysql_close(hand.scene->f.sql);
}

/* ----------------------------------------------------------------- the tests -- */

static struct scene scene;

FIXTURE(setup)
{
    scene.processes = (int)crew_number("processes", 4);
    scene.threads = (int)crew_number("threads", 4);
    scene.rounds = crew_number("rounds", 15);
    scene.sales = crew_number("sales", 60);
    scene.board = crew_share(sizeof *scene.board);
    scene.f.db = database_new(server_shared(), NULL);
    scene.f.sql = database_connect(scene.f.db);
}

FIXTURE(teardown)
{
    assert_log_whole(&scene.f);
    mysql_close(scene.f.sql);
    database_free(scene.f.db);
    crew_unshare(scene.board, sizeof *scene.board);
}

TEST(test_one_is_granted)
{
    memset(scene.board, 0, sizeof *scene.board);
    crew_barrier_init(&scene.board->barrier, (unsigned)(scene.processes * scene.threads));
    assert_int_equal(crew_run(scene.processes, race_process, &scene), 0);
    /* Every trade was paid for once: one ending in success, at most one in failure. */
    database_expect(
        scene.f.sql, scene.rounds,
        "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND cust_no = 'race' AND status = 'Y'");
    database_expect(scene.f.sql, scene.rounds,
                    "SELECT COUNT(*) FROM trade_lock_log WHERE cust_no = 'race' AND op_code = "
                    "'WITHDRAW' AND step = 'ask'");
    print_message("%d processes, %d threads in all, %ld trades: one granted of each, %llu "
                  "asks\n",
                  scene.processes, scene.processes * scene.threads, scene.rounds,
                  (unsigned long long)scene.board->asks);
}

TEST(test_one_for_each_customer)
{
    long long sold;

    memset(scene.board, 0, sizeof *scene.board);
    assert_int_equal(crew_run(scene.processes + 1, sell_process, &scene), 0);
    sold = database_number(scene.f.sql, "SELECT COUNT(*) FROM trade_lock WHERE status = "
                                        "'Y' AND cust_no LIKE 'x%%'");
    assert_true(sold > 0);
    print_message("%lld sold of %llu asked, %llu deadlocks\n", sold,
                  (unsigned long long)scene.board->asks,
                  (unsigned long long)scene.board->deadlocks);
    assert_true(scene.board->deadlocks <= scene.board->asks / 20);
}

TESTS_OF(race, setup, teardown)
