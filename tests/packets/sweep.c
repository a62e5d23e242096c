#include "sweep.h"

#include "base/clock.h"
#include "base/fault.h"
#include "support/theme.h"

#include <pthread.h>
#include <stdatomic.h>

/* Called again so often, and as long as this: a slow machine needs more calls. */
#define CALLS_MAX 8
#define PACKETS_MAX 400
#define STRIDE 20
#define COMPLAINTS 25

struct way {
    const char *name;
    wire_fault fault;
    int rival;
    int rare; /* costs a second; the short run takes fewer */
};

static const struct way ways[] = {
    {"cut before", {0, WIRE_CUT_BEFORE, 0}, 0, 0},
    {"cut after", {0, WIRE_CUT_AFTER, 0}, 0, 0},
    {"late", {0, WIRE_LATE, 0}, 0, 0},
    {"cut before, line down", {0, WIRE_CUT_BEFORE, 1}, 0, 0},
    {"cut after, line down", {0, WIRE_CUT_AFTER, 1}, 0, 0},
    {"late, line down", {0, WIRE_LATE, 1}, 0, 0},
    {"cut after, line down, a rival asks", {0, WIRE_CUT_AFTER, 1}, 1, 0},
    {"late, line down, a rival asks", {0, WIRE_LATE, 1}, 1, 0},
    {"stalled", {0, WIRE_STALL, 0}, 0, 1},
};

struct figures {
    unsigned operations, cases, packets, requests, answers;
    unsigned at_once, unknown, again, late, late_taken, rivals;
};

/* One case under way. */
struct trial {
    scene *s;
    const operation *op;
    const struct way *way;
    unsigned packet;
    int warm, struck;
    long long steps_before, ledger_before;
    tl_status rival;
    struct figures *figures;
    int wrong;
};

static unsigned complaints;

static void complain(struct trial *t, const char *what, tl_status answer)
{
    char row[64], retry[64];

    t->wrong++;
    if (++complaints > COMPLAINTS)
        return;
    scene_row(t->s, "WITHDRAW", row, sizeof row);
    scene_row(t->s, "WITHDRAW_RETRY", retry, sizeof retry);
    printf("WRONG: %s%s, packet %u %c, %s: %s; answer %s (%s); rows '%s' '%s'; %lld "
           "steps, %lld business rows more\n",
           t->op->name, t->warm ? " (warm)" : "", t->packet, t->struck != 0 ? t->struck : '-',
           t->way->name, what, tl_status_name(answer), tl_error_message(), row, retry,
           scene_steps(t->s) - t->steps_before, scene_ledger(t->s) - t->ledger_before);
}

/* -------------------------------------------------------- answers and truth -- */

static int is_undecided(const struct trial *t, tl_status answer)
{
    if (answer == t->op->final)
        return 0;
    switch (tl_status_class(answer)) {
    case TL_CLASS_RETRY:
    case TL_CLASS_UNKNOWN:
    case TL_CLASS_ROLL_BACK:
        return 1;
    default:
        return answer == TL_CALLBACK_FAILED || answer == TL_NO_MEMORY;
    }
}

/* A success leaves no sentence, neither an older one nor that of a try that failed. */
static tl_status call(struct trial *t)
{
    tl_status answer;

    (void)tl_error_report(TL_INVALID, "%s", "a sentence of before");
    answer = t->op->call(t->s);
    if (!(t->op->flags & OPERATION_SPEAKS) &&
        (answer == TL_OK || answer == TL_GRANTED || answer == TL_SUCCEEDED) &&
        tl_error_message()[0] != '\0')
        complain(t, "a success leaves a sentence", answer);
    return answer;
}

static void check_books(struct trial *t, tl_status answer)
{
    const char *problem = scene_books_problem(t->s);

    if (problem[0] != '\0')
        complain(t, problem, answer);
}

