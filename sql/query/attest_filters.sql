-- What is left out of the log: the third and the fourth column are '' if nothing is.
CALL tl_log_filters()
