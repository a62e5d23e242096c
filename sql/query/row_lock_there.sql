-- Whether the resource has its row already; a consistent read, which waits for nobody.
SELECT resource FROM row_lock WHERE resource = :resource
