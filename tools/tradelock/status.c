/* tradelock status: one screen of what waits, how much money, which channels answer, who is alive,
 * and whether the server may be trusted; for people, and by its exit code for monitors. */
#include "command.h"

#include "facts.h"
#include "fields.h"
#include "fleet.h"
#include "print.h"

#include <tradelock/admin.h>
#include <tradelock/layer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Decides whether to colour what is printed.  Reads the environment. */

enum colour { COLOUR_NONE, COLOUR_ALARM, COLOUR_HEAD };

static int is_wanted(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && (no == NULL || no[0] == '\0') &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

/* What switches it on; "" where the output is no terminal, or a person wants none. */
static const char *colour(enum colour which)
{
    static const char *const codes[] = {"\033[0m", "\033[1;31m", "\033[1m"};

    return is_wanted() ? codes[which] : "";
}

static int watches;
static int64_t every_ms = 2000;

#define DAY_US INT64_C(86400000000)
#define GROUPS 64

/* The trades of one state and currency. */
struct group {
    char state[16], currency[16];
    uint64_t count, ages[TL_AGES];
    char sum_minor[TL_SUM_TEXT];
    int64_t oldest_s;
};

struct screen {
    tl_overview overview;
    tl_restore restore;
    struct group groups[GROUPS];
    size_t group_count;
    struct facts facts;
    struct stops pauses, breakers;
    int channels_cut, drains;
    json_t *waiting, *channels, *paused, *limited, *broken;
    struct table *channel_table, *paused_table, *limited_table, *broken_table;
    int64_t now_us;
};

/* --------------------------------------------------------------------- reading -- */

static struct group *group_of(struct screen *s, const tl_waiting *one)
{
    struct group *g = s->groups;

    while (g < s->groups + s->group_count &&
           (strcmp(g->state, one->state) != 0 || strcmp(g->currency, one->currency) != 0))
        g++;
    if (g == s->groups + GROUPS)
        return g - 1;
    if (g == s->groups + s->group_count) {
        s->group_count++;
        snprintf(g->state, sizeof g->state, "%s", one->state);
        snprintf(g->currency, sizeof g->currency, "%s", one->currency);
    }
    return g;
}

static int take_waiting(void *context, const tl_waiting *one)
{
    struct screen *s = context;
    struct group *g = group_of(s, one);
    const int has_age = strcmp(one->state, "conflict") != 0 && one->age < TL_AGES;

    g->count += one->count;
    tl_sum_add(g->sum_minor, one->sum_minor);
    if (has_age)
        g->ages[one->age] += one->count;
    if (one->oldest_s > g->oldest_s)
        g->oldest_s = one->oldest_s;
    if (strcmp(one->state, "parked") == 0)
        s->facts.of[VERDICT_PARKED].count += one->count;
    else if (strcmp(one->state, "conflict") == 0)
        s->facts.of[VERDICT_CONFLICT].count += one->count;
    else if (strcmp(one->state, "queued") != 0)
        facts_take_doubt(&s->facts, one->count, -one->oldest_s * INT64_C(1000000), 0);
    json_array_append_new(
        s->waiting,
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o}", "op_code", one->op_code,
                  "state", one->state, "channel", one->channel, "currency", one->currency, "age",
                  json_text(has_age ? tl_age_name(one->age) : NULL), "count",
                  (json_int_t)one->count, "amount_minor", json_digits(one->sum_minor), "oldest_s",
                  has_age ? json_integer(one->oldest_s) : json_null(), "deadline_at",
                  json_time(one->deadline_us), "late",
                  has_age ? json_unsigned(one->late) : json_null()));
    return 0;
}

/* "09:30:00Z" of today, else "2026-03-01 09:30Z". */
static const char *since_text(char to[TIME_TEXT], int64_t us, int64_t now_us)
{
    char whole[TIME_TEXT];

    time_text(whole, us);
    to[0] = '\0';
    if (us != 0 && us / DAY_US == now_us / DAY_US)
        snprintf(to, TIME_TEXT, "%.8sZ", whole + 11);
    else if (us != 0)
        snprintf(to, TIME_TEXT, "%.10s %.5sZ", whole, whole + 11);
    return to;
}

