-- The ending of a holder that owns one row only: the first statement of its transaction,
-- and most often the only one.  Status, fence and token together prove that nobody took
-- the lock over in between; 0 rows means it is lost.  A failure is refused when evidence
-- of this epoch says that money moved: the filing locks this same row, so either it is
-- seen here, or it finds the F and sets the conflict.
-- The holder and the next moment stay on a finished trade, which leaves the due index
-- alone.  A mutex is used again and again: it is taken from its holder.
-- The last parameter is 1 on a caller's connection: after a deadlock the client library
-- still believes in the transaction that the server rolled back, and the ending would
-- commit alone.
-- The plain form is a trade's success on a connection of ours of which nothing else is told.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET status = /*told(*/?/*else*/'Y'/*)told*/, step = 'end', max_hold_until = NULL,
    /*told(*/session_id = IF(repeatable = 1, NULL, session_id),
    /*)told*/thread_no = ?, log_no = ?, token = ?, fence = fence + 1, rev = rev + 1,
    proof = /*told(*/?/*else*/'-'/*)told*/, retryable = /*told(*/?/*else*/0/*)told*/,
    /*told(*/channel_ref = COALESCE(?, channel_ref), remark = COALESCE(?, remark),
    /*)told*/result = /*told(*/?/*else*/NULL/*)told*/,
    actor = /*told(*/?/*else*/NULL/*)told*/, updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = ? AND serial_no = ? AND op_code = ? AND status = 'P' AND fence = ?
    AND token = ?/*told(*/ AND (? = 'Y' OR success_epoch IS NULL OR success_epoch <> epoch)
    AND (? = 0 OR @@in_transaction = 1)/*)told*/
