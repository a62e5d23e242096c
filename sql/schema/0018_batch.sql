-- What a request said of itself besides its amount: the batch it belongs to, and the W3C trace
-- context under which it was made.  NULL where it said nothing.  The row keeps what its first ask
-- said.
--
-- A pause: the server rebuilds trade_lock, which has an indexed virtual column, and lets nobody
-- write to it meanwhile.
ALTER TABLE trade_lock
    ADD COLUMN IF NOT EXISTS batch VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
    ADD COLUMN IF NOT EXISTS traceparent CHAR(55) CHARACTER SET ascii COLLATE ascii_bin NULL;
-- Lists by batch, and by the channel's reference.  Serial numbers come second, so that the entries
-- of trades that name neither stand in one place, at whose end the index grows.  Made online:
-- services go on.
ALTER TABLE trade_lock
    ADD KEY IF NOT EXISTS batch (batch, serial_no),
    ADD KEY IF NOT EXISTS channel_ref (channel_ref, serial_no);
