-- A slot as it is, for whoever moves it; nobody changes it before this transaction ends.
SELECT state, version, COALESCE(other, ''), sealed, token, COALESCE(tables, ''),
    taking
FROM tl_slot WHERE slot = :slot
FOR UPDATE