static int take_channel(void *context, const tl_channel_state *one)
{
    const uint64_t ended = one->succeeded + one->declined + one->failed;
    struct screen *s = context;
    json_t *row = record_json(&record_channel_state, one);
    struct columns columns;
    char text[LISTING_COLUMNS][CELL];
    const char *cells[LISTING_COLUMNS];

    if (one->down_since_us != 0)
        facts_take_down(&s->facts, &s->pauses, one->channel, one->op_code);
    s->channels_cut |= one->cut;
    record_columns(&columns, &record_channel_state, NULL);
    for (size_t i = 0; i < columns.count; i++) {
        record_cell(text[i], columns.column[i], one, 0);
        cells[i] = text[i];
    }
    /* A screen has eighty columns. */
    since_text(text[columns.count - 1], one->down_since_us, s->overview.now_us);
    table_add_cells(s->channel_table, cells);
    json_object_set_new(
        row, "rate", ended > 0 ? json_real((double)one->succeeded / (double)ended) : json_null());
    return json_array_append_new(s->channels, row);
}

static void take_limit(struct screen *s, const tl_pause_row *row)
{
    char limit[LIMIT_TEXT], permits[LIMIT_TEXT], next[TIME_TEXT] = "";

    if (row->per_second > 0 && row->next_us != 0)
        distance_text(next, row->now_us, row->next_us);
    table_add(s->limited_table, row->channel, row->op_code[0] != '\0' ? row->op_code : "(all)",
              limit_text(limit, row->sends, row->per_second), permits_text(permits, row), next);
    json_array_append_new(
        s->limited, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:s, s:s}", "channel",
                              row->channel, "op_code", json_text(row->op_code), "sends",
                              row->sends > 0 ? json_integer(row->sends) : json_null(), "per_second",
                              row->per_second > 0 ? json_integer(row->per_second) : json_null(),
                              "permits", row->sends > 0 ? json_integer(row->permits) : json_null(),
                              "wanted", row->sends > 0 ? json_integer(row->wanted) : json_null(),
                              "full", limit_is_full(row), "next_at", json_time(row->next_us),
                              "since", json_time(row->limited_us), "account", row->limit_account,
                              "reason", row->limit_reason));
}

/* A breaker that is open. */
static void take_breaker(struct screen *s, const tl_pause_row *row)
{
    char since[TIME_TEXT], last[TIME_TEXT], next[TIME_TEXT] = "now", silent[24];

    stops_keep(&s->breakers, row);
    if (row->probe_us > row->now_us)
        distance_text(next, row->now_us, row->probe_us);
    snprintf(silent, sizeof silent, "%lld", (long long)row->silent_probes);
    table_add(s->broken_table, row->channel, row->op_code[0] != '\0' ? row->op_code : "(all)",
              since_text(since, row->opened_us, row->now_us), silent,
              row->probes ? "goes on" : since_text(last, row->probed_us, row->now_us), next);
    json_array_append_new(s->broken,
                          json_pack("{s:s, s:o, s:o, s:I, s:o, s:b, s:o, s:s, s:s}", "channel",
                                    row->channel, "op_code", json_text(row->op_code), "since",
                                    json_time(row->opened_us), "silent_probes",
                                    (json_int_t)row->silent_probes, "last_probe_at",
                                    json_time(row->probed_us), "probing", row->probes,
                                    "next_probe_at", json_time(row->probe_us), "account",
                                    row->breaker_account, "reason", row->breaker_reason));
}

/* What holds sends up: pauses, limits, and breakers that are open. */
static int take_pause(void *context, const tl_pause_row *row)
{
    struct screen *s = context;
    char when[TIME_TEXT];

    if (row->sends > 0 || row->per_second > 0)
        take_limit(s, row);
    if (row->opened_us != 0)
        take_breaker(s, row);
    if (!row->paused)
        return 0;
    s->drains |= strcmp(row->channel, TL_CHANNEL_ALL) == 0;
    facts_take_pause(&s->facts, row);
    stops_keep(&s->pauses, row);
    table_add(s->paused_table, row->channel, row->op_code[0] != '\0' ? row->op_code : "(all)",
              time_text(when, row->decided_us), row->account, row->reason);
    json_array_append_new(s->paused,
                          json_pack("{s:s, s:o, s:o, s:s, s:s}", "channel", row->channel, "op_code",
                                    json_text(row->op_code), "since", json_time(row->decided_us),
                                    "account", row->account, "reason", row->reason));
    return 0;
}

static int take_proposal(void *context, const tl_proposal *proposal)
{
    (void)proposal;
    ++*(uint64_t *)context;
    return 0;
}

