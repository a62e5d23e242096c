/*
 * The databases that a session looks at, with its account: the one of the settings, or the shards
 * of a fleet.  What an account may do is each shard's own word.
 */
#ifndef DESK_SHARDS_H
#define DESK_SHARDS_H

#include "options.h"

/* How a line of the access log begins; the account and the trade follow. */
#define SHARDS_ACCESS "access by "

#include <tradelock/admin.h>

#include <stddef.h>

#define SHARD_NOBODY SIZE_MAX
#define WHY_TEXT 512

struct shards;

/*
 * Opens them; a shard of a fleet that does not answer is tried again meanwhile.  *account is what
 * the account is and may do, at one shard at least; of a fleet its database is the fleet's name.
 *
 *     TL_OK              At least one of them knows this account and its password.
 *     TL_ACCESS_DENIED   One of them does not.
 *     TL_REFUSED         It may not come in, as why says; "": that is not about the account.
 *
 * or why they cannot be used, as tl_client_open() and tl_fleet_open() say it.
 */
tl_status shards_open(struct shards **out, const struct options *options, const char *user,
                      const char *password, tl_account *account, char why[WHY_TEXT]);
void shards_close(struct shards *shards);

/* 0: they are one database, shard 0, and nothing names a shard. */
int shards_is_fleet(const struct shards *shards);
size_t shards_count(const struct shards *shards);
/* "" of one database. */
const char *shards_name(const struct shards *shards, size_t i);
/* SHARD_NOBODY: the settings name no such shard. */
size_t shards_find(const struct shards *shards, const char *name);

/* Before an act: what the account may do is asked for at the server, and not remembered. */
void shards_look_anew(struct shards *shards);
/* The client of a shard, and what the account may do there; or why it cannot be asked, TL_REFUSED or
 * TL_ACCESS_DENIED where the account may not come in any more. */
tl_status shards_client(struct shards *shards, size_t i, tl_client **client, tl_account *account);

/* Which shard has this customer now, by what the databases say; that one is asked last.
 *
 *     TL_UNREACHABLE   The one that has it does not answer, or nobody knows which one that is.
 *     TL_MISDIRECTED   None has: the customer is handed over just now, or the slot is nobody's. */
tl_status shards_owner(struct shards *shards, const char *cust_no, size_t *shard);
/* Reads now what shards_owners() tells from. */
void shards_look_again(struct shards *shards);
/* Which one has each of these customers, as it was a beat ago at most; SHARD_NOBODY: not known. */
void shards_owners(struct shards *shards, const char *const *cust_nos, size_t count,
                   size_t *owners);

#endif
