-- Least privilege, as three roles in the current database:
--   tradelock_application  services and retry workers
--   tradelock_operator     people and jobs with the command `tradelock`
--   tradelock_reader       dashboards and audits
-- Nobody among them can write history (trade_lock_past, resource_log, resource_holder_log),
-- remove a row, or change evidence, what operators decided or what they closed of an audit.  History is written by
-- triggers with the rights of the account that ran the migration; that account must stay
-- and keep its rights.
--
-- An account gets a role so:
--   CREATE USER 'withdraw'@'10.0.0.%' IDENTIFIED BY '...' REQUIRE SSL;
--   GRANT tradelock_application TO 'withdraw'@'10.0.0.%';
--   SET DEFAULT ROLE tradelock_application FOR 'withdraw'@'10.0.0.%';
CREATE ROLE IF NOT EXISTS tradelock_application;
-- Every column but those that the server fills in: when and who, and what the first step was
-- (first_...), which is history.
-- The key is among those of UPDATE since the server wants that of every column that an
-- INSERT ... SELECT ... ON DUPLICATE KEY UPDATE (open_lane.sql) inserts.
GRANT SELECT,
    INSERT (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
        session_id, token, fence, rev, epoch, attempts, claims, sends, send_until,
        not_found_since, seen_by_channel, cancel_tried, success_epoch, max_hold_until,
        next_run_at, deadline_at, parked, conflict, exclusive, repeatable, retryable,
        proof, fingerprint, channel, channel_key, channel_ref, payload, result, remark,
        actor, created_at, updated_at, amount_minor, currency),
    UPDATE (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
        session_id, token, fence, rev, epoch, attempts, claims, sends, send_until,
        not_found_since, seen_by_channel, cancel_tried, success_epoch, max_hold_until,
        next_run_at, deadline_at, parked, conflict, exclusive, repeatable, retryable,
        proof, fingerprint, channel, channel_key, channel_ref, payload, result, remark,
        actor, created_at, updated_at, amount_minor, currency)
    ON trade_lock TO tradelock_application;
GRANT SELECT, INSERT, UPDATE ON trade_lock_low_water TO tradelock_application;
GRANT SELECT ON tl_clock TO tradelock_application;
GRANT SELECT ON tl_clock_step TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_clock_stepped TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_clock_settle TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_carried_us TO tradelock_application;
GRANT SELECT ON trade_lock_state TO tradelock_application;
GRANT SELECT, INSERT ON trade_evidence TO tradelock_application;
-- Whoever has the workflow registered carries out what operators decided.
GRANT SELECT ON trade_resolution TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_resolution_refused TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_operator_retry TO tradelock_application;
GRANT SELECT ON audit_closing TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_account_name TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_parts TO tradelock_application;
GRANT SELECT, INSERT, UPDATE ON tl_session TO tradelock_application;
GRANT SELECT ON tl_schema TO tradelock_application;
-- A restore: everybody sees it, and whoever finds one may say so; only accepting ends it.
GRANT SELECT ON tl_restore TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_restored TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_identity TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_restore_found TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_file_paid TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_token_seen TO tradelock_application;
GRANT SELECT, INSERT, UPDATE ON resource_lock TO tradelock_application;
GRANT SELECT ON resource_lock_state TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_resource_token_seen TO tradelock_application;
GRANT SELECT, INSERT, UPDATE ON rw_lock TO tradelock_application;
GRANT SELECT, INSERT, UPDATE ON resource_holder TO tradelock_application;
GRANT SELECT ON resource_holder_state TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_holder_token_seen TO tradelock_application;
GRANT SELECT, INSERT, UPDATE ON row_lock TO tradelock_application;

