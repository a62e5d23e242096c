-- Least privilege, as three roles in the current database:
--   tradelock_application  services and retry workers
--   tradelock_operator     people and jobs with the command `tradelock`
--   tradelock_reader       dashboards and audits
-- No role can write history (trade_lock_past, resource_log, resource_holder_log), remove a row, or
-- change evidence, what operators decided or what they closed of an audit.  Triggers write history
-- with the rights of the account that ran the migration; that account must stay and keep its
-- rights.
--
-- An account gets a role by
--   CREATE USER 'withdraw'@'10.0.0.%' IDENTIFIED BY '...' REQUIRE SSL;
--   GRANT tradelock_application TO 'withdraw'@'10.0.0.%';
--   SET DEFAULT ROLE tradelock_application FOR 'withdraw'@'10.0.0.%';
CREATE ROLE IF NOT EXISTS tradelock_application;
-- All columns except those that the server fills in: when and who, and what the first step was
-- (first_...), which is history.  UPDATE also names the key, since the server wants that right for
-- every column that an INSERT ... SELECT ... ON DUPLICATE KEY UPDATE (open_lane.sql) inserts.
GRANT SELECT,
    INSERT (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
        session_id, token, fence, rev, epoch, attempts, claims, sends, send_until,
        not_found_since, seen_by_channel, cancel_tried, success_epoch, max_hold_until,
        next_run_at, deadline_at, parked, conflict, exclusive, repeatable, retryable,
        proof, fingerprint, channel, channel_key, channel_ref, payload, result, remark,
        actor, created_at, updated_at, amount_minor, currency, batch, traceparent),
    UPDATE (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
        session_id, token, fence, rev, epoch, attempts, claims, sends, send_until,
        not_found_since, seen_by_channel, cancel_tried, success_epoch, max_hold_until,
        next_run_at, deadline_at, parked, conflict, exclusive, repeatable, retryable,
        proof, fingerprint, channel, channel_key, channel_ref, payload, result, remark,
        actor, created_at, updated_at, amount_minor, currency, batch, traceparent)
    ON trade_lock TO tradelock_application;
GRANT SELECT, INSERT, UPDATE ON trade_lock_low_water TO tradelock_application;
GRANT SELECT ON tl_clock TO tradelock_application;
GRANT SELECT ON tl_clock_step TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_clock_stepped TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_clock_settle TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_carried_us TO tradelock_application;
GRANT SELECT ON trade_lock_state TO tradelock_application;
GRANT SELECT, INSERT ON trade_evidence TO tradelock_application;
-- A worker that has the workflow registered carries out what operators decided.
GRANT SELECT ON trade_resolution TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_resolution_refused TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_operator_retry TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_act_note TO tradelock_application;
GRANT SELECT ON audit_closing TO tradelock_application;
-- A workflow makes its channel known; operators alone pause one.
GRANT SELECT, INSERT (channel, op_code) ON trade_channel TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_channel_declare TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_site_is TO tradelock_application;
GRANT SELECT ON tl_session_channel TO tradelock_application;
GRANT SELECT ON trade_channel_limit TO tradelock_application;
GRANT SELECT ON trade_channel_permit TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_channel_share TO tradelock_application;
GRANT SELECT ON trade_channel_breaker TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_channel_told TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_channel_probe TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_account_name TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_contradicts TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_paid_ref TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_parts TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_parts_made TO tradelock_application;
GRANT SELECT, INSERT, UPDATE ON tl_session TO tradelock_application;
GRANT SELECT, UPDATE ON tl_beat TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_receipts_close TO tradelock_application;
GRANT SELECT ON tl_schema TO tradelock_application;
-- Which slots this shard of a fleet has; the token is for whoever moves one.
GRANT SELECT (slot, state, version, other, sealed, changed_at, account, reason) ON tl_slot
    TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_slot_asked TO tradelock_application;
-- Everybody sees a restore, and a program that finds one may say so.  Only accepting ends it.
GRANT SELECT ON tl_restore TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_restored TO tradelock_application;
GRANT EXECUTE ON FUNCTION tl_identity TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_restore_found TO tradelock_application;
-- Which server keeps the commits of this one: a service puts that on record, the doctor shows it.
GRANT EXECUTE ON PROCEDURE tl_replicas TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_log_filters TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_kept TO tradelock_application;
-- A service attests to a promoted server.  Operators do not: one of them could accept it alone.
GRANT EXECUTE ON PROCEDURE tl_attest TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_attest_missing TO tradelock_application;
GRANT EXECUTE ON PROCEDURE tl_accept_proved TO tradelock_application;
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

