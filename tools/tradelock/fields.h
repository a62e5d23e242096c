/* The fields of rows that people see, as data (tradelock/record.h), and their values in words and in
 * JSON. */
#ifndef TRADELOCK_FIELDS_H
#define TRADELOCK_FIELDS_H

#include <tradelock/admin.h>
#include <tradelock/record.h>

#include <jansson.h>

enum field_type {
    FIELD_TEXT,
    FIELD_STRING,
    FIELD_LETTER,
    FIELD_LANE,
    FIELD_PROOF,
    FIELD_STATE,
    FIELD_MUTEX,
    FIELD_HOLDER,
    FIELD_MODE,
    FIELD_DECISION,
    FIELD_FLAG,
    FIELD_COUNT,
    FIELD_NUMBER,
    FIELD_TOTAL,
    FIELD_TIME,
    FIELD_MONEY,
    FIELD_HASH,
    FIELD_BYTES,
    FIELD_SOME,
    FIELD_SIGNED,
    FIELD_SET,
    FIELD_SPAN,
    FIELD_SPAN_MS,
    FIELD_LEVEL,
    FIELD_KEY,
    FIELD_MADE, /* of several fields, by whoever shows it */
    FIELD_WORDS = FIELD_STRING,
    FIELD_ALSO_WORDS = FIELD_STRING,
    FIELD_ALSO_NUMBER = FIELD_TOTAL, /* how many: its thousands are marked */
    FIELD_ALSO_SOME = FIELD_SOME,
    FIELD_ALSO_SET = FIELD_SET,
    FIELD_ALSO_FLAG = FIELD_FLAG,
    FIELD_ALSO_TIME = FIELD_TIME,
    FIELD_ALSO_LEVEL = FIELD_LEVEL
};

/* Of a trade's view: what stands together. */
enum field_group {
    GROUP_NONE,
    GROUP_TROUBLE,
    GROUP_REQUEST,
    GROUP_COUNTS,
    GROUP_HOLDER,
    GROUP_SESSION,
    GROUP_WORK,
    GROUP_TIMES,
    GROUP_CHANNEL,
    GROUP_FOUND,
    GROUP_REMARK,
    GROUP_CONTENTS
};

struct field {
    enum field_type type;
    enum field_group group;
    size_t offset;
    const char *json, *column, *heading, *label, *fact; /* NULL: not there */
    const char *yes;                                    /* of a flag; NULL: "yes" */
};

/* A column that is made of several fields.  Raw: as a spreadsheet wants it. */
#define CELL 3400
typedef void (*cell_fn)(char to[CELL], const void *row, int raw);
enum made_kind { MADE_WORDS, MADE_NUMBER, MADE_MONEY }; /* as tl_amount_text() writes it */
struct made {
    struct field field; /* of the type FIELD_MADE */
    cell_fn cell;
    enum made_kind kind;
};
#define MADE(name, title) {.type = FIELD_MADE, .column = name, .heading = title}

/* A kind of row: its fields, and what is made of them. */
struct record {
    const struct field *fields;
    size_t count;
    const struct made *made;
    size_t made_count;
    const char *shown; /* the columns of a list that names none */
    size_t now;        /* where a row says when it was read; 0: it does not */
};

/* A step of a trade beside those before it. */
struct told_step {
    tl_step step;
    int64_t first_us;   /* when the trade began */
    const char *remark; /* what the step said itself, not what an earlier one left on the row */
};
struct step_teller {
    int64_t first_us;
    char remark[2][TL_REMARK_MAX + 1]; /* of the last step of each lane */
};
/* Of the steps one after the other, the oldest first; its texts are those of the step. */
struct told_step step_tell(struct step_teller *teller, const tl_step *step);

#define FIELD_ONE(...) +1
enum { VIEW_FIELDS = 0 TL_VIEW_MAP(FIELD_ONE) };

extern const struct field view_fields[VIEW_FIELDS];
extern const struct record record_view, record_session, record_act, record_act_row,
    record_violation, record_finding, record_proposal, record_channel, record_channel_state,
    record_breaker, record_evidence, record_resolution, record_resource, record_holder,
    record_batch_part, record_report, record_report_line, record_step, /* a told_step */
    record_filing;                                                     /* a filing_row */

/* Those of the map stand first; some of them are no column. */
const struct field *record_column_at(const struct record *record, size_t place);
/* The column of this name, of so many letters; NULL: there is none. */
const struct field *record_column(const struct record *record, const char *name, size_t size);
const struct made *as_made(const struct field *column);
/* What stands in the column. */
void record_cell(char to[CELL], const struct field *column, const void *row, int raw);
json_t *record_json(const struct record *record, const void *row);
/* Replaces the row's texts and bytes, which live no longer than a callback, by what keep() makes of
 * them; both end with a 0. */
typedef const void *(*keep_fn)(void *context, const void *data, size_t size);
void record_keep(const struct record *record, void *row, keep_fn keep, void *context);

/* Whether numbers stand below each other. */
int column_is_right(const struct field *column);

#define LISTING_COLUMNS 16
struct columns {
    const struct field *column[LISTING_COLUMNS];
    const char *heading[LISTING_COLUMNS]; /* NULL: the column's */
    size_t count;
    char words[512];
};
/* "state,pid": these columns; "silent=LAST BEAT": under another heading; NULL: those that the record
 * shows. */
void record_columns(struct columns *columns, const struct record *record, const char *names);

/* Rows of one kind, for people and for programs. */
struct listing {
    struct table *table;
    json_t *rows;
    const struct record *record;
    struct columns columns;
};
void listing_begin(struct listing *listing, const struct record *record, const char *columns);
/* Adds a row; the second form takes over its object, which has more than the fields. */
int listing_add(struct listing *listing, const void *row);
int listing_add_as(struct listing *listing, const void *row, json_t *object);
void listing_free(struct listing *listing);
/* Prints the table, or the rows under that name, and frees both.  code: EXIT_DONE, or that of what
 * went wrong, which was said: then of a fleet what the others told. */
int listing_end(struct listing *listing, int code, const char *name, const char *nothing);
/* A whole list: read() adds what this database has, or with no client each of the fleet's. */
int listing_run(tl_client *client, const struct record *record, const char *columns,
                const char *name, const char *nothing, int (*read)(tl_client *, void *));

const char *level_name(tl_finding_level level);

#define FIELD_SPACE 64
/* The value in words, "" for none: of the row, or in `space`.  Money and bytes have none. */
const char *field_words(char space[FIELD_SPACE], const struct field *field, const void *row);
int64_t field_time(const struct field *field, const void *row);
/* *size becomes how many there are. */
const void *field_bytes(const struct field *field, const void *row, size_t *size);

/* A row; every field is always there. */
json_t *json_view(const tl_view *view);
json_t *json_evidence(const tl_evidence_row *row);
json_t *json_breaker(const tl_pause_row *row);

#endif
