/* Takes the picture of how things are: open trades, conflicts, processes, alarms, payments. */
#include "now.h"

#include "sessions.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRESH_MS 3000
#define PACE_MS 20000
#define DOCTOR_MS 30000
#define OPEN_MOST 2000u
#define CONFLICT_MOST 200u
#define MINUTE_US INT64_C(60000000)

const struct age ages[AGES] = {{"under 5 min", 0},
                               {"5 min to 1 h", INT64_C(300000000)},
                               {"1 h to 1 day", INT64_C(3600000000)},
                               {"over a day", INT64_C(86400000000)}};

struct now_keeper {
    pthread_mutex_t mutex;
    /* Under the mutex. */
    int64_t taken_ms, pace_ms, doctor_ms; /* 0: never */
    struct now now;
};

struct now_keeper *now_keeper_new(void)
{
    struct now_keeper *keeper = calloc(1, sizeof *keeper);

    if (keeper == NULL)
        return NULL;
    pthread_mutex_init(&keeper->mutex, NULL);
    for (unsigned i = 0; i < TL_PACE_MINUTES; i++)
        keeper->now.paid[i] = -1;
    return keeper;
}

void now_keeper_free(struct now_keeper *keeper)
{
    if (keeper == NULL)
        return;
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper);
}

/* ---------------------------------------------------------------- counting -- */

static void sums_add(struct sums *sums, const tl_view *view)
{
    unsigned i = 0;

    sums->trades++;
    if (sums->oldest_us == 0 || view->created_us < sums->oldest_us)
        sums->oldest_us = view->created_us;
    while (i < sums->count && strcmp(sums->of[i].currency, view->currency) != 0)
        i++;
    if (i == SUMS_MOST)
        return;
    if (i == sums->count)
        snprintf(sums->of[sums->count++].currency, TL_CURRENCY + 1, "%s", view->currency);
    sums->of[i].count++;
    sums->of[i].minor += view->amount_minor;
}

static unsigned age_of(const tl_view *view)
{
    unsigned age = AGES - 1;

    while (age > 0 && view->now_us - view->created_us < ages[age].from_us)
        age--;
    return age;
}

static void bars_add(struct now *now, const tl_view *view)
{
    struct bar *bar = now->bars;

    while (bar < now->bars + now->bar_count &&
           (strcmp(bar->channel, view->channel) != 0 || strcmp(bar->currency, view->currency) != 0))
        bar++;
    if (bar == now->bars + BARS_MOST) {
        now->bars_cut = 1;
        return;
    }
    if (bar == now->bars + now->bar_count) {
        snprintf(bar->channel, sizeof bar->channel, "%s", view->channel);
        snprintf(bar->currency, sizeof bar->currency, "%s", view->currency);
        now->bar_count++;
    }
    bar->count[age_of(view)]++;
    bar->trades++;
    bar->minor += view->amount_minor;
    if (bar->oldest_us == 0 || view->created_us < bar->oldest_us)
        bar->oldest_us = view->created_us;
}

static void persons_add(struct now *now, const tl_view *view)
{
    for (unsigned i = 0; i < now->person_count; i++)
        if (strcmp(now->persons[i].view.serial_no, view->serial_no) == 0 &&
            strcmp(now->persons[i].view.cust_no, view->cust_no) == 0 &&
            strcmp(now->persons[i].view.op_code, view->op_code) == 0)
            return;
    if (now->person_count == PERSONS_MOST)
        now->persons_cut = 1;
    else
        now->persons[now->person_count++].view = *view;
}

static void count_open(struct now *now, const tl_view *view)
{
    now->now_us = view->now_us;
    switch (view->state) {
    case TL_STATE_IN_DOUBT:
        sums_add(&now->doubt, view);
        bars_add(now, view);
        break;
    case TL_STATE_PARKED:
        sums_add(&now->parked, view);
        bars_add(now, view);
        persons_add(now, view);
        break;
    case TL_STATE_QUEUED:
        sums_add(&now->queued, view);
        break;
    default:
        sums_add(&now->live, view);
    }
}

static int count_conflict(void *context, const tl_view *view)
{
    struct now *now = context;

    now->now_us = view->now_us;
    sums_add(&now->conflict, view);
    persons_add(now, view);
    return 0;
}

/* Conflicts stand first among those that wait for a person. */
static tl_status look_at_trades(struct now *now, tl_client *client)
{
    const tl_filter filter = {
        .version = TL_FILTER_VERSION, .lane = 'S', .conflict = 1, .limit = CONFLICT_MOST};
    struct rows rows = {.count = 0};
    tl_status status = tl_list(client, &filter, count_conflict, now);

    if (status == TL_OK)
        status = house_open(client, OPEN_MOST, &rows);
    for (size_t i = 0; status == TL_OK && i < rows.count; i++)
        count_open(now, &rows.views[i]);
    now->cut = rows.more;
    rows_free(&rows);
    return status;
}

static tl_status look_at_proposals(struct now *now, tl_client *client)
{
    tl_status status = TL_OK;

    for (unsigned i = 0; i < now->person_count && status == TL_OK; i++) {
        struct person *person = &now->persons[i];
        const tl_resolution_row *proposal;
        struct trade trade = {.step_count = 0};
        struct ref ref;

        ref_of_trade(&ref, person->view.serial_no, person->view.cust_no, person->view.op_code);
        status = house_proposals(client, &ref, &person->view, &trade);
        proposal = status == TL_OK ? trade_proposal(&trade) : NULL;
        if (proposal != NULL) {
            now->proposals++;
            snprintf(person->proposed_by, sizeof person->proposed_by, "%s", proposal->account);
            snprintf(person->decision, sizeof person->decision, "%s",
                     tl_decision_name(proposal->decision));
        }
        trade_free(&trade);
    }
    return status;
}

