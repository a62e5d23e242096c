-- The other contestants' tables.
CREATE TABLE bench_order (id BIGINT AUTO_INCREMENT PRIMARY KEY, amount BIGINT NOT NULL)
    ENGINE = InnoDB;
CREATE TABLE bench_ledger (id BIGINT AUTO_INCREMENT PRIMARY KEY, amount BIGINT NOT NULL)
    ENGINE = InnoDB;
CREATE TABLE article_lock (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    source_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    thread_no CHAR(36) NOT NULL, status CHAR(1) NOT NULL, remark VARCHAR(255),
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    UNIQUE KEY trade (cust_no, serial_no, source_code)) ENGINE = InnoDB;
CREATE TABLE uni_key_lock (id BIGINT AUTO_INCREMENT PRIMARY KEY,
    lock_name VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    UNIQUE KEY lock_name (lock_name)) ENGINE = InnoDB;
CREATE TABLE optimistic_lock (id INT PRIMARY KEY, version BIGINT NOT NULL,
    amount BIGINT NOT NULL) ENGINE = InnoDB;
INSERT INTO optimistic_lock SELECT seq, 1, 0 FROM seq_0_to_999;

-- The lock table with what is written once, and seldom read, apart (hot-cold).
CREATE TABLE bench_hot LIKE trade_lock;
ALTER TABLE bench_hot DROP COLUMN first_rev, DROP COLUMN first_logged_at,
    DROP COLUMN first_account, DROP COLUMN first_thread_no, DROP COLUMN first_log_no,
    DROP COLUMN first_session_id, DROP COLUMN first_token, DROP COLUMN first_sends,
    DROP COLUMN first_max_hold_until, DROP COLUMN first_next_run_at,
    DROP COLUMN first_channel_key;
ALTER TABLE bench_hot DROP COLUMN fingerprint, DROP COLUMN channel, DROP COLUMN channel_key,
    DROP COLUMN channel_ref, DROP COLUMN payload, DROP COLUMN result, DROP COLUMN remark,
    DROP COLUMN actor, ADD COLUMN held BINARY(16) NULL;
CREATE TABLE bench_cold LIKE trade_lock;
ALTER TABLE bench_cold DROP COLUMN longest_hold_ms, DROP COLUMN first_rev, DROP COLUMN first_logged_at,
    DROP COLUMN first_account, DROP COLUMN first_thread_no, DROP COLUMN first_log_no,
    DROP COLUMN first_session_id, DROP COLUMN first_token, DROP COLUMN first_sends,
    DROP COLUMN first_max_hold_until, DROP COLUMN first_next_run_at,
    DROP COLUMN first_channel_key;
ALTER TABLE bench_cold DROP CONSTRAINT status_is_p_f_or_y, DROP CONSTRAINT lane_is_s_or_r,
    DROP CONSTRAINT failure_has_proof, DROP KEY one_per_customer, DROP KEY due,
    DROP COLUMN busy;
ALTER TABLE bench_cold DROP COLUMN lane, DROP COLUMN status, DROP COLUMN step,
    DROP COLUMN thread_no, DROP COLUMN log_no, DROP COLUMN session_id, DROP COLUMN token,
    DROP COLUMN fence, DROP COLUMN rev, DROP COLUMN epoch, DROP COLUMN attempts,
    DROP COLUMN claims, DROP COLUMN sends, DROP COLUMN send_until,
    DROP COLUMN not_found_since, DROP COLUMN seen_by_channel, DROP COLUMN cancel_tried,
    DROP COLUMN success_epoch, DROP COLUMN max_hold_until, DROP COLUMN next_run_at,
    DROP COLUMN deadline_at, DROP COLUMN parked, DROP COLUMN conflict,
    DROP COLUMN exclusive, DROP COLUMN repeatable, DROP COLUMN retryable,
    DROP COLUMN proof, DROP COLUMN created_at, DROP COLUMN updated_at,
    DROP COLUMN logged_at, DROP COLUMN account;
CREATE TABLE bench_hot_past LIKE trade_lock_past;
DELIMITER //
CREATE TRIGGER bench_hot_updated BEFORE UPDATE ON bench_hot FOR EACH ROW
BEGIN
    INSERT INTO bench_hot_past (cust_no, serial_no, op_code, rev, logged_at, step, status,
        thread_no, session_id, token, fence, epoch, attempts, claims, sends, send_until,
        max_hold_until, next_run_at, conflict, proof, account)
    VALUES (OLD.cust_no, OLD.serial_no, OLD.op_code, OLD.rev, OLD.logged_at, OLD.step,
        OLD.status, OLD.thread_no, OLD.session_id, OLD.token, OLD.fence, OLD.epoch,
        OLD.attempts, OLD.claims, OLD.sends, OLD.send_until, OLD.max_hold_until,
        OLD.next_run_at, OLD.conflict, OLD.proof, OLD.account);
    SET NEW.logged_at = SYSDATE(6)
            + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND,
        NEW.account = USER();
END//
DELIMITER ;
