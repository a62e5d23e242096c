/* An end that was restored to before its slot went to another: what it knows, and nobody else. */
#ifndef TL_ADMIN_SLOT_STALE_H
#define TL_ADMIN_SLOT_STALE_H

#include "admin/slot_end.h"

int slot_has_claim(const struct slot *s);
/* What it says of a slot that went on meanwhile, from `version` on. */
int slot_is_stale(const struct slot *s, uint64_t version);
/* Read anew where the slot's row is locked: whoever was let through before may have been let through
 * by an accepting. */
tl_status slot_check_declared(struct move *m, struct end *stale);
/* In a transaction that has the slot's row at the stale end locked.  Whoever believed its claim may
 * have paid there: then this is the last place that tells of it. */
tl_status slot_check_sent(struct move *m, struct end *stale, const struct end *other);
/* How many were unknown is on record where they were. */
tl_status slot_note_claim(struct move *m, struct end *stale);

#endif
