-- The columns of the trades that tl_purge_named named (object/purge.sql), for JSON_TABLE.
cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[0]',
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[1]',
    op_code VARCHAR(40) CHARACTER SET ascii COLLATE ascii_nopad_bin PATH '$[2]'
