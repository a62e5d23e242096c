#include "run.h"

#include <inttypes.h>
#include <string.h>

/* Not on the channel's own word that this payment was refused or taken back. */
static int rests_on_absence(const tl_view *view)
{
    return view->proof == TL_PROOF_NOT_FOUND || view->proof == TL_PROOF_NEVER_LEFT ||
           view->proof == TL_PROOF_OPERATORS;
}

/* What the channel knows of an old key contradicts the row: on record, and an alarm. */
static tl_status file_conflict(tl_client *client, const attempt *a, tl_query found)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION};
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
                  "epoch %" PRIu32 " was closed as unpaid, but the channel says %s",
                  a->seen.epoch, evidence.outcome);
    if (status == TL_OK || status == TL_IN_CONFLICT)
        return tl_error_report(TL_IN_CONFLICT,
                               "the channel says %s of epoch %" PRIu32
                               ", which was closed "
                               "as unpaid; operators must decide",
                               evidence.outcome, a->seen.epoch);
    return status;
}

static tl_status check_epoch(tl_client *client, attempt *a, uint32_t epoch)
{
    const tl_workflow *w = &a->workflow->given;
    tl_query found;
    tl_status status =
        tl_channel_key(a->channel_key, w->channel.key_chars, tl_client_site(client),
                       w->channel.name, &a->seen.key, epoch);

    if (status != TL_OK)
        return status;
    a->seen.epoch = epoch;
    a->channel_ref[0] = '\0';
    found = attempt_query(a, w->policy.execute_ms);
    switch (found) {
    case TL_QUERY_SUCCEEDED:
    case TL_QUERY_PENDING:
        return file_conflict(client, a, found);
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

tl_status reclaim_check(tl_client *client, attempt *a, const tl_view *view)
{
    uint32_t last = view->epoch;
    tl_status status = TL_OK;

    /* Without a query the proof itself is all there is: only a request that never left
     * ends so on such a channel. */
    if (!rests_on_absence(view) || !a->workflow->given.channel.can_query)
        return TL_OK;
    for (uint32_t epoch = last; epoch >= 1 && status == TL_OK; epoch--)
        status = check_epoch(client, a, epoch);
    return status;
}
