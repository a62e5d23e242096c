/*
 * Asks and endings of many threads on either lane, which share statements and commits, cut at every
 * packet.  Every thread goes on calling until it has an answer, and every answer is compared with
 * its own row and log at once.
 */
#include "scene.h"
#include "sweep.h"

#include "base/clock.h"
#include "support/metric.h"
#include "support/theme.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 14
/* How long a thread calls again before the round is wrong, and how often: while the line is down an
 * answer comes at once. */
#define AGAIN_MS 5
#define DELAY_US 300 /* of each packet, so that groups form */
#define DOWN_MS 80
#define STRIDE 20

/* What all threads of a round do. */
typedef enum deed {
    FIRST_ATTEMPT, /* asked for, and ended */
    NO_ANSWER,     /* asked for, and left in doubt */
    COMPENSATION,  /* of what was left in doubt: claimed, and ended */
    NEW_ATTEMPT    /* after a failure: reclaimed, and ended */
} deed;

static const char *const deeds[] = {"first attempts", "attempts left in doubt",
                                    "compensating attempts", "attempts anew"};

static scene world;

/* The test's own connection is used by one thread at a time. */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

struct hand {
    pthread_t thread;
    scene mine;      /* the world, with a trade of its own */
    long long steps; /* what the trade has before, and gets by asking and by ending */
    int asking, ending;
    tl_outcome outcome;
    char ended[8]; /* what its row is to say */
    unsigned undecided;
    atomic_int *over; /* how many hands have ended */
    char wrong[1000];
};

static void complain(struct hand *hand, const char *what, tl_status answer)
{
    char *story;

    if (hand->wrong[0] != '\0')
        return;
    story = scene_story(&hand->mine);
    snprintf(hand->wrong, sizeof hand->wrong, "%s %s: %s (%s), %s", hand->mine.serial, what,
             tl_status_name(answer), tl_error_message(), story);
    free(story);
}

static void check_ask(struct hand *hand, tl_status answer)
{
    tl_class class_ = tl_status_class(answer);

    pthread_mutex_lock(&looking);
    if (answer == TL_GRANTED) {
        const char *problem = scene_hold_problem(&hand->mine, hand->mine.lock);

        if (problem[0] != '\0')
            complain(hand, problem, answer);
    } else if (class_ == TL_CLASS_RETRY && scene_trade_steps(&hand->mine) != hand->steps) {
        complain(hand, "asked in vain, and a step was written", answer);
    } else if (class_ != TL_CLASS_RETRY && class_ != TL_CLASS_UNKNOWN) {
        complain(hand, "a false answer to the ask", answer);
    }
    pthread_mutex_unlock(&looking);
}

static tl_status answer_of(tl_outcome outcome)
{
    switch (outcome) {
    case TL_OUTCOME_SUCCESS:
        return TL_SUCCEEDED;
    case TL_OUTCOME_FAILURE:
        return TL_FAILED;
    default:
        return TL_IN_DOUBT;
    }
}

static void check_ending(struct hand *hand, tl_status answer)
{
    tl_status final = answer_of(hand->outcome);
    tl_class class_ = tl_status_class(answer);
    char row[64];

    pthread_mutex_lock(&looking);
    scene_row(&hand->mine, "WITHDRAW", row, sizeof row);
    if (answer == final) {
        if (strcmp(row, hand->ended) != 0 ||
            scene_trade_steps(&hand->mine) != hand->steps + hand->asking + hand->ending)
            complain(hand, "ended, and the row or the log says else", answer);
    } else if (class_ == TL_CLASS_RETRY &&
               scene_trade_steps(&hand->mine) != hand->steps + hand->asking) {
        complain(hand, "ended in vain, and a step was written", answer);
    } else if (class_ != TL_CLASS_RETRY && class_ != TL_CLASS_UNKNOWN) {
        complain(hand, "a false answer to the ending", answer);
    }
    pthread_mutex_unlock(&looking);
}

