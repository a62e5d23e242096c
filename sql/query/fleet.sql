-- Shards and slots of a fleet.

-- name: fleet_name
-- Makes the database a shard, once its triggers are there.
UPDATE tl_schema SET fleet = :fleet, shard = :shard WHERE one = 1

-- name: fleet_of
-- Of which fleet this database is a shard, of what name (NULL: of none), and which installation.
SELECT fleet, shard, CAST(installation AS CHAR) FROM tl_schema WHERE one = 1

-- name: fleet_probe
-- A customer's name that nobody has, and whose slot is owned here: the doctor's probe is for him.
SELECT CONCAT('tl-doctor-', q.seq)
FROM seq_1_to_20000 q
JOIN tl_slot s ON s.slot = tl_customer_slot(CONCAT('tl-doctor-', q.seq)) AND s.state = 'owned'
LIMIT 1

-- name: slot_alone
-- Lets one process at a time move a slot; the lock ends with its connection.
SELECT GET_LOCK(CONCAT('tl:slot:', :slot, ':', MD5(DATABASE())), 0)

-- name: slot_asked
-- For a step that found no row: refused by an error where the customer belongs to another shard.
CALL tl_slot_asked(:cust_no)

-- name: slot_blockers
-- What is in the way of a hand-over, of these customers: trades in process; repeatable ones that
-- somebody may hold; lanes that wait or are parked; decisions that are proposed.  Holders that are
-- dead hold nothing; the next step takes their rows from them (slot_fence_out).
SELECT t.cust_no, t.serial_no, t.op_code,
    CASE WHEN t.lane = 'R' AND t.repeatable = 0 AND t.parked IS NOT NULL THEN 'parked'
        WHEN t.lane = 'R' AND t.repeatable = 0 THEN 'waiting'
        WHEN t.status = 'P' THEN 'in process'
        ELSE 'proposed' END
