/* Prints the rows of a list as they come: as columns, as JSON or as CSV. */
#ifndef TRADELOCK_LIST_PRINT_H
#define TRADELOCK_LIST_PRINT_H

#include "command.h"

#include <tradelock/admin.h>

#include <jansson.h>

enum list_form { LIST_NARROW, LIST_WIDE, LIST_CSV, LIST_JSON };

#define LIST_COLUMNS_MOST 40

struct list_form_options {
    enum list_form form;
    const char *columns; /* names, with commas between; NULL: those of the form */
};

/* 1: these are columns.  0: *wrong, of *size letters, is none. */
int list_columns_check(const char *columns, const char **wrong, int *size);
/* All names, with commas between. */
const char *list_column_names(void);

/* Lists, prints, and says on stderr that there are more; returns the exit code.  A fleet's shards,
 * after fleet_begin(), come one after the other, each in its own order and up to the filter's limit:
 * to merge them, all would have to be read up to their ends before anything is printed. */
int list_print(const tl_filter *filter, const struct list_form_options *options);

/* "3 trades: 2.16 EUR in 2; 1.08 USD in 1" and a new line. */
/* noun: "trade". */
void list_print_totals(const tl_list_end *end, const char *noun);
/* The money by currency. */
json_t *list_json_money(const tl_list_end *end);

#endif
