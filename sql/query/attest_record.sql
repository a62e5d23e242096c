-- Puts on record who has this server's commits, unless somebody is; says who is.
CALL tl_kept(:keeper)
