/* Takes the picture of how things are: open trades, conflicts, processes, alarms, payments. */
#include "now.h"

#include "sessions.h"

#include <pthread.h>
#include <stddef.h>
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

/* Of one shard, by its name, since settings may come to name others. */
struct picture {
    struct picture *next;
    char *shard;
    unsigned readers;
    int64_t reading_ms; /* when the last began */
    struct now now;     /* the last one that was taken; begun_ms 0: there is none */
};

struct now_keeper {
    pthread_mutex_t mutex;
    /* Under the mutex, which nobody holds while they read. */
    int64_t changed_ms; /* when somebody changed something */
    struct picture *pictures;
};

struct now_keeper *now_keeper_new(void)
{
    struct now_keeper *keeper = calloc(1, sizeof *keeper);

    if (keeper == NULL)
        return NULL;
    pthread_mutex_init(&keeper->mutex, NULL);
    return keeper;
}

void now_keeper_free(struct now_keeper *keeper)
{
    if (keeper == NULL)
        return;
    while (keeper->pictures != NULL) {
        struct picture *next = keeper->pictures->next;

        free(keeper->pictures->shard);
        free(keeper->pictures);
        keeper->pictures = next;
    }
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper);
}

/* Needs: keeper->mutex held.  NULL: out of memory. */
static struct picture *picture_of(struct now_keeper *keeper, const char *shard)
{
    struct picture *picture = keeper->pictures;

    while (picture != NULL && strcmp(picture->shard, shard) != 0)
        picture = picture->next;
    if (picture != NULL)
        return picture;
    picture = calloc(1, sizeof *picture);
    if (picture != NULL)
        picture->shard = strdup(shard);
    if (picture == NULL || picture->shard == NULL) {
        free(picture);
        return NULL;
    }
    for (unsigned i = 0; i < TL_PACE_MINUTES; i++)
        picture->now.paid[i] = -1;
    picture->next = keeper->pictures;
    keeper->pictures = picture;
    return picture;
}

/* ---------------------------------------------------------------- counting -- */

static void keep_oldest(int64_t *oldest_us, int64_t us)
{
    if (us != 0 && (*oldest_us == 0 || us < *oldest_us))
        *oldest_us = us;
}

static void sum_add(struct sums *sums, const char *currency, uint64_t count, const char *minor)
{
    unsigned i = 0;

    while (i < sums->count && strcmp(sums->of[i].currency, currency) != 0)
        i++;
    if (i == SUMS_MOST)
        return;
    if (i == sums->count)
        snprintf(sums->of[sums->count++].currency, TL_CURRENCY + 1, "%s", currency);
    sums->of[i].count += count;
    tl_sum_add(sums->of[i].minor, minor);
}

static void sums_add(struct sums *sums, const tl_view *view)
{
    char minor[TL_SUM_TEXT];

    sums->trades++;
    keep_oldest(&sums->oldest_us, view->created_us);
    snprintf(minor, sizeof minor, "%lld", (long long)view->amount_minor);
    sum_add(sums, view->currency, 1, minor);
}

static unsigned age_of(const tl_view *view)
{
    unsigned age = AGES - 1;

    while (age > 0 && view->now_us - view->created_us < ages[age].from_us)
        age--;
    return age;
}

/* NULL: there are too many. */
static struct bar *bar_of(struct now *now, const char *channel, const char *currency)
{
    struct bar *bar = now->bars;

    while (bar < now->bars + now->bar_count &&
           (strcmp(bar->channel, channel) != 0 || strcmp(bar->currency, currency) != 0))
        bar++;
    if (bar == now->bars + BARS_MOST) {
        now->bars_cut = 1;
        return NULL;
    }
    if (bar == now->bars + now->bar_count) {
        snprintf(bar->channel, sizeof bar->channel, "%s", channel);
        snprintf(bar->currency, sizeof bar->currency, "%s", currency);
        now->bar_count++;
    }
    return bar;
}

