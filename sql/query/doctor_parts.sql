-- What there is of triggers, functions, procedures and views, one a line.
SELECT tl_parts()
