-- Least privilege, as three roles for the current database.  Roles are of the whole server, so their
-- names carry the database: {database} stands for its name.
--   {database}_application  services and retry workers
--   {database}_operator     people and jobs with the command `tradelock`
--   {database}_reader       dashboards and audits
-- No role can write history (trade_lock_past, resource_log, resource_holder_log), remove a row, or
-- change evidence, what operators decided or what they closed of an audit.  Triggers write history
-- with the rights of the account that ran the migration; that account must stay and keep its
-- rights.
--
-- An account gets a role by
--   CREATE USER 'withdraw'@'10.0.0.%' IDENTIFIED BY '...' REQUIRE SSL;
--   GRANT tradelock_application TO 'withdraw'@'10.0.0.%';
--   SET DEFAULT ROLE tradelock_application FOR 'withdraw'@'10.0.0.%';
CREATE ROLE IF NOT EXISTS `{database}_application`;
-- All columns except those that the server fills in: when and who, and what the first step was
-- (first_...), which is history.  UPDATE also names the key, since the server wants that right for
-- every column that an INSERT ... ON DUPLICATE KEY UPDATE (open.sql, ask.sql) inserts, also if it
-- updates none of them.
GRANT SELECT,
    INSERT (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
        session_id, token, fence, rev, epoch, attempts, claims, sends, send_until,
        not_found_since, seen_by_channel, cancel_tried, success_epoch, max_hold_until,
        next_run_at, deadline_at, parked, conflict, exclusive, repeatable, retryable,
        proof, fingerprint, channel, channel_key, channel_ref, payload, result, remark,
        actor, created_at, updated_at, amount_minor, currency, batch, traceparent,
        label),
    UPDATE (cust_no, serial_no, op_code, lane, status, step, thread_no, log_no,
        session_id, token, fence, rev, epoch, attempts, claims, sends, send_until,
        not_found_since, seen_by_channel, cancel_tried, success_epoch, max_hold_until,
        next_run_at, deadline_at, parked, conflict, exclusive, repeatable, retryable,
        proof, fingerprint, channel, channel_key, channel_ref, payload, result, remark,
        actor, created_at, updated_at, amount_minor, currency, batch, traceparent,
        label)
    ON trade_lock TO `{database}_application`;
GRANT SELECT, INSERT, UPDATE ON trade_lock_low_water TO `{database}_application`;
GRANT SELECT ON tl_clock TO `{database}_application`;
GRANT SELECT ON tl_clock_step TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_clock_stepped TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_clock_settle TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_carried_us TO `{database}_application`;
GRANT SELECT ON trade_lock_state TO `{database}_application`;
GRANT SELECT, INSERT ON trade_evidence TO `{database}_application`;
-- A worker that has the workflow registered carries out what operators decided.
GRANT SELECT ON trade_resolution TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_resolution_refused TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_operator_retry TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_act_note TO `{database}_application`;
GRANT SELECT ON audit_closing TO `{database}_application`;
-- A workflow makes its channel known; operators alone pause one.
GRANT SELECT, INSERT (channel, op_code) ON trade_channel TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_channel_declare TO `{database}_application`;
-- Contents are blanked by the time in tl_schema, which no service may write.
GRANT EXECUTE ON PROCEDURE tl_blank_page TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_site_is TO `{database}_application`;
GRANT SELECT ON tl_session_channel TO `{database}_application`;
GRANT SELECT ON trade_channel_limit TO `{database}_application`;
GRANT SELECT ON trade_channel_permit TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_channel_share TO `{database}_application`;
GRANT SELECT ON trade_channel_breaker TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_channel_told TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_channel_probe TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_account_name TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_contradicts TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_paid_ref TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_parts TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_parts_made TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_blockers TO `{database}_application`;
GRANT SELECT, INSERT, UPDATE ON tl_session TO `{database}_application`;
GRANT SELECT, UPDATE ON tl_beat TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_receipts_close TO `{database}_application`;
GRANT SELECT ON tl_schema TO `{database}_application`;
-- Which slots this shard of a fleet has; the token is for whoever moves one.
GRANT SELECT (slot, state, version, other, sealed, changed_at, account, reason) ON tl_slot
    TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_slot_asked TO `{database}_application`;
