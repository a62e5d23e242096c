/* Lists proposals.  Only reads. */
#include "proposals.h"

tl_status proposals_list(tl_client *client, tl_proposal_fn each, void *context)
{
    tl_restore restore = TL_RESTORE_INIT;
    tl_status status = tl_inbox(client, each, context);

    if (status == TL_OK)
        status = tl_restore_status(client, &restore, NULL, NULL);
    if (status == TL_OK && restore.open && restore.proposed_us != 0)
        (void)each(context, &(tl_proposal){.what = "restore",
                                           .key = {"", "", ""},
                                           .said = "accept",
                                           .reason = restore.proposal,
                                           .actor = restore.proposer,
                                           .account = restore.proposer_account,
                                           .own = restore.own_proposal,
                                           .proposed_us = restore.proposed_us});
    return status;
}
