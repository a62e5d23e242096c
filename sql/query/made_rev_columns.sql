-- A row's first revision, for its history to begin with: when it was made, to the microsecond. A
-- lone ask of a trade without a channel may have brought the number along, as its client knew the
-- time (transition/server_clock.h); then the row says it itself, and the moment bears it out to a
-- minute.  Nothing asked about here changes in a row's life.
IF(lane = 'S' AND repeatable = 0 AND channel IS NULL AND first_channel_key IS NULL
        AND first_sends > 0 AND ABS(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at)
            - CAST(first_rev AS SIGNED)) < 60000000,
        first_rev, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at)) AS made_rev
