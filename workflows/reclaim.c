/* Decides whether a proven failure may be tried anew, and first asks the channel about its old
 * keys. Calls query and files evidence; it sends nothing, run.c does. */
#include "run.h"

#include <tradelock/lane.h>

#include <inttypes.h>
#include <string.h>

#define DAY_US (INT64_C(86400) * 1000000)
/* The search for lost keys ends after this many in a row that the channel does not know. */
#define LOST_ABSENT 3
#define LOST_MOST 64 /* and after this many keys in all */

/* Whether the proof is that nothing arrived, and not the channel's word that it refused the payment
 * or took it back. */
static int rests_on_absence(const tl_view *view)
{
    return view->proof == TL_PROOF_NOT_FOUND || view->proof == TL_PROOF_NEVER_LEFT ||
           view->proof == TL_PROOF_OPERATORS;
}

/* The channel knows an old key, which contradicts the row: files that, and raises an alarm. */
static tl_status file_conflict(tl_client *client, const attempt *a, tl_query_result found)
{
    tl_evidence evidence = TL_EVIDENCE_INIT;
    tl_status status;

    evidence.key = a->seen.key;
    evidence.epoch = a->seen.epoch;
    evidence.channel_key = a->seen.channel_key;
    evidence.outcome = found == TL_QUERY_SUCCEEDED ? "SUCCEEDED" : "PENDING";
    evidence.final = 1;
    evidence.channel_ref = a->reply.channel_ref[0] != '\0' ? a->reply.channel_ref : NULL;
    evidence.source = "reclaim";
    evidence.remark = a->reply.remark[0] != '\0' ? a->reply.remark : NULL;
    status = tl_evidence_add(client, &evidence);
    tl_client_log(client, TL_ALARM, &a->seen.key, 0,
                  "epoch %" PRIu32 " was closed as unpaid, but the channel says %s", a->seen.epoch,
                  evidence.outcome);
    if (status == TL_OK || status == TL_IN_CONFLICT)
        return tl_error_report(TL_IN_CONFLICT,
                               "the channel says %s of epoch %" PRIu32
                               ", which is not paid here; operators must decide",
                               evidence.outcome, a->seen.epoch);
    return status;
}

/* The row's epoch has its key on the row.  Those of others have as many digits, and are computed; if
 * what is computed for the row's own is another one, theirs are not known. */
static tl_status key_of(tl_client *client, attempt *a, const tl_view *view, uint32_t epoch)
{
    const unsigned chars = (unsigned)strlen(view->channel_key);
    const char *channel = a->workflow->channel;
    tl_status status = tl_channel_key(a->channel_key, chars, tl_client_site(client), channel,
                                      &a->seen.key, view->epoch);
    const int is_other = status != TL_OK || strcmp(a->channel_key, view->channel_key) != 0;

    if (epoch == view->epoch && view->channel_key[0] != '\0') {
        memcpy(a->channel_key, view->channel_key, sizeof a->channel_key);
        return TL_OK;
    }
    if (is_other)
        return tl_error_report(TL_ASK_CHANNEL,
                               "the channel key on the row is not what site, channel and epoch "
                               "make here, so the key of epoch %" PRIu32 " is not known, and it "
                               "is not tried anew: pay under a new serial number",
                               epoch);
    return tl_channel_key(a->channel_key, chars, tl_client_site(client), channel, &a->seen.key,
                          epoch);
}

static tl_status check_epoch(tl_client *client, attempt *a, const tl_view *view, uint32_t epoch,
                             tl_query_result *found)
{
    const tl_workflow *w = &a->workflow->given;
    tl_status status = key_of(client, a, view, epoch);

    *found = TL_QUERY_UNREACHABLE;
    if (status != TL_OK)
        return status;
    a->seen.epoch = epoch;
    a->channel_ref[0] = '\0';
    *found = attempt_query(a, w->policy.execute_ms);
    switch (*found) {
    case TL_QUERY_SUCCEEDED:
    case TL_QUERY_PENDING:
        return file_conflict(client, a, *found);
    case TL_QUERY_UNREACHABLE:
        return tl_error_report(TL_UNKNOWN,
                               "the channel did not say what became of epoch %" PRIu32
                               ", so it is not tried anew",
                               epoch);
    case TL_QUERY_FAILED:
    case TL_QUERY_NOT_FOUND:
    default:
        return TL_OK;
    }
}

