/* Writes tables of rows by their records.  Writes only. */
#include "grid.h"

#include <ctype.h>
#include <string.h>

void grid_begin(struct grid *grid, struct visit *visit, const struct record *record,
                const char *columns, const struct drawn *drawn)
{
    static const struct drawn none = {NULL, NULL};

    *grid = (struct grid){.visit = visit, .record = record, .drawn = drawn != NULL ? drawn : &none};
    record_columns(&grid->columns, record, columns);
}

/* The words that the desk has for it, else the command's, in small letters. */
static void put_heading(struct page *page, const struct grid *grid, size_t i)
{
    const struct field *column = grid->columns.column[i];
    char words[64];

    snprintf(words, sizeof words, "%s", column->fact != NULL ? column->fact : column->heading);
    for (char *c = words + 1; column->fact == NULL && *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    page_text(page, grid->columns.heading[i] != NULL ? grid->columns.heading[i] : words);
}

static void put_head(struct page *page, const struct grid *grid)
{
    page_put(page, "<div class=\"scroll\"><table class=\"rows\"><thead><tr>");
    if (grid->of_shards)
        page_put(page, "<th scope=\"col\">Shard</th>");
    for (size_t i = 0; i < grid->columns.count; i++) {
        page_put(page, column_is_right(grid->columns.column[i])
                           ? "<th scope=\"col\" class=\"number\">"
                           : "<th scope=\"col\">");
        put_heading(page, grid, i);
        page_put(page, "</th>");
    }
    page_put(page, "</tr></thead><tbody>\n");
}

void grid_value(struct visit *visit, const struct record *record, const struct field *field,
                const void *row)
{
    struct page *page = &visit->answer->page;
    const struct made *made = as_made(field);
    char text[CELL];

    if (field->type == FIELD_TIME && record->now != 0 && field_time(field, row) != 0) {
        page_ago(page, field_time(field, row),
                 *(const int64_t *)(const void *)((const char *)row + record->now));
        return;
    }
    record_cell(text, field, row, 0);
    if (field->type == FIELD_TIME)
        page_moment(page, field_time(field, row));
    else if (made != NULL && made->kind == MADE_MONEY)
        page_money(page, text);
    else
        page_text(page, text);
}

static void put_cell(struct page *page, const struct grid *grid, size_t i, const void *row)
{
    const struct field *column = grid->columns.column[i];
    const struct drawn *drawn = grid->drawn;

    page_put(page, "<td data-l=\"");
    put_heading(page, grid, i);
    page_put(page, column_is_right(column) ? "\" class=\"number\">" : "\">");
    while (drawn->column != NULL && strcmp(drawn->column, column->column) != 0)
        drawn++;
    if (drawn->column != NULL)
        drawn->cell(grid->visit, row);
    else
        grid_value(grid->visit, grid->record, column, row);
    page_put(page, "</td>");
}

void grid_row(struct grid *grid, const void *row)
{
    grid_row_at(grid, NULL, row);
}

void grid_row_at(struct grid *grid, const char *shard, const void *row)
{
    struct page *page = &grid->visit->answer->page;

    grid->of_shards = shard != NULL && shard[0] != '\0';
    if (grid->rows++ == 0)
        put_head(page, grid);
    page_put(page, "<tr>");
    if (grid->of_shards)
        page_format(page, "<td data-l=\"Shard\">%s</td>", shard);
    for (size_t i = 0; i < grid->columns.count; i++)
        put_cell(page, grid, i, row);
    page_put(page, "</tr>\n");
}

void grid_end(struct grid *grid, const char *nothing)
{
    struct page *page = &grid->visit->answer->page;

    if (grid->rows > 0)
        page_put(page, "</tbody></table></div>\n");
    else
        page_format(page, "<p class=\"calm-line\">%s</p>\n", nothing);
}
