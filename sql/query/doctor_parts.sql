-- Which schema objects there are (triggers, functions, procedures, views), one a line.
SELECT tl_parts()
