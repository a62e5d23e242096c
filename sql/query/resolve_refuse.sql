-- A worker does not carry out what two operators decided about this revision, since the channel
-- says that the payment lives.  The decision is over with that.
CALL tl_resolution_refused(?, ?, ?, ?, ?, ?, ?)
