-- How a process knew the server's clock when it last looked: so that the next one on the same boot
-- of the same machine sees a clock that was set while nobody lived.
ALTER TABLE tl_session
    -- of that machine's kernel; clock_us and the next two are by its CLOCK_BOOTTIME
    ADD COLUMN IF NOT EXISTS boot_id UUID NULL,
    -- when it looked, and between which bounds the server's clock was ahead then
    ADD COLUMN IF NOT EXISTS clock_us BIGINT NULL,
    ADD COLUMN IF NOT EXISTS clock_least_us BIGINT NULL,
    ADD COLUMN IF NOT EXISTS clock_most_us BIGINT NULL,
    -- the jumps of the clock that were on record by then
    ADD COLUMN IF NOT EXISTS clock_steps INT UNSIGNED NULL,
    ADD KEY IF NOT EXISTS boot (boot_id, clock_us);