-- Operators see history.  They change a trade only by a half of a decision in their own name, by
-- evidence, and by tl_operator_retry.  Services open what the dead held.
CREATE ROLE IF NOT EXISTS tradelock_operator;
GRANT SELECT ON trade_lock TO tradelock_operator;
GRANT SELECT ON trade_lock_low_water TO tradelock_operator;
GRANT SELECT ON tl_clock TO tradelock_operator;
GRANT SELECT ON tl_clock_step TO tradelock_operator;
GRANT SELECT ON trade_lock_state TO tradelock_operator;
GRANT SELECT ON trade_lock_past TO tradelock_operator;
GRANT SELECT ON trade_lock_first TO tradelock_operator;
GRANT SELECT ON trade_lock_log TO tradelock_operator;
GRANT SELECT, INSERT ON trade_evidence TO tradelock_operator;
-- All columns except those that say who and when, which the server fills in.
GRANT SELECT, INSERT (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch, reason,
    actor, thread_no, log_no, although_pending) ON trade_resolution TO tradelock_operator;
GRANT SELECT, INSERT (finding, part, rule, cust_no, serial_no, op_code, rev, reason, actor,
    thread_no) ON audit_closing TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_operator_retry TO tradelock_operator;
-- A pause is a decision of one operator, which the procedure puts on record.
GRANT SELECT ON trade_channel TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_channel_decide TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_site_is TO tradelock_operator;
GRANT SELECT ON tl_session_channel TO tradelock_operator;
GRANT SELECT ON trade_channel_limit TO tradelock_operator;
GRANT SELECT ON trade_channel_permit TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_channel_limit TO tradelock_operator;
GRANT SELECT ON trade_channel_breaker TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_channel_breaker TO tradelock_operator;
-- What operators did: procedures write it under their own names.
GRANT SELECT ON tl_act TO tradelock_operator;
GRANT SELECT ON tl_act_row TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_act_begin TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_act_row TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_act_end TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_act_note TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_act_retry TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_account_name TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_contradicts TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_paid_ref TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_parts TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_parts_made TO tradelock_operator;
GRANT SELECT, INSERT, UPDATE ON tl_session TO tradelock_operator;
GRANT SELECT, UPDATE ON tl_beat TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_receipts_close TO tradelock_operator;
-- A purge that writes an archive puts each set on record.
GRANT SELECT, INSERT (sha, before_sha, set_no, trades) ON tl_archive_set TO tradelock_operator;
GRANT SELECT ON tl_schema TO tradelock_operator;
-- Operators declare, propose and confirm in their own name; a procedure writes what accepting
-- changes.
GRANT SELECT, INSERT (restore_no, step, reason, actor) ON tl_restore TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_replicas TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_log_filters TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_passes_over TO tradelock_operator;
GRANT SELECT ON tl_attestation TO tradelock_operator;
GRANT SELECT ON tl_attestation_missing TO tradelock_operator;
GRANT SELECT (slot, state, version, other, sealed, changed_at, account, reason) ON tl_slot
    TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_slot_asked TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_restored TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_identity TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_restore_found TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_restore_accept TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_file_paid TO tradelock_operator;
GRANT EXECUTE ON FUNCTION tl_token_seen TO tradelock_operator;
-- Procedures decide what may be removed; nobody removes a row in another way.
GRANT EXECUTE ON PROCEDURE tl_purge TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_resources TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_rw TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_sessions TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_trades TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_named TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_archived TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_mutexes TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_rw_locks TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_sessions_count TO tradelock_operator;
GRANT EXECUTE ON PROCEDURE tl_purge_acts TO tradelock_operator;
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
GRANT SELECT ON trade_channel TO tradelock_reader;
GRANT SELECT ON tl_session_channel TO tradelock_reader;
GRANT SELECT ON trade_channel_limit TO tradelock_reader;
GRANT SELECT ON trade_channel_permit TO tradelock_reader;
GRANT SELECT ON trade_channel_breaker TO tradelock_reader;
GRANT SELECT ON tl_act TO tradelock_reader;
GRANT SELECT ON tl_act_row TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_account_name TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_contradicts TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_paid_ref TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_parts TO tradelock_reader;
GRANT EXECUTE ON FUNCTION tl_parts_made TO tradelock_reader;
GRANT SELECT ON tl_session TO tradelock_reader;
GRANT SELECT ON tl_schema TO tradelock_reader;
GRANT SELECT ON tl_archive_set TO tradelock_reader;
GRANT SELECT ON tl_restore TO tradelock_reader;
GRANT SELECT ON tl_attestation TO tradelock_reader;
GRANT SELECT ON tl_attestation_missing TO tradelock_reader;
GRANT SELECT (slot, state, version, other, sealed, changed_at, account, reason) ON tl_slot
    TO tradelock_reader;
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
