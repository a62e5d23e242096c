-- What the account of this connection may do, its roles included.
SHOW GRANTS
