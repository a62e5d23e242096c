/*
 * submit.h - a payment from an event loop: its thread waits neither for the database nor for the
 * channel.
 *
 * The service makes the call of the channel itself:
 *
 *     tl_workflow_submit        the ask, with the lines of book_prepare, goes out with others
 *       completion TL_GRANTED   P is committed: the payment may be sent now
 *     tl_workflow_send_begin    directly before the request leaves
 *       ... the service sends, and waits for the answer in its loop ...
 *     tl_workflow_send_end      what execute would have answered; the ending goes out with others
 *       completion, any other   it is over: answer->status, as tl_workflow_run() returns it
 *
 * Completions are taken with tl_client_completed(), when the descriptor of tl_client_completed_fd()
 * is readable (<tradelock/tradelock.h>): lock is NULL, context is what was submitted, and status is
 * TL_GRANTED or that of the answer.  A run that is not granted has one completion, any other two.
 *
 * execute is not called by these runs: it is what a worker sends with, and may block there.
 *
 * Ownership.  The request may go once tl_workflow_submit() has returned.  The answer is the
 * library's from then until TL_GRANTED, and from tl_workflow_send_end() until the last completion;
 * it stays where it is and is not read meanwhile.  Attempt and reply are borrowed from
 * tl_workflow_send_begin() until tl_workflow_send_end().
 *
 * Threads.  Any thread may call, one at a time for each answer.  book_prepare runs within
 * tl_workflow_submit(), book_success and book_failure within tl_workflow_send_end(): no callback
 * runs on a thread of the library.  If an exception leaves book_prepare, nothing was asked, and the
 * answer is cleared; after one that leaves the others, call tl_workflow_send_end() again: its first
 * answer counts.  The client makes three threads for all steps, the registry one for what is tried
 * again or put back; signals come to none of them.
 *
 * Time.  A hold runs from TL_GRANTED on (max_hold_ms), so take completions and send soon.  What is
 * granted is always ended: whoever closes, or gives a payment up, calls tl_workflow_send_begin()
 * and tl_workflow_send_end() with NOT_SENT, or with UNKNOWN if anything may have left, and takes
 * the last completion.  If that never comes, the row stays P until max_hold is over or the session
 * ends, and the retry lane finds out.  After fork() the child has none of the parent's runs: each
 * call with them answers TL_WRONG_PROCESS.
 *
 * Steps that come together share a transaction.  One whose rows somebody else has locked is tried
 * again after a pause, for the policy's commit_ms at most, and no other waits for it; lines of
 * shared statements wait in the server, with each other.  An ask that is refused since its channel
 * is paused, or that takes a share of its channel's limit, goes out after the others.
 */
#ifndef TRADELOCK_SUBMIT_H
#define TRADELOCK_SUBMIT_H

#include <tradelock/workflow.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Submits a run.  TL_OK: it is completed as above.  Anything else: not submitted, nothing was
 * written, and the answer is as it was.
 *
 *     TL_INVALID             As tl_workflow_run(); wait_ms or reclaim_epoch is not 0; or the
 *                            workflow's business rows are written through a connection.
 *     TL_UNKNOWN_OPERATION   No workflow of this operation is registered.
 *     TL_NO_MEMORY           There is no memory, or no thread could be made.
 *
 * The completions' statuses are those of tl_workflow_run().  TL_UNKNOWN: tl_workflow_settle() may
 * be called, which waits and pays by execute; or leave it, and the retry lane finds out.
 */
TL_EXPORT tl_status tl_workflow_submit(tl_workflows *workflows, const tl_request *request,
                                       tl_answer *answer, void *context);

/*
 * Begins the send of a run that was granted.
 *
 *     TL_OK            *attempt says what to send, until when (tl_attempt_left_ms()) and with which
 *                      channel key; *reply is empty, to be filled by tl_reply_ref() and the like.
 *                      The rules of execute hold.
 *     TL_TIMEOUT       Too little is left of the hold.  Send nothing: the trade is being put back,
 *                      and its last completion comes.
 *     TL_WRONG_STATE   The run was not granted, is being sent, or is over.
 *     TL_INVALID       Something is NULL.
 */
TL_EXPORT tl_status tl_workflow_send_begin(tl_workflows *workflows, tl_answer *answer,
                                           const tl_attempt **attempt, tl_reply **reply);

/* Ends the send: what became of it, chosen by proof as execute chooses.  TL_OK: the last completion
 * comes.  TL_WRONG_STATE: nothing is being sent; TL_INVALID: something is NULL. */
TL_EXPORT tl_status tl_workflow_send_end(tl_workflows *workflows, tl_answer *answer,
                                         tl_execute_result executed);

/* The sentence that belongs to the status of a completed run, as tl_error_message() has it after
 * tl_workflow_run(); "" of any other answer.  It lives until the answer is cleared. */
TL_EXPORT const char *tl_answer_sentence(const tl_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
