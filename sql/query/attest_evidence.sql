-- Whether evidence that had been filed is here.
SELECT 1 FROM trade_evidence WHERE evidence_id = :evidence_id
