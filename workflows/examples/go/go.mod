module withdraw

go 1.19