static void bars_add(struct now *now, const tl_view *view)
{
    struct bar *bar = bar_of(now, view->channel, view->currency);
    char minor[TL_SUM_TEXT];

    if (bar == NULL)
        return;
    bar->count[age_of(view)]++;
    bar->trades++;
    snprintf(minor, sizeof minor, "%lld", (long long)view->amount_minor);
    tl_sum_add(bar->minor, minor);
    keep_oldest(&bar->oldest_us, view->created_us);
}

static void persons_add(struct now *now, const tl_view *view)
{
    for (unsigned i = 0; i < now->person_count; i++)
        if (strcmp(now->persons[i].view.serial_no, view->serial_no) == 0 &&
            strcmp(now->persons[i].view.cust_no, view->cust_no) == 0 &&
            strcmp(now->persons[i].view.op_code, view->op_code) == 0)
            return;
    if (now->person_count == PERSONS_MOST) {
        now->persons_cut = 1;
        return;
    }
    now->persons[now->person_count].view = *view;
    now->persons[now->person_count].view.payload = NULL;
    now->persons[now->person_count++].view.result = NULL;
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

static void count_conflict(struct now *now, const tl_view *view)
{
    now->now_us = view->now_us;
    sums_add(&now->conflict, view);
    persons_add(now, view);
}

/* Rows stay where a customer went from, and are told where the customer is.  What is proposed, or in
 * process, does not stay: it keeps a customer from going. */
static int is_copy(const struct visit *visit, size_t owner)
{
    return owner != SHARD_NOBODY && owner != visit->shard;
}

static tl_status count_conflicts(struct now *now, const struct visit *visit,
                                 const struct rows *rows)
{
    size_t *owners = rows_owners(rows, visit);

    for (size_t i = 0; owners != NULL && i < rows->count; i++)
        if (!is_copy(visit, owners[i]))
            count_conflict(now, &rows->views[i]);
    free(owners);
    return owners != NULL ? TL_OK : TL_NO_MEMORY;
}

static tl_status look_at_trades(struct now *now, const struct visit *visit)
{
    const tl_filter filter = {
        .version = TL_FILTER_VERSION, .lane = 'S', .conflict = 1, .limit = CONFLICT_MOST};
    struct rows conflicts = {.count = 0}, rows = {.count = 0};
    tl_status status = tl_list(visit->client, &filter, rows_add, &conflicts);

    if (status == TL_OK)
        status = conflicts.failed;
    if (status == TL_OK)
        status = count_conflicts(now, visit, &conflicts);
    if (status == TL_OK)
        status = house_open(visit->client, OPEN_MOST, &rows);
    for (size_t i = 0; status == TL_OK && i < rows.count; i++)
        count_open(now, &rows.views[i]);
    now->cut = rows.more;
    rows_free(&conflicts);
    rows_free(&rows);
    return status;
}

struct proposing {
    struct now *now;
    tl_client *client;
    const tl_proposal *proposal;
    tl_status status;
};

/* A trade of which several things were proposed stands there once, with the oldest. */
static int take_proposed(void *context, const tl_view *view)
{
    const struct proposing *proposing = context;
    struct now *now = proposing->now;
    struct person *person = &now->persons[now->person_count];
    const unsigned before = now->person_count;

    persons_add(now, view);
    if (now->person_count == before)
        return 0;
    snprintf(person->proposed_by, sizeof person->proposed_by, "%s", proposing->proposal->account);
    snprintf(person->decision, sizeof person->decision, "%s", proposing->proposal->said);
    return 0;
}

static int take_proposal(void *context, const tl_proposal *proposal)
{
    struct proposing *proposing = context;

    if (strcmp(proposal->what, "resolve") != 0) {
        proposing->now->closings++;
        return 0;
    }
    if (proposing->now->persons_cut)
        return 0;
    proposing->proposal = proposal;
    proposing->status =
        tl_show(proposing->client, &proposal->key, TL_LANE_SYNC, take_proposed, proposing);
    if (proposing->status == TL_NOT_FOUND) /* purged meanwhile */
        proposing->status = TL_OK;
    return proposing->status != TL_OK;
}

static tl_status look_at_proposals(struct now *now, tl_client *client)
{
    struct proposing proposing = {.now = now, .client = client};
    tl_status status = tl_inbox(client, take_proposal, &proposing);

    return status == TL_OK ? proposing.status : status;
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

/* ---------------------------------------------------- payments and channels -- */

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

static int take_channel(void *context, const tl_channel_state *state)
{
    struct now *now = context;
    struct channel *one = &now->channels[now->channel_count];

    now->channels_cut = now->channel_count == CHANNELS_MOST;
    if (now->channels_cut)
        return 1;
    snprintf(one->name, sizeof one->name, "%s", state->channel);
    snprintf(one->op_code, sizeof one->op_code, "%s", state->op_code);
    one->state = *state;
    one->state.channel = one->state.op_code = NULL;
    now->channel_count++;
    return 0;
}

/* Both are one reading. */
static tl_status look_at_channels(struct now *now, tl_client *client)
{
    tl_pace pace = TL_PACE_INIT;
    tl_status status;

    if (now->pace_ms != 0 && steady_ms() - now->pace_ms < PACE_MS)
        return TL_OK;
    now->channel_count = 0;
    now->channels_cut = 0;
    status = tl_channel_list(client, &pace, take_channel, now);
    if (status == TL_OK) {
        keep_pace(now, &pace);
        now->pace_ms = steady_ms();
    }
    return status;
}

/* ------------------------------------------------------------- the picture -- */

static tl_status look_at_server(struct now *now, tl_client *client)
{
    tl_status status;

    if (now->doctor_ms != 0 && steady_ms() - now->doctor_ms < DOCTOR_MS)
        return TL_OK;
    now->alarm_count = 0;
    status = tl_doctor(client, take_finding, now);
    if (status != TL_OK && status != TL_SERVER_UNSAFE)
        return status;
    now->doctor_ms = steady_ms();
    return TL_OK;
}

static void keep_stopped(struct stops *stops, const tl_pause_row *row)
{
    struct stopped *one = &stops->of[stops->count];

    stops->cut = stops->count == PAUSED_MOST;
    if (stops->cut)
        return;
    snprintf(one->channel, sizeof one->channel, "%s", row->channel);
    snprintf(one->op_code, sizeof one->op_code, "%s", row->op_code);
    snprintf(one->account, sizeof one->account, "%s", row->account);
    snprintf(one->reason, sizeof one->reason, "%s", row->reason);
    one->row = *row;
    stops->count++;
}

static int take_pause(void *context, const tl_pause_row *row)
{
    struct now *now = context;

    if (row->opened_us != 0)
        keep_stopped(&now->broken, row);
    if (row->paused)
        keep_stopped(&now->paused, row);
    return 0;
}

/* Makes the picture before a new one.  Who waits for a second person stands first, then conflicts,
 * then what is parked. */
static tl_status take_picture(struct now *now, const struct visit *visit)
{
    tl_client *client = visit->client;
    tl_status status;

    memset(now, 0, offsetof(struct now, begun_ms));
    now->begun_ms = steady_ms();
    status = look_at_proposals(now, client);
    if (status == TL_OK)
        status = look_at_trades(now, visit);
    if (status == TL_OK)
        status = tl_session_list(client, take_process, now);
    if (status == TL_OK)
        status = tl_pause_list(client, take_pause, now);
    now->restore = (tl_restore)TL_RESTORE_INIT;
    if (status == TL_OK)
        status = tl_restore_status(client, &now->restore, NULL, NULL);
    if (status == TL_OK)
        status = look_at_server(now, client);
    if (status == TL_OK)
        status = look_at_channels(now, client);
    qsort(now->processes, now->process_count, sizeof now->processes[0], by_program);
    return status;
}

void now_forget(struct now_keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    keeper->changed_ms = steady_ms();
    pthread_mutex_unlock(&keeper->mutex);
}

/* Whether this visitor has to take the picture.  Needs: keeper->mutex held. */
static int begin_reading(const struct now_keeper *keeper, struct picture *picture)
{
    const int64_t now_ms = steady_ms();

    if (picture->now.begun_ms > keeper->changed_ms && now_ms - picture->now.begun_ms < FRESH_MS)
        return 0;
    if (picture->readers > 0 && picture->now.begun_ms != 0 &&
        picture->reading_ms > keeper->changed_ms)
        return 0;
    picture->readers++;
    picture->reading_ms = now_ms;
    return 1;
}

/* Needs: keeper->mutex held. */
static void end_reading(struct picture *picture, tl_status status, const struct now *now)
{
    picture->readers--;
    if (status != TL_OK)
        picture->now.begun_ms = 0;
    else if (now->begun_ms >= picture->now.begun_ms)
        picture->now = *now;
}

tl_status now_look(struct now_keeper *keeper, const struct visit *visit, struct now *now)
{
    tl_status status = TL_OK;
    struct picture *picture;
    int reads = 0;

    pthread_mutex_lock(&keeper->mutex);
    picture = picture_of(keeper, visit_shard(visit));
    if (picture != NULL) {
        reads = begin_reading(keeper, picture);
        *now = picture->now;
    }
    pthread_mutex_unlock(&keeper->mutex);
    if (!reads)
        return picture != NULL ? TL_OK : TL_NO_MEMORY;
    status = take_picture(now, visit);
    pthread_mutex_lock(&keeper->mutex);
    end_reading(picture, status, now);
    pthread_mutex_unlock(&keeper->mutex);
    return status;
}

/* ------------------------------------------------------------------ several shards -- */

static void add_sums(struct sums *total, const struct sums *sums)
{
    total->trades += sums->trades;
    keep_oldest(&total->oldest_us, sums->oldest_us);
    for (unsigned i = 0; i < sums->count; i++)
        sum_add(total, sums->of[i].currency, sums->of[i].count, sums->of[i].minor);
}

static void add_bar(struct now *total, const struct bar *bar)
{
    struct bar *to = bar_of(total, bar->channel, bar->currency);

    if (to == NULL)
        return;
    for (unsigned age = 0; age < AGES; age++)
        to->count[age] += bar->count[age];
    to->trades += bar->trades;
    tl_sum_add(to->minor, bar->minor);
    keep_oldest(&to->oldest_us, bar->oldest_us);
}

/* A minute is counted where every shard that has operations has counted it. */
static void add_minute(int64_t *to, int64_t paid)
{
    *to = *to < 0 || paid < 0 ? -1 : *to + paid;
}

/* The clocks of two servers may be in different minutes. */
static void add_pace(struct now *total, const struct now *shard)
{
    int64_t later;

    if (shard->minute_us == 0)
        return;
    if (total->minute_us == 0) {
        memcpy(total->paid, shard->paid, sizeof total->paid);
        total->minute_us = shard->minute_us;
        return;
    }
    later = (total->minute_us - shard->minute_us) / MINUTE_US;
    for (int64_t i = 0; i < TL_PACE_MINUTES; i++)
        if (i - later >= 0 && i - later < TL_PACE_MINUTES)
            add_minute(&total->paid[i], shard->paid[i - later]);
}

void now_add(struct now *total, const struct now *shard)
{
    if (shard->now_us > total->now_us)
        total->now_us = shard->now_us;
    total->cut |= shard->cut;
    total->bars_cut |= shard->bars_cut;
    total->closings += shard->closings;
    add_sums(&total->doubt, &shard->doubt);
    add_sums(&total->parked, &shard->parked);
    add_sums(&total->queued, &shard->queued);
    add_sums(&total->live, &shard->live);
    add_sums(&total->conflict, &shard->conflict);
    for (unsigned i = 0; i < shard->bar_count; i++)
        add_bar(total, &shard->bars[i]);
    add_pace(total, shard);
}
