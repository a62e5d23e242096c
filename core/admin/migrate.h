/* What a migration and the joining of a fleet share. */
#ifndef TL_ADMIN_MIGRATE_H
#define TL_ADMIN_MIGRATE_H

#include "db/db.h"

#include <tradelock/tradelock.h>

/* Takes the turn to migrate on a connection of its own, which pool_close_extra() of POOL_BUSINESS
 * closes; that ends the turn. */
tl_status migrate_take_turn(tl_client *client, db **out);

/* Makes what only a fleet's database has, where it is missing or not as it should be; the rule of
 * slots only where it is missing.  Adds to *made. */
tl_status migrate_fleet_objects(db *connection, unsigned *made);

#endif
