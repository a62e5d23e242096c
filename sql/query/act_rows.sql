-- The rows of an act, in their order.
SELECT row_no, cust_no, serial_no, op_code, fence, result,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', acted_at) AS acted_us
FROM tl_act_row
WHERE act_no = :act_no AND row_no > :after_row
ORDER BY row_no
LIMIT :most
