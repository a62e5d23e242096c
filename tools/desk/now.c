/* Takes the picture of how things are: open trades, conflicts, processes, alarms, payments. */
#include "now.h"

#include "sessions.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRESH_MS 3000
#define PACE_MS 20000
#define DEEP_BELOW 3u /* minutes: with fewer the next reading would leave one out */
#define DOCTOR_MS 30000
#define PARKED_MOST 2000u
#define CONFLICT_MOST 200u
#define MINUTE_US INT64_C(60000000)

const char *const ages[AGES] = {"under 10 min", "10 min – 1 h", "1 h – 1 day", "over a day"};

/* Of one shard, by its name, since settings may come to name others. */
struct picture {
    struct picture *next;
    char *shard;
    unsigned readers;
    int64_t reading_ms; /* when the last began */
    int64_t away_us;    /* since when none could be taken, by this machine's clock; 0: it could */
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
        picture->now.paid[i] = picture->now.late[i] = -1;
    picture->next = keeper->pictures;
    keeper->pictures = picture;
    return picture;
}

/* ---------------------------------------------------------------- counting -- */

static struct sums sums_of(const char *currency, int64_t minor, int64_t us)
{
    struct sums sums = {.count = 1, .trades = 1, .oldest_us = us, .of[0].count = 1};

    snprintf(sums.of[0].currency, TL_CURRENCY + 1, "%s", currency);
    snprintf(sums.of[0].minor, TL_SUM_TEXT, "%lld", (long long)minor);
    return sums;
}

/* Metrics say "unknown" where the trades did not say. */
static const char *said_word(const char *word)
{
    return strcmp(word, "unknown") == 0 ? "" : word;
}

/* NULL: there are too many. */
static struct waits *waits_of(struct now *now, const char *channel, const char *op_code)
{
    struct waits *one = now->waits;

    while (one < now->waits + now->wait_count &&
           (strcmp(one->channel, channel) != 0 || strcmp(one->op_code, op_code) != 0))
        one++;
    if (one == now->waits + WAITS_MOST) {
        now->cut = 1;
        return NULL;
    }
    if (one == now->waits + now->wait_count) {
        snprintf(one->channel, sizeof one->channel, "%s", channel);
        snprintf(one->op_code, sizeof one->op_code, "%s", op_code);
        now->wait_count++;
    }
    return one;
}

/* Metrics have five ages, the first two of which are one here. */
static int take_waiting(void *context, const tl_waiting *waiting)
{
    struct now *now = context;
    struct sums sums = {.count = 1, .trades = waiting->count, .of[0].count = waiting->count};
    struct waits *waits;

    /* Of conflicts only the rows say whether they are told elsewhere. */
    if (strcmp(waiting->state, "conflict") == 0)
        return 0;
    snprintf(sums.of[0].currency, TL_CURRENCY + 1, "%s", said_word(waiting->currency));
    snprintf(sums.of[0].minor, TL_SUM_TEXT, "%s", waiting->sum_minor);
    sums.oldest_us = now->overview.now_us - waiting->oldest_s * 1000000;
    sums_add(strcmp(waiting->state, "parked") == 0   ? &now->parked
             : strcmp(waiting->state, "queued") == 0 ? &now->queued
                                                     : &now->doubt,
             &sums);
    waits = waits_of(now, said_word(waiting->channel), waiting->op_code);
    if (waits != NULL)
        sums_add(&waits->age[waiting->age > 1 ? waiting->age - 1 : 0], &sums);
    return 0;
}

/* Whoever stands in it. */
static void group_add(struct now *now, const struct group *one, const struct sums *sums)
{
    struct group *group = now->groups;

    while (group < now->groups + now->group_count &&
           (group->kind != one->kind || strcmp(group->channel, one->channel) != 0 ||
            strcmp(group->reason, one->reason) != 0 || strcmp(group->by, one->by) != 0 ||
            strcmp(group->said, one->said) != 0))
        group++;
    if (group == now->groups + GROUPS_MOST) {
        now->groups_cut = 1;
        return;
    }
    if (group == now->groups + now->group_count) {
        *group = *one;
        now->group_count++;
    }
    sums_add(&group->sums, sums);
}

static void group_view(struct now *now, enum group_kind kind, const tl_view *view)
{
    const struct sums sums = sums_of(view->currency, view->amount_minor, view->created_us);
    struct group one = {.kind = kind};

    now->now_us = view->now_us;
    snprintf(one.channel, sizeof one.channel, "%s", view->channel);
    snprintf(one.reason, sizeof one.reason, "%s", kind == GROUP_PARKED ? view->parked : "");
    snprintf(one.serial_no, sizeof one.serial_no, "%s", view->serial_no);
    snprintf(one.cust_no, sizeof one.cust_no, "%s", view->cust_no);
    snprintf(one.op_code, sizeof one.op_code, "%s", view->op_code);
    if (kind == GROUP_CONFLICT)
        sums_add(&now->conflict, &sums);
    group_add(now, &one, &sums);
}

