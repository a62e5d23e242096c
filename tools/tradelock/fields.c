/* The values of fields in words and in JSON, and lists of rows.  Decides nothing. */
#include "fields.h"

#include "command.h"
#include "fleet.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const void *at(const struct field *field, const void *row)
{
    return (const char *)row + field->offset;
}

/* A member of this type. */
#define AS(type) (*(const type *)at(field, row))

int64_t field_time(const struct field *field, const void *row)
{
    return AS(int64_t);
}

const void *field_bytes(const struct field *field, const void *row, size_t *size)
{
    const void *const *bytes = at(field, row);

    *size = *(const size_t *)(const void *)(bytes + 1);
    return *bytes;
}

static const char *number_words(char space[FIELD_SPACE], uint64_t number)
{
    snprintf(space, FIELD_SPACE, "%" PRIu64, number);
    return space;
}

static const char *total_words(char space[FIELD_SPACE], uint64_t number)
{
    snprintf(space, FIELD_SPACE, "%s", COUNT_TEXT(number));
    return space;
}

static const char *letter_words(char space[FIELD_SPACE], char letter)
{
    space[0] = letter;
    space[1] = '\0';
    return space;
}

const char *level_name(tl_finding_level level)
{
    static const char *const names[] = {
        [TL_FINDING_OK] = "ok", [TL_FINDING_WARNING] = "warning", [TL_FINDING_UNSAFE] = "unsafe"};

    return names[level];
}

const char *field_words(char space[FIELD_SPACE], const struct field *field, const void *row)
{
    switch (field->type) {
    case FIELD_TEXT:
        return at(field, row);
    case FIELD_STRING:
        return AS(char *) != NULL ? AS(char *) : "";
    case FIELD_LETTER:
        return letter_words(space, AS(char));
    case FIELD_LANE:
        return AS(char) == 'R' ? "retry" : "sync";
    case FIELD_PROOF:
        return AS(char) == TL_PROOF_NONE ? "" : tl_proof_name((tl_proof)AS(char));
    case FIELD_STATE:
        return tl_state_name(AS(tl_state));
    case FIELD_MUTEX:
        return tl_resource_state_name(AS(tl_resource_state));
    case FIELD_HOLDER:
        return tl_holder_state_name(AS(tl_holder_state));
    case FIELD_MODE:
        return AS(tl_rw_mode) == TL_RW_WRITE ? "write" : "read";
    case FIELD_DECISION:
        return tl_decision_name(AS(tl_decision));
    case FIELD_FLAG:
        return !AS(int) ? "" : field->yes != NULL ? field->yes : "yes";
    case FIELD_COUNT:
        return number_words(space, AS(uint32_t));
    case FIELD_NUMBER:
        return number_words(space, AS(uint64_t));
    case FIELD_TOTAL:
        return total_words(space, AS(uint64_t));
    case FIELD_TIME:
        return time_text(space, AS(int64_t));
    case FIELD_SOME:
        return AS(uint64_t) != 0 ? number_words(space, AS(uint64_t)) : "";
    case FIELD_SIGNED:
        snprintf(space, FIELD_SPACE, "%" PRId64, AS(int64_t));
        return space;
    case FIELD_SET:
        return AS(int64_t) != 0 ? "yes" : "";
    case FIELD_SPAN:
        return distance_text(space, 0, AS(int64_t)) + 1;
    case FIELD_SPAN_MS:
        return distance_text(space, 0, AS(int64_t) * 1000) + 1;
    case FIELD_LEVEL:
        return level_name(AS(tl_finding_level));
    default:
        return "";
    }
}

static json_t *json_hash(const unsigned char *hash)
{
    static const unsigned char none[TL_FINGERPRINT];

    return memcmp(hash, none, sizeof none) == 0 ? json_null() : json_hex(hash, sizeof none);
}

static json_t *field_json(const struct field *field, const void *row)
{
    char space[FIELD_SPACE];
    const void *bytes;
    size_t size;

    /* A sum of money is a number as every other, unless it is beyond 64 bits. */
    if (strcmp(field->json, "sum_minor") == 0)
        return json_digits(at(field, row));
    switch (field->type) {
    case FIELD_LETTER:
        return json_char(AS(char));
    case FIELD_FLAG:
        return json_boolean(AS(int));
    case FIELD_COUNT:
        return json_unsigned(AS(uint32_t));
    case FIELD_NUMBER:
    case FIELD_TOTAL:
        return json_unsigned(AS(uint64_t));
    case FIELD_SOME:
        return AS(uint64_t) != 0 ? json_unsigned(AS(uint64_t)) : json_null();
    case FIELD_SIGNED:
        return json_integer(AS(int64_t));
    case FIELD_SET:
        return json_boolean(AS(int64_t) != 0);
    case FIELD_SPAN:
        return json_real((double)AS(int64_t) / 1e6);
    case FIELD_SPAN_MS:
        return json_real((double)AS(int64_t) / 1e3);
    case FIELD_MONEY:
        return ((const char *)at(field, row))[sizeof(int64_t)] != '\0' ? json_integer(AS(int64_t))
                                                                       : json_null();
    case FIELD_HASH:
        return json_hash(at(field, row));
    case FIELD_BYTES:
        bytes = field_bytes(field, row, &size);
        return json_bytes(bytes, size);
    default:
        return json_text(field_words(space, field, row));
    }
}

