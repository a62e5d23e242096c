/* The retry lane, the janitor and evidence, cut at every packet. */
#include "operations.h"

#include "client/client.h"
#include "janitor/janitor.h"
#include "trade_lock/lock.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include "support/theme.h"

static void prepare_waiting(scene *s)
{
    scene_past(s, TL_OUTCOME_UNKNOWN);
    s->lock = scene_lock(s, s->far, TL_LANE_RETRY, 0);
}

static void prepare_claimed(scene *s)
{
    scene_past(s, TL_OUTCOME_UNKNOWN);
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, 0);
}

/* P under a session that has ended: nobody has opened it yet. */
static void leave_dead(scene *s)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *dead = NULL;

    options.config_file = database_option_file(s->db);
    options.flags = TL_CLIENT_NO_JANITOR;
    assert_int_equal(tl_client_open(&dead, &options), TL_OK);
    tl_lock_free(scene_granted(s, dead, TL_LANE_SYNC, 0));
    tl_client_close(dead);
}

static void prepare_dead(scene *s)
{
    leave_dead(s);
    s->lock = scene_lock(s, s->far, TL_LANE_RETRY, 0);
}

static tl_status call_ask(scene *s)
{
    return tl_lock_ask(s->lock, 0);
}

static tl_status call_arm(scene *s)
{
    const tl_status status = tl_lock_may_call(s->lock);

    return status == TL_OK ? tl_lock_arm(s->lock, 50000) : status;
}

static const char *check_armed(scene *s)
{
    return scene_hold_problem(s, s->lock);
}

/* ------------------------------------------------------------- claiming many -- */

/* Three trades of one customer; what earlier cases left due is no concern of this one.  The step
 * that is typed has a token of its own, as any step has. */
static void prepare_due(scene *s)
{
    char serial[32];

    database_run(s->sql, "UPDATE trade_lock SET next_run_at = NULL, rev = rev + 1, token = "
                         "UNHEX(REPLACE(UUID(), '-', '')) WHERE op_code = 'WITHDRAW_RETRY' AND "
                         "next_run_at IS NOT NULL");
    snprintf(serial, sizeof serial, "%s", s->serial);
    for (int i = 0; i < SCENE_CLAIMS; i++) {
        snprintf(s->serial, sizeof s->serial, "%.20s-%d", serial, i);
        scene_past(s, TL_OUTCOME_UNKNOWN);
    }
}

static long long claims_in_log(scene *s)
{
    return database_number(s->sql,
                           "SELECT COUNT(*) FROM trade_lock_log WHERE cust_no='%s' AND "
                           "step='claim' AND op_code='WITHDRAW_RETRY'",
                           s->cust);
}

/* TL_OK when all three are claimed; an answer that leaves some out is asked again. */
static tl_status call_claim_due(scene *s)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    size_t count = SCENE_CLAIMS - s->claimed_count;
    tl_status status;

    options.op_code = "WITHDRAW";
    options.max_hold_ms = 60000;
    status = tl_claim_due(s->far, &options, s->claimed + s->claimed_count, &count);
    if (status != TL_OK)
        return status;
    s->claimed_count += count;
    if (s->claimed_count == SCENE_CLAIMS)
        return TL_OK;
    /* "Nothing is due" means that nothing is claimed that nobody was given. */
    return count > 0 || claims_in_log(s) == (long long)s->claimed_count ? TL_TRY_AGAIN
                                                                        : TL_INTERNAL;
}

static const char *check_claimed(scene *s)
{
    for (size_t i = 0; i < s->claimed_count; i++) {
        const char *problem = scene_hold_problem(s, s->claimed[i]);

        if (problem[0] != '\0')
            return problem;
        if (tl_lock_view(s->claimed[i])->payload_size != 7)
            return "claimed without its payload";
    }
    return "";
}

/* ---------------------------------------------------------------- the others -- */

static void prepare_corpse(scene *s)
{
    /* The sessions of thousands of earlier cases have ended too, and a round sweeps 64. */
    database_run(s->sql, "UPDATE tl_session SET swept_at = UTC_TIMESTAMP(6) WHERE "
                         "ended_at IS NOT NULL AND swept_at IS NULL");
    leave_dead(s);
}

static tl_status call_reap(scene *s)
{
    uint64_t opened = 0, freed = 0;
    janitor_cursor cursor = {.from_us = 0};
    tl_status status =
        janitor_round(s->far->engine, &s->far->logger, "test", s->far->config.pool_wait_ms,
                      clock_watch_latest_us(s->far), &cursor, &opened, &freed);

    if (status != TL_OK)
        return status;
    /* What a round could not open is left to the next one. */
    return database_number(s->sql,
                           "SELECT session_id IS NULL FROM trade_lock WHERE cust_no='%s' "
                           "AND op_code='WITHDRAW'",
                           s->cust) == 1
               ? TL_OK
               : TL_TRY_AGAIN;
}

static void prepare_doubtful(scene *s)
{
    scene_past(s, TL_OUTCOME_UNKNOWN);
}

static tl_status call_evidence(scene *s)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {s->serial, s->cust, "WITHDRAW"},
                            .outcome = "SUCCEEDED",
                            .source = "test"};

    return tl_evidence_add(s->far, &evidence);
}

/* Repeated filing may leave more than one line, never none, and never another word. */
static const char *check_evidence(scene *s)
{
    if (database_number(s->sql, "SELECT COUNT(*) FROM trade_evidence WHERE cust_no='%s'", s->cust) <
        1)
        return "no evidence was filed";
    if (database_number(s->sql,
                        "SELECT COUNT(*) FROM trade_lock WHERE cust_no='%s' AND "
                        "op_code='WITHDRAW' AND success_epoch=1",
                        s->cust) != 1)
        return "the row does not know of the evidence";
    return "";
}

static const operation operations[] = {
    {"claim", OPERATION_GRANTS, prepare_waiting, call_ask, TL_GRANTED, "P 1 1", "P 1 0", 2, 0,
     NULL},
    {"claim of the dead", OPERATION_GRANTS | OPERATION_PARTS, prepare_dead, call_ask, TL_GRANTED,
     "P 1 1", "P 1 0", 4, 0, NULL},
    {"claim what is due", OPERATION_PARTS | OPERATION_HANG_UP, prepare_due, call_claim_due, TL_OK,
     "P 1 1", "P 1 0", 6, 0, check_claimed},
    {"arm", 0, prepare_claimed, call_arm, TL_OK, "P 1 2", "P 1 0", 1, 0, check_armed},
    {"reap", OPERATION_PARTS | OPERATION_HANG_UP | OPERATION_SPEAKS, prepare_corpse, call_reap,
     TL_OK, "P 1 1", "F 1 0", 2, 0, NULL},
    {"evidence", OPERATION_PARTS | OPERATION_HANG_UP, prepare_doubtful, call_evidence, TL_OK,
     "P 1 1", "F 1 0", SWEEP_ANY_STEPS, 0, check_evidence},
};

const struct operations operations_lane = {"lane", operations,
                                           sizeof operations / sizeof *operations};