static void check_final(struct trial *t, tl_status answer)
{
    const operation *op = t->op;
    char row[64], retry[64];
    const char *problem = "";

    scene_row(t->s, "WITHDRAW", row, sizeof row);
    scene_row(t->s, "WITHDRAW_RETRY", retry, sizeof retry);
    if (strcmp(row, op->row) != 0 || strcmp(retry, op->retry_row) != 0)
        complain(t, "the rows say something else", answer);
    else if (op->steps != SWEEP_ANY_STEPS && scene_steps(t->s) - t->steps_before != op->steps)
        complain(t, "the log has other steps", answer);
    else if (scene_ledger(t->s) - t->ledger_before != op->ledger)
        complain(t, "the business rows do not follow the status", answer);
    else
        check_books(t, answer);
    if (op->flags & OPERATION_GRANTS)
        problem = scene_hold_problem(t->s, t->s->lock);
    if (problem[0] == '\0' && op->check != NULL)
        problem = op->check(t->s);
    if (problem[0] != '\0')
        complain(t, problem, answer);
}

/* Nothing happened, or, where the answer does not claim that, all of it. */
static void check_undecided(struct trial *t, tl_status answer)
{
    const operation *op = t->op;
    long long steps = scene_steps(t->s) - t->steps_before;
    long long ledger = scene_ledger(t->s) - t->ledger_before;
    int nothing = steps == 0 && ledger == 0;
    int all = steps == op->steps && ledger == op->ledger;

    if (t->rival == TL_GRANTED || (op->flags & OPERATION_PARTS))
        return;
    if (tl_status_class(answer) == TL_CLASS_UNKNOWN ? !nothing && !all : !nothing)
        complain(t, "something was written, and the answer says no", answer);
    check_books(t, answer);
}

/* ---------------------------------------------------------------- one case -- */

/* Another client wants the same trade while it is not known whether ours has it. */
static void let_rival_ask(struct trial *t)
{
    tl_lock *lock = scene_lock(t->s, t->s->near, TL_LANE_SYNC, 0);

    t->rival = tl_lock_ask(lock, 0);
    tl_lock_free(lock);
    t->figures->rivals++;
    if (t->rival != TL_GRANTED && t->rival != TL_BUSY)
        complain(t, "the rival got another answer than yes or busy", t->rival);
}

static void release_late(struct trial *t, tl_status answer)
{
    int taken;

    if (t->way->fault.act != WIRE_LATE && t->way->fault.act != WIRE_STALL)
        return;
    taken = wire_release(t->s->line);
    t->figures->late += t->struck == '>';
    t->figures->late_taken += taken != 0;
    /* After UNKNOWN it may happen now; after any other answer nothing may. */
    if (answer == t->op->final)
        check_final(t, answer);
    else if (tl_status_class(answer) != TL_CLASS_UNKNOWN)
        check_undecided(t, answer);
}

/* The same call again until it is decided. */
static void call_until_decided(struct trial *t, tl_status answer)
{
    int64_t end_ms = clock_deadline(PATIENCE_MS);

    for (int calls = 1; is_undecided(t, answer); calls++) {
        if (calls >= CALLS_MAX && clock_left_ms(end_ms) == 0) {
            complain(t, "it is never decided", answer);
            return;
        }
        answer = call(t);
        if (is_undecided(t, answer))
            check_undecided(t, answer);
    }
    if (t->rival == TL_GRANTED) {
        /* Its hold is the only one. */
        if (answer != TL_BUSY)
            complain(t, "the rival holds the trade", answer);
        return;
    }
    if (answer != t->op->final)
        complain(t, "not the answer that is true in the end", answer);
    else
        check_final(t, answer);
}

static void count_answer(struct trial *t, tl_status answer)
{
    if (t->struck == '>')
        t->figures->requests++;
    else
        t->figures->answers++;
    if (answer == t->op->final)
        t->figures->at_once++;
    else if (tl_status_class(answer) == TL_CLASS_UNKNOWN)
        t->figures->unknown++;
    else
        t->figures->again++;
}