-- Everybody sees a restore, and a program that finds one may say so.  Only accepting ends it.
GRANT SELECT ON tl_restore TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_restored TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_identity TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_restore_found TO `{database}_application`;
-- Which server keeps the commits of this one: a service puts that on record, the doctor shows it.
GRANT EXECUTE ON PROCEDURE tl_replicas TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_log_filters TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_kept TO `{database}_application`;
-- A service attests to a promoted server.  Operators do not: one of them could accept it alone.
GRANT EXECUTE ON PROCEDURE tl_attest TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_attest_missing TO `{database}_application`;
GRANT EXECUTE ON PROCEDURE tl_accept_proved TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_token_seen TO `{database}_application`;
GRANT SELECT, INSERT, UPDATE ON resource_lock TO `{database}_application`;
GRANT SELECT ON resource_lock_state TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_resource_token_seen TO `{database}_application`;
GRANT SELECT, INSERT, UPDATE ON rw_lock TO `{database}_application`;
GRANT SELECT, INSERT, UPDATE ON resource_holder TO `{database}_application`;
GRANT SELECT ON resource_holder_state TO `{database}_application`;
GRANT EXECUTE ON FUNCTION tl_holder_token_seen TO `{database}_application`;
GRANT SELECT, INSERT, UPDATE ON row_lock TO `{database}_application`;

-- Operators see history.  They append evidence and halves of decisions in their own name; all else
-- that they do is a procedure, which notes it.  They have no session, and hold no lock.  Whatever the
-- role had besides is taken back.
CREATE ROLE IF NOT EXISTS `{database}_operator`;
REVOKE ALL PRIVILEGES, GRANT OPTION FROM `{database}_operator`;
GRANT SELECT ON trade_lock TO `{database}_operator`;
GRANT SELECT ON trade_lock_low_water TO `{database}_operator`;
GRANT SELECT ON tl_clock TO `{database}_operator`;
GRANT SELECT ON tl_clock_step TO `{database}_operator`;
GRANT SELECT ON trade_lock_state TO `{database}_operator`;
GRANT SELECT ON trade_lock_past TO `{database}_operator`;
GRANT SELECT ON trade_lock_first TO `{database}_operator`;
GRANT SELECT ON trade_lock_log TO `{database}_operator`;
GRANT SELECT, INSERT ON trade_evidence TO `{database}_operator`;
GRANT SELECT ON trade_evidence_lost TO `{database}_operator`;
-- All columns except those that say who and when, which the server fills in.
GRANT SELECT, INSERT (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch, reason,
    actor, thread_no, log_no, although_pending, act_no, act_row) ON trade_resolution
    TO `{database}_operator`;
GRANT SELECT, INSERT (finding, part, rule, cust_no, serial_no, op_code, rev, reason, actor,
    thread_no) ON audit_closing TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_operator_retry TO `{database}_operator`;
-- A pause is a decision of one operator, which the procedure puts on record.
GRANT SELECT ON trade_channel TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_channel_decide TO `{database}_operator`;
GRANT SELECT ON tl_session_channel TO `{database}_operator`;
GRANT SELECT ON trade_channel_limit TO `{database}_operator`;
GRANT SELECT ON trade_channel_permit TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_channel_limit TO `{database}_operator`;
GRANT SELECT ON trade_channel_breaker TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_channel_breaker TO `{database}_operator`;
-- What operators did: procedures write it under their own names.
GRANT SELECT ON tl_act TO `{database}_operator`;
GRANT SELECT ON tl_act_row TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_act_begin TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_act_row TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_act_end TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_act_note TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_act_retry TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_account_name TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_contradicts TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_paid_ref TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_parts TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_parts_made TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_blockers TO `{database}_operator`;
GRANT SELECT ON tl_session TO `{database}_operator`;
GRANT SELECT ON tl_archive_set TO `{database}_operator`;
GRANT SELECT ON tl_schema TO `{database}_operator`;
-- Operators declare, propose and confirm in their own name; a procedure writes what accepting
-- changes.
GRANT SELECT, INSERT (restore_no, step, reason, actor) ON tl_restore TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_replicas TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_log_filters TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_connections TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_passes_over TO `{database}_operator`;
GRANT SELECT ON tl_attestation TO `{database}_operator`;
GRANT SELECT ON tl_attestation_missing TO `{database}_operator`;
GRANT SELECT (slot, state, version, other, sealed, changed_at, account, reason) ON tl_slot
    TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_slot_asked TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_restored TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_identity TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_restore_found TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_restore_accept TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_token_seen TO `{database}_operator`;