json_t *record_json(const struct record *record, const void *row)
{
    const struct field *fields = record->fields;
    json_t *object = json_object();

    for (size_t i = 0; i < record->count; i++)
        if (fields[i].json != NULL)
            json_object_set_new(object, fields[i].json, field_json(&fields[i], row));
    return object;
}

void record_keep(const struct record *record, void *row, keep_fn keep, void *context)
{
    for (size_t i = 0; i < record->count; i++) {
        const struct field *field = &record->fields[i];
        const void **data = (const void **)(void *)((char *)row + field->offset);
        size_t size = 0;

        if ((field->type != FIELD_STRING && field->type != FIELD_BYTES) || *data == NULL)
            continue;
        if (field->type == FIELD_STRING)
            size = strlen(*data);
        else
            field_bytes(field, row, &size);
        *data = keep(context, *data, size);
    }
}

const struct field *record_column_at(const struct record *record, size_t place)
{
    return place < record->count ? &record->fields[place]
                                 : &record->made[place - record->count].field;
}

const struct field *record_column(const struct record *record, const char *name, size_t size)
{
    for (size_t i = 0; i < record->count + record->made_count; i++) {
        const struct field *column = record_column_at(record, i);

        if (column->column != NULL && strlen(column->column) == size &&
            strncmp(column->column, name, size) == 0)
            return column;
    }
    return NULL;
}

const struct made *as_made(const struct field *column)
{
    return column->type == FIELD_MADE ? (const struct made *)(const void *)column : NULL;
}

void record_cell(char to[CELL], const struct field *column, const void *row, int raw)
{
    char space[FIELD_SPACE];

    if (as_made(column) != NULL)
        as_made(column)->cell(to, row, raw);
    else
        snprintf(to, CELL, "%s", field_words(space, column, row));
}

int column_is_right(const struct field *column)
{
    return column->type == FIELD_COUNT || column->type == FIELD_NUMBER ||
           column->type == FIELD_TOTAL ||
           (as_made(column) != NULL && as_made(column)->kind != MADE_WORDS);
}

void record_columns(struct columns *columns, const struct record *record, const char *names)
{
    char *next = NULL;

    columns->count = 0;
    snprintf(columns->words, sizeof columns->words, "%s", names != NULL ? names : record->shown);
    for (char *word = strtok_r(columns->words, ",", &next); word != NULL;
         word = strtok_r(NULL, ",", &next)) {
        const size_t size = strcspn(word, "=");

        columns->heading[columns->count] = word[size] == '=' ? word + size + 1 : NULL;
        columns->column[columns->count++] = record_column(record, word, size);
    }
}

/* ------------------------------------------------------------------------- listings -- */

void listing_begin(struct listing *listing, const struct record *record, const char *names)
{
    const struct columns *columns = &listing->columns;
    const char *headings[LISTING_COLUMNS + 1];

    *listing = (struct listing){.record = record, .rows = json_array()};
    record_columns(&listing->columns, record, names);
    for (size_t i = 0; i < columns->count; i++)
        headings[i] =
            columns->heading[i] != NULL ? columns->heading[i] : columns->column[i]->heading;
    headings[columns->count] = NULL;
    listing->table = table_new_of(headings);
}

int listing_add_as(struct listing *listing, const void *row, json_t *object)
{
    char text[LISTING_COLUMNS][CELL];
    const char *cells[LISTING_COLUMNS];

    for (size_t i = 0; i < listing->columns.count; i++) {
        record_cell(text[i], listing->columns.column[i], row, 0);
        cells[i] = text[i];
    }
    table_add_cells(listing->table, cells);
    json_array_append_new(listing->rows, fleet_row(object));
    return 0;
}

int listing_add(struct listing *listing, const void *row)
{
    return listing_add_as(listing, row, record_json(listing->record, row));
}

void listing_free(struct listing *listing)
{
    table_free(listing->table);
    json_decref(listing->rows);
}

int listing_end(struct listing *listing, int code, const char *name, const char *nothing)
{
    /* What others told is shown; one database that told nothing has shown nothing. */
    if ((code == EXIT_DONE || fleet_is()) && common.json) {
        code = print_json(fleet_document(json_pack("{s:O}", name, listing->rows)), code);
    } else if (code == EXIT_DONE || fleet_is()) {
        table_print_or_say(listing->table, code == EXIT_DONE ? nothing : NULL);
        code = finish_output(code);
    }
    listing_free(listing);
    return code;
}

int listing_run(tl_client *client, const struct record *record, const char *columns,
                const char *name, const char *nothing, int (*read)(tl_client *, void *))
{
    struct listing listing;

    listing_begin(&listing, record, columns);
    return listing_end(&listing,
                       client != NULL ? read(client, &listing) : fleet_each(0, read, &listing),
                       name, nothing);
}
