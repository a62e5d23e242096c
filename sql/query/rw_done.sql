-- In the caller's transaction: writes that its business is done.  Whoever wants to free this holder
-- must change the row, and so waits for the end of that transaction.  If the holder was freed
-- before, nothing is changed here, and the caller must roll back.  The last condition is for a
-- transaction that the server has ended already: this step must not commit by itself.
UPDATE resource_holder
SET status = 'D', step = 'done', thread_no = :thread_no, log_no = :log_no, rev = rev + 1,
    done_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE resource = :resource AND slot = :slot AND token = :held_token AND fence = :fence
    AND status IN ('H', 'D')
    AND over_at > UTC_TIMESTAMP(6) AND (@@in_transaction = 1 OR @@autocommit = 0)
