/* tradelock promote: offers this server as the next writer, for whatever promotes servers. */
#include "command.h"

#include "moment.h"
#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <time.h>

static const char *reason, *actor;
static int64_t wait_ms;
static int fenced;

#define LOOK_AGAIN_MS 50

static const struct timespec pause = {0, LOOK_AGAIN_MS * 1000000};

static int goes_on(tl_status status, int64_t end_ms)
{
    const tl_class class_ = tl_status_class(status);

    return (class_ == TL_CLASS_RETRY || class_ == TL_CLASS_UNKNOWN) && steady_ms() < end_ms;
}

/* All processes come to the new server at once, which may be full for a moment, and each looks at
 * the row that is written here: who has time tries again.  So it does where an answer is lost, since
 * promoting twice does no harm. */
static tl_status offer(tl_client *client, int64_t end_ms)
{
    tl_status status = tl_promote(client, fenced, actor, reason);

    while (goes_on(status, end_ms)) {
        nanosleep(&pause, NULL);
        status = tl_promote(client, fenced, actor, reason);
    }
    return status;
}

/* Waits until it is accepted; *accepted says whether it was. */
static tl_status await(tl_client *client, int64_t end_ms, int *accepted)
{
    tl_status status;

    do {
        tl_restore r = TL_RESTORE_INIT;

        status = tl_restore_status(client, &r, NULL, NULL);
        *accepted = status == TL_OK && !r.open;
        if (*accepted || steady_ms() >= end_ms || (status != TL_OK && !goes_on(status, end_ms)))
            return status;
        nanosleep(&pause, NULL);
    } while (1);
}

static int work(tl_client *client)
{
    const int64_t end_ms = steady_ms() + wait_ms;
    int accepted = 0;
    tl_status status = offer(client, end_ms);

    if (status == TL_OK)
        status = await(client, end_ms, &accepted);
    if (status != TL_OK)
        return report(status);
    return print_answer(json_pack("{s:s}", "promote", accepted ? "accepted" : "offered"),
                        accepted || wait_ms == 0 ? EXIT_DONE : EXIT_UNSAFE, "%s",
                        accepted
                            ? "Accepted: nothing is missing.\n"
                            : "Offered. It is accepted by itself once every process has found here "
                              "all that it\nknows; `tradelock restore status` says what is "
                              "missing.\n");
}

static int check(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return needs_reason(reason);
}

static const struct command_option options[] = {
    OPTION_REASON_OF(&reason, WHY),
    {"fenced",
     "the old server is off for certain: whoever died is waited for only\n"
     "until others end its session, by when they have lost their locks; if it\n"
     "died last, nobody notices what the replica skipped of its last steps",
     OPTION_FLAG, .to = &fenced},
    OPTION_ACTOR_OF(&actor, WHO),
    {"wait TIME", "wait so long until it is accepted; exit code 5 if it is not", OPTION_DURATION,
     .to = &wait_ms, .is = "a time, such as 10s"},
    {.name = NULL}};

const struct command command_promote = {
    .name = "promote",
    .summary = "offer a server that was promoted as the next writer",
    .arguments = "--reason TEXT [--fenced] [--actor NAME] [--wait TIME] [--json]",
    .text = "For whatever promotes servers, run against the new writer once it takes writes\n"
            "and the old one cannot be reached or is read-only.  It grants nothing by itself.\n"
            "Every process looks for all that it was told was committed, and says what it\n"
            "found.  If all have, and nothing is missing, and the old server waited for its\n"
            "replica with each commit, the new one is accepted without a person, and who holds\n"
            "a lock keeps it.  Else `restore status` says what is missing, and two operators\n"
            "decide (tools/RESTORE.md).  Promoting it twice does no harm.\n",
    .examples = "  tradelock promote --fenced --reason \"db1 is down\"\n",
    .options = options,
    .check = check,
    .of = OF_DATABASE,
    .work = work,
};
