-- A session says its site; the procedure commits by itself (sql/object/contract.sql).
CALL tl_site_is(:site, @tl_contract)
