-- Whether the resource has its row already; a plain read, which waits for nobody.
SELECT resource FROM row_lock WHERE resource = :resource
