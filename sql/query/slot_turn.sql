-- A step of a slot, if it still is as the mover saw it: of two that move it, the one whose token
-- stands there goes on.
UPDATE tl_slot
SET state = :state, sealed = :sealed, version = :version, other = :other, tables = :tables,
    taking = :taking, token = :token,
    changed_at = UTC_TIMESTAMP(6), account = USER(), reason = :reason
WHERE slot = :slot AND state = :was AND sealed = :was_sealed AND version = :was_version
    AND token <=> :was_token
