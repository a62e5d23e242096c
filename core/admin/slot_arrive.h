/* A slot arrives: its customers' rows are copied to the target, and compared. */
#ifndef TL_ADMIN_SLOT_ARRIVE_H
#define TL_ADMIN_SLOT_ARRIVE_H

#include "admin/slot_end.h"

/* is_completing: the source let it go already. */
tl_status slot_arrive(struct move *m, const struct slot *source, int is_completing);
/* Who has rows at the target only is among those whose rows go, too. */
tl_status slot_arrive_copy(struct move *m);
/* Our own tables do not change any more: the slot is sealed at the one end, and the other one takes
 * rows from the mover alone.  So they are compared before the slot's rows are locked. */
tl_status slot_arrive_compare(struct move *m);
/* In transactions at both ends.  Everybody is read anew: a customer may have come to a business
 * table. */
tl_status slot_arrive_compare_others(struct move *m);
/* Copies all anew unless the target has all rows that the source has. */
tl_status slot_arrive_copy_lost(struct move *m);
/* Each customer in a transaction of his own. */
tl_status slot_arrive_raise(struct move *m);

#endif