static int is_undecided(tl_status answer)
{
    return tl_status_class(answer) == TL_CLASS_RETRY || tl_status_class(answer) == TL_CLASS_UNKNOWN;
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

/* The complaint reads the log, over the connection that all share. */
static void give_up(struct hand *hand, const char *what, tl_status answer)
{
    pthread_mutex_lock(&looking);
    complain(hand, what, answer);
    pthread_mutex_unlock(&looking);
}

static void ask_and_finish(struct hand *hand)
{
    int64_t deadline_ms = clock_deadline(PATIENCE_MS);
    tl_ending ending = scene_ending(hand->outcome);
    tl_status answer = TL_OK;

    while (call_again(hand, answer, deadline_ms)) {
        answer = tl_lock_ask(hand->mine.lock, 0);
        check_ask(hand, answer);
    }
    if (answer != TL_GRANTED) {
        give_up(hand, "was never granted", answer);
        return;
    }
    answer = TL_OK;
    while (call_again(hand, answer, deadline_ms)) {
        answer = tl_lock_finish(hand->mine.lock, &ending);
        check_ending(hand, answer);
    }
    if (is_undecided(answer))
        give_up(hand, "never ended", answer);
}

static void *work(void *context)
{
    struct hand *hand = context;

    ask_and_finish(hand);
    atomic_fetch_add(hand->over, 1);
    return NULL;
}

struct figures {
    unsigned rounds, packets, undecided, wrong;
    uint64_t groups, grouped, settled, killed;
    double found_out; /* of lost answers, as the metrics tell it */
};

static void count_stats(struct figures *figures)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_int_equal(tl_client_stats(world.far, &stats), TL_OK);
    figures->groups += stats.groups;
    figures->grouped += stats.grouped;
    figures->settled += stats.settled;
    figures->found_out +=
        metric_of(world.far, "tradelock_lost_answers_total{found=\"applied\"}") +
        metric_of(world.far, "tradelock_lost_answers_total{found=\"superseded\"}") +
        metric_of(world.far, "tradelock_lost_answers_total{found=\"not_done\"}");
    figures->killed += stats.killed;
}

/* The line goes down with the packet that is struck, however late that one comes by, and comes back
 * a while after. */
static void lift(const atomic_int *over)
{
    while (!wire_struck(world.line) && atomic_load(over) < THREADS)
        clock_sleep_until_ms(clock_deadline(1));
    clock_sleep_until_ms(clock_deadline(DOWN_MS));
    wire_down(world.line, 0);
}

static void prepare(struct hand *hand, int number, deed what)
{
    const tl_lane lane = what == COMPENSATION ? TL_LANE_RETRY : TL_LANE_SYNC;
    unsigned flags = 0;

    if (what == COMPENSATION)
        scene_past(&hand->mine, TL_OUTCOME_UNKNOWN);
    else if (what == NEW_ATTEMPT)
        scene_past(&hand->mine, TL_OUTCOME_FAILURE);
    if (what == NEW_ATTEMPT)
        flags = TL_ASK_RECLAIM;
    else if (what == FIRST_ATTEMPT && number % 4 == 3)
        flags = TL_ASK_REPEATABLE;
    hand->steps = scene_trade_steps(&hand->mine);
    hand->asking = what == COMPENSATION ? 2 : 1;
    hand->ending = what == COMPENSATION || what == NO_ANSWER ? 2 : 1;
    hand->outcome = number % 3 == 2 ? TL_OUTCOME_FAILURE : TL_OUTCOME_SUCCESS;
    if (what == NO_ANSWER)
        hand->outcome = TL_OUTCOME_UNKNOWN;
    snprintf(hand->ended, sizeof hand->ended, "%c %d 1",
             hand->outcome == TL_OUTCOME_SUCCESS   ? 'Y'
             : hand->outcome == TL_OUTCOME_FAILURE ? 'F'
                                                   : 'P',
             what == NEW_ATTEMPT ? 2 : 1);
    hand->mine.lock = scene_lock(&hand->mine, world.far, lane, flags);
}

