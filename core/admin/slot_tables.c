#include "admin/slot_tables.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

int slot_tables_has(const slot_tables *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->name[i], name) == 0)
            return 1;
    return 0;
}

int slot_tables_cover(const slot_tables *all, const slot_tables *some)
{
    for (size_t i = 0; i < some->count; i++)
        if (!slot_tables_has(all, some->name[i]))
            return 0;
    return 1;
}

static tl_status add(slot_tables *to, const char *name)
{
    if (to->count == SLOT_TABLES_MAX)
        return error_set(TL_INVALID, "more than %d tables go along", SLOT_TABLES_MAX);
    text_copy(to->name[to->count++], sizeof to->name[0], name);
    return TL_OK;
}

tl_status slot_tables_add(slot_tables *to, const slot_tables *more)
{
    for (size_t i = 0; i < more->count; i++)
        if (!slot_tables_has(to, more->name[i]))
            TRY(add(to, more->name[i]));
    return TL_OK;
}

static tl_status check(const slot_tables *all, const char *name)
{
    if (name == NULL || name[0] == '\0')
        return error_set(TL_INVALID, "the name of a table is missing");
    if (strlen(name) > SLOT_TABLE_NAME_MAX)
        return error_set(TL_INVALID, "the name of a table is longer than %d characters",
                         SLOT_TABLE_NAME_MAX);
    if (strchr(name, ',') != NULL)
        return error_set(TL_INVALID, "the name of a table has a comma: %s", name);
    if (strncmp(name, "tl_", 3) == 0 || strncmp(name, "trade_", 6) == 0 ||
        strcmp(name, "audit_closing") == 0)
        return error_set(TL_INVALID, "table %s is one of tradelock's own", name);
    return slot_tables_has(all, name) ? error_set(TL_INVALID, "table %s goes along already", name)
                                      : TL_OK;
}

tl_status slot_tables_take(slot_tables *to, const char *const *names, size_t count)
{
    to->count = 0;
    for (size_t i = 0; i < count; i++) {
        TRY(check(to, names[i]));
        TRY(add(to, names[i]));
    }
    return TL_OK;
}

void slot_tables_read(slot_tables *to, const char *text)
{
    to->count = 0;
    while (text[0] != '\0' && to->count < SLOT_TABLES_MAX) {
        const size_t size = strcspn(text, ",");

        if (size > 0 && size <= SLOT_TABLE_NAME_MAX) {
            memcpy(to->name[to->count], text, size);
            to->name[to->count++][size] = '\0';
        }
        text += size + (text[size] == ',');
    }
}

const char *slot_tables_text(const slot_tables *all, char text[SLOT_TABLES_TEXT])
{
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < all->count; i++) {
        const size_t size = strlen(all->name[i]);

        if (i > 0)
            text[at++] = ',';
        memcpy(text + at, all->name[i], size + 1);
        at += size;
    }
    return text;
}
