/*
 * tradelock drain: has the whole installation begin nothing new, and waits until nothing is in
 * process.
 *
 * The drain is the pause of TL_CHANNEL_ALL, one row that every process reads after each of its
 * heartbeats.  So it stays on record when this command is killed, and ends by --end alone.
 *
 * Each process says by its heartbeat that it obeys: it has read the row, and no ask that it began
 * before is under way (client/gate.h).  So sessions are looked at before the trades.  What one of
 * them was granted earlier is there when the trades are read, or has ended, and it is granted
 * nothing any more.  A session that began since reads the row once its own is there.  One that is
 * silent may go on, and grant what it had asked for, until somebody ends it; so it is waited for.
 */
#include "command.h"

#include "fleet.h"

#include "moment.h"
#include "print.h"

#include <tradelock/admin.h>
#include <tradelock/layer.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMEOUT_MS (INT64_C(5) * 60 * 1000)
#define LOOK_MS 50
#define TELL_MS 1000
#define SHOWN 100
/* So many the library tells, the oldest. */
#define SESSIONS_TOLD 1000

static struct said {
    tl_pause pause;
    int waits, ends; /* --wait, --end */
    int64_t timeout_ms;
} said = {.pause = TL_PAUSE_INIT, .timeout_ms = -1};

struct drain {
    tl_client *client;
    /* The decision. */
    int is_on;
    int64_t since_us;
    char account[385], reason[TL_REMARK_MAX + 1];
    /* The last look. */
    unsigned sessions, unheard, in_process;
    int more;
    struct table *trades, *processes;
    json_t *trade_rows, *unheard_rows;
};

/* --------------------------------------------------------------------- a look -- */

static int take_pause(void *context, const tl_pause_row *row)
{
    struct drain *d = context;

    if (!row->paused || strcmp(row->channel, TL_CHANNEL_ALL) != 0)
        return 0;
    d->is_on = 1;
    d->since_us = row->decided_us;
    snprintf(d->account, sizeof d->account, "%s", row->account);
    snprintf(d->reason, sizeof d->reason, "%s", row->reason);
    return 1;
}

static tl_status read_decision(struct drain *d)
{
    d->is_on = 0;
    return tl_pause_list(d->client, take_pause, d);
}

void drain_warn(tl_client *client)
{
    struct drain d = {.client = client};
    char since[TIME_TEXT];

    if (read_decision(&d) == TL_OK && d.is_on)
        fprintf(stderr, "%soperators drain the installation since %s (%s: %s)\n", fleet_said_by(),
                time_text(since, d.since_us), d.account, d.reason);
}

static int take_session(void *context, const tl_session_row *row)
{
    struct drain *d = context;
    char pid[24], silent[TIME_TEXT];

    d->sessions++;
    if (row->obeys_drain || strcmp(row->state, "ended") == 0)
        return 0;
    d->unheard++;
    snprintf(pid, sizeof pid, "%" PRIu64, row->pid);
    table_add(d->processes, row->program, pid, row->host,
              distance_text(silent, 0, row->silent_us) + 1);
    json_array_append_new(d->unheard_rows,
                          json_pack("{s:s, s:I, s:s, s:f}", "program", row->program, "pid",
                                    (json_int_t)row->pid, "host", row->host, "silent_s",
                                    (double)row->silent_us / 1e6));
    return 0;
}

static int take_trade(void *context, const tl_view *view)
{
    struct drain *d = context;
    char held[TIME_TEXT], until[TIME_TEXT];

    d->in_process++;
    table_add(d->trades, view->serial_no, view->cust_no, view->op_code, tl_state_name(view->state),
              distance_text(held, view->updated_us, view->now_us) + 1,
              time_text(until, view->max_hold_until_us), view->holder);
    json_array_append_new(
        d->trade_rows,
        json_pack("{s:s, s:s, s:s, s:s, s:f, s:o, s:o}", "serial_no", view->serial_no, "cust_no",
                  view->cust_no, "op_code", view->op_code, "state", tl_state_name(view->state),
                  "held_s", (double)(view->now_us - view->updated_us) / 1e6, "max_hold_until",
                  json_time(view->max_hold_until_us), "holder", json_text(view->holder)));
    return 0;
}

