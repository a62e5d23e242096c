-- A page of the customers that have rows here, each with its slot and what that is here ('': this
-- shard never had it).  Keys alone are read, not the rows.
SELECT c.cust_no, tl_customer_slot(c.cust_no) AS slot, COALESCE(s.state, '')
FROM (SELECT cust_no FROM trade_lock FORCE INDEX (PRIMARY) WHERE cust_no > :cust_no
    GROUP BY cust_no ORDER BY cust_no LIMIT :most) c
LEFT JOIN tl_slot s ON s.slot = tl_customer_slot(c.cust_no)
ORDER BY c.cust_no
