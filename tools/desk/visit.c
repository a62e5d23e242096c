/* At which shard a visit works. */
#include "desk.h"

#include <stdio.h>
#include <string.h>

tl_status visit_go_to(struct visit *visit, size_t shard)
{
    visit->shard = shard;
    visit->client = NULL;
    return shards_client(visit->session->shards, shard, &visit->client, &visit->account);
}

tl_status visit_go_to_owner(struct visit *visit, const char *cust_no)
{
    size_t owner = 0;
    tl_status status = shards_owner(visit->session->shards, cust_no, &owner);

    return status == TL_OK ? visit_go_to(visit, owner) : status;
}

/* What was sent names it. */
int visit_go_to_sent(struct visit *visit)
{
    const size_t shard =
        shards_find(visit->session->shards, form_get(&visit->request->body, "shard"));
    tl_status status;

    if (!visit_is_of_fleet(visit))
        return 1;
    if (shard == SHARD_NOBODY) {
        layout_no_form(visit, "What was sent names no shard of this fleet.");
        return 0;
    }
    status = visit_go_to(visit, shard);
    if (status == TL_OK)
        return 1;
    layout_not_now(visit, status);
    return 0;
}

int visit_may_decide(struct visit *visit)
{
    if (!visit->account.may_decide)
        layout_sentence(visit, 403, "Not for this account",
                        visit->client == NULL || !visit_is_of_fleet(visit)
                            ? "Your account may look, and not decide. Nothing was done."
                            : "Your account may look at this shard, and not decide there. Nothing "
                              "was done.");
    return visit->account.may_decide;
}

int visit_is_of_fleet(const struct visit *visit)
{
    return shards_is_fleet(visit->session->shards);
}

const char *visit_shard(const struct visit *visit)
{
    return shards_name(visit->session->shards, visit->shard);
}

const char *said_at(const char *shard, tl_status status)
{
    const char *said = said_by(status);
    const size_t size = strlen(shard);

    if (strncmp(said, "shard ", 6) == 0 && strncmp(said + 6, shard, size) == 0 &&
        strncmp(said + 6 + size, ": ", 2) == 0)
        said += 6 + size + 2;
    return said;
}

void missing_keep(struct missing *missing, const struct visit *visit, tl_status status)
{
    missing->is = 1;
    snprintf(missing->why, sizeof missing->why, "%s", said_at(visit_shard(visit), status));
}

void missing_tell(struct visit *visit, size_t shard, const struct missing *missing)
{
    if (missing->is)
        page_format(&visit->answer->page,
                    "<p class=\"notice bad\" role=\"alert\"><strong>Shard %s is missing on this "
                    "page.</strong> %s</p>\n",
                    shards_name(visit->session->shards, shard), missing->why);
}
