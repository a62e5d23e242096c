-- The operations there are, by jumping from one to the next in the index.
SELECT op_code FROM trade_lock FORCE INDEX (due) GROUP BY op_code
