/* The statements by which a promoted server is accepted by itself (sql/object/position.sql), bound
 * to their parameters.  Touches only the connection. */
#ifndef TL_STORE_POSITION_H
#define TL_STORE_POSITION_H

#include "base/random.h"
#include "db/db.h"
#include "store/lease.h"

#include <tradelock/tradelock.h>

/* Who has a server's commits before they are answered: the server with this id, 0: the nodes of its
 * cluster, or STORE_NOBODY. */
#define STORE_NOBODY (-1)
typedef struct store_kept {
    int kept;                  /* 1: somebody has, and that never stops */
    int64_t keeper, on_record; /* as seen now; as it stands since the server was accepted */
    int64_t server_id;         /* of the server itself */
    char cluster[RANDOM_UUID]; /* the Galera cluster that it is a node of; "": of none */
    uint64_t membership;       /* of that, its number */
    uint64_t up_s;             /* so long the server has been up at least */
    int read_only;             /* it answers no commits now */
} store_kept;
db_answer store_attest_kept(db *connection, store_kept *kept); /* all but the keeper */
/* Sees who acknowledges a server's commits; DB_DONE, also if that cannot be told. */
db_answer store_attest_keeper(db *connection, store_kept *kept);
/* Puts it on record, unless somebody is. */
db_answer store_attest_record(db *connection, store_kept *kept);
/* By what a replication connection of this server may leave out commits, though no variable shows it:
 * it passes over domains or servers, or has a name (*has_name), and filters that are not shown.  "": by
 * nothing. */
#define STORE_FILTER_SPACE (64 * 4 + 64)
db_answer store_connection_filter(db *connection, char *filter, size_t space, int *has_name);
/* Waits until a node of Galera has applied all that was answered before. */
db_answer store_attest_in_step(db *connection);
/* *fits: whether the server's clock is between these moments. */
db_answer store_attest_clock(db *connection, int64_t least_us, int64_t most_us, int *fits);
/* *there: whether the commit is here. */
db_answer store_attest_beat(db *connection, const char *session_id, uint64_t beat, int *there);
db_answer store_attest_trade(db *connection, const tl_key *key, const uint8_t *token, int *there);
/* By the step's token; or, if rev is not 0, by that of the grant, which the step kept, and by how
 * often the row was changed; step_name: the step that did, or NULL if the kind has no other. */
db_answer store_attest_lease(db *connection, const lease_statements *kind, const char *resource,
                             unsigned slot, const uint8_t *token, uint64_t rev,
                             const char *step_name, int *there);
db_answer store_attest_evidence(db *connection, const tl_key *key, uint64_t evidence_id,
                                const char *thread_no, int *there);
#endif
