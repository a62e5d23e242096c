-- What the account of service and worker needs of the business tables, besides the role
-- tradelock_application.  A declared UPDATE needs SELECT of the columns that its condition reads.
GRANT SELECT, UPDATE ON account TO tradelock_app@localhost;
GRANT SELECT, INSERT, UPDATE ON withdraw_order TO tradelock_app@localhost;
GRANT SELECT, INSERT ON ledger TO tradelock_app@localhost;
