/* Writing acts, for the calls of this room that leave one. */
#ifndef TL_ADMIN_ACT_H
#define TL_ADMIN_ACT_H

#include "admin/archive.h"
#include "store/act.h"

#include <tradelock/admin/acts.h>
#include <tradelock/admin/server.h>

tl_status act_check(uint64_t act_no, uint64_t row_no);

/* Writes a row of the act for a trade that was left alone, if that is what the status says.
 * Returns the status, with its sentence; or why the row could not be written. */
tl_status act_left_alone(tl_client *client, uint64_t act_no, uint64_t row_no, const tl_key *key,
                         uint64_t fence, tl_status status);

/* TL_LOST, with the sentence who moved the trade on since this fence was seen. */
tl_status act_moved_on(db *connection, const tl_key *key, uint64_t seen);

/* On a connection that the caller has; act_no 0 ends nothing. */
tl_status act_begin(db *connection, const store_act *act, uint64_t planned, uint64_t *act_no);
tl_status act_end(db *connection, uint64_t act_no, const char *counts);

/* The record of a purge: begun before it removes anything, ended with what it removed.  Ending also
 * removes acts of that age; a purge that writes an archive (else NULL) keeps them, since they are
 * not in it, and tells with which set it ends. */
tl_status act_purge_begin(db *connection, int64_t older_ms, int archives, uint64_t *act_no);
tl_status act_purge_end(db *connection, int64_t older_ms, const archive_dir *archive,
                        uint64_t act_no, const tl_purged *purged);

#endif