/* Returns 0 when the operation ended undisturbed. */
static int run_trial(struct trial *t)
{
    wire_fault fault = t->way->fault;
    scene *s = t->s;
    tl_status answer;
    int counted;

    fault.packet = t->packet;
    scene_begin(s, fault.down);
    if (t->warm) {
        t->op->prepare(s);
        (void)t->op->call(s);
        scene_end_trade(s);
        scene_next_trade(s);
    }
    t->op->prepare(s);
    t->steps_before = scene_steps(s);
    t->ledger_before = scene_ledger(s);
    wire_arm(s->line, &fault);
    answer = call(t);
    t->struck = wire_struck(s->line);
    counted = t->struck != 0;
    if (counted) {
        t->figures->cases++;
        count_answer(t, answer);
    }
    if (is_undecided(t, answer)) {
        check_undecided(t, answer);
        if (t->way->rival && tl_status_class(answer) == TL_CLASS_UNKNOWN)
            let_rival_ask(t);
    } else if (answer != t->op->final) {
        complain(t, "a false answer", answer);
    } else {
        check_final(t, answer);
    }
    release_late(t, answer);
    if (t->op->flags & OPERATION_HANG_UP)
        wire_hang_up(s->line);
    wire_down(s->line, 0);
    if (is_undecided(t, answer))
        call_until_decided(t, answer);
    scene_end(s);
    return counted;
}

/* ------------------------------------------- a commit that is still executed -- */

/*
 * The server holds back every commit (BACKUP STAGE BLOCK_COMMIT, as a backup does), so that the
 * connection is cut while it is executing one: the request has long arrived, and its outcome is
 * decided later.
 */
static const struct hold_way {
    const char *name;
    int down;    /* the line stays down: nobody can end the connection that was left behind */
    int at_once; /* commits go on with the cut, and race with what settles */
    int rare;
} hold_ways[] = {
    {"cut within its commit, line down", 1, 0, 0},
    {"cut within its commit, commits go on", 0, 1, 0},
    {"cut within its commit, commits stand still", 0, 0, 1},
};

/* Looks for the held commit beside the operation, and cuts. */
struct cutter {
    scene *s;
    MYSQL *admin;
    const struct hold_way *way;
    int held;
    atomic_int over; /* the operation has ended */
};

static void *cut_within_commit(void *context)
{
    struct cutter *c = context;

    for (; !atomic_load(&c->over) && !c->held; usleep(1000))
        c->held = database_number(c->admin, "SELECT COUNT(*) FROM information_schema.processlist "
                                            "WHERE state = 'Waiting for backup lock'") > 0;
    if (!c->held)
        return NULL;
    wire_down(c->s->line, 1);
    if (c->way->at_once)
        database_run(c->admin, "BACKUP STAGE END");
    if (!c->way->down)
        wire_down(c->s->line, 0);
    return NULL;
}

/* What was cut off has come to its end: nothing is executed any more. */
static void await_idle(scene *s)
{
    while (database_number(s->sql, "SELECT COUNT(*) FROM information_schema.processlist WHERE "
                                   "command NOT IN ('Sleep', 'Daemon') AND id <> "
                                   "CONNECTION_ID()") > 0)
        clock_sleep_until_ms(clock_deadline(1));
}

static void hold_commits(MYSQL *admin)
{
    database_run(admin, "BACKUP STAGE START");
    database_run(admin, "BACKUP STAGE BLOCK_COMMIT");
}

static tl_status call_and_cut(struct trial *t, struct cutter *c)
{
    pthread_t thread;
    tl_status answer;

    if (pthread_create(&thread, NULL, cut_within_commit, c) != 0)
        server_panic("no thread");
    answer = call(t);
    atomic_store(&c->over, 1);
    pthread_join(thread, NULL);
    t->figures->cases += (unsigned)c->held;
    if (c->held && tl_status_class(answer) == TL_CLASS_UNKNOWN)
        t->figures->unknown++;
    else if (c->held && answer == t->op->final)
        t->figures->at_once++;
    return answer;
}

