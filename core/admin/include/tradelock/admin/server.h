/*
 * admin/server.h - schema, roles, the doctor, and purging what is finished.
 */
#ifndef TRADELOCK_ADMIN_SERVER_H
#define TRADELOCK_ADMIN_SERVER_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tl_migrated {
    unsigned from, to; /* versions of the schema */
    unsigned mended;   /* triggers, functions and views that were missing */
} tl_migrated;

/* Applies what is missing; any number may run at once.  Needs an administrator.  Nothing is made on
 * a server that tl_client_open() refuses: TL_SERVER_UNSAFE, TL_READ_ONLY. */
TL_EXPORT tl_status tl_migrate(tl_client *client, tl_migrated *migrated);

/* Makes the roles tradelock_application, tradelock_operator and tradelock_reader and gives them
 * what they need in this database (sql/grants.sql).  Needs an administrator. */
TL_EXPORT tl_status tl_grant_roles(tl_client *client);

typedef enum tl_finding_level {
    TL_FINDING_OK,
    TL_FINDING_WARNING,
    TL_FINDING_UNSAFE
} tl_finding_level;

typedef struct tl_finding {
    tl_finding_level level;
    const char *check;    /* short name, stable */
    const char *found;    /* what the server says */
    const char *sentence; /* what it means and what to do */
} tl_finding;

typedef int (*tl_finding_fn)(void *context, const tl_finding *finding);
/* TL_OK, or TL_SERVER_UNSAFE when a finding is; all findings are reported either way. */
TL_EXPORT tl_status tl_doctor(tl_client *client, tl_finding_fn each, void *context);

typedef struct tl_purged {
    uint64_t trades, resources, sessions; /* removed */
    uint64_t looked_at;                   /* rows */
} tl_purged;

/*
 * Removes finished trades that have not changed for older_ms, with both rows, their history and
 * evidence, a small batch in each transaction, in the order of the key.  Never one in process or in
 * conflict.  Then, in the same way, mutexes and read-write locks that nobody held or asked for
 * since, with their history, and the sessions that were over by then. TL_INVALID when older_ms is
 * shorter than the setting retention_ms: a purged key can be paid again.  Needs an operator's
 * account; may be stopped and started again at any time.
 */
TL_EXPORT tl_status tl_purge(tl_client *client, int64_t older_ms, tl_purged *purged);

#ifdef __cplusplus
}
#endif
#endif
