-- How long a transaction of this connection may stand idle, in seconds.
SET idle_transaction_timeout = :seconds