static void forget(struct drain *d)
{
    table_free(d->trades);
    table_free(d->processes);
    json_decref(d->trade_rows);
    json_decref(d->unheard_rows);
    d->trades = d->processes = NULL;
    d->trade_rows = d->unheard_rows = NULL;
    d->sessions = d->unheard = d->in_process = 0;
}

static tl_status look(struct drain *d)
{
    tl_filter filter = TL_FILTER_INIT;
    tl_list_end end = TL_LIST_END_INIT;
    tl_status status;

    forget(d);
    d->trades =
        table_new("SERIAL", "CUSTOMER", "OPERATION", "STATE", "FOR", "HOLD ENDS", "HOLDER", NULL);
    d->processes = table_new("PROCESS", "PID", "HOST", "SILENT FOR", NULL);
    d->trade_rows = json_array();
    d->unheard_rows = json_array();
    filter.held = 1;
    filter.limit = SHOWN;
    status = read_decision(d);
    if (status == TL_OK && d->is_on)
        status = tl_session_list(d->client, take_session, d);
    if (d->sessions >= SESSIONS_TOLD)
        d->unheard++; /* there may be others, and nobody knows what those have heard */
    if (status == TL_OK)
        status = tl_list_page(d->client, &filter, take_trade, d, &end);
    d->more = end.more;
    return status;
}

/* -------------------------------------------------------------------- waiting -- */

static void tell(const struct drain *d)
{
    if (!common.json)
        fprintf(stderr, "%s%s in process; %u process%s not said yet that nothing begins there\n",
                COUNT_TEXT(d->in_process), d->more ? " or more" : "", d->unheard,
                d->unheard == 1 ? " has" : "es have");
}

/* *empty: nothing is in process, and nothing will be. */
static tl_status await(struct drain *d, int64_t timeout_ms, int *empty)
{
    const int64_t end_ms = steady_ms() + timeout_ms;
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    unsigned told = 0;
    int64_t told_ms = 0;
    tl_status status;

    *empty = 0;
    while ((status = look(d)) == TL_OK && d->is_on) {
        *empty = d->in_process + d->unheard == 0;
        if (*empty || steady_ms() >= end_ms)
            break;
        if (d->in_process + d->unheard != told && steady_ms() - told_ms >= TELL_MS) {
            tell(d);
            told = d->in_process + d->unheard;
            told_ms = steady_ms();
        }
        nanosleep(&pause, NULL);
    }
    return status;
}

static int print_result(struct drain *d, int empty)
{
    const int code = empty ? EXIT_DONE : EXIT_OPEN;
    char since[TIME_TEXT];

    if (common.json)
        return print_json(json_pack("{s:b, s:o, s:s, s:s, s:b, s:b, s:O, s:O}", "drains", 1,
                                    "since", json_time(d->since_us), "account", d->account,
                                    "reason", d->reason, "empty", empty, "more", d->more,
                                    "in_process", d->trade_rows, "unheard", d->unheard_rows),
                          code);
    if (empty) {
        printf("Nothing is in process; the installation drains since %s until `tradelock drain "
               "--end`.\n",
               time_text(since, d->since_us));
        return finish_output(code);
    }
    table_print(d->trades);
    table_print(d->processes);
    printf("In process still: %s%s; %u process%s not said that nothing begins there. It stays on "
           "record: "
           "`tradelock drain --wait` waits on, `tradelock drain --end` ends it.\n",
           COUNT_TEXT(d->in_process), d->more ? " or more" : "", d->unheard,
           d->unheard == 1 ? " has" : "es have");
    return finish_output(code);
}

static int refuse(const char *sentence)
{
    fprintf(stderr, "tradelock: %s\n", sentence);
    return EXIT_REFUSED;
}

