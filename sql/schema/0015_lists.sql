-- Lists by serial number, of trades in conflict and of parked ones, by one index.  No step of a
-- trade that is asked for and ended changes these columns, so such a trade costs one entry more,
-- at the index' end where serial numbers rise.  Made online: services go on.
ALTER TABLE trade_lock ADD KEY IF NOT EXISTS serial (conflict, parked, serial_no);
