/*
 * Asks and endings with declared books of many threads on either lane, which share transactions,
 * cut at packets of every kind.  Among them are a poor customer, a trade that is asked for twice
 * and a broken book.  Every thread goes on calling until it has an answer, and every answer is
 * compared at once with its own row, log, account and ledger.
 *
 * TL_TEST_SEED=N, or --seed=N, repeats a run's choice of packets.
 */
#include "scene.h"
#include "sweep.h"

#include "support/crew.h"
#include "support/theme.h"

#include "base/clock.h"
#include "base/fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define THREADS 14
/* How long a thread calls again before the round is wrong, and how often: while the line is down an
 * answer comes at once. */
#define AGAIN_MS 5
#define DELAY_US 300 /* of each packet, so that groups form */
#define DOWN_MS 80
/* Each of the faults strikes every 45th packet, of attempts anew every third of those.  A long run
 * strikes every 13th, so that it ends within an hour: a round takes up to two seconds, and there are
 * 3,000 packets and six faults.  Which is the first follows from the seed. */
#define STRIDE 45
#define LONG_STRIDE 13
#define MEMORY_STRIDE 11

/* What all threads of a round do. */
typedef enum deed {
    FIRST_ATTEMPT, /* asked for, and ended */
    NEW_ATTEMPT,   /* after a failure: reclaimed, and ended */
    COMPENSATION   /* of what was left in doubt and is claimed already: ended */
} deed;

static const char *const deeds[] = {"first attempts", "attempts anew", "compensating attempts"};

enum role { WELL, POOR, BROKEN, TWIN };

static scene world;
static int memory_fails; /* instead of the line */

/* The test's own connection is used by one thread at a time. */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

struct hand {
    pthread_t thread;
    scene mine; /* the world, with a trade of its own */
    deed what;
    enum role role;
    long long steps, ledger; /* what the trade had before */
    tl_outcome outcome;
    char ended[8];    /* what its row is to say */
    tl_status to_ask; /* the last answer */
    unsigned undecided;
    atomic_int *over; /* how many hands have ended */
    char wrong[1000];
};

/* Needs: `looking`. */
static void complain(struct hand *hand, const char *what, tl_status answer)
{
    char *story;

    if (hand->wrong[0] != '\0')
        return;
    story = scene_story(&hand->mine);
    snprintf(hand->wrong, sizeof hand->wrong, "%s, role %d, %s: %s (%s), %lld rows more, %s",
             hand->mine.serial, (int)hand->role, what, tl_status_name(answer), tl_error_message(),
             scene_ledger(&hand->mine) - hand->ledger, story);
    free(story);
}

/* It says that nothing was written, and that the call may come again. */
static int is_not_now(tl_status answer)
{
    return tl_status_class(answer) == TL_CLASS_RETRY || (memory_fails && answer == TL_NO_MEMORY);
}

static int is_undecided(tl_status answer)
{
    return is_not_now(answer) || tl_status_class(answer) == TL_CLASS_UNKNOWN;
}

/* How many steps and business rows it wrote by asking and by ending. */
static int has_written(struct hand *hand, int steps, int rows)
{
    return scene_trade_steps(&hand->mine) == hand->steps + steps &&
           scene_ledger(&hand->mine) == hand->ledger + rows;
}

static int steps_of_ending(const struct hand *hand)
{
    return hand->what == COMPENSATION ? 2 : 1;
}

static int asked(const struct hand *hand)
{
    return hand->what != COMPENSATION;
}

