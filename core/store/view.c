/* Reads a row of trade_lock_state into a tl_view.  Touches the result only. */
#include "store/view.h"

#include "store/record.h"

#include "sql_text.h"

tl_state view_state(const char *name)
{
    for (int state = TL_STATE_ABSENT; state <= TL_STATE_CLOSED; state++)
        if (strcmp(tl_state_name((tl_state)state), name) == 0)
            return (tl_state)state;
    return TL_STATE_ABSENT;
}

void view_clear(tl_view *view, view_inside *inside)
{
    memset(view, 0, sizeof *view);
    memset(inside, 0, sizeof *inside);
    view->version = TL_VIEW_VERSION;
    view->status = ' ';
    view->retry_status = ' ';
    view->proof = '-';
    view->holder_silent_ms = -1;
}

#define AT(member) (column + COLUMN_said_columns_##member)

void view_said(tl_said *to, const db_result *result, size_t row, size_t column)
{
    TL_SAID_MAP(RECORD_READ);
}

#undef AT
#define AT(member) COLUMN_view_columns_##member

static void read_inside(view_inside *inside, const db_result *result, size_t row)
{
    record_read_exactly(inside->token, sizeof inside->token, result, row, AT(token));
    inside->alive = db_get_int(result, row, AT(alive)) != 0;
    inside->retry_epoch = (uint32_t)db_get_uint(result, row, AT(retry_epoch));
    inside->success_epoch = (uint32_t)db_get_uint(result, row, AT(success_epoch));
    inside->has_fingerprint = !db_is_null(result, row, AT(fingerprint));
    inside->nothing_filed = result->columns == COLUMNS_views_by_key &&
                            db_get_int(result, row, COLUMN_views_by_key_on_file) == 0;
}

void view_read(tl_view *to, view_inside *inside, const db_result *result, size_t row)
{
    view_clear(to, inside);
    TL_VIEW_MAP(RECORD_READ);
    to->has_retry_row = to->retry_status != ' ';
    read_inside(inside, result, row);
}
