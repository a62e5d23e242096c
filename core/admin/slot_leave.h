/* A slot leaves its shard: nothing begins there any more, and what was begun ends. */
#ifndef TL_ADMIN_SLOT_LEAVE_H
#define TL_ADMIN_SLOT_LEAVE_H

#include "admin/slot_end.h"

/* TL_REFUSED: by what both rows say, it may not. */
tl_status slot_may_leave(struct move *m, const struct slot *source, const struct slot *target);
/* In the transaction at the source that has read its row, which it ends. */
tl_status slot_leave(struct move *m, struct slot *source);
/* TL_BUSY: something is in process still, after all that the caller waits. */
tl_status slot_seal(struct move *m);
/* Back to owned, on record, by which the transaction that has read the row ends. */
tl_status slot_stay(struct move *m, const struct slot *source);
/* Back to owned, if it is leaving by this mover still.  Keeps the sentence.  Who has the row locked is
 * waited for: the server ends a transaction that stands idle. */
void slot_put_back(struct move *m);

#endif
