/*
 * admin/server.h - schema, roles, the doctor, and purging what is finished.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_SERVER_H
#define TRADELOCK_ADMIN_SERVER_H

#include <tradelock/admin/audit.h>
#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What tl_migrate() did. */
typedef struct tl_migrated {
    unsigned from, to; /* versions of the schema */
    unsigned mended; /* triggers, functions and views that were missing or not as they should be */
} tl_migrated;

/*
 * Brings the schema to this library's version; any number may run at once, and one that was cut off
 * is run again.  Needs an administrator's account, and a client with TL_CLIENT_NO_SCHEMA.
 *
 *     TL_OK              The schema is this version's; *migrated says what was done.
 *     TL_SERVER_UNSAFE   The server is not fit for money.  Nothing was made.
 *     TL_READ_ONLY       The server takes no writes.  Nothing was made.
 */
TL_EXPORT tl_status tl_migrate(tl_client *client, tl_migrated *migrated);

/* Makes the roles NAME_application, NAME_operator and NAME_reader, where NAME is the database's, and
 * gives them the rights they need in it (sql/grants.sql).  TL_OK: they have them.  Needs an
 * administrator's account. */
TL_EXPORT tl_status tl_grant_roles(tl_client *client);

/* How bad a finding of the doctor is. */
typedef enum tl_finding_level {
    TL_FINDING_OK,
    TL_FINDING_WARNING,
    TL_FINDING_UNSAFE
} tl_finding_level;

/* One finding of the doctor. */
typedef struct tl_finding {
    tl_finding_level level;
    const char *check;    /* short name, stable */
    const char *found;    /* what the server says */
    const char *sentence; /* what it means and what to do */
} tl_finding;

/* Returns 0 to go on. */
typedef int (*tl_finding_fn)(void *context, const tl_finding *finding);

/*
 * Asks the server whether it is fit for money, and tells each finding.  It looks with the account
 * that it is given, so run it with the account of the service.
 *
 *     TL_OK              No finding is unsafe.  Read the warnings.
 *     TL_SERVER_UNSAFE   At least one is.  Ask for no locks there before it is mended.
 *     TL_NO_SCHEMA, TL_WRONG_SCHEMA
 *                        Run `tradelock migrate` first; what rests on the schema was not looked at.
 */
TL_EXPORT tl_status tl_doctor(tl_client *client, tl_finding_fn each, void *context);

/* What a purge removed. */
typedef struct tl_purged {
    uint64_t trades, resources, sessions; /* removed */
    uint64_t looked_at;                   /* rows of trades */
    /* With the trades: lock rows, kept steps of history, evidence, decisions of operators. */
    uint64_t lock_rows, steps, evidence, decisions;
    uint64_t rw_locks;       /* of the resources */
    uint64_t resource_steps; /* of the resources' history */
} tl_purged;

/* What a purge removes. */
typedef struct tl_purge_options {
    unsigned version; /* TL_PURGE_OPTIONS_VERSION */
    int64_t older_ms;
    int only_counts; /* nothing is removed: *purged says what would be */
    tl_progress_fn progress;
    void *context; /* of progress */
    /* A directory: trades go there before they are removed.  NULL: no archive is written. */
    const char *archive;
    unsigned archive_trades; /* about so many a set; 0: 50,000 */
    tl_archived *archived;   /* NULL, or what was written */
} tl_purge_options;

#define TL_PURGE_OPTIONS_VERSION 1u
#define TL_PURGE_OPTIONS_INIT TL_INITIAL(tl_purge_options, TL_PURGE_OPTIONS_VERSION)

/*
 * Removes finished trades that have not changed for older_ms: both rows, their history and
 * evidence, in the order of the key, a small batch in each transaction.  It never removes one in
 * process or in conflict, nor what is locked just now.  Then it removes lease mutexes and read-write
 * locks that nobody held or asked for since, with their history, and the sessions that were over by
 * then.
 *
 * A purged key can be paid again.  So older_ms must not be shorter than the setting retention_ms.
 * It may be stopped and started again at any time.  Needs an operator's account.
 *
 * With an archive every row of a trade is first written there: a set of packed CSV files with their
 * SHA-256, complete and on the disk.  What changed since stays.  A purge that was cut off is run
 * again: it removes what its last set names, then goes on.  Acts stay; mutexes, read-write locks
 * and sessions go as without an archive, and are not in it.
 *
 *     TL_OK             All of that age is gone; *purged, unless NULL, says how much.
 *     TL_INVALID        older_ms is shorter than retention_ms; or the directory is not there, not
 *                       safe, broken, or another database's.  Nothing was removed.
 *     TL_WRONG_SCHEMA   A newer version wrote the archive.  Nothing was removed.
 *     TL_BUSY           Another purge writes there.  Nothing was removed.
 *     TL_INTERNAL       The archive could not be written, as on a full disk.  What was removed is in
 *                       it.
 *     else              A part of it may be gone.  Run it again.
 */
TL_EXPORT tl_status tl_purge(tl_client *client, const tl_purge_options *options, tl_purged *purged);

#ifdef __cplusplus
}
#endif
#endif
