-- Who is connected, as decisions and history name the account, and in which database.
SELECT CURRENT_USER(), DATABASE()