static void check_held(struct trial *t, const struct cutter *c, tl_status answer)
{
    if (c->held && c->way->down && tl_status_class(answer) != TL_CLASS_UNKNOWN &&
        !(t->op->flags & OPERATION_PARTS))
        complain(t, "it may be committed yet, and the answer is not UNKNOWN", answer);
    if (is_undecided(t, answer))
        check_undecided(t, answer);
    else if (c->held && !c->way->at_once && t->op->steps != 0)
        complain(t, "decided, while nothing can be committed", answer);
}

/* Returns 0 when the operation does not commit. */
static int run_held(struct trial *t, const struct hold_way *way, MYSQL *admin)
{
    scene *s = t->s;
    struct cutter c = {.s = s, .admin = admin, .way = way};
    tl_status answer;

    scene_begin(s, way->down);
    t->op->prepare(s);
    t->steps_before = scene_steps(s);
    t->ledger_before = scene_ledger(s);
    hold_commits(admin);
    answer = call_and_cut(t, &c);
    check_held(t, &c, answer);
    if (!c.held || !way->at_once)
        database_run(admin, "BACKUP STAGE END");
    await_idle(s);
    t->figures->late_taken += c.held && scene_steps(s) > t->steps_before;
    wire_down(s->line, 0);
    if (is_undecided(t, answer)) {
        check_undecided(t, answer);
        call_until_decided(t, answer);
    } else if (answer != t->op->final) {
        complain(t, "a false answer", answer);
    } else {
        check_final(t, answer);
    }
    scene_end(s);
    return c.held;
}

int sweep_commits(const char *theme, const operation *operations, size_t count)
{
    struct figures figures = {0};
    const char *only = getenv("TL_TEST_OPERATION");
    server *own = server_start(NULL); /* others' commits are none of this test's */
    MYSQL *admin;
    scene s;
    int wrong = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    scene_open(&s, own);
    admin = database_connect(s.db);
    for (size_t i = 0; i < count; i++) {
        int commits = 0;

        if (only != NULL && strcmp(only, operations[i].name) != 0)
            continue;
        for (size_t w = 0; w < sizeof hold_ways / sizeof *hold_ways; w++) {
            struct way as = {.name = hold_ways[w].name};
            struct trial t = {.s = &s, .op = &operations[i], .way = &as, .figures = &figures};

            if (hold_ways[w].rare && i % 4 != 0 && !tier_is_long())
                continue;
            commits |= run_held(&t, &hold_ways[w], admin);
            wrong += t.wrong;
        }
        figures.operations += (unsigned)commits;
    }
    if (scene_log_problems(&s) != 0) {
        printf("WRONG: the log has gaps, falling fences or a token twice\n");
        wrong++;
    }
    mysql_close(admin);
    scene_close(&s);
    server_free(own);
    printf("%s: %u operations that commit, %u cut within their commit; %u of them "
           "committed after the cut; answered at once %u, UNKNOWN %u; wrong %d\n",
           theme, figures.operations, figures.cases, figures.late_taken, figures.at_once,
           figures.unknown, wrong);
    return wrong;
}

/* ------------------------------------------------------- allocations that fail -- */

#ifdef TL_TEST_HOOKS
/* Counted from here; 0: none fails. */
static void fail_allocation(unsigned number)
{
    char text[16];

    snprintf(text, sizeof text, "%u", number);
    setenv("TL_FAULT_ALLOC", text, 1);
    fault_reload();
}

/* Returns 0 when the operation ended before it came to that allocation. */
static int run_without_memory(struct trial *t)
{
    scene *s = t->s;
    tl_status answer;
    int failed;

    scene_begin(s, 0);
    t->op->prepare(s);
    t->steps_before = scene_steps(s);
    t->ledger_before = scene_ledger(s);
    fail_allocation(t->packet);
    answer = call(t);
    failed = fault_allocations() >= t->packet;
    fail_allocation(0);
    if (answer == t->op->final) {
        /* What can be done without is done without. */
        check_final(t, answer);
        t->figures->at_once += (unsigned)failed;
    } else if (is_undecided(t, answer)) {
        check_undecided(t, answer);
        t->figures->unknown += tl_status_class(answer) == TL_CLASS_UNKNOWN;
        t->figures->again += tl_status_class(answer) != TL_CLASS_UNKNOWN;
        call_until_decided(t, answer);
    } else {
        complain(t, "a false answer", answer);
    }
    scene_end(s);
    return failed;
}

