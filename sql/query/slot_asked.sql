-- For a step that found no row: refused by an error where the customer belongs to another shard.
CALL tl_slot_asked(:cust_no)
