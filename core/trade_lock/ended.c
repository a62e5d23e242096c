/*
 * The row as an ending left it, without reading it: what the handle saw of it before, and what the
 * ending's statement wrote.  Moments that the server chose are 0 there.
 */
#include "trade_lock/lock.h"

#include "base/memory.h"
#include "base/text.h"

/* Without the memory for it the view has no result; the row has it. */
static void keep_result(tl_lock *lock, const step *s)
{
    memory_free(lock->ended.result);
    lock->ended.result = NULL;
    lock->ended.result_size = 0;
    if (s->result == NULL || s->result_size == 0)
        return;
    lock->ended.result = memory_dup(s->result, s->result_size);
    if (lock->ended.result != NULL)
        lock->ended.result_size = s->result_size;
}

void ended_keep(tl_lock *lock, const step *s)
{
    lock->ended.kind = s->kind;
    lock->ended.status = s->status;
    lock->ended.retryable = s->retryable;
    lock->ended.unsend = s->unsend;
    lock->ended.findings = s->findings;
    text_copy(lock->ended.channel_ref, sizeof lock->ended.channel_ref, s->channel_ref);
    text_copy(lock->ended.remark, sizeof lock->ended.remark, s->remark);
    text_copy(lock->ended.actor, sizeof lock->ended.actor, s->actor);
    lock->ended.says_remark = s->remark != NULL;
    if (s->kind == STEP_FINISH_SYNC || s->kind == STEP_FINISH_RETRY)
        keep_result(lock, s);
}

static void show_final(tl_lock *lock, tl_view *v)
{
    int succeeded = lock->ended.status == 'Y';

    v->status = lock->ended.status;
    v->state = succeeded ? TL_STATE_SUCCEEDED : v->lane == 'R' ? TL_STATE_CLOSED : TL_STATE_FAILED;
    v->proof = succeeded ? '-' : (char)lock->ending_proof;
    v->retryable = lock->ended.retryable;
    v->result = lock->ended.result;
    v->result_size = lock->ended.result_size;
    if (lock->ended.kind != STEP_FINISH_RETRY)
        return;
    v->retry_status = v->status;
    v->claims = 0;
    if (succeeded && !lock->ended.says_remark)
        v->remark[0] = '\0'; /* it was an earlier attempt's */
}

static void show_opened(tl_lock *lock, tl_view *v)
{
    v->state = lock->ending_answer == TL_PARKED   ? TL_STATE_PARKED
               : lock->ending_answer == TL_QUEUED ? TL_STATE_QUEUED
                                                  : TL_STATE_IN_DOUBT;
    if (lock->ended.unsend && v->sends > 0)
        v->sends--;
    v->seen_by_channel |= lock->ended.findings.seen_by_channel;
    v->cancel_tried |= lock->ended.findings.cancel_tried;
    if (lock->ended.kind != STEP_OPEN)
        return;
    v->has_retry_row = 1;
    v->retry_status = 'F';
    text_copy(v->parked, sizeof v->parked, lock->park_reason);
}

void ended_show(tl_lock *lock)
{
    tl_view *v = &lock->view;

    v->fence = lock->grant.fence + 1;
    if (v->rev != 0)
        v->rev++;
    text_copy(v->thread_no, sizeof v->thread_no, lock->base.thread_no);
    text_copy(v->log_no, sizeof v->log_no, lock->base.log_no);
    v->session_id[0] = v->holder[0] = '\0';
    v->max_hold_until_us = v->next_run_us = v->updated_us = 0;
    if (lock->ended.channel_ref[0] != '\0')
        text_copy(v->channel_ref, sizeof v->channel_ref, lock->ended.channel_ref);
    if (lock->ended.kind == STEP_FINISH_SYNC || lock->ended.kind == STEP_FINISH_RETRY)
        show_final(lock, v);
    else
        show_opened(lock, v);
    if (lock->ended.says_remark)
        text_copy(v->remark, sizeof v->remark, lock->ended.remark);
    text_copy(v->actor, sizeof v->actor, lock->ended.actor);
}
