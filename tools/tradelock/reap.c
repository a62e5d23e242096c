/* tradelock reap: the janitor's round, once. */
#include "command.h"

#include "print.h"

#include <tradelock/lane.h>

static int work(tl_client *client)
{
    tl_reaped reaped = {0, 0, 0, 0};
    tl_status status = tl_reap(client, &reaped);

    if (status != TL_OK)
        return report(status);
    return print_answer(
        json_pack("{s:I, s:I, s:I, s:I}", "sessions", (json_int_t)reaped.sessions, "opened",
                  (json_int_t)reaped.opened, "freed", (json_int_t)reaped.freed, "blanked",
                  (json_int_t)reaped.blanked),
        EXIT_DONE, "%s sessions ended, %s trades opened, %s holders freed, %s trades blanked\n",
        COUNT_TEXT(reaped.sessions), COUNT_TEXT(reaped.opened), COUNT_TEXT(reaped.freed),
        COUNT_TEXT(reaped.blanked));
}

const struct command command_reap = {
    .name = "reap",
    .summary = "open the retry lane of trades, and free locks, whose holder is dead",
    .arguments = "[--json]",
    .text = "Does once what every service does all the time: ends sessions that show no\n"
            "heartbeat for a whole time-out (session_ms; it takes as long), and opens the\n"
            "lanes of trades whose session is over or whose max_hold has passed.  Dead\n"
            "holders of read-write locks are freed, and contents are blanked as the setting\n"
            "payload_keep_ms says.  Any number may run at once, and the living are not\n"
            "touched.  Needs an account with the role DATABASE_application.\n",
    .examples = "  tradelock reap\n",
    .of = OF_DATABASE,
    .work = work,
};