static tl_status screen_read(struct screen *s, tl_client *client)
{
    struct timespec now;
    tl_status status;

    *s = (struct screen){
        .overview = TL_OVERVIEW_INIT,
        .restore = TL_RESTORE_INIT,
        .waiting = json_array(),
        .channels = json_array(),
        .paused = json_array(),
        .limited = json_array(),
        .broken = json_array(),
        .broken_table = table_new("BREAKER OPEN", "OPERATION", "SINCE", "SILENT PROBES",
                                  "LAST PROBE", "NEXT PROBE", NULL),
        .paused_table = table_new("PAUSED", "OPERATION", "SINCE", "BY", "REASON", NULL),
        .limited_table = table_new("LIMITED", "OPERATION", "SENDS", "PERMITS", "NEXT SEND", NULL),
        .channel_table = table_new("CHANNEL", "OPERATION", "PAID", "DECLINED", "FAILED", "RATE",
                                   "WAITS", "SILENT", "DOWN SINCE", NULL)};
    clock_gettime(CLOCK_REALTIME, &now);
    status = tl_overview_read(client, &s->overview, take_waiting, s);
    if (status == TL_OK)
        status = tl_restore_status(client, &s->restore, NULL, NULL);
    if (status == TL_OK)
        status = tl_pause_list(client, take_pause, s);
    for (unsigned i = 0; i < s->breakers.count; i++)
        facts_take_down(&s->facts, &s->pauses, s->breakers.of[i].channel,
                        s->breakers.of[i].op_code);
    if (status == TL_OK)
        status = tl_channel_list(client, NULL, take_channel, s);
    if (status == TL_OK)
        status = tl_inbox(client, take_proposal, &s->facts.of[VERDICT_PROPOSED].count);
    if (s->restore.open && s->restore.proposed_us != 0)
        s->facts.of[VERDICT_PROPOSED].count++;
    facts_take(&s->facts, &s->overview);
    s->now_us = s->overview.now_us != 0 ? s->overview.now_us
                                        : now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
    return status;
}

/* ------------------------------------------------------------------- printing -- */

static void print_line(const char *label, int alarms, const char *text)
{
    printf("%-8s %s%s%s\n", label, alarms ? colour(COLOUR_ALARM) : "", text,
           alarms ? colour(COLOUR_NONE) : "");
}

static void print_server(const struct screen *s)
{
    const tl_overview *o = &s->overview;
    char text[160], jumps[64] = "clock never set";

    if (o->clock_jumps > 0)
        snprintf(jumps, sizeof jumps, "clock set %u times%s", o->clock_jumps,
                 o->clock_jumps_open > 0 ? ", rows not adjusted yet" : "");
    snprintf(text, sizeof text, "%s; %s; %s",
             o->fit ? "fit for money" : "NOT fit for money (`tradelock doctor`)", jumps,
             o->restore_open ? "a RESTORE is open (`tradelock restore status`)"
                             : "no restore open");
    print_line("Server", !o->fit || o->restore_open || o->clock_jumps_open > 0, text);
}

static void print_audits(const struct screen *s)
{
    const tl_overview *o = &s->overview;
    char text[1024] = "none is on record (`tradelock audit`, by an operator)", ago[TIME_TEXT];

    if (o->audit.at_us != 0)
        snprintf(text, sizeof text, "%s ago by %s: %s rows, %s violations",
                 distance_text(ago, o->audit.at_us, s->now_us) + 1, o->audit.account,
                 COUNT_TEXT(o->audit.rows), COUNT_TEXT(o->audit.violations));
    print_line("Audit", o->audit.violations > 0, text);
    if (o->statement.at_us == 0)
        return;
    snprintf(text, sizeof text, "%s ago: %s payments, %s differences: %s",
             distance_text(ago, o->statement.at_us, s->now_us) + 1,
             COUNT_TEXT(o->statement.payments), COUNT_TEXT(o->statement.differences),
             o->statement.statement);
    print_line("Bank", o->statement.differences > 0, text);
}