static int wait_for_it(struct drain *d)
{
    int empty;
    tl_status status = await(d, said.timeout_ms >= 0 ? said.timeout_ms : TIMEOUT_MS, &empty);

    if (status != TL_OK)
        return report(status);
    if (!d->is_on)
        return refuse(said.waits ? "the installation does not drain"
                                 : "somebody ended the drain meanwhile");
    return print_result(d, empty);
}

static int begin(struct drain *d)
{
    const tl_status status = tl_channel_pause(d->client, &said.pause);

    if (status == TL_ALREADY_DONE) {
        (void)report(status);
        return refuse("`tradelock drain --wait` waits for it");
    }
    if (status != TL_OK)
        return report(status);
    if (!common.json)
        fputs("The installation drains within a heartbeat of each process.\n", stderr);
    return wait_for_it(d);
}

static int end(tl_client *client)
{
    const tl_status status = tl_channel_resume(client, &said.pause);

    if (status != TL_OK)
        return report(status);
    return print_answer(json_pack("{s:b}", "drains", 0), EXIT_DONE,
                        "The drain is over: each process goes on within a heartbeat.\n");
}

/* ---------------------------------------------------------------- the command -- */

/* EXIT_DONE, or EXIT_USAGE with a sentence. */
static int check(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    said.pause.channel = TL_CHANNEL_ALL;
    if (said.waits && said.ends)
        return usage_error("--wait and --end exclude each other");
    if (said.waits && said.pause.reason != NULL)
        return usage_error("--wait decides nothing, so it takes no --reason");
    if (said.ends && said.timeout_ms >= 0)
        return usage_error("--end waits for nothing, so it takes no --timeout");
    return said.waits ? EXIT_DONE : needs_reason(said.pause.reason);
}

static int work(tl_client *client)
{
    struct drain d = {.client = client};
    const int code = said.ends ? end(client) : said.waits ? wait_for_it(&d) : begin(&d);

    forget(&d);
    return code;
}

static const struct command_option options[] = {
    OPTION_REASON_OF(&said.pause.reason, WHY),
    OPTION_ACTOR_OF(&said.pause.actor, WHO),
    {"timeout TIME", "wait for so long (5m)", OPTION_DURATION, .to = &said.timeout_ms},
    {"wait", "decide nothing: wait for the drain that is on record", OPTION_FLAG,
     .to = &said.waits},
    {"end", "the installation begins trades again", OPTION_FLAG, .to = &said.ends},
    {.name = NULL}};

const struct command command_drain = {
    .name = "drain",
    .summary = "have the whole installation begin no trade, and wait until none runs",
    .arguments = "--reason TEXT [--timeout TIME] [--actor NAME]\n"
                 "       tradelock drain --wait [--timeout TIME]\n"
                 "       tradelock drain --end --reason TEXT [--actor NAME]",
    .text = "Pauses all channels at once, and what names none: no process grants a trade, and\n"
            "none begins a compensating attempt.  Services are told to try again later before\n"
            "anything is written; what runs ends as ever, and evidence is taken.  All processes\n"
            "obey at about one moment, a heartbeat after the decision, and each says so once\n"
            "nothing that it began before is on its way.  Then nothing begins any more, and it\n"
            "waits until nothing is in process.  When the time is over it says what still is, who\n"
            "holds it and for how long, and ends with 6.  A process that was killed is waited for\n"
            "until others end its session (`tradelock reap` does that where none runs).\n"
            "\n"
            "The drain is on record until --end, also when this command is killed.  `tradelock\n"
            "status`, `doctor` and `channel ls` show it, as channel *.  What waits in the retry\n"
            "lane stays as it is.  Lease mutexes and read-write locks are granted as ever, and\n"
            "are not waited for.\n",
    .examples = "  tradelock drain --reason switch-over --timeout 5m\n"
                "  tradelock drain --end --reason done\n",
    .options = options,
    .check = check,
    .of = OF_DATABASE,
    .work = work,
};
