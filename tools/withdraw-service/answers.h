/* The output file: each input line with its answer. */
#ifndef WITHDRAW_ANSWERS_H
#define WITHDRAW_ANSWERS_H

#include "rows.h"

#define ANSWERS_HEADER ROWS_HEADER ",answer,final_status,kind,detail"

/* "succeeded", "already_done", ...: the status' name in lower case, without TL_. */
const char *answer_name(char *to, size_t space, const row *of);
const char *row_kind_name(row_kind kind);

/* What a finished run makes of its line: own: its call was the attempt. */
row_kind answer_kind(tl_status status, int own);

/* 0, or -1 with errno. */
int answers_write(FILE *file, const rows *all);

#endif
