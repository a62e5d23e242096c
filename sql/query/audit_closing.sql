-- Who proposed to close a finding, and who confirmed it, if anybody did; whether these are two
-- persons, and whether it was the account that asks now.
SELECT p.account, p.reason, tl_account_name(p.account) <=> tl_account_name(CURRENT_USER()),
    c.account, c.reason, tl_account_name(c.account) <=> tl_account_name(CURRENT_USER()),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.closed_at) AS closed_us,
    COALESCE(tl_account_name(p.account) <> tl_account_name(c.account), 0)
FROM audit_closing p
LEFT JOIN audit_closing c ON c.finding = p.finding AND c.part = 2
WHERE p.finding = :finding AND p.part = 1
