-- Evidence, and decisions of operators.

-- name: evidence_insert
-- Appends evidence: what somebody knows of a payment.  The answer says whether it contradicts the
-- row (sql/object/evidence.sql).
INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, channel_key, outcome, final,
    channel_ref, source, remark, thread_no, account, filed_at, amount_minor, currency)
VALUES (:cust_no, :serial_no, :op_code, :epoch, :channel_key, :outcome, :final, :channel_ref,
    :source, :remark, :thread_no, USER(), UTC_TIMESTAMP(6), :amount_minor, :currency)
RETURNING evidence_id, contradicts

-- name: evidence_known
-- What the database has of payments that a statement tells: the trade, whether to file it would set
-- the conflict, and whether the very same success was filed before.  What the statement does not
-- tell matches any.  number is the payment's; one whose trade is not there has no fence, and what was
-- filed of it counts until a restore is accepted, which makes it.
SELECT k.number, t.fence, t.status, t.epoch, t.amount_minor, t.currency,
    COALESCE(tl_contradicts(t.status, t.channel_key IS NULL OR k.paid_key IS NULL
            OR t.channel_key = k.paid_key,
        tl_paid_ref(t.cust_no, t.serial_no, t.op_code, t.status, t.epoch, t.channel_ref),
        t.amount_minor, t.currency, 'SUCCEEDED', 0, k.paid_ref, k.paid_minor, k.paid_currency), 0)
        AS contradicts,
    MAX(e.evidence_id IS NOT NULL) AND (t.fence IS NOT NULL OR tl_restored()) AS filed
FROM (SELECT evidence_id AS number, cust_no, serial_no, op_code, channel_key AS paid_key,
        channel_ref AS paid_ref, amount_minor AS paid_minor, currency AS paid_currency
        FROM trade_evidence WHERE FALSE
    UNION ALL VALUES /*rows(*/(:number, :cust_no, :serial_no, :op_code, :channel_key,
        :channel_ref, :amount_minor, :currency)/*)rows*/) k
LEFT JOIN trade_lock t ON t.cust_no = k.cust_no AND t.serial_no = k.serial_no
    AND t.op_code = k.op_code
LEFT JOIN trade_evidence e FORCE INDEX (trade) ON e.cust_no = k.cust_no
    AND e.serial_no = k.serial_no AND e.op_code = k.op_code AND e.outcome = 'SUCCEEDED'
    AND (k.paid_key IS NULL OR e.channel_key = k.paid_key)
    AND (k.paid_ref IS NULL OR e.channel_ref = k.paid_ref)
    AND (k.paid_minor IS NULL OR e.amount_minor = k.paid_minor)
    AND (k.paid_currency IS NULL OR e.currency = k.paid_currency)
GROUP BY k.number

-- name: paid_trades
-- A page of the trades that a channel may have paid, by customer: what a bank calls them, if it knows
-- no customer.  No index leads from a channel key to its trade.
SELECT cust_no, serial_no, op_code, channel_key, channel_ref
FROM trade_lock
WHERE cust_no >= :cust_no AND (cust_no > :cust_no OR (serial_no > :serial_no
        OR (serial_no = :serial_no AND op_code > :op_code)))
    AND lane = 'S' AND repeatable = 0 AND (:channel = '' OR channel = :channel)
ORDER BY cust_no, serial_no, op_code
LIMIT :most

-- name: evidence_list
-- What was filed about a trade, oldest first.
SELECT evidence_id, epoch, channel_key, outcome, final, channel_ref, source, remark,
    account, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', filed_at) AS filed_us, amount_minor,
    currency, contradicts
FROM trade_evidence
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
ORDER BY evidence_id

-- name: evidence_lock
-- Filing evidence locks the sync row first, so it comes wholly before or wholly after an ending.
SELECT status, epoch, channel_key, fence, /*include said_columns*/
FROM trade_lock
WHERE cust_no = :cust_no AND serial_no = :serial_no AND op_code = :op_code
FOR UPDATE

-- name: evidence_waits
-- Whether success of a trade that is not here waits for a restore to be accepted, which makes it.
SELECT tl_restored()

