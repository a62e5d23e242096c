-- What the server's clock says, to be compared with this machine's; how many jumps of it are on
-- record, and to how many of them the rows are not adjusted yet.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), steps, steps - settled
FROM tl_clock WHERE one = 1
