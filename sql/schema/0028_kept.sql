-- kept: which server has the accepted one's commits before they are answered (object/position.sql).
ALTER TABLE tl_restore
    DROP CONSTRAINT IF EXISTS known_step_of_a_restore;
ALTER TABLE tl_restore
    ADD CONSTRAINT known_step_of_a_restore CHECK (step IN ('declared', 'found', 'promoted',
        'fenced', 'proposed', 'confirmed', 'proved', 'kept'));
