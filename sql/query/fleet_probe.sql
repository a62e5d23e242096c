-- A customer's name that nobody has, and whose slot is owned here: the doctor's probe is for him.
SELECT CONCAT('tl-doctor-', q.seq)
FROM seq_1_to_20000 q
JOIN tl_slot s ON s.slot = tl_customer_slot(CONCAT('tl-doctor-', q.seq)) AND s.state = 'owned'
LIMIT 1
