-- A customer's rows at the new owner: each fence rises above all that its row had, so that whoever
-- holds something of before is fenced out.  The token stays: by it a lost answer is settled.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'moved', thread_no = :thread_no, log_no = NULL, fence = fence + 1, rev = rev + 1,
    actor = :actor
WHERE cust_no = :cust_no