/* A twin's rows are the other one's too. */
static void check_ask(struct hand *hand, tl_status answer)
{
    const tl_status refusals[] = {TL_GRANTED, TL_REFUSED, TL_CALLBACK_FAILED};
    const char *problem;

    pthread_mutex_lock(&looking);
    problem = scene_books_problem(&hand->mine);
    if (problem[0] != '\0')
        complain(hand, problem, answer);
    if (answer == TL_GRANTED) {
        problem = scene_hold_problem(&hand->mine, hand->mine.lock);
        if (problem[0] != '\0')
            complain(hand, problem, answer);
        else if (!has_written(hand, 1, 1))
            complain(hand, "granted, and step or business row are missing", answer);
    } else if (hand->role != TWIN && tl_status_class(answer) != TL_CLASS_UNKNOWN &&
               !has_written(hand, 0, 0)) {
        complain(hand, "asked in vain, and something was written", answer);
    }
    if (!is_undecided(answer) && hand->role != TWIN && answer != refusals[hand->role])
        complain(hand, "a false answer to the ask", answer);
    if (!is_undecided(answer) && hand->role == TWIN && answer != TL_GRANTED && answer != TL_BUSY &&
        answer != TL_ALREADY_DONE)
        complain(hand, "a false answer to one who asks after another", answer);
    pthread_mutex_unlock(&looking);
}

static void check_ending(struct hand *hand, tl_status answer)
{
    const tl_status final = hand->outcome == TL_OUTCOME_SUCCESS ? TL_SUCCEEDED : TL_FAILED;
    const char *problem;
    char row[64];

    pthread_mutex_lock(&looking);
    problem = scene_books_problem(&hand->mine);
    if (problem[0] != '\0')
        complain(hand, problem, answer);
    scene_row(&hand->mine, "WITHDRAW", row, sizeof row);
    if (answer == final) {
        if (strcmp(row, hand->ended) != 0 ||
            !has_written(hand, asked(hand) + steps_of_ending(hand), asked(hand) + 1))
            complain(hand, "ended, and the row, the log or the ledger says else", answer);
    } else if (is_not_now(answer)) {
        if (!has_written(hand, asked(hand), asked(hand)))
            complain(hand, "ended in vain, and something was written", answer);
    } else if (tl_status_class(answer) != TL_CLASS_UNKNOWN) {
        complain(hand, "a false answer to the ending", answer);
    }
    pthread_mutex_unlock(&looking);
}

/* The books were broken: nothing was written, and the lock is still held. */
static void check_broken_ending(struct hand *hand, tl_status answer)
{
    const char *problem;

    pthread_mutex_lock(&looking);
    if (answer == TL_CALLBACK_FAILED) {
        problem = scene_hold_problem(&hand->mine, hand->mine.lock);
        if (problem[0] != '\0')
            complain(hand, problem, answer);
    } else if (!is_undecided(answer)) {
        complain(hand, "a false answer to the ending with a broken book", answer);
    }
    if (tl_status_class(answer) != TL_CLASS_UNKNOWN && !has_written(hand, asked(hand), asked(hand)))
        complain(hand, "broken, and something was written", answer);
    pthread_mutex_unlock(&looking);
}

/* Whether this answer, or TL_OK before the first, asks for another call. */
static int call_again(struct hand *hand, tl_status answer, int64_t deadline_ms)
{
    if (answer == TL_OK)
        return 1;
    if (!is_undecided(answer))
        return 0;
    hand->undecided++;
    clock_sleep_until_ms(clock_deadline(AGAIN_MS));
    return clock_left_ms(deadline_ms) > 0;
}

static void give_up(struct hand *hand, const char *what, tl_status answer)
{
    pthread_mutex_lock(&looking);
    complain(hand, what, answer);
    pthread_mutex_unlock(&looking);
}

static tl_book *new_book(enum scene_pages which, int broken)
{
    tl_book *book;
    tl_status status;

    do {
        book = scene_pages(world.far_books, which);
        if (book != NULL && broken)
            tl_book_line(book, "strike out");
        status = book != NULL ? tl_book_check(book) : TL_NO_MEMORY;
        if (status != TL_OK)
            tl_book_free(book);
    } while (memory_fails && status == TL_NO_MEMORY);
    if (status != TL_OK)
        server_panic("no book: %s", tl_error_message());
    return book;
}

