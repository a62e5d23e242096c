/* Which business tables go along with a slot, as its row keeps them: names with commas between. */
#ifndef TL_ADMIN_SLOT_TABLES_H
#define TL_ADMIN_SLOT_TABLES_H

#include <tradelock/tradelock.h>

#include <stddef.h>

#define SLOT_TABLES_MAX 64
#define SLOT_TABLE_NAME_MAX 64
#define SLOT_TABLES_TEXT (SLOT_TABLES_MAX * (SLOT_TABLE_NAME_MAX + 1))

/* In their order: parents before children. */
typedef struct slot_tables {
    char name[SLOT_TABLES_MAX][SLOT_TABLE_NAME_MAX + 1];
    size_t count;
} slot_tables;

/* TL_INVALID: a name is missing, too long, there twice, has a comma, or is one of our own. */
tl_status slot_tables_take(slot_tables *to, const char *const *names, size_t count);
void slot_tables_read(slot_tables *to, const char *text);
const char *slot_tables_text(const slot_tables *all, char text[SLOT_TABLES_TEXT]);

int slot_tables_has(const slot_tables *all, const char *name);
/* Whether all of `some` are among them. */
int slot_tables_cover(const slot_tables *all, const slot_tables *some);
/* Adds those that are not there yet; TL_INVALID: they are too many. */
tl_status slot_tables_add(slot_tables *to, const slot_tables *more);

#endif
