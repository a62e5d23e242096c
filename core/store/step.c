#include "store/step.h"

#include <stddef.h>

int step_is_grant(step_kind kind)
{
    return kind == STEP_ASK || kind == STEP_ASK_REPEATABLE || kind == STEP_RECLAIM ||
           kind == STEP_CLAIM || kind == STEP_ARM;
}

int step_is_holders(step_kind kind)
{
    return kind == STEP_FINISH_SYNC || kind == STEP_FINISH_RETRY || kind == STEP_OPEN ||
           kind == STEP_RELEASE || kind == STEP_ARM;
}

int step_is_plain(const step *s)
{
    if (s->channel != NULL || s->channel_key != NULL || s->channel_ref != NULL ||
        s->remark != NULL || s->actor != NULL)
        return 0;
    if (s->kind == STEP_ASK)
        return s->deadline_ms < 0 && !s->exclusive && s->sends > 0;
    return s->kind == STEP_FINISH_SYNC && s->once && s->status == 'Y' && s->proof == '-' &&
           !s->retryable && s->result == NULL && !s->in_caller;
}

int step_not_found(const step *s)
{
    if (s->findings.not_found_reset)
        return 2;
    return s->findings.not_found_first ? 1 : 0;
}

const char *step_name(step_kind kind)
{
    static const char *const names[STEP_KINDS] = {
        [STEP_ASK] = "ask",          [STEP_ASK_REPEATABLE] = "ask",
        [STEP_RECLAIM] = "reclaim",  [STEP_FINISH_SYNC] = "end",
        [STEP_FINISH_RETRY] = "end", [STEP_OPEN] = "open",
        [STEP_RELEASE] = "release",  [STEP_REAP] = "reap",
        [STEP_CLAIM] = "claim",      [STEP_ARM] = "arm",
        [STEP_CLOSE] = "close",      [STEP_OPERATOR_RETRY] = "operator",
    };

    return names[kind];
}