-- name: file_gone
-- Makes the trade of a holder whose row is gone.  Nobody removes a row in process, so this one was
-- lost in a restore, and money may have moved.  The trade is in process again, without a holder, in
-- doubt, with what the holder knew.  Its deadline is over, so nothing is sent for it any more: how
-- long the channel remembers its key is not known here.  open_lane makes its lane due in the same
-- transaction.
INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
    token, fence, rev, epoch, sends, send_until, seen_by_channel, success_epoch,
    deadline_at, exclusive, fingerprint, channel, channel_key, channel_ref, payload,
    /*include said_columns*/, remark, created_at, updated_at)
VALUES (:cust_no, :serial_no, :op_code, 'S', 'P', 'filed', :thread_no, :log_no, :token,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), fence, :epoch, :sends,
    UTC_TIMESTAMP(6) + INTERVAL :hold_ms * 1000 MICROSECOND, :seen, :success_epoch,
        UTC_TIMESTAMP(6),
    :exclusive, :fingerprint, :channel, :channel_key, :channel_ref, :payload,
    /*include said_values*/, :remark, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))

-- name: proposal_stands_condition
-- Whether the half d of a decision is a proposal that a second operator may confirm: its trade t is
-- as it was seen.  Whatever changes a trade raises its revision, a confirmation too.
d.part = 1 AND t.cust_no = d.cust_no AND t.serial_no = d.serial_no AND t.op_code = d.op_code
    AND t.rev = d.rev

-- name: resolve_insert
-- Appends one half of a decision.  The server tells whose it is: the column `account` has
-- CURRENT_USER() as its default, and operators have no right to write it.  The trigger of the
-- second half also changes the rows, and fails if they are not as both operators saw them.
INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch,
    reason, actor, thread_no, log_no, although_pending, act_no, act_row)
VALUES (:cust_no, :serial_no, :op_code, :rev, :verdict, :part, :fence, :epoch, :reason, :actor,
    :thread_no, :log_no, :although_pending, :act_no, :act_row)

-- name: resolve_list
-- What operators proposed and confirmed about a trade, and what was not carried out, oldest first;
-- of each whether the account that asks now wrote it, and whether it waits for a second operator.
SELECT d.rev, d.fence, d.epoch, d.verdict AS decision, d.part = 2 AS confirms,
    d.part = 3 AS refused, d.reason, d.actor, d.account,
    tl_account_name(d.account) <=> tl_account_name(CURRENT_USER()) AS own,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', d.decided_at) AS decided_us, d.although_pending,
    t.rev IS NOT NULL AS stands, d.act_no
FROM trade_resolution d
LEFT JOIN trade_lock t ON /*include proposal_stands_condition*/
WHERE d.cust_no = :cust_no AND d.serial_no = :serial_no AND d.op_code = :op_code
ORDER BY d.cust_no, d.serial_no, d.op_code, d.rev, d.verdict, d.part

-- name: resolve_lock
-- A decision first locks both rows, sync row before retry row.  So no holder, janitor or evidence
-- changes them between what is read and what is written.
SELECT s.status, s.epoch, s.fence, s.rev, s.conflict, s.session_id IS NOT NULL AS held,
    s.success_epoch <=> s.epoch AS success_filed,
    COALESCE(s.send_until > UTC_TIMESTAMP(6), 0) AS may_send,
    COALESCE(r.status = 'F' AND r.epoch = s.epoch
        AND (r.next_run_at IS NOT NULL OR r.parked IS NOT NULL), 0) AS lane_open,
    s.blanked_rev IS NOT NULL AND s.payload IS NULL AS blanked
FROM trade_lock s
LEFT JOIN trade_lock r ON r.cust_no = s.cust_no AND r.serial_no = s.serial_no
    AND r.op_code = :retry_op
WHERE s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code AND s.lane = 'S'
FOR UPDATE

-- name: resolve_refuse
-- A worker refuses to carry out what two operators decided about this revision, since the channel
-- says that the payment lives.  This ends the decision.
CALL tl_resolution_refused(:cust_no, :serial_no, :op_code, :rev, :reason, :thread_no, :log_no)
