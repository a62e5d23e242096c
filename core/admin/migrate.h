/* What a migration and the joining of a fleet share. */
#ifndef TL_ADMIN_MIGRATE_H
#define TL_ADMIN_MIGRATE_H

#include "db/db.h"

#include <tradelock/tradelock.h>

#include <stddef.h>

/* Takes the turn to migrate on a connection of its own, which pool_close_extra() of POOL_BUSINESS
 * closes; that ends the turn. */
tl_status migrate_take_turn(tl_client *client, db **out);

/* Makes what only a fleet's database has, where it is missing or not as it should be; the rule of
 * slots only where it is missing.  Adds to *made. */
tl_status migrate_fleet_objects(db *connection, unsigned *made);

/* The triggers, functions, procedures and views of the schema. */
struct sql_object;

/* What a schema consists of: that of a fleet's database has a few objects more. */
size_t schema_objects_count(int of_fleet);

/* The rule by which customers belong to slots: made where it is missing, and a service's own. */
int schema_objects_is_rule(const struct sql_object *object);

/* Whether the text has the line "kind name". */
int schema_objects_have(const char *there, const char *kind, const char *name);
/* How many of this library's objects are not in the text; `names` gets as many as fit. */
unsigned schema_objects_missing(const char *there, int of_fleet, char *names, size_t space);
/* How many of them have another hash in the text than this library's ("kind name HASH", one a line;
 * not views); `names` gets as many as fit.  -1: out of memory. */
int schema_objects_changed(const char *made, int of_fleet, char *names, size_t space);

#endif