-- An operator sees history, and changes a trade only through what the schema offers: a half of
-- a decision in their own name, evidence, tl_operator_retry.  Opening what the dead held is the
-- services' work.  Earlier versions gave the right to write the table, which is taken back; what
-- is revoked must have been granted.
CREATE ROLE IF NOT EXISTS tradelock_operator;
GRANT SELECT ON trade_lock TO tradelock_operator;
REVOKE ALL PRIVILEGES ON trade_lock FROM tradelock_operator;
GRANT SELECT ON trade_lock TO tradelock_operator;
GRANT SELECT ON trade_lock_low_water TO tradelock_operator;
REVOKE ALL PRIVILEGES ON trade_lock_low_water FROM tradelock_operator;
GRANT SELECT ON trade_lock_low_water TO tradelock_operator;
GRANT SELECT ON tl_clock TO tradelock_operator;
GRANT SELECT ON tl_clock_step TO tradelock_operator;
GRANT SELECT ON trade_lock_state TO tradelock_operator;
GRANT SELECT ON trade_lock_past TO tradelock_operator;
GRANT SELECT ON trade_lock_first TO tradelock_operator;
GRANT SELECT ON trade_lock_log TO tradelock_operator;
GRANT SELECT, INSERT ON trade_evidence TO tradelock_operator;
-- Every column but those that say who and when, which the server fills in.
GRANT SELECT, INSERT (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch, reason,
    actor, thread_no, log_no, although_pending) ON trade_resolution TO tradelock_operator;
GRANT SELECT, INSERT (finding, part, rule, cust_no, serial_no, op_code, rev, reason, actor,
    thread_no) ON audit_closing TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_operator_retry TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_account_name TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_parts TO tradelock_operator;
GRANT SELECT, INSERT, UPDATE ON tl_session TO tradelock_operator;
-- An operator of older times could end a restore alone; a right is granted before it is
-- revoked, since revoking one that is not there is an error.
GRANT SELECT, UPDATE (restored_at, server_identity) ON tl_schema TO tradelock_operator;
REVOKE UPDATE (restored_at, server_identity) ON tl_schema FROM tradelock_operator;
-- Declares, proposes and confirms, in their own name; what accepting changes the procedure
-- writes.
GRANT SELECT, INSERT (restore_no, step, reason, actor) ON tl_restore TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_restored TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_identity TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_restore_found TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_restore_accept TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_file_paid TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_token_seen TO tradelock_operator;
-- What may go is for the procedure to say; nobody removes a row in any other way.
GRANT EXECUTE ON PROCEDURE tl_purge TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_resources TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_rw TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_sessions TO tradelock_operator;
GRANT SELECT, INSERT, UPDATE ON resource_lock TO tradelock_operator;
GRANT SELECT ON resource_lock_state TO tradelock_operator;
GRANT SELECT ON resource_log TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_resource_token_seen TO tradelock_operator;
GRANT SELECT, INSERT, UPDATE ON rw_lock TO tradelock_operator;
GRANT SELECT, INSERT, UPDATE ON resource_holder TO tradelock_operator;
GRANT SELECT ON resource_holder_state TO tradelock_operator;
GRANT SELECT ON resource_holder_log TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_holder_token_seen TO tradelock_operator;
GRANT SELECT, INSERT, UPDATE ON row_lock TO tradelock_operator;

CREATE ROLE IF NOT EXISTS tradelock_reader;
GRANT SELECT ON trade_lock TO tradelock_reader;
GRANT SELECT ON trade_lock_low_water TO tradelock_reader;
GRANT SELECT ON tl_clock TO tradelock_reader;
GRANT SELECT ON tl_clock_step TO tradelock_reader;
GRANT SELECT ON trade_lock_state TO tradelock_reader;
GRANT SELECT ON trade_lock_past TO tradelock_reader;
GRANT SELECT ON trade_lock_first TO tradelock_reader;
GRANT SELECT ON trade_lock_log TO tradelock_reader;
GRANT SELECT ON trade_evidence TO tradelock_reader;
GRANT SELECT ON trade_resolution TO tradelock_reader;
GRANT SELECT ON audit_closing TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_account_name TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_parts TO tradelock_reader;
GRANT SELECT ON tl_session TO tradelock_reader;
GRANT SELECT ON tl_schema TO tradelock_reader;
GRANT SELECT ON tl_restore TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_restored TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_identity TO tradelock_reader;
GRANT SELECT ON resource_lock TO tradelock_reader;
GRANT SELECT ON resource_lock_state TO tradelock_reader;
GRANT SELECT ON resource_log TO tradelock_reader;
GRANT SELECT ON rw_lock TO tradelock_reader;
GRANT SELECT ON resource_holder TO tradelock_reader;
GRANT SELECT ON resource_holder_state TO tradelock_reader;
GRANT SELECT ON resource_holder_log TO tradelock_reader;
GRANT SELECT ON row_lock TO tradelock_reader;
