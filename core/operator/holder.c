/* The operators' side of the read-write locks: who reads, who writes, who waits. */
#include "operator/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/store_rw.h"

#define PAGE_ROWS 256
#define LIMIT_DEFAULT 100

struct listing {
    tl_holder_fn each;
    void *context;
    int all;
    unsigned left, slot;
    char resource[TL_RESOURCE_MAX + 1];
};

/* Shows a page; 1 to go on with the next. */
static int show_page(struct listing *list, const db_result *rows)
{
    for (size_t row = 0; row < rows->rows; row++) {
        tl_holder_view view;

        holder_view_read(&view, rows, row);
        text_copy(list->resource, sizeof list->resource, view.resource);
        list->slot = view.slot;
        if (!list->all && view.state == TL_HOLDER_FREE)
            continue;
        if (list->each(list->context, &view) != 0 || --list->left == 0)
            return 0;
    }
    return rows->rows == PAGE_ROWS;
}

tl_status tl_holder_list(tl_client *client, const char *resource, int all, unsigned limit,
                         tl_holder_fn each, void *context)
{
    struct listing list = {.each = each,
                           .context = context,
                           .all = all,
                           .left = limit != 0 ? limit : LIMIT_DEFAULT};
    db_result rows = DB_RESULT_INIT;
    db *connection = NULL;
    int more = 1;
    tl_status status = TL_OK;

    if (each == NULL)
        status = error_set(TL_INVALID, "each is NULL");
    if (status == TL_OK && resource != NULL)
        status = text_check_name("resource", resource, TL_RESOURCE_MAX);
    if (status == TL_OK)
        status = read_begin(client, &connection);
    if (status != TL_OK)
        return status;
    text_copy(list.resource, sizeof list.resource, resource);
    while (status == TL_OK && more) {
        status = read_status(connection,
                             store_rw_list(connection, list.resource, list.slot,
                                           resource == NULL, PAGE_ROWS, &rows),
                             "listing holders");
        if (status == TL_OK)
            more = show_page(&list, &rows);
    }
    db_result_free(&rows);
    read_end(client, connection);
    return status;
}