static void print_people(const struct screen *s)
{
    const tl_overview *o = &s->overview;
    const uint64_t proposals = s->facts.of[VERDICT_PROPOSED].count;
    char text[160], late[TIME_TEXT] = "";

    snprintf(text, sizeof text, "%s alive, %s silent, %s ended and not cleared up",
             COUNT_TEXT(o->alive), COUNT_TEXT(o->silent), COUNT_TEXT(o->ended));
    print_line("Process", o->silent > 0, text);
    if (o->due > 0)
        distance_text(late, 0, o->due_us);
    snprintf(text, sizeof text, "%s attempts due and not claimed%s%s; %s holds too long",
             COUNT_TEXT(o->due), late[0] != '\0' ? ", oldest " : "",
             late[0] != '\0' ? late + 1 : "", COUNT_TEXT(o->overdue));
    print_line("Work", s->facts.of[VERDICT_UNCLAIMED].count > 0 || o->overdue > 0, text);
    if (o->blocker_text[0] != '\0')
        print_line("Blocked", 1, o->blocker_text);
    snprintf(text, sizeof text, "%s proposal%s for a second person%s", COUNT_TEXT(proposals),
             proposals == 1 ? "" : "s", proposals > 0 ? " (`tradelock inbox`)" : "");
    print_line("Inbox", proposals > 0, text);
    print_audits(s);
}

/* Eighty columns; the rows in alarm are coloured. */
static void print_groups(const struct screen *s)
{
    char oldest[TIME_TEXT], money[TL_AMOUNT_TEXT];

    printf("\n%-9s %7s %26s %5s %5s %5s %5s %5s\n", "STATE", "TRADES", "MONEY", "<1m", "<10m",
           "<1h", "<1d", ">1d");
    if (s->group_count == 0)
        puts("nothing waits");
    for (size_t i = 0; i < s->group_count; i++) {
        const struct group *g = &s->groups[i];
        const int alarms = strcmp(g->state, "parked") == 0 || strcmp(g->state, "conflict") == 0;

        printf("%s%-9s %7s %26s %5s %5s %5s %5s %5s%s\n", alarms ? colour(COLOUR_ALARM) : "",
               strcmp(g->state, "in_doubt") == 0 ? "in doubt" : g->state, COUNT_TEXT(g->count),
               tl_sum_text(money, g->sum_minor, g->currency), COUNT_TEXT(g->ages[0]),
               COUNT_TEXT(g->ages[1]), COUNT_TEXT(g->ages[2]), COUNT_TEXT(g->ages[3]),
               COUNT_TEXT(g->ages[4]), alarms ? colour(COLOUR_NONE) : "");
        if (g->oldest_s > 0)
            printf("%-18s oldest %s\n", "",
                   distance_text(oldest, 0, g->oldest_s * INT64_C(1000000)) + 1);
    }
    if (s->overview.cut)
        puts("There is more than was counted.");
}

static void print_screen(const struct screen *s)
{
    char when[TIME_TEXT];

    printf("tradelock at %s\n\n", time_text(when, s->now_us));
    print_server(s);
    print_people(s);
    print_groups(s);
    if (json_array_size(s->channels) > 0)
        puts("\nChannels: what ended in the last hour; what waits, and got no answer last");
    fflush(stdout);
    table_print(s->channel_table);
    if (s->channels_cut)
        puts("There is more than was counted: these are the newest of each operation.");
    if (s->drains)
        puts("\nAs channel *, operators drain the installation: no trade is begun (`tradelock "
             "drain`)");
    if (json_array_size(s->paused) > 0)
        puts("\nChannels through which nothing new is sent (`tradelock channel`)");
    fflush(stdout);
    table_print(s->paused_table);
    if (json_array_size(s->limited) > 0)
        puts("\nChannels that operators limit; beyond it sends wait (`tradelock channel ls`)");
    fflush(stdout);
    table_print(s->limited_table);
    if (json_array_size(s->broken) > 0)
        puts("\nChannels that do not answer: but for one probe at a time nothing is sent or asked");
    fflush(stdout);
    table_print(s->broken_table);
}

static json_t *json_audited(const tl_audited *one)
{
    return one->at_us == 0
               ? json_null()
               : json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "at", json_time(one->at_us),
                           "account", one->account, "rows", json_unsigned(one->rows), "violations",
                           json_unsigned(one->violations), "statement", json_text(one->statement),
                           "payments", json_unsigned(one->payments), "differences",
                           json_unsigned(one->differences));
}

