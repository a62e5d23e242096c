/* Judges rows for changes of many trades, of the command and of the desk.  Only reads. */
#include "judge.h"

int judge_retry(const tl_view *view)
{
    if (view->state == TL_STATE_LIVE || view->state == TL_STATE_WORKING)
        return RETRY_HELD;
    if (view->status != 'P' || view->repeatable || !view->has_retry_row)
        return JUDGE_OTHER;
    return view->parked[0] == '\0' && view->next_run_us <= view->now_us ? RETRY_DUE : JUDGE_MEANT;
}

char judge_status(tl_decision as)
{
    return as == TL_DECISION_FAILED ? 'P' : as == TL_DECISION_PAID ? 'F' : 0;
}

int judge_proposal(tl_decision as, const tl_view *view)
{
    const char status = judge_status(as);

    if (view->repeatable || (status != 0 && view->status != status) ||
        (!view->conflict && as != TL_DECISION_FAILED))
        return JUDGE_OTHER;
    if (view->status == 'P' && view->session_id[0] != '\0')
        return PROPOSE_HELD;
    if (as != TL_DECISION_FAILED)
        return JUDGE_MEANT;
    if (view->send_until_us > view->now_us)
        return PROPOSE_MAY_SEND;
    return view->parked[0] == '\0' && view->next_run_us == 0 ? JUDGE_OTHER : JUDGE_MEANT;
}

struct standing {
    tl_decision as;
    int stands;
};

static int see_proposal(void *context, const tl_resolution_row *row)
{
    struct standing *standing = context;

    standing->stands |= row->stands && row->decision == standing->as;
    return standing->stands;
}

int judge_proposed(tl_client *client, tl_decision as, const tl_key *key, tl_status *status)
{
    struct standing standing = {.as = as};

    *status = tl_resolution_list(client, key, see_proposal, &standing);
    if (*status != TL_OK)
        return JUDGE_OTHER;
    return standing.stands ? PROPOSE_STANDS : JUDGE_MEANT;
}

int judge_is_of_row(tl_status status)
{
    return status == TL_LOST || status == TL_BUSY || status == TL_ALREADY_DONE ||
           status == TL_FAILED || status == TL_NO_TRADE || status == TL_NOT_FOUND ||
           status == TL_REFUSED || status == TL_EVIDENCE || status == TL_CUSTOMER_BUSY;
}