/* --------------------------------------------------------- server, processes -- */

/* Whether it is about the server and not about the account that asks, or told elsewhere. */
static int is_worth_an_alarm(const tl_finding *finding)
{
    static const char *const told[] = {"rights",  "global rights", "log",  "conflicts",
                                       "restore", "transport",     "parts"};

    if (finding->level == TL_FINDING_OK)
        return 0;
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strcmp(finding->check, told[i]) == 0)
            return 0;
    return 1;
}

static int take_finding(void *context, const tl_finding *finding)
{
    struct now *now = context;
    struct alarm *alarm = &now->alarms[now->alarm_count];

    if (!is_worth_an_alarm(finding) || now->alarm_count == ALARMS_MOST)
        return 0;
    alarm->is_unsafe = finding->level == TL_FINDING_UNSAFE;
    snprintf(alarm->check, sizeof alarm->check, "%s", finding->check);
    snprintf(alarm->sentence, sizeof alarm->sentence, "%s", finding->sentence);
    now->alarm_count++;
    return 0;
}

static int take_process(void *context, const tl_session_row *process)
{
    struct now *now = context;
    struct running *mine = &now->processes[now->process_count];

    now->now_us = process->now_us;
    if (strcmp(process->state, "ended") == 0)
        return 0;
    if (now->process_count == PROCESSES_MOST)
        return 1;
    snprintf(mine->program, sizeof mine->program, "%s", process->program);
    snprintf(mine->host, sizeof mine->host, "%s", process->host);
    snprintf(mine->operations, sizeof mine->operations, "%s", process->operations);
    mine->pid = process->pid;
    mine->alive = strcmp(process->state, "alive") == 0;
    mine->started_us = process->started_us;
    mine->silent_us = process->silent_us;
    now->process_count++;
    return 0;
}

static int by_program(const void *one, const void *other)
{
    const struct running *a = one, *b = other;
    const int silent = a->alive - b->alive, program = strcmp(a->program, b->program);

    return silent != 0    ? silent
           : program != 0 ? program
                          : (int)(a->pid > b->pid) - (a->pid < b->pid);
}

/* -------------------------------------------------------------- payments -- */

/* What was counted whole before stays known, also when a busy house lets only the newest minutes
 * be counted now. */
static void keep_pace(struct now *now, const tl_pace *pace)
{
    const int64_t moved = now->minute_us == 0 || pace->minute_us == 0
                              ? TL_PACE_MINUTES
                              : (pace->minute_us - now->minute_us) / MINUTE_US;

    if (pace->minute_us == 0)
        return; /* there is no operation yet */
    for (int64_t i = TL_PACE_MINUTES - 1; i >= 0; i--)
        now->paid[i] = i - moved >= 0 && i - moved < TL_PACE_MINUTES ? now->paid[i - moved] : -1;
    for (unsigned i = 0; i < pace->whole && i < TL_PACE_MINUTES; i++)
        now->paid[i] = (int64_t)pace->paid[i];
    now->minute_us = pace->minute_us;
}

static tl_status look_at_pace(struct now_keeper *keeper, struct now *now, tl_client *client)
{
    tl_pace pace = TL_PACE_INIT;
    tl_status status = TL_OK;

    memcpy(now->paid, keeper->now.paid, sizeof now->paid);
    now->minute_us = keeper->now.minute_us;
    if (keeper->pace_ms != 0 && steady_ms() - keeper->pace_ms < PACE_MS)
        return TL_OK;
    status = tl_pace_look(client, &pace);
    if (status == TL_OK) {
        keep_pace(now, &pace);
        keeper->pace_ms = steady_ms();
    }
    return status;
}

/* ------------------------------------------------------------- the picture -- */

static tl_status look_at_server(struct now_keeper *keeper, struct now *now, tl_client *client)
{
    tl_status status;

    if (keeper->doctor_ms != 0 && steady_ms() - keeper->doctor_ms < DOCTOR_MS) {
        memcpy(now->alarms, keeper->now.alarms, sizeof now->alarms);
        now->alarm_count = keeper->now.alarm_count;
        return TL_OK;
    }
    status = tl_doctor(client, take_finding, now);
    if (status != TL_OK && status != TL_SERVER_UNSAFE)
        return status;
    keeper->doctor_ms = steady_ms();
    return TL_OK;
}

static tl_status take_picture(struct now_keeper *keeper, struct now *now, tl_client *client)
{
    tl_status status = look_at_trades(now, client);

    if (status == TL_OK)
        status = look_at_proposals(now, client);
    if (status == TL_OK)
        status = tl_session_list(client, take_process, now);
    now->restore = (tl_restore)TL_RESTORE_INIT;
    if (status == TL_OK)
        status = tl_restore_status(client, &now->restore, NULL, NULL);
    if (status == TL_OK)
        status = look_at_server(keeper, now, client);
    if (status == TL_OK)
        status = look_at_pace(keeper, now, client);
    qsort(now->processes, now->process_count, sizeof now->processes[0], by_program);
    return status;
}

void now_forget(struct now_keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    keeper->taken_ms = 0;
    pthread_mutex_unlock(&keeper->mutex);
}

tl_status now_look(struct now_keeper *keeper, tl_client *client, struct now *now)
{
    tl_status status = TL_OK;

    pthread_mutex_lock(&keeper->mutex);
    if (keeper->taken_ms == 0 || steady_ms() - keeper->taken_ms >= FRESH_MS) {
        memset(now, 0, sizeof *now);
        status = take_picture(keeper, now, client);
        if (status == TL_OK) {
            keeper->now = *now;
            keeper->taken_ms = steady_ms();
        }
    } else {
        *now = keeper->now;
    }
    pthread_mutex_unlock(&keeper->mutex);
    return status;
}