static void ask(struct hand *hand, int64_t deadline_ms)
{
    tl_book *book = new_book(PAGES_ASK, hand->role == BROKEN);
    tl_status answer = TL_OK;

    while (call_again(hand, answer, deadline_ms)) {
        answer = tl_lock_ask_book(hand->mine.lock, book, 0);
        check_ask(hand, answer);
    }
    tl_book_free(book);
    hand->to_ask = answer;
    if (is_undecided(answer))
        give_up(hand, "was never answered", answer);
}

static void finish(struct hand *hand, int broken, int64_t deadline_ms)
{
    const int fails = hand->outcome == TL_OUTCOME_FAILURE;
    tl_book *book = new_book(fails ? PAGES_FAILURE : PAGES_SUCCESS, broken);
    tl_ending ending = scene_ending(hand->outcome);
    tl_status answer = TL_OK;

    while (call_again(hand, answer, deadline_ms)) {
        answer = tl_lock_finish_book(hand->mine.lock, &ending, book, 3000);
        (broken ? check_broken_ending : check_ending)(hand, answer);
    }
    tl_book_free(book);
    if (is_undecided(answer))
        give_up(hand, "never ended", answer);
}

static void *work(void *context)
{
    struct hand *hand = context;
    const int64_t deadline_ms = clock_deadline(PATIENCE_MS);

    if (asked(hand))
        ask(hand, deadline_ms);
    if (hand->to_ask == TL_GRANTED) {
        if (hand->role == BROKEN)
            finish(hand, 1, deadline_ms);
        finish(hand, 0, deadline_ms);
    }
    atomic_fetch_add(hand->over, 1);
    return NULL;
}

static struct hand hands[THREADS];

struct figures {
    unsigned rounds, packets, undecided, wrong;
    uint64_t groups, grouped, settled, killed;
};

static void count_stats(struct figures *figures)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_int_equal(tl_client_stats(world.far, &stats), TL_OK);
    figures->groups += stats.groups;
    figures->grouped += stats.grouped;
    figures->settled += stats.settled;
    figures->killed += stats.killed;
}

static enum role role_of(int number, deed what)
{
    if (number == 6)
        return BROKEN;
    if (number == 3 && what != COMPENSATION)
        return POOR;
    return (number == 8 || number == 9) && what == FIRST_ATTEMPT ? TWIN : WELL;
}

/* The trade is there already, of the near client. */
static void prepare_past(struct hand *hand)
{
    if (hand->what == COMPENSATION)
        scene_booked_past(&hand->mine, TL_OUTCOME_UNKNOWN);
    else if (hand->what == NEW_ATTEMPT)
        scene_booked_past(&hand->mine, TL_OUTCOME_FAILURE);
    if (hand->role == POOR)
        database_run(world.sql, "UPDATE account SET first = %d, balance = %d WHERE cust_no = '%s'",
                     SCENE_AMOUNT - 1, SCENE_AMOUNT - 1, hand->mine.cust);
}

static void prepare(struct hand *hand, int number, deed what, atomic_int *over)
{
    hand->what = what;
    hand->role = role_of(number, what);
    hand->over = over;
    if (number == 0 || hand->role != TWIN || role_of(number - 1, what) != TWIN) {
        scene_next_trade(&world);
        scene_open_account(&world, 100);
    }
    hand->mine = world;
    prepare_past(hand);
    hand->outcome = number % 3 == 2 && hand->role != TWIN ? TL_OUTCOME_FAILURE : TL_OUTCOME_SUCCESS;
    snprintf(hand->ended, sizeof hand->ended, "%c %d 1",
             hand->outcome == TL_OUTCOME_SUCCESS ? 'Y' : 'F', what == NEW_ATTEMPT ? 2 : 1);
    if (what == COMPENSATION)
        hand->mine.lock = scene_granted(&hand->mine, world.far, TL_LANE_RETRY, 0);
    else
        hand->mine.lock = scene_lock(&hand->mine, world.far, TL_LANE_SYNC,
                                     (what == NEW_ATTEMPT ? TL_ASK_RECLAIM : 0) | SCENE_PRICED);
    hand->steps = scene_trade_steps(&hand->mine);
    hand->ledger = scene_ledger(&hand->mine);
    hand->to_ask = TL_GRANTED;
}

