-- Whether evidence that had been filed is here.  Where it is not, its number may be that of other
-- evidence, which was filed on this server since.
SELECT 1 FROM trade_evidence
WHERE evidence_id = :evidence_id AND cust_no = :cust_no AND serial_no = :serial_no
    AND op_code = :op_code AND thread_no = :thread_no
