-- From here on this connection writes into an arriving slot whose token this is.
SET @tl_mover = :token