/* Once more, after what was late. */
static void check_at_last(struct hand *hand)
{
    const char *problem = scene_books_problem(&hand->mine);
    const int ended = hand->to_ask == TL_GRANTED || hand->role == TWIN;
    const int steps = ended ? asked(hand) + steps_of_ending(hand) : 0;
    const int rows = ended ? asked(hand) + 1 : 0;

    if (problem[0] != '\0')
        complain(hand, problem, TL_OK);
    if (!has_written(hand, steps, rows))
        complain(hand, "changed by a late packet", TL_OK);
}

static void report(struct hand *hand, const wire_fault *fault, struct figures *figures)
{
    figures->undecided += hand->undecided;
    check_at_last(hand);
    if (hand->wrong[0] != '\0') {
        figures->wrong++;
        printf("WRONG: packet %u, act %d%s: %s\n", fault->packet, (int)fault->act,
               fault->down ? ", line down" : "", hand->wrong);
    }
    tl_lock_free(hand->mine.lock);
}

/* Exactly one of those who asked for one trade has had it. */
static void check_twins(struct figures *figures)
{
    int twins = 0, granted = 0;

    for (int i = 0; i < THREADS; i++) {
        twins += hands[i].role == TWIN;
        granted += hands[i].role == TWIN && hands[i].to_ask == TL_GRANTED;
    }
    if (granted == (twins > 0))
        return;
    figures->wrong++;
    printf("WRONG: %d of %d who asked for one trade were granted it\n", granted, twins);
}

static void prepare_all(deed what, int hasty, atomic_int *over)
{
    memset(hands, 0, sizeof hands);
    scene_begin(&world, hasty);
    for (int i = 0; i < THREADS; i++)
        prepare(&hands[i], i, what, over);
    wire_delay_us(world.line, DELAY_US);
}

static void start_all(void)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&hands[i].thread, NULL, work, &hands[i]), 0);
}

static void join_all(void)
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(hands[i].thread, NULL);
}

static void report_all(const wire_fault *fault, struct figures *figures)
{
    count_stats(figures);
    check_twins(figures);
    for (int i = 0; i < THREADS; i++)
        report(&hands[i], fault, figures);
    scene_end(&world);
}

static void print_figures(deed what, const struct figures *figures, const char *struck,
                          int64_t begin_ms)
{
    printf("groups with books of %s: %d threads, %u %s, %u rounds struck; %llu groups of %llu "
           "steps; undecided answers %u, settled %llu, connections killed %llu; wrong %u; %lld s\n",
           deeds[what], THREADS, figures->packets, struck, figures->rounds,
           (unsigned long long)figures->groups, (unsigned long long)figures->grouped,
           figures->undecided, (unsigned long long)figures->settled,
           (unsigned long long)figures->killed, figures->wrong,
           (long long)(clock_boottime_ms() - begin_ms) / 1000);
    /* On a busy machine the threads of a round do not all come at once. */
    assert_true(4 * figures->groups > figures->rounds);
    assert_true(2 * figures->grouped > 3 * figures->groups);
    assert_int_equal(figures->wrong, 0);
}

/* ------------------------------------------------------------------------- its packets -- */

static unsigned seed;

/* The line goes down with the packet that is struck, however late that one comes by, and comes back
 * a while after. */
static void lift(const atomic_int *over)
{
    while (!wire_struck(world.line) && atomic_load(over) < THREADS)
        clock_sleep_until_ms(clock_deadline(1));
    clock_sleep_until_ms(clock_deadline(DOWN_MS));
    wire_down(world.line, 0);
}

