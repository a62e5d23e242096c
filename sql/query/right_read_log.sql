-- Whether this account may read trades with their history, and who runs; no row can match.
SELECT l.rev FROM trade_lock_log l
JOIN trade_lock_state s ON s.serial_no = l.serial_no
JOIN trade_evidence e ON e.serial_no = l.serial_no
JOIN trade_resolution r ON r.serial_no = l.serial_no
JOIN tl_session x ON x.session_id = l.session_id
WHERE FALSE
