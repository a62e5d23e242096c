-- Records the longest holds of rows that were there before schema 14.
CALL tl_record_holds()
