-- Whether the server's clock is between these moments: those at which it must be, if it agrees with
-- the clock by which the rows were written.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)
    + INTERVAL TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)) MICROSECOND)
    BETWEEN :least_us AND :most_us