/* One round of all threads. */
static void run_round(const wire_fault *fault, deed what, struct figures *figures)
{
    atomic_int over = 0;

    prepare_all(what, fault->down, &over);
    wire_arm(world.line, fault);
    start_all();
    if (fault->down)
        lift(&over);
    join_all();
    figures->rounds += wire_struck(world.line) != 0;
    if (fault->act == WIRE_LATE)
        (void)wire_release(world.line);
    if (fault->packet == 0)
        figures->packets = wire_count(world.line);
    report_all(fault, figures);
}

static void cut_packets(deed what)
{
    static const wire_fault faults[] = {{0, WIRE_CUT_BEFORE, 0}, {0, WIRE_CUT_AFTER, 0},
                                        {0, WIRE_LATE, 0},       {0, WIRE_CUT_AFTER, 1},
                                        {0, WIRE_LATE, 1},       {0, WIRE_CUT_BEFORE, 1}};
    struct figures figures = {0};
    int64_t begin_ms = clock_boottime_ms();
    const unsigned usual = what == NEW_ATTEMPT ? 3 * STRIDE : STRIDE;
    const unsigned stride = tier_pick(8 * usual, usual, LONG_STRIDE);
    wire_fault none = {0, WIRE_CUT_BEFORE, 0};

    setvbuf(stdout, NULL, _IOLBF, 0);
    scene_open(&world, NULL);
    run_round(&none, what, &figures);
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
        for (unsigned n = 1 + (seed + i * 3) % stride; n <= figures.packets; n += stride) {
            wire_fault fault = faults[i];

            fault.packet = n;
            run_round(&fault, what, &figures);
        }
    }
    figures.wrong += scene_log_problems(&world) != 0;
    scene_close(&world);
    print_figures(what, &figures, "packets", begin_ms);
    /* A share may strike none of them. */
    assert_true(stride > usual || figures.settled > 0);
}

TEST(test_first_attempts)
{
    cut_packets(FIRST_ATTEMPT);
}

TEST(test_attempts_anew)
{
    cut_packets(NEW_ATTEMPT);
}

TEST(test_compensating_attempts)
{
    cut_packets(COMPENSATION);
}

/* Another one a second later, so that runs come to all packets. */
static void choose_seed(void)
{
    seed = (unsigned)crew_number("seed", (long)time(NULL));
    print_message("TL_TEST_SEED=%u\n", seed);
}

/* --------------------------------------------------------------------- its allocations -- */

#ifdef TL_TEST_HOOKS
/* The n-th allocation of all threads together fails; counted from here, 0: none. */
static void fail_allocation(unsigned number)
{
    char text[16];

    snprintf(text, sizeof text, "%u", number);
    setenv("TL_FAULT_ALLOC", text, 1);
    fault_reload();
}

static void fail_every_allocation(deed what)
{
    struct figures figures = {0};
    int64_t begin_ms = clock_boottime_ms();
    wire_fault none = {0, WIRE_CUT_BEFORE, 0};
    int failed = 1;

    setvbuf(stdout, NULL, _IOLBF, 0);
    memory_fails = 1;
    scene_open(&world, NULL);
    for (unsigned n = 1; failed; n += tier_pick(4 * MEMORY_STRIDE, MEMORY_STRIDE, 1)) {
        atomic_int over = 0;

        prepare_all(what, 0, &over);
        none.packet = n;
        fail_allocation(n);
        start_all();
        join_all();
        failed = fault_allocations() >= n;
        fail_allocation(0);
        figures.rounds += (unsigned)failed;
        figures.packets = n;
        report_all(&none, &figures);
    }
    figures.wrong += scene_log_problems(&world) != 0;
    scene_close(&world);
    print_figures(what, &figures, "allocations", begin_ms);
}

TEST(memory_of_first_attempts)
{
    fail_every_allocation(FIRST_ATTEMPT);
}

TEST(memory_of_attempts_anew)
{
    fail_every_allocation(NEW_ATTEMPT);
}

TEST(memory_of_compensating_attempts)
{
    fail_every_allocation(COMPENSATION);
}
#endif

TEST_MAIN(group_books)
{
    choose_seed();
    return tests_run(NULL, NULL);
}
