-- Why a beat met no row: the session was ended, or its row is gone, which only a hand or a restored
-- database explains.
SELECT ended_at IS NOT NULL FROM tl_session WHERE session_id = :session_id