int sweep_memory(const char *theme, const operation *operations, size_t count)
{
    static const struct way way = {.name = "the allocation of that number fails"};
    const unsigned each = tier_pick(9, 3, 1);
    struct figures figures = {0};
    const char *only = getenv("TL_TEST_OPERATION");
    scene s;
    int wrong = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    scene_open(&s, NULL);
    for (size_t i = 0; i < count; i++) {
        if (only != NULL && strcmp(only, operations[i].name) != 0)
            continue;
        figures.operations++;
        for (unsigned n = 1 + (unsigned)i % each; n < PACKETS_MAX; n += each) {
            struct trial t = {.s = &s,
                              .op = &operations[i],
                              .way = &way,
                              .packet = n,
                              .rival = TL_OK,
                              .figures = &figures};
            int failed = run_without_memory(&t);

            wrong += t.wrong;
            if (!failed)
                break;
            figures.cases++;
        }
    }
    if (scene_log_problems(&s) != 0) {
        printf("WRONG: the log has gaps, falling fences or a token twice\n");
        wrong++;
    }
    scene_close(&s);
    printf("%s: %u operations, %u allocations failed; done all the same %u, UNKNOWN %u, "
           "to be repeated %u; wrong %d\n",
           theme, figures.operations, figures.cases, figures.at_once, figures.unknown,
           figures.again, wrong);
    return wrong;
}
#endif

/* ------------------------------------------------------------- all of them -- */

static int sweep_way(scene *s, const operation *op, const struct way *way, int warm,
                     unsigned offset, struct figures *figures)
{
    int wrong = 0, is_long = tier_is_long();
    unsigned stride = is_long ? 1 : tier_pick(10, 1, 1) * STRIDE * (way->rare ? 3 : 1), last = 0;

    for (unsigned n = is_long ? 1 : 1 + offset % stride; n < PACKETS_MAX; n += stride) {
        struct trial t = {.s = s,
                          .op = op,
                          .way = way,
                          .packet = n,
                          .warm = warm,
                          .rival = TL_OK,
                          .figures = figures};
        int struck = run_trial(&t);

        wrong += t.wrong;
        if (!struck)
            break;
        last = n;
    }
    if (way == ways)
        figures->packets += last;
    return wrong;
}

int sweep(const char *theme, const operation *operations, size_t count)
{
    struct figures figures = {0};
    int64_t begin_ms = clock_boottime_ms();
    const char *only = getenv("TL_TEST_OPERATION");
    unsigned offset = 0;
    scene s;
    int wrong = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    scene_open(&s, NULL);
    for (size_t i = 0; i < count; i++) {
        const operation *op = &operations[i];

        if (only != NULL && strcmp(only, op->name) != 0)
            continue;
        figures.operations++;
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            if (ways[w].rival && !(op->flags & OPERATION_RIVAL))
                continue;
            wrong += sweep_way(&s, op, &ways[w], 0, offset += 7, &figures);
            wrong += sweep_way(&s, op, &ways[w], 1, offset += 7, &figures);
        }
    }
    if (scene_log_problems(&s) != 0) {
        printf("WRONG: the log has gaps, falling fences or a token twice\n");
        wrong++;
    }
    scene_close(&s);
    printf("%s: %u operations, %u packets, %u cuts (%u of requests, %u of answers); "
           "answered at once %u, UNKNOWN %u, to be repeated %u; late requests %u, taken by "
           "the server %u; rivals %u; wrong %d; %lld s\n",
           theme, figures.operations, figures.packets, figures.cases, figures.requests,
           figures.answers, figures.at_once, figures.unknown, figures.again, figures.late,
           figures.late_taken, figures.rivals, wrong,
           (long long)(clock_boottime_ms() - begin_ms) / 1000);
    return wrong;
}
