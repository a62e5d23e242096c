/* Takes the answer to an ask: a grant or a refusal.  A late grant is read by the kind's look();
 * touches the handle. */
#include "lock/handle.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/random.h"

#include <string.h>

/* Whether nobody can have taken the grant over: its time is not over and, if a session keeps it,
 * that session certainly lives. */
static int is_certain(const lock_handle *h, const lock_offer *offer)
{
    if (fault_mutated("session"))
        return 1;
    if (offer->by_session && life_left_ms(h->life) <= 0)
        return 0;
    return clock_left_ms(offer->before_ms + offer->left_ms) > 0;
}

/* Leaves a grant in doubt whose row could not be read.  Asking again with its token would write it
 * a second time, so it must be settled, which reads it.  Its connection has answered, so the doubt
 * names a connection that nobody has: nothing is under way. */
static tl_status leave_in_doubt(lock_handle *h, const void *asking)
{
    handle_become(h, LOCK_ASK_UNKNOWN);
    doubt_row(&h->doubt);
    if (h->method->in_doubt != NULL)
        h->method->in_doubt(h, asking);
    return error_prefix(TL_UNKNOWN, "granted, but the row could not be read");
}

tl_status lock_take(lock_handle *h, void *asking, lock_offer *offer)
{
    lock_grant *grant = h->grant;
    int mine = 1;
    tl_status status;

    if ((offer->unread || !is_certain(h, offer)) &&
        h->method->look(h, asking, offer, &mine) != TL_OK)
        return leave_in_doubt(h, asking);
    if (!mine)
        return h->method->gone(h, asking);
    memcpy(grant->token, h->next_token, LOCK_TOKEN);
    grant->fence = offer->fence;
    grant->life = h->life;
    grant->by_session = offer->by_session;
    grant->until_ms = offer->before_ms + offer->left_ms;
    grant->hold_until_ms = offer->before_ms + offer->hold_left_ms;
    memset(&grant->renewing, 0, sizeof grant->renewing);
    atomic_store(&grant->lost, 0);
    handle_become(h, LOCK_HELD);
    status = h->method->granted(h, asking);
    if (status == TL_GRANTED)
        client_add(&h->client->counters.grants, 1);
    return status;
}

tl_status lock_refused(lock_handle *h, tl_status status)
{
    client_add(&h->client->counters.refusals, 1);
    client_add(&h->client->counters.refused_as[status], 1);
    return h->method->explain(h, status);
}