/* One round of all threads; 0 when it ended undisturbed. */
static int run_round(const wire_fault *fault, deed what, struct figures *figures)
{
    static struct hand hands[THREADS];
    atomic_int over = 0;
    int struck;

    memset(hands, 0, sizeof hands);
    scene_begin(&world, fault->down);
    for (int i = 0; i < THREADS; i++) {
        struct hand *hand = &hands[i];

        scene_next_trade(&world);
        hand->mine = world;
        hand->over = &over;
        prepare(hand, i, what);
    }
    wire_delay_us(world.line, DELAY_US);
    wire_arm(world.line, fault);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&hands[i].thread, NULL, work, &hands[i]), 0);
    if (fault->down)
        lift(&over);
    for (int i = 0; i < THREADS; i++)
        pthread_join(hands[i].thread, NULL);
    struck = wire_struck(world.line);
    if (fault->act == WIRE_LATE)
        (void)wire_release(world.line);
    if (fault->packet == 0)
        figures->packets = wire_count(world.line);
    count_stats(figures);
    for (int i = 0; i < THREADS; i++) {
        figures->undecided += hands[i].undecided;
        /* Once more, after what was late. */
        if (hands[i].wrong[0] == '\0' &&
            scene_trade_steps(&hands[i].mine) != hands[i].steps + hands[i].asking + hands[i].ending)
            complain(&hands[i], "changed by a late packet", TL_OK);
        if (hands[i].wrong[0] != '\0') {
            figures->wrong++;
            printf("WRONG: packet %u, act %d%s: %s\n", fault->packet, (int)fault->act,
                   fault->down ? ", line down" : "", hands[i].wrong);
        }
        tl_lock_free(hands[i].mine.lock);
    }
    scene_end(&world);
    figures->rounds += struck != 0;
    return struck;
}

static void cut_every_packet(deed what)
{
    static const wire_fault faults[] = {{0, WIRE_CUT_BEFORE, 0}, {0, WIRE_CUT_AFTER, 0},
                                        {0, WIRE_LATE, 0},       {0, WIRE_CUT_AFTER, 1},
                                        {0, WIRE_LATE, 1},       {0, WIRE_CUT_BEFORE, 1}};
    struct figures figures = {0};
    int64_t begin_ms = clock_boottime_ms();
    const unsigned usual = what == FIRST_ATTEMPT || what == NO_ANSWER ? STRIDE : 3 * STRIDE;
    const unsigned stride = tier_pick(8 * usual, usual, 1);
    wire_fault none = {0, WIRE_CUT_BEFORE, 0};

    setvbuf(stdout, NULL, _IOLBF, 0);
    scene_open(&world, NULL);
    run_round(&none, what, &figures);
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
        for (unsigned n = 1 + (i * 3) % stride; n <= figures.packets; n += stride) {
            wire_fault fault = faults[i];

            fault.packet = n;
            run_round(&fault, what, &figures);
        }
    }
    figures.wrong += scene_log_problems(&world) != 0;
    scene_close(&world);
    printf("groups of %s: %d threads, %u packets, %u rounds cut; %llu groups of "
           "%llu steps; "
           "undecided answers %u, settled %llu, connections killed %llu; wrong %u; %lld "
           "s\n",
           deeds[what], THREADS, figures.packets, figures.rounds,
           (unsigned long long)figures.groups, (unsigned long long)figures.grouped,
           figures.undecided, (unsigned long long)figures.settled,
           (unsigned long long)figures.killed, figures.wrong,
           (long long)(clock_boottime_ms() - begin_ms) / 1000);
    assert_true(figures.grouped > figures.groups);
    /* A share may strike none of them. */
    assert_true(stride > usual || figures.settled > 0);
    assert_true(figures.found_out >= (double)figures.settled);
    assert_int_equal(figures.wrong, 0);
}

TEST(test_first_attempts)
{
    cut_every_packet(FIRST_ATTEMPT);
}

TEST(test_attempts_left_in_doubt)
{
    cut_every_packet(NO_ANSWER);
}

TEST(test_compensating_attempts)
{
    cut_every_packet(COMPENSATION);
}

TEST(test_attempts_anew)
{
    cut_every_packet(NEW_ATTEMPT);
}

TESTS_OF(group, NULL, NULL)
