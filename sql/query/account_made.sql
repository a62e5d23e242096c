-- How the server tells that it is this account; every account may ask for its own.
SHOW CREATE USER
