-- What the server's clock says, to be compared with this machine's; how many steps of it are on
-- record, and how many of these the rows do not know of yet.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), steps, steps - settled
FROM tl_clock WHERE one = 1
