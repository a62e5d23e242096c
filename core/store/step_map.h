/*
 * The parameters of sql/step: one line for each, which is written `:NAME` there.  A parameter
 * without a line does not compile: its STEP_FIELD_NAME is not declared.
 */
#ifndef TL_STORE_STEP_MAP_H
#define TL_STORE_STEP_MAP_H

#include <tradelock/record.h>

/* FIELD(NAME, its value of the step `s`). */
#define STEP_MAP(FIELD)                                                                            \
    FIELD(cust_no, db_ascii(s->cust_no))                                                           \
    FIELD(serial_no, db_ascii(s->serial_no))                                                       \
    FIELD(op_code, db_ascii(s->op_code))                                                           \
    FIELD(retry_op, db_ascii(s->retry_op))                                                         \
    FIELD(lane, letter(&s->lane))                                                                  \
    FIELD(status, letter(step_rule_of(s->kind)->ends ? &s->status : "P"))                          \
    FIELD(group_step, db_ascii(group_step(s->kind)))                                               \
    FIELD(name, db_text(s->name))                                                                  \
    FIELD(thread_no, UUID(s->thread_no))                                                           \
    FIELD(log_no, UUID(s->log_no))                                                                 \
    FIELD(new_log_no, UUID(s->new_log_no))                                                         \
    FIELD(session_id, UUID(s->session_id))                                                         \
    FIELD(token, db_bytes(s->token, STEP_TOKEN))                                                   \
    FIELD(held_token, db_bytes(s->held_token, STEP_TOKEN))                                         \
    FIELD(held_fence, db_uint(s->held_fence))                                                      \
    FIELD(ended_fence, step_rule_of(s->kind)->ends ? db_uint(s->held_fence) : db_null())           \
    FIELD(sends, db_uint(s->sends))                                                                \
    FIELD(known_sends, s->known_sends > 0 ? db_uint(s->known_sends) : db_null())                   \
    FIELD(known_rev, s->known_rev > 0 ? db_uint(s->known_rev) : db_null())                         \
    FIELD(send_before_us, db_uint(s->send_before_us))                                              \
    FIELD(unsend, db_int(s->unsend))                                                               \
    FIELD(max_hold_ms, db_int(s->max_hold_ms))                                                     \
    FIELD(deadline_ms, milliseconds_or_null(s->deadline_ms))                                       \
    FIELD(next_run_ms, next_run_or_null(s))                                                        \
    FIELD(least_us, db_int(s->least_us))                                                           \
    FIELD(most_us, db_int(s->most_us))                                                             \
    FIELD(by_time, db_int(s->by_time))                                                             \
    FIELD(clock_jumps, db_uint(s->clock_jumps))                                                    \
    FIELD(fingerprint, db_bytes(s->fingerprint, TL_FINGERPRINT))                                   \
    FIELD(payload, payload_or_hold(s))                                                             \
    FIELD(exclusive, db_int(s->exclusive))                                                         \
    FIELD(channel, db_ascii(s->channel))                                                           \
    FIELD(channel_key, db_ascii(s->channel_key))                                                   \
    FIELD(channel_ref, db_text(s->channel_ref))                                                    \
    FIELD(result, db_bytes(s->result, s->result_size))                                             \
    FIELD(proof, letter(&s->proof))                                                                \
    FIELD(retryable, db_int(s->retryable))                                                         \
    FIELD(in_caller, db_int(s->in_caller))                                                         \
    FIELD(remark, db_text(s->remark))                                                              \
    FIELD(actor, db_text(s->actor))                                                                \
    FIELD(reclaim_epoch, db_uint(s->reclaim_epoch))                                                \
    FIELD(reclaim_fence, db_uint(s->reclaim_fence))                                                \
    FIELD(claim_as, db_int(s->claim_as))                                                           \
    FIELD(override_fence, db_uint(s->override_fence))                                              \
    FIELD(apply_failed, db_int(s->findings.apply_failed))                                          \
    FIELD(not_counted, db_int(s->findings.not_counted))                                            \
    FIELD(keep_claims, db_int(s->keep_claims))                                                     \
    FIELD(park_reason, db_text(s->park_reason))                                                    \
    FIELD(seen_by_channel, db_int(s->findings.seen_by_channel))                                    \
    FIELD(cancel_tried, db_int(s->findings.cancel_tried))                                          \
    FIELD(act_no, db_uint(s->act_no))                                                              \
    FIELD(act_row, db_uint(s->act_row))                                                            \
    FIELD(not_found, db_int(step_not_found(s)))

/* What a request says of itself has its names from TL_SAID_MAP. */
#define STEP_FIELD_NAME(name, value) STEP_FIELD_##name,
#define STEP_SAID_NAME(type, name, ...) STEP_FIELD_##name,
enum step_field { STEP_MAP(STEP_FIELD_NAME) TL_SAID_MAP(STEP_SAID_NAME) STEP_FIELDS };
#undef STEP_FIELD_NAME
#undef STEP_SAID_NAME

#endif
