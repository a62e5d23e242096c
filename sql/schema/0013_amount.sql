-- What a request said of itself: how much money, in minor units of which currency.  The row keeps
-- what its first ask said; both are NULL where it said nothing.  Added without a copy of the table.
ALTER TABLE trade_lock
    ADD COLUMN IF NOT EXISTS amount_minor BIGINT NULL,
    ADD COLUMN IF NOT EXISTS currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NULL;
