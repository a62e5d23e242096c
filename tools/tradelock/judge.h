/* Whether a change of many trades is for one of them, by what its row shows.  The database decides in
 * the end: this only leaves out what cannot be. */
#ifndef TRADELOCK_JUDGE_H
#define TRADELOCK_JUDGE_H

#include <tradelock/admin.h>

/* It is for it; or it is not, and nobody asks why; else why not. */
enum { JUDGE_MEANT = -1, JUDGE_OTHER = -2 };
enum { RETRY_HELD, RETRY_DUE };
enum { PROPOSE_HELD, PROPOSE_MAY_SEND, PROPOSE_STANDS };

/* To be due now: what is due already needs nobody, so the same again goes on with what is left. */
int judge_retry(const tl_view *view);
/* That this is decided of it. */
int judge_proposal(tl_decision as, const tl_view *view);
/* The same of what it proposed already, which is asked for; or *status says why it is not known. */
int judge_proposed(tl_client *client, tl_decision as, const tl_key *key, tl_status *status);
/* The letter of the status that such trades have; 0: any. */
char judge_status(tl_decision as);
/* Whether a call's answer is about that trade alone, so that the others go on. */
int judge_is_of_row(tl_status status);

#endif
