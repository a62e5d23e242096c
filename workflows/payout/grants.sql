-- What the account of service and worker needs of the business tables, besides the role
-- tradelock_application.  A declared UPDATE needs SELECT of the columns that its condition reads.
GRANT SELECT, INSERT, UPDATE ON payout.payout TO payout_app@localhost;
GRANT SELECT, UPDATE ON payout.treasury TO payout_app@localhost;
