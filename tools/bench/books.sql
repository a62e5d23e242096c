-- The tables of the part `books`.  What an account was opened with stays beside its balance, so
-- that the sums can be compared after each measurement.
CREATE TABLE account (cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
    opened_with BIGINT NOT NULL, balance BIGINT NOT NULL, frozen BIGINT NOT NULL)
    ENGINE = InnoDB;
CREATE TABLE orders (cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount BIGINT NOT NULL, state VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (cust_no, serial_no)) ENGINE = InnoDB;
CREATE TABLE ledger (id BIGINT AUTO_INCREMENT PRIMARY KEY,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount BIGINT NOT NULL) ENGINE = InnoDB;
CREATE TABLE treasury (id INT PRIMARY KEY, opened_with BIGINT NOT NULL,
    balance BIGINT NOT NULL) ENGINE = InnoDB;
INSERT INTO account SELECT CONCAT('C', LPAD(seq, 6, '0')), 1000000000000, 1000000000000, 0
    FROM seq_0_to_99999;
-- Customers without money.
INSERT INTO account SELECT CONCAT('P', LPAD(seq, 6, '0')), 0, 0, 0 FROM seq_0_to_4999;
INSERT INTO treasury VALUES (1, 1000000000000000, 1000000000000000);
