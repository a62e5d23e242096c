/* What waits for a second person, a restored server among it. */
#ifndef TRADELOCK_PROPOSALS_H
#define TRADELOCK_PROPOSALS_H

#include <tradelock/admin.h>

/* As tl_inbox(); and whether somebody proposed to accept this server, which a restore left open. */
tl_status proposals_list(tl_client *client, tl_proposal_fn each, void *context);

#endif
