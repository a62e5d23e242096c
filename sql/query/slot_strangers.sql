-- A customer who has trades here, but whose slot is none of these: a digit for each slot, 1: it is.
SELECT c.cust_no, tl_customer_slot(c.cust_no)
FROM (SELECT DISTINCT cust_no FROM trade_lock) c
WHERE COALESCE(SUBSTRING(:slots, tl_customer_slot(c.cust_no) + 1, 1), '') <> '1'
LIMIT 1
