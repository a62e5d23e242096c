-- A join that was refused at its end leaves no slot.
DELETE s FROM tl_slot s JOIN tl_schema k ON k.one = 1 AND k.fleet IS NULL
