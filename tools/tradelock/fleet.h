/*
 * The shards of a fleet, for the command that goes over them.  All of it is in one place: a command
 * calls fleet_begin(), hands its work for one database to fleet_each(), and ends with fleet_code().
 * Where the settings are of one database, or --shard names one, that is the only one, nothing names
 * a shard, and all is as if there were no fleet.
 *
 * Each database is read by itself, one after the other: no moment is that of all.  So a trade whose
 * slot is handed over meanwhile may be seen at both ends, or at none.
 */
#ifndef TRADELOCK_FLEET_H
#define TRADELOCK_FLEET_H

#include "command.h"

#include <jansson.h>

/* Reads which shards there are, or NULL: this one alone; opens none.  0, or the exit code when the
 * settings are wrong. */
int fleet_begin(const char *shard);
/* Closes them all. */
void fleet_end(void);

/* Whether several are gone over, so that JSON has a field `shard`. */
int fleet_is(void);
/* Whether tables have a column SHARD: of a fleet, but where each shard has a page of its own. */
int fleet_has_column(void);
/* The shard that is worked on now; NULL: there is none to be named. */
const char *fleet_now(void);
/* "tradelock: ", or "tradelock: shard b: " while that is worked on. */
const char *fleet_said_by(void);

/* Goes on with this shard alone, as if --shard had named it; the others are closed. */
void fleet_keep(size_t i);
/* Which one that is; NULL: none. */
const char *fleet_kept(void);

size_t fleet_size(void);
/* The number of the one that is worked on. */
size_t fleet_at(void);
const char *fleet_name(size_t i);
/* Opened at its first use; NULL: it cannot be, which was said and is remembered. */
tl_client *fleet_client(size_t i, unsigned flags);
/* Until the next one it is this shard that is worked on. */
void fleet_go_to(size_t i);

/* The command's work for one database; returns its exit code. */
typedef int (*fleet_fn)(tl_client *client, void *context);
/* Does it for each shard that can be opened.  The exit code as fleet_code() has it. */
int fleet_each(unsigned flags, fleet_fn each, void *context);
/* EXIT_DONE; or the sentence of the last call on stderr, and the code: what this shard has is
 * missing. */
int fleet_told(tl_status status);
/* Whether any is. */
int fleet_is_incomplete(void);
/* Shards that were missed are tried again, by a command that goes over them again and again. */
void fleet_forget(void);

/* The code of the command: of the first shard that was missed, else the worst of these (5, 6, 1,
 * 0). */
int fleet_code(int code, int other);

/* ------------------------------------------------------------------ output -- */

/* Each shard has a page of its own, with a heading: for commands that print more than one list. */
void fleet_by_pages(void);
void fleet_heading(void);
/* Prints one database's document, and frees it; of a fleet, keeps it for fleet_print_pages().
 * Returns code, or EXIT_INTERNAL when it cannot. */
int fleet_page(json_t *document, int code);
/* Prints the kept ones as `shards`, with what else is given, which it frees; of a fleet alone. */
int fleet_print_pages(json_t *rest, int code);

/* Adds the field `shard` to a row of a fleet; gives the row back. */
json_t *fleet_row(json_t *row);
/* Adds `missing`, the shards that did not tell, to a document of a fleet. */
json_t *fleet_document(json_t *document);

#endif
