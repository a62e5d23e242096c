-- Writes what became of a row of an act, in the transaction that did it; a second time it does
-- nothing.
CALL tl_act_row(:act_no, :row_no, :cust_no, :serial_no, :op_code, :fence, :result, :done)
