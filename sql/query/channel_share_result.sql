-- What this connection's last taking of a share came to.
SELECT @tl_share