FROM JSON_TABLE(:customers, '$[*]' COLUMNS (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$')) m
STRAIGHT_JOIN trade_lock t FORCE INDEX (PRIMARY) ON t.cust_no = m.cust_no
LEFT JOIN trade_resolution d ON d.part = 1 AND t.cust_no = d.cust_no
    AND t.serial_no = d.serial_no AND t.op_code = d.op_code AND t.rev = d.rev
LEFT JOIN tl_session x ON x.session_id = t.session_id AND x.ended_at IS NULL
WHERE (t.repeatable = 0 AND (t.status = 'P' OR t.parked IS NOT NULL
        OR (t.lane = 'R' AND t.next_run_at IS NOT NULL)))
    OR (t.repeatable = 1 AND t.status = 'P' AND x.session_id IS NOT NULL
        AND t.max_hold_until > UTC_TIMESTAMP(6))
    OR d.rev IS NOT NULL
LIMIT 100

-- name: slot_customers
-- A page of the customers that have rows here, each with its slot and what that is here ('': this
-- shard never had it).  Keys alone are read, not the rows.
SELECT c.cust_no, tl_customer_slot(c.cust_no) AS slot, COALESCE(s.state, '')
FROM (SELECT cust_no FROM trade_lock FORCE INDEX (PRIMARY) WHERE cust_no > :cust_no
    GROUP BY cust_no ORDER BY cust_no LIMIT :most) c
LEFT JOIN tl_slot s ON s.slot = tl_customer_slot(c.cust_no)
ORDER BY c.cust_no

-- name: slot_fence_out
-- Repeatable trades of a customer whose holders are dead: nothing of them changes any more after
-- this, since a late ending finds another fence.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'moved', thread_no = :thread_no, log_no = NULL, token = RANDOM_BYTES(16),
    session_id = NULL, max_hold_until = NULL, fence = fence + 1, rev = rev + 1, actor = :actor,
    updated_at = UTC_TIMESTAMP(6)
WHERE cust_no = :cust_no AND repeatable = 1 AND status = 'P' AND session_id IS NOT NULL

-- name: slot_idle
-- How long a transaction of this connection may stand idle, in seconds.
SET idle_transaction_timeout = :seconds

-- name: slot_list
-- Which slots this database has or had: 1024 rows at most.
SELECT slot, state, version, other, sealed,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', changed_at) AS changed_us, account, reason
FROM tl_slot FORCE INDEX (PRIMARY)
ORDER BY slot

-- name: slot_make
-- A slot that was never here arrives.  A row that is there already is an error.
INSERT INTO tl_slot (slot, state, version, other, tables, token, reason)
VALUES (:slot, 'arriving', :version, :other, :tables, :token, :reason)

-- name: slot_mover
-- From here on this connection writes into an arriving slot whose token this is.
SET @tl_mover = :token

-- name: slot_raise
-- A customer's rows at the new owner: each fence rises above all that its row had, so that whoever
-- holds something of before is fenced out.  The token stays: by it a lost answer is settled.
UPDATE trade_lock FORCE INDEX (PRIMARY)
SET step = 'moved', thread_no = :thread_no, log_no = NULL, fence = fence + 1, rev = rev + 1,
    actor = :actor
WHERE cust_no = :cust_no

-- name: slot_row
-- A slot as it is, for whoever moves it; nobody changes it before this transaction ends.
SELECT state, version, COALESCE(other, '') AS other, sealed, token,
    COALESCE(tables, '') AS tables, taking
FROM tl_slot WHERE slot = :slot
FOR UPDATE

-- name: slot_rule
-- What both ends of a move must have in common: the rule of slots, and that no restore is open.
SELECT tl_restored(), SHA2(routine_definition, 256)
FROM information_schema.routines
WHERE routine_schema = DATABASE() AND routine_name = 'tl_customer_slot'

-- name: slot_sends
-- What an end whose claim of a slot is stale knows of money, of these customers: each trade that is
-- paid there, or that was sent and may be, with the token of the step that its last send began
-- with.  Queries, claims and clock jumps change neither.  And each trade that was lost there and of
-- which success was filed.
SELECT JSON_OBJECT('cust_no', t.cust_no, 'serial_no', t.serial_no, 'op_code', t.op_code,
    'paid', t.status = 'Y', 'token', CASE WHEN t.sends = 0 THEN NULL
        WHEN t.first_rev IS NOT NULL AND t.first_sends = t.sends THEN HEX(t.first_token)
        ELSE COALESCE(SUBSTRING(MIN(CONCAT(LPAD(p.rev, 20, '0'), HEX(p.token))), 21),
            HEX(t.token)) END)
FROM JSON_TABLE(:customers, '$[*]' COLUMNS (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$')) m
STRAIGHT_JOIN trade_lock t FORCE INDEX (PRIMARY) ON t.cust_no = m.cust_no
LEFT JOIN trade_lock_past p FORCE INDEX (PRIMARY) ON p.serial_no = t.serial_no
    AND p.cust_no = t.cust_no AND p.op_code = t.op_code AND p.sends = t.sends
WHERE t.lane = 'S' AND t.repeatable = 0
    AND (t.status = 'Y' OR (t.status = 'P' AND t.sends > 0))
GROUP BY t.cust_no, t.serial_no, t.op_code
UNION ALL
SELECT JSON_OBJECT('cust_no', e.cust_no, 'serial_no', e.serial_no, 'op_code', e.op_code,
    'paid', 1, 'token', NULL)
FROM JSON_TABLE(:customers, '$[*]' COLUMNS (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$')) m
STRAIGHT_JOIN trade_evidence_lost e ON e.cust_no = m.cust_no
GROUP BY e.cust_no, e.serial_no, e.op_code

-- name: slot_strangers
-- A customer who has trades here, but whose slot is none of these: a digit for each slot, 1: it is.
SELECT c.cust_no, tl_customer_slot(c.cust_no)
FROM (SELECT DISTINCT cust_no FROM trade_lock) c
WHERE COALESCE(SUBSTRING(:slots, tl_customer_slot(c.cust_no) + 1, 1), '') <> '1'
LIMIT 1

-- name: slot_table
-- The statements by which the rows of customers go from one database to the other, of any table with
-- a column cust_no: to read rows as literals, to insert, to remove and to count them, and to find
-- customers.
-- All columns as they are, but generated ones, and the number of a piece of evidence.  Bytes go as
-- hexadecimal digits, floating point numbers with all of theirs.
SELECT t.engine,
    CONCAT('SELECT CONCAT_WS('', '', ', GROUP_CONCAT(CASE
        WHEN c.data_type LIKE '%blob' OR c.data_type LIKE '%binary' OR c.character_set_name IS NULL
            AND c.data_type IN ('geometry', 'point', 'linestring', 'polygon', 'multipoint',
                'multilinestring', 'multipolygon', 'geometrycollection')
            THEN CONCAT('IF(`', c.column_name, '` IS NULL, ''NULL'', CONCAT(''X'''''', HEX(`',
                c.column_name, '`), ''''''''))')
        WHEN c.data_type = 'bit'
            THEN CONCAT('COALESCE(CAST(`', c.column_name, '` AS UNSIGNED), ''NULL'')')
        WHEN c.data_type IN ('float', 'double')
            THEN CONCAT('QUOTE(CAST(`', c.column_name, '` AS DOUBLE))')
        ELSE CONCAT('CONVERT(QUOTE(`', c.column_name, '`) USING utf8mb4)') END
        ORDER BY c.ordinal_position SEPARATOR ', '), ') FROM `', t.table_name,
        '` WHERE cust_no IN ('),
    CONCAT('INSERT INTO `', t.table_name, '` (', GROUP_CONCAT('`', c.column_name, '`'
        ORDER BY c.ordinal_position SEPARATOR ', '), ') VALUES '),
    CONCAT('DELETE FROM `', t.table_name, '` WHERE cust_no IN ('),
    CONCAT('SELECT c.cust_no, QUOTE(c.cust_no), JSON_QUOTE(CONVERT(c.cust_no USING utf8mb4)) FROM '
        '(SELECT DISTINCT CONVERT(cust_no USING ascii) COLLATE ascii_nopad_bin AS cust_no FROM `',
        t.table_name, '`) c WHERE tl_customer_slot(c.cust_no) = '),
    SUM(c.column_name = 'cust_no'),
    CONCAT('SELECT COUNT(*) FROM `', t.table_name, '` WHERE cust_no IN (')
FROM information_schema.tables t
JOIN information_schema.columns c ON c.table_schema = t.table_schema
    AND c.table_name = t.table_name
WHERE t.table_schema = DATABASE() AND t.table_name = :table_name
    AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND c.is_generated = 'NEVER'
    AND c.extra NOT LIKE '%GENERATED%'
    AND NOT (t.table_name = 'trade_evidence' AND c.column_name = 'evidence_id')
GROUP BY t.table_name

-- name: slot_take
-- Slots that nobody owned yet, as a JSON array.  Whoever joins has the turn at every shard, so no
-- other one takes them at the same time.  A slot that was here once is left as it is.
INSERT INTO tl_slot (slot, state, reason)
SELECT j.slot, 'owned', :reason
FROM JSON_TABLE(:slots, '$[*]' COLUMNS (slot SMALLINT UNSIGNED PATH '$')) j
ON DUPLICATE KEY UPDATE slot = tl_slot.slot

-- name: slot_turn
-- A step of a slot, if it still is as the mover saw it: of two that move it, the one whose token
-- stands there goes on.
UPDATE tl_slot
SET state = :state, sealed = :sealed, version = :version, other = :other, tables = :tables,
    taking = :taking, token = :token,
    changed_at = UTC_TIMESTAMP(6), account = USER(), reason = :reason
WHERE slot = :slot AND state = :was AND sealed = :was_sealed AND version = :was_version
    AND token <=> :was_token

-- name: slot_unknown
-- Which of these trades of a stale end (slot_sends) this shard does not know as far.  Of one that
-- is paid there: it has no such trade, or does not say that it is paid, or paid it by a send of its
-- own.  Of another one: it never had the step that it was sent by.
SELECT m.cust_no, m.serial_no, m.op_code, m.paid
FROM JSON_TABLE(:trades, '$[*]' COLUMNS (
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$.cust_no',
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$.serial_no',
    op_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$.op_code',
    paid TINYINT PATH '$.paid',
    token VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$.token')) m
LEFT JOIN trade_lock t FORCE INDEX (PRIMARY) ON t.cust_no = m.cust_no
    AND t.serial_no = m.serial_no AND t.op_code = m.op_code AND t.lane = 'S'
LEFT JOIN trade_lock_past p FORCE INDEX (PRIMARY) ON p.serial_no = m.serial_no
    AND p.cust_no = m.cust_no AND p.op_code = m.op_code AND p.token = UNHEX(m.token)
WHERE t.cust_no IS NULL OR (m.paid = 1 AND t.status <> 'Y')
    OR (m.token IS NOT NULL AND (m.paid = 0 OR t.sends > 0)
        AND t.token <> UNHEX(m.token) AND t.first_token <> UNHEX(m.token) AND p.rev IS NULL)
GROUP BY m.cust_no, m.serial_no, m.op_code, m.paid

-- name: slot_untake
-- A join that was refused at its end leaves no slot.
DELETE s FROM tl_slot s JOIN tl_schema k ON k.one = 1 AND k.fleet IS NULL

-- name: slot_version
-- Whether this shard has a slot now, and under which version, for whoever is about to read rows of
-- its customers: no row, if it has not.  If the slot is handed over right afterwards the rows that
-- are read here are as they were handed over, so the answer was true when it was asked for.
SELECT version FROM tl_slot WHERE slot = :slot AND state IN ('owned', 'leaving')

-- name: slots
-- All slots that are here, or were, for the map of a fleet.  What is read may be over a moment later:
-- it only tells where to ask, and the ask's own statement is refused where the slot is not.
SELECT slot, state, version, other FROM tl_slot FORCE INDEX (PRIMARY) ORDER BY slot

-- name: slots_of
-- To which slots customers belong, by this database's rule.
SELECT k.number, tl_customer_slot(k.cust_no)
FROM (SELECT evidence_id AS number, cust_no FROM trade_evidence WHERE FALSE
    UNION ALL VALUES /*rows(*/(:number, :cust_no)/*)rows*/) k
