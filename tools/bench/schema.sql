-- The other contestants' tables.
CREATE TABLE bench_order (id BIGINT AUTO_INCREMENT PRIMARY KEY, amount BIGINT NOT NULL)
    ENGINE = InnoDB;
CREATE TABLE bench_ledger (id BIGINT AUTO_INCREMENT PRIMARY KEY, amount BIGINT NOT NULL)
    ENGINE = InnoDB;
CREATE TABLE article_lock (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    serial_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    cust_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    source_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    thread_no CHAR(36) NOT NULL, status CHAR(1) NOT NULL, remark VARCHAR(255),
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    UNIQUE KEY trade (cust_no, serial_no, source_code)) ENGINE = InnoDB;