-- Procedures decide what may be removed; nobody removes a row in another way.
GRANT EXECUTE ON PROCEDURE tl_purge_sessions TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_purge_trades TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_purge_named TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_purge_archived TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_purge_mutexes TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_purge_rw_locks TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_purge_sessions_count TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_purge_acts TO `{database}_operator`;
-- A customer is forgotten by two.
GRANT EXECUTE ON FUNCTION tl_forget_name TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_forget_page TO `{database}_operator`;
GRANT SELECT ON resource_lock TO `{database}_operator`;
GRANT SELECT ON resource_lock_state TO `{database}_operator`;
GRANT SELECT ON resource_log TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_resource_token_seen TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_resource_force TO `{database}_operator`;
GRANT SELECT ON rw_lock TO `{database}_operator`;
GRANT SELECT ON resource_holder TO `{database}_operator`;
GRANT SELECT ON resource_holder_state TO `{database}_operator`;
GRANT SELECT ON resource_holder_log TO `{database}_operator`;
GRANT EXECUTE ON FUNCTION tl_holder_token_seen TO `{database}_operator`;
GRANT EXECUTE ON PROCEDURE tl_rw_force TO `{database}_operator`;
GRANT SELECT ON row_lock TO `{database}_operator`;

CREATE ROLE IF NOT EXISTS `{database}_reader`;
REVOKE ALL PRIVILEGES, GRANT OPTION FROM `{database}_reader`;
GRANT SELECT ON trade_lock TO `{database}_reader`;
GRANT SELECT ON trade_lock_low_water TO `{database}_reader`;
GRANT SELECT ON tl_clock TO `{database}_reader`;
GRANT SELECT ON tl_clock_step TO `{database}_reader`;
GRANT SELECT ON trade_lock_state TO `{database}_reader`;
GRANT SELECT ON trade_lock_past TO `{database}_reader`;
GRANT SELECT ON trade_lock_first TO `{database}_reader`;
GRANT SELECT ON trade_lock_log TO `{database}_reader`;
GRANT SELECT ON trade_evidence TO `{database}_reader`;
GRANT SELECT ON trade_evidence_lost TO `{database}_reader`;
GRANT SELECT ON trade_resolution TO `{database}_reader`;
GRANT SELECT ON audit_closing TO `{database}_reader`;
GRANT SELECT ON trade_channel TO `{database}_reader`;
GRANT SELECT ON tl_session_channel TO `{database}_reader`;
GRANT SELECT ON trade_channel_limit TO `{database}_reader`;
GRANT SELECT ON trade_channel_permit TO `{database}_reader`;
GRANT SELECT ON trade_channel_breaker TO `{database}_reader`;
GRANT SELECT ON tl_act TO `{database}_reader`;
GRANT SELECT ON tl_act_row TO `{database}_reader`;
GRANT EXECUTE ON FUNCTION tl_account_name TO `{database}_reader`;
GRANT EXECUTE ON FUNCTION tl_contradicts TO `{database}_reader`;
GRANT EXECUTE ON FUNCTION tl_paid_ref TO `{database}_reader`;
GRANT EXECUTE ON FUNCTION tl_parts TO `{database}_reader`;
GRANT EXECUTE ON FUNCTION tl_parts_made TO `{database}_reader`;
GRANT EXECUTE ON PROCEDURE tl_blockers TO `{database}_reader`;
GRANT EXECUTE ON PROCEDURE tl_connections TO `{database}_reader`;
GRANT EXECUTE ON FUNCTION tl_passes_over TO `{database}_reader`;
GRANT SELECT ON tl_session TO `{database}_reader`;
GRANT SELECT ON tl_schema TO `{database}_reader`;
GRANT SELECT ON tl_archive_set TO `{database}_reader`;
GRANT SELECT ON tl_restore TO `{database}_reader`;
GRANT SELECT ON tl_attestation TO `{database}_reader`;
GRANT SELECT ON tl_attestation_missing TO `{database}_reader`;
GRANT SELECT (slot, state, version, other, sealed, changed_at, account, reason) ON tl_slot
    TO `{database}_reader`;
GRANT EXECUTE ON FUNCTION tl_restored TO `{database}_reader`;
GRANT EXECUTE ON FUNCTION tl_identity TO `{database}_reader`;
GRANT SELECT ON resource_lock TO `{database}_reader`;
GRANT SELECT ON resource_lock_state TO `{database}_reader`;
GRANT SELECT ON resource_log TO `{database}_reader`;
GRANT SELECT ON rw_lock TO `{database}_reader`;
GRANT SELECT ON resource_holder TO `{database}_reader`;
GRANT SELECT ON resource_holder_state TO `{database}_reader`;
GRANT SELECT ON resource_holder_log TO `{database}_reader`;
GRANT SELECT ON row_lock TO `{database}_reader`;
