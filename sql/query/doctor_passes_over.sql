-- By what this server leaves out some of what its primary commits; NULL: it is not known to.
SELECT tl_passes_over()