static int print_screen_json(const struct screen *s, int code)
{
    const tl_overview *o = &s->overview;

    return fleet_page(
        json_pack("{s:o, s:b, s:b, s:i, s:i, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:b, s:o, "
                  "s:o, s:o, s:f, s:O, s:O, "
                  "s:O, s:O, s:O, s:o, s:o}",
                  "read_at", json_time(s->now_us), "fit", o->fit, "restore_open", o->restore_open,
                  "clock_jumps", (int)o->clock_jumps, "clock_jumps_open", (int)o->clock_jumps_open,
                  "due", (json_int_t)o->due, "due_s", (double)o->due_us / 1e6, "overdue",
                  (json_int_t)o->overdue, "alive", (json_int_t)o->alive, "silent",
                  (json_int_t)o->silent, "ended", (json_int_t)o->ended, "proposals",
                  (json_int_t)s->facts.of[VERDICT_PROPOSED].count, "cut", o->cut, "blocker",
                  o->blocker != 0 ? json_integer((json_int_t)o->blocker) : json_null(),
                  "blocker_account", json_text(o->blocker_account), "blocker_text",
                  json_text(o->blocker_text), "blocker_s", (double)o->blocker_us / 1e6, "waiting",
                  s->waiting, "channels", s->channels, "paused", s->paused, "limited", s->limited,
                  "broken", s->broken, "audit", json_audited(&o->audit), "statement",
                  json_audited(&o->statement)),
        code);
}

static int show_one(tl_client *client, void *context)
{
    struct screen s;
    tl_status status = screen_read(&s, client);
    int code;

    (void)context;
    if (status != TL_OK) {
        code = fleet_told(status);
    } else if (common.json) {
        code = print_screen_json(&s, facts_code(&s.facts));
    } else {
        fleet_heading();
        print_screen(&s);
        code = finish_output(facts_code(&s.facts));
    }
    json_decref(s.waiting);
    json_decref(s.channels);
    json_decref(s.paused);
    json_decref(s.limited);
    json_decref(s.broken);
    table_free(s.channel_table);
    table_free(s.paused_table);
    table_free(s.limited_table);
    table_free(s.broken_table);
    return code;
}

static int show_once(void)
{
    const int code = fleet_each(TL_CLIENT_NO_SCHEMA, show_one, NULL);

    return common.json ? fleet_print_pages(NULL, code) : code;
}

/* Until it is interrupted, or nobody reads it any more.  A server that is away is said, and looked
 * for again. */
static int watch(void)
{
    const struct timespec pause = {.tv_sec = every_ms / 1000, .tv_nsec = every_ms % 1000 * 1000000};

    /* Whoever was never there is not waited for. */
    if (!fleet_is() && fleet_client(0, TL_CLIENT_NO_SCHEMA) == NULL)
        return fleet_code(EXIT_DONE, EXIT_DONE);
    for (;;) {
        int code;

        fleet_forget();
        if (isatty(STDOUT_FILENO))
            fputs("\033[H\033[J", stdout);
        code = show_once();
        if (code == EXIT_INTERNAL)
            return code;
        if (!common.json && !isatty(STDOUT_FILENO))
            putchar('\n');
        nanosleep(&pause, NULL);
    }
}

static int work(tl_client *client)
{
    (void)client;
    return watches ? watch() : show_once();
}

static const struct command_option options[] = {
    {"watch", "the same again and again, in place", OPTION_FLAG, .to = &watches},
    {"every TIME", "how often (2s)", OPTION_DURATION, .to = &every_ms, .least = 100,
     .is = "a duration from 100ms"},
    {.name = NULL}};

const struct command command_status = {
    .name = "status",
    .summary = "one screen: money that waits, channels, processes, server",
    .arguments = "[--watch] [OPTION...]",
    .text = "Counts what waits, and its money, by state, currency and age; says how many trades\n"
            "of each channel succeeded in the last hour, since when it is down, what operators\n"
            "paused or limit and how much of that is used, which processes are alive, what waits\n"
            "for a second person, and whether the server may be trusted.\n"
            "For monitors the exit code is 5 when the server is unsafe, restored or its clock was\n"
            "set; else 6 when something needs a person: parked, in conflict, proposed, claimed by\n"
            "nobody for a minute, held too long, in doubt for a quarter of an hour, a silent\n"
            "process, a transaction that holds rows, a channel that does not answer, whose\n"
            "breaker is open or that is paused for an hour; else 0.\n",
    .examples = "  tradelock status --watch\n",
    .options = options,
    .of = OF_PAGES,
    .work = work,
};
