-- What this connection's last call about a breaker came to.
SELECT @tl_breaker
