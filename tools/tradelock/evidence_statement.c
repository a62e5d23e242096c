/* Files each payment of a bank's statement as evidence, and counts what that came to. */
#include "evidence_statement.h"

#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct totals {
    uint64_t made, filed, there, contradicting, unknown;
};

/* Of one payment: what the row and its evidence say already. */
struct payment {
    const tl_evidence *evidence;
    int absent, there;
};

static int look_at_row(void *context, const tl_view *view)
{
    struct payment *p = context;

    p->there = view->status == 'Y';
    return 0;
}

static int is_same(const char *filed, const char *told)
{
    return told == NULL || told[0] == '\0' || (filed != NULL && strcmp(filed, told) == 0);
}

static int look_at_evidence(void *context, const tl_evidence_row *row)
{
    struct payment *p = context;

    p->there = strcmp(row->outcome, p->evidence->outcome) == 0 &&
               is_same(row->channel_ref, p->evidence->channel_ref) &&
               is_same(row->channel_key, p->evidence->channel_key);
    return p->there;
}

/* Whether it is known already, so that a statement may be filed again. */
static tl_status look(tl_client *client, struct payment *p)
{
    const tl_key *key = &p->evidence->key;
    tl_status status = tl_show(client, key, TL_LANE_SYNC, look_at_row, p);

    p->absent = status == TL_NOT_FOUND;
    if (p->absent)
        return TL_OK;
    if (status == TL_OK && !p->there)
        status = tl_evidence_list(client, key, look_at_evidence, p);
    return status;
}

static tl_status file_one(tl_client *client, const tl_evidence *evidence, struct totals *totals)
{
    struct payment p = {.evidence = evidence};
    tl_status status = look(client, &p);

    if (status != TL_OK)
        return status;
    if (p.there) {
        totals->there++;
        return TL_OK;
    }
    status = tl_evidence_add(client, evidence);
    if (status == TL_OK)
        ++*(p.absent ? &totals->made : &totals->filed);
    else if (status == TL_IN_CONFLICT)
        totals->contradicting++;
    else if (status == TL_NOT_FOUND)
        totals->unknown++;
    else
        return status;
    return TL_OK;
}

static int print_totals(const struct common *common, const struct totals *t, size_t count)
{
    const int code = t->contradicting + t->unknown > 0 ? EXIT_REFUSED : EXIT_DONE;

    if (common->json)
        return print_json(json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "payments", (json_int_t)count,
                                    "made", (json_int_t)t->made, "filed", (json_int_t)t->filed,
                                    "there", (json_int_t)t->there, "contradicting",
                                    (json_int_t)t->contradicting, "unknown",
                                    (json_int_t)t->unknown),
                          code);
    printf("%zu payments: %" PRIu64 " rows made that were lost, %" PRIu64 " filed, %" PRIu64
           " known already, %" PRIu64 " contradicting, %" PRIu64 " without a trade\n",
           count, t->made, t->filed, t->there, t->contradicting, t->unknown);
    return finish_output(code);
}

static const char *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

int evidence_statement(tl_client *client, const struct common *common,
                       const struct statement *statement, const char *op_code, const char *source)
{
    struct totals totals = {0};

    for (size_t i = 0; i < statement->count; i++) {
        const tl_payment *p = &statement->payments[i];
        const char *op = text_or_null(p->op_code);
        tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                                .outcome = "SUCCEEDED",
                                .source = source,
                                .channel_key = text_or_null(p->channel_key),
                                .channel_ref = text_or_null(p->channel_ref)};
        tl_status status;

        evidence.key = (tl_key){p->serial_no, p->cust_no, op != NULL ? op : op_code};
        status = file_one(client, &evidence, &totals);
        if (status != TL_OK)
            return report(status);
    }
    return print_totals(common, &totals, statement->count);
}