/* ------------------------------------------------- what a restore may have lost -- */

/* Whether tries of this trade may be lost.  A trade from before the last restore may have been
 * tried anew in the steps that were lost, under the keys that its next grants will have.  A day is
 * added, since two servers' clocks differ, and holders make rows anew. */
static int may_be_lost(int64_t accepted_us, const tl_view *view)
{
    return accepted_us != 0 && view->created_us < accepted_us + DAY_US;
}

/* How much longer a send of a lost grant may be on its way after the restore was accepted.  Until
 * then "no such payment" does not count. */
static int64_t too_early_ms(const tl_workflow *w, int64_t accepted_us, const tl_view *view)
{
    const int64_t over_us = accepted_us + (w->policy.max_hold_ms + w->policy.grace_ms) * 1000;

    return view->now_us < over_us ? (over_us - view->now_us) / 1000 + 1 : 0;
}

/* A channel that cannot be asked pays a key once within its window.  So the trade must be younger
 * than the window: a lost send of its next key is at most as old as the trade. */
static tl_status check_window(const tl_workflow *w, const tl_view *view)
{
    const int64_t needed_ms = (view->now_us - view->created_us) / 1000 + w->policy.deadline_ms +
                              w->policy.max_hold_ms + w->channel.latency_ms;

    if (w->channel.idempotent && (w->channel.window_ms == 0 || needed_ms <= w->channel.window_ms))
        return TL_OK;
    return tl_error_report(TL_ASK_CHANNEL,
                           "the trade is older than the last restore, and epoch %" PRIu32 " "
                           "may have been tried anew in it; the channel cannot be asked, "
                           "and may have forgotten that key: ask it by other means, and "
                           "pay under a new serial number",
                           view->epoch);
}

/* Asks for each key from the next one upwards, until the channel knows none of several in a row.
 * One unknown key is not enough, since a lost send may never have arrived. */
static tl_status check_lost(tl_client *client, attempt *a, const tl_view *view, int64_t accepted_us)
{
    const tl_workflow *w = &a->workflow->given;
    const int64_t early_ms = too_early_ms(w, accepted_us, view);
    tl_status status = TL_OK;
    tl_query_result found;
    int absent = 0;

    if (!w->channel.can_query)
        return check_window(w, view);
    for (uint32_t i = 1; i <= LOST_MOST && absent < LOST_ABSENT && status == TL_OK; i++) {
        status = check_epoch(client, a, view, view->epoch + i, &found);
        absent = found == TL_QUERY_NOT_FOUND ? absent + 1 : 0;
    }
    if (status == TL_OK && early_ms > 0)
        status = tl_error_report(TL_UNKNOWN,
                                 "the server was restored, and a payment of the next epoch "
                                 "may still be on its way: try again in %" PRId64 " ms",
                                 early_ms);
    return status;
}

tl_status reclaim_check(tl_client *client, attempt *a, const tl_view *view)
{
    const int64_t accepted_us = tl_restore_accepted_us(client);
    uint32_t last = view->epoch;
    tl_query_result found;
    tl_status status = TL_OK;

    if (may_be_lost(accepted_us, view))
        status = check_lost(client, a, view, accepted_us);
    if (status != TL_OK)
        return status;
    /* Without a query there is only the proof itself.  On such a channel only a request that never
     * left has a proof of absence. */
    if (!rests_on_absence(view) || !a->workflow->given.channel.can_query)
        return TL_OK;
    for (uint32_t epoch = last; epoch >= 1 && status == TL_OK; epoch--)
        status = check_epoch(client, a, view, epoch, &found);
    return status;
}
