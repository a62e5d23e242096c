-- What became of a row of an act; no row: the transaction that was to do it was not committed.
SELECT result FROM tl_act_row WHERE act_no = :act_no AND row_no = :row_no
