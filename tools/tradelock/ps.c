/* tradelock ps: the processes that have a session, and when each was heard of last. */
#include "command.h"

#include "fleet.h"
#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>

static int add_row(void *context, const tl_session_row *one)
{
    struct listing *listing = context;
    char started[TIME_TEXT], silent[TIME_TEXT], pid[24], permits[24] = "";

    snprintf(pid, sizeof pid, "%llu", (unsigned long long)one->pid);
    if (one->permits > 0)
        snprintf(permits, sizeof permits, "%llu", (unsigned long long)one->permits);
    table_add(listing->table, one->state, one->program, pid, one->host,
              time_text(started, one->started_us), distance_text(silent, 0, one->silent_us) + 1,
              permits, one->obeys[0] != '\0' ? one->obeys : "nothing", one->operations);
    json_array_append_new(
        listing->rows,
        fleet_row(json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:o, s:f, s:f, s:I, s:s}", "state",
                            one->state, "program", one->program, "pid", (json_int_t)one->pid,
                            "host", one->host, "session_id", one->session_id, "operations",
                            json_text(one->operations), "started_at", json_time(one->started_us),
                            "silent_s", (double)one->silent_us / 1e6, "timeout_s",
                            (double)one->timeout_ms / 1e3, "permits", (json_int_t)one->permits,
                            "obeys", one->obeys)));
    return 0;
}

static int list_one(tl_client *client, void *context)
{
    const tl_status status = tl_session_list(client, add_row, context);

    return status == TL_OK ? EXIT_DONE : fleet_missed(status);
}

static int run(const struct command *self, struct common *common, int argc, char **argv)
{
    int code = fleet_begin(common);

    (void)self;
    (void)argc;
    (void)argv;
    if (code == EXIT_DONE) {
        struct listing listing = {table_new("STATE", "PROGRAM", "PID", "HOST", "STARTED",
                                            "LAST BEAT", "PERMITS", "OBEYS", "OPERATIONS", NULL),
                                  json_array()};

        code = fleet_each(0, list_one, &listing);
        code = listing_end_fleet(&listing, code, common->json, "sessions",
                                 "no process has a session: no service and no worker is running");
    }
    fleet_end();
    return code;
}

const struct command command_ps = {
    .name = "ps",
    .summary = "list the processes that hold and compensate trades",
    .arguments = "[--json]",
    .text = "Lists sessions, oldest first: alive; silent for longer than their time-out; or\n"
            "ended, while what they held is not all opened yet.  PERMITS: so many sends each may\n"
            "have under way through channels that operators limit.\n",
    .run = run,
};
