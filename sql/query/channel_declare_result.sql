-- What this connection's last call about a contract or the site came to.
SELECT @tl_contract