static tl_status look_at_trades(struct now *now, const struct visit *visit)
{
    tl_filter filter = {
        .version = TL_FILTER_VERSION, .lane = 'S', .conflict = 1, .limit = CONFLICT_MOST};
    struct rows conflicts = {.count = 0}, parked = {.count = 0};
    tl_status status = tl_list(visit->client, &filter, rows_add, &conflicts);

    if (status == TL_OK)
        status = conflicts.failed;
    now->groups_cut |= conflicts.count == CONFLICT_MOST;
    /* What is proposed, or in process, is no copy: it keeps a customer from going. */
    if (status == TL_OK)
        status = rows_leave_copies(&conflicts, visit);
    for (size_t i = 0; status == TL_OK && i < conflicts.count; i++)
        group_view(now, GROUP_CONFLICT, &conflicts.views[i]);
    filter.conflict = 0;
    filter.parked = 1;
    filter.limit = PARKED_MOST;
    if (status == TL_OK)
        status = tl_list(visit->client, &filter, rows_add, &parked);
    if (status == TL_OK)
        status = parked.failed;
    for (size_t i = 0; status == TL_OK && i < parked.count; i++)
        group_view(now, GROUP_PARKED, &parked.views[i]);
    now->groups_cut |= parked.count == PARKED_MOST;
    rows_free(&conflicts);
    rows_free(&parked);
    return status;
}

/* A trade that is parked or in conflict, too, stands there as well. */
static int take_proposal(void *context, const tl_proposal *proposal)
{
    const struct sums sums =
        sums_of(proposal->currency, proposal->amount_minor, proposal->proposed_us);
    struct group one = {.kind = GROUP_PROPOSED};
    struct now *now = context;

    if (proposal->act_no != 0) {
        many_keep(now, proposal);
        return 0;
    }
    if (strcmp(proposal->what, "resolve") != 0) {
        now->closings++;
        return 0;
    }
    snprintf(one.by, sizeof one.by, "%s", proposal->account);
    snprintf(one.said, sizeof one.said, "%s", proposal->said);
    snprintf(one.reason, sizeof one.reason, "%s", proposal->reason);
    snprintf(one.serial_no, sizeof one.serial_no, "%s", proposal->key.serial_no);
    snprintf(one.cust_no, sizeof one.cust_no, "%s", proposal->key.cust_no);
    snprintf(one.op_code, sizeof one.op_code, "%s", proposal->key.op_code);
    group_add(now, &one, &sums);
    return 0;
}

static tl_status look_at_waiting(struct now *now, tl_client *client)
{
    tl_status status;

    now->overview = (tl_overview)TL_OVERVIEW_INIT;
    status = tl_overview_read(client, &now->overview, take_waiting, now);
    if (now->overview.now_us != 0)
        now->now_us = now->overview.now_us;
    now->cut |= now->overview.cut;
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
    for (int64_t i = TL_PACE_MINUTES - 1; i >= 0; i--) {
        const int is_kept = i - moved >= 0 && i - moved < TL_PACE_MINUTES;

        now->paid[i] = is_kept ? now->paid[i - moved] : -1;
        now->late[i] = is_kept ? now->late[i - moved] : -1;
    }
    for (unsigned i = 0; i < pace->whole && i < TL_PACE_MINUTES; i++)
        now->paid[i] = (int64_t)pace->paid[i];
    /* Who was late stays so, and is counted while it waits, or where its end was seen. */
    for (unsigned i = 0; i < TL_PACE_MINUTES; i++)
        if ((int64_t)pace->late[i] > now->late[i] && (i < pace->whole || now->late[i] >= 0))
            now->late[i] = (int64_t)pace->late[i];
    now->whole = pace->whole;
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
    pace.is_deep = now->whole < DEEP_BELOW;
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
    if (status == TL_SERVER_UNSAFE)
        status = TL_OK;
    now->doctor_ms = status == TL_OK ? steady_ms() : 0;
    return status;
}

static int take_pause(void *context, const tl_pause_row *row)
{
    struct now *now = context;

    if (row->opened_us != 0)
        stops_keep(&now->broken, row);
    if (row->paused)
        stops_keep(&now->paused, row);
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
    status = tl_inbox(client, take_proposal, now);
    if (status == TL_OK)
        status = look_at_trades(now, visit);
    if (status == TL_OK)
        status = look_at_waiting(now, client);
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

/* None can be taken now.  Needs: keeper->mutex held. */
static void mark_away(struct picture *picture)
{
    picture->now.begun_ms = 0;
    if (picture->away_us == 0)
        picture->away_us = (int64_t)time(NULL) * 1000000;
}

/* Needs: keeper->mutex held. */
static void end_reading(struct picture *picture, tl_status status, struct now *now)
{
    picture->readers--;
    if (status == TL_OK) {
        picture->away_us = 0;
        if (now->begun_ms >= picture->now.begun_ms)
            picture->now = *now;
        return;
    }
    picture->now.begun_ms = 0;
    if (http_of(status) == 503)
        mark_away(picture);
    *now = picture->now;
    now->away_us = picture->away_us;
}

tl_status now_look(struct now_keeper *keeper, const struct visit *visit, tl_status status,
                   struct now *now)
{
    struct picture *picture;
    int reads = 0;

    pthread_mutex_lock(&keeper->mutex);
    picture = picture_of(keeper, visit_shard(visit));
    if (picture != NULL) {
        if (status == TL_OK)
            reads = begin_reading(keeper, picture);
        else
            mark_away(picture);
        *now = picture->now;
        now->away_us = picture->away_us;
    }
    pthread_mutex_unlock(&keeper->mutex);
    if (!reads)
        return picture != NULL ? status : TL_NO_MEMORY;
    status = take_picture(now, visit);
    pthread_mutex_lock(&keeper->mutex);
    end_reading(picture, status, now);
    pthread_mutex_unlock(&keeper->mutex);
    return status;
}
