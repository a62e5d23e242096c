/*
 * Audits an archive as if its rows were still in the database: that it is complete and unchanged,
 * the history of each row step by step, and the payments of a statement.  Then it looks for rows
 * that stand twice, and for keys that succeeded in two lives: asked for anew after a purge, and
 * paid again.  Reads only.
 */
#include "admin/audit_archive.h"
#include "admin/sorted.h"
#include "admin/words.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <tradelock/admin/explain.h>

#include <csv.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- lines of a file -- */

/* A table's file, record by record. */
struct lines {
    enum archive_table table;
    struct csv_parser parser;
    struct text_buffer text;        /* the fields of a record, each with a NUL */
    size_t starts[ARCHIVE_COLUMNS]; /* where each begins */
    size_t fields;                  /* of the record so far */
    int places[ARCHIVE_COLUMNS];    /* where the file has each of our columns */
    size_t columns;                 /* of the file */
    uint64_t records;               /* without the header */
    tl_status (*take)(void *context, const struct lines *lines);
    void *context;
    tl_status status;
};

/* "" for NULL. */
static const char *field(const struct lines *l, const char *name)
{
    return l->text.data + l->starts[l->places[archive_column(l->table, name)]];
}

static uint64_t number(const struct lines *l, const char *name)
{
    return strtoull(field(l, name), NULL, 10);
}

/* "2026-11-26 03:07:24.926518", in UTC. */
static int64_t moment(const struct lines *l, const char *name)
{
    int64_t us;

    return tl_moment_read(&us, field(l, name)) ? us : 0;
}

static void take_field(void *data, size_t size, void *context)
{
    struct lines *l = context;

    if (l->fields < ARCHIVE_COLUMNS)
        l->starts[l->fields] = l->text.size;
    l->fields++;
    text_buffer_append(&l->text, data != NULL ? data : "", data != NULL ? size : 0);
    text_buffer_append(&l->text, "", 1);
}

/* A name of the table's columns, one after the other.  *at goes on; 0: that was all. */
static int next_name(const char **at, char *name, size_t space)
{
    const size_t size = strcspn(*at, ",");

    if (size == 0 || size >= space)
        return 0;
    memcpy(name, *at, size);
    name[size] = '\0';
    *at += size + ((*at)[size] == ',');
    return 1;
}

/* The first line says which columns the file has, in any order; those that are unknown here are
 * passed over. */
static void take_header(struct lines *l)
{
    const char *at = archive_tables[l->table].names;
    char name[64];

    for (size_t i = 0; i < ARCHIVE_COLUMNS; i++)
        l->places[i] = -1;
    l->columns = l->fields;
    for (size_t i = 0; i < l->fields && i < ARCHIVE_COLUMNS; i++) {
        const size_t column = archive_column(l->table, l->text.data + l->starts[i]);

        if (column < ARCHIVE_COLUMNS)
            l->places[column] = (int)i;
    }
    for (size_t i = 0; next_name(&at, name, sizeof name); i++)
        if (l->places[i] < 0)
            l->status = error_set(TL_INVALID, "it lacks columns that its schema has: %s", name);
}

static void take_record(int end, void *context)
{
    struct lines *l = context;

    (void)end;
    if (l->status == TL_OK && l->text.failed)
        l->status = error_set(TL_NO_MEMORY, "out of memory for a line of an archive");
    if (l->status == TL_OK && l->columns == 0)
        take_header(l);
    else if (l->status == TL_OK && l->fields != l->columns)
        l->status = error_set(TL_INVALID, "a line has not as many fields as the first");
    else if (l->status == TL_OK) {
        l->status = l->take(l->context, l);
        l->records++;
    }
    l->fields = 0;
    text_buffer_clear(&l->text);
}

static tl_status take_piece(void *context, const char *data, size_t size)
{
    struct lines *l = context;

    if (csv_parse(&l->parser, data, size, take_field, take_record, l) != size && l->status == TL_OK)
        l->status = error_set(TL_INVALID, "a quote stands in the wrong place, or memory ran out");
    return l->status;
}

static tl_status read_lines(archive_dir *archive, const archive_manifest *m,
                            enum archive_table table,
                            tl_status (*take)(void *context, const struct lines *lines),
                            void *context)
{
    struct lines l = {.table = table, .take = take, .context = context};
    tl_status status;

    if (csv_init(&l.parser, CSV_STRICT | CSV_EMPTY_IS_NULL) != 0)
        return error_set(TL_NO_MEMORY, "out of memory for reading an archive");
    csv_set_realloc_func(&l.parser, memory_resize);
    csv_set_free_func(&l.parser, memory_free);
    text_buffer_init(&l.text);
    status = archive_read(archive, m->set, (int)table, take_piece, &l);
    if (status == TL_OK && l.records != m->files[table].rows)
        status = error_set(TL_INVALID, "it has %" PRIu64 " rows, and its manifest says %" PRIu64,
                           l.records, m->files[table].rows);
    if (status != TL_OK)
        error_prefix(status, "%s/%08" PRIu32 "/%s", archive->path, m->set,
                     archive_file_name((int)table));
    text_buffer_free(&l.text);
    csv_free(&l.parser);
    return status;
}

/* ------------------------------------------------------------------------ lives -- */

#define PAID 1u
#define SET_OF(life) ((life)->set_paid >> 1)

static uint64_t hash_of(const store_audit_place *at)
{
    uint8_t digest[SHA256_SIZE];
    uint64_t hash;
    sha256 sum;

    sha256_begin(&sum);
    sha256_add(&sum, at->cust_no, strlen(at->cust_no) + 1);
    sha256_add(&sum, at->serial_no, strlen(at->serial_no) + 1);
    sha256_add(&sum, at->op_code, strlen(at->op_code));
    sha256_end(&sum, digest);
    memcpy(&hash, digest, sizeof hash);
    return hash;
}

tl_status audit_lives_add(audit_lives *self, const audit_row *row, uint32_t set, uint32_t number_)
{
    const int paid = row->is_sync && !row->repeatable && row->status == 'Y';

    if (!memory_room(&self->all, self->count, sizeof *self->all))
        return error_set(TL_NO_MEMORY, "out of memory for comparing %zu rows", self->count);
    self->all[self->count++] = (audit_life){.key = hash_of(&row->at),
                                            .made_rev = row->made_rev,
                                            .rev = row->at.row_rev,
                                            .set_paid = set << 1 | (paid ? PAID : 0),
                                            .row = number_};
    return TL_OK;
}

void audit_lives_free(audit_lives *self)
{
    memory_free(self->all);
}

static int by_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_life(const void *left, const void *right)
{
    const audit_life *a = left, *b = right;
    int order = by_number(a->key, b->key);

    order = order != 0 ? order : by_number(a->made_rev, b->made_rev);
    order = order != 0 ? order : by_number(a->rev, b->rev);
    return order != 0 ? order : by_number(a->set_paid, b->set_paid);
}

static int by_set(const void *left, const void *right)
{
    const audit_life *a = left, *b = right;
    const int order = by_number(SET_OF(a), SET_OF(b));

    return order != 0 ? order : by_number(a->row, b->row);
}

/* Keeps, at the front, one row of each key that succeeded in more than one life: one of a set,
 * since a row of the database alone has but one life.  Counts the rows that stand twice. */
static size_t find_twice(audit_comparison *c)
{
    audit_life *all = c->lives.all, shown;
    size_t kept = 0, from = 0;

    while (from < c->lives.count) {
        const uint64_t key = all[from].key;
        uint64_t paid_in = 0;
        unsigned lives = 0;
        size_t at = from;

        for (; at < c->lives.count && all[at].key == key; at++) {
            if (at > from && all[at].made_rev == all[at - 1].made_rev &&
                all[at].rev == all[at - 1].rev)
                c->archived.doubled++;
            if (!(all[at].set_paid & PAID) || (lives > 0 && all[at].made_rev == paid_in))
                continue;
            lives++;
            paid_in = all[at].made_rev;
            if (lives == 1 || SET_OF(&shown) == 0)
                shown = all[at];
        }
        if (lives > 1)
            all[kept++] = shown;
        from = at;
    }
    return kept;
}

/* ------------------------------------------------------------------------- a set -- */

struct set {
    audit_comparison *c;
    archive_dir *archive;
    archive_manifest manifest;
    audit_step *past; /* the kept steps, sorted by row and revision */
    size_t past_count;
    audit_steps steps;
    size_t at; /* steps before this one belong to rows that were read */
    uint32_t row;
    uint64_t on_record, removed; /* of the sets so far */
    /* Of the second look: the rows to be shown. */
    const audit_life *shown;
    size_t shown_count;
};

static void take_place(store_audit_place *at, const struct lines *l)
{
    memset(at, 0, sizeof *at);
    text_copy(at->cust_no, sizeof at->cust_no, field(l, "cust_no"));
    text_copy(at->serial_no, sizeof at->serial_no, field(l, "serial_no"));
    text_copy(at->op_code, sizeof at->op_code, field(l, "op_code"));
    text_copy(at->account, sizeof at->account, field(l, "account"));
    at->rev = at->row_rev = number(l, "rev");
    at->logged_us = moment(l, "logged_at");
}

/* The columns that both tables have. */
static void take_step(audit_step *to, const struct lines *l)
{
    memset(to, 0, sizeof *to);
    take_place(&to->at, l);
    text_copy(to->step, sizeof to->step, field(l, "step"));
    to->status = field(l, "status")[0];
    to->proof = field(l, "proof")[0];
    text_copy(to->session_id, sizeof to->session_id, field(l, "session_id"));
    (void)words_from_hex(to->token, sizeof to->token, field(l, "token"));
    to->fence = number(l, "fence");
    to->epoch = (uint32_t)number(l, "epoch");
    to->logged_us = to->at.logged_us;
    to->max_hold_us = moment(l, "max_hold_until");
    to->ended_us = (int64_t)number(l, "session_ended_us");
    to->operators = (int)number(l, "operators");
}

/* The first step, which the row keeps itself. */
static void take_first(audit_step *to, const struct lines *l)
{
    memset(to, 0, sizeof *to);
    take_place(&to->at, l);
    text_copy(to->at.account, sizeof to->at.account, field(l, "first_account"));
    to->at.rev = to->at.row_rev = number(l, "first_rev");
    to->at.logged_us = to->logged_us = moment(l, "first_logged_at");
    text_copy(to->step, sizeof to->step, "ask");
    to->status = 'P';
    to->proof = '-';
    text_copy(to->session_id, sizeof to->session_id, field(l, "first_session_id"));
    (void)words_from_hex(to->token, sizeof to->token, field(l, "first_token"));
    to->fence = to->at.rev;
    to->epoch = 1;
    to->max_hold_us = moment(l, "first_max_hold_until");
    to->ended_us = (int64_t)number(l, "first_session_ended_us");
}

/* By places, with which steps begin. */
static int by_row(const void *left, const void *right)
{
    const store_audit_place *a = left, *b = right;
    int order = strcmp(a->cust_no, b->cust_no);

    order = order != 0 ? order : strcmp(a->serial_no, b->serial_no);
    return order != 0 ? order : strcmp(a->op_code, b->op_code);
}

static int by_step(const void *left, const void *right)
{
    const audit_step *a = left, *b = right;
    const int order = by_row(&a->at, &b->at);

    return order != 0 ? order : by_number(a->at.rev, b->at.rev);
}

static tl_status take_past(void *context, const struct lines *l)
{
    struct set *s = context;

    if (!memory_room(&s->past, s->past_count, sizeof *s->past))
        return error_set(TL_NO_MEMORY, "out of memory for the history in an archive");
    take_step(&s->past[s->past_count++], l);
    return TL_OK;
}

/* All steps of a row: kept ones, its first, itself.  has_row marks the kept ones that had a row. */
static void check_steps(struct set *s, const struct lines *l, uint64_t made_rev)
{
    audit_step now, first;
    int has_first;
    size_t at;

    take_step(&now, l);
    take_first(&first, l);
    has_first = field(l, "first_rev")[0] != '\0' && first.at.rev < now.at.rev;
    now.has_row = first.has_row = 1;
    now.made_rev = first.made_rev = made_rev;
    at = sorted_place(&now.at, s->past, s->past_count, sizeof *s->past, by_row);
    for (; at < s->past_count && by_row(&s->past[at].at, &now.at) == 0; at++) {
        if (has_first && s->past[at].at.rev > first.at.rev) {
            audit_take_step(&s->steps, &first);
            has_first = 0;
        }
        s->past[at].has_row = 1;
        s->past[at].made_rev = made_rev;
        audit_take_step(&s->steps, &s->past[at]);
    }
    if (has_first)
        audit_take_step(&s->steps, &first);
    audit_take_step(&s->steps, &now);
    audit_end_steps(&s->steps);
}

static tl_status take_row(void *context, const struct lines *l)
{
    struct set *s = context;
    const uint32_t epoch = (uint32_t)number(l, "epoch");
    audit_row row = {
        .status = field(l, "status")[0],
        .epoch = epoch,
        .channel_key = field(l, "channel_key"),
        .conflict = (int)number(l, "conflict"),
        .channel = field(l, "channel"),
        .amount_minor = field(l, "amount_minor"),
        .currency = field(l, "currency"),
        .ended_us = moment(l, "logged_at"),
        .success_filed =
            field(l, "success_epoch")[0] != '\0' && number(l, "success_epoch") == epoch,
        .is_sync = field(l, "lane")[0] == 'S',
        .repeatable = (int)number(l, "repeatable"),
        .made_rev = (uint64_t)moment(l, "created_at"),
    };

    take_place(&row.at, l);
    row.at.rev = 0;
    check_steps(s, l, row.made_rev);
    if (row.is_sync)
        audit_check_row(s->c, &row);
    return audit_lives_add(&s->c->lives, &row, s->manifest.set, s->row++);
}

/* Whoever removes trades names the set that they are in (tl_purge_archived). */
static tl_status check_removed(struct set *s)
{
    tl_archived *sums = &s->c->archived;
    archive_record record;

    TRY(archive_read_record(s->c->audit->connection, &s->manifest, &record));
    if (record.trades > s->manifest.trades)
        return error_set(TL_INVALID,
                         "%s/%08" PRIu32 " has %" PRIu64 " trades, and %" PRIu64
                         " were removed under its name: those are not in it",
                         s->archive->path, s->manifest.set, s->manifest.trades, record.trades);
    s->on_record += record.sets;
    s->removed += record.trades;
    sums->elsewhere = record.all_sets - s->on_record;
    sums->elsewhere_trades = record.all_trades - s->removed;
    return TL_OK;
}

static tl_status audit_set(struct set *s)
{
    tl_archived *sums = &s->c->archived;

    TRY(archive_verify(s->archive, &s->manifest));
    TRY(check_removed(s));
    s->past_count = 0;
    s->row = 0;
    TRY(read_lines(s->archive, &s->manifest, ARCHIVE_TRADE_LOCK_PAST, take_past, s));
    if (s->past_count > 0)
        qsort(s->past, s->past_count, sizeof *s->past, by_step);
    TRY(read_lines(s->archive, &s->manifest, ARCHIVE_TRADE_LOCK, take_row, s));
    /* Steps of rows that are not there. */
    for (size_t i = 0; i < s->past_count; i++)
        if (!s->past[i].has_row)
            audit_take_step(&s->steps, &s->past[i]);
    audit_end_steps(&s->steps);
    sums->sets++;
    sums->trades += s->manifest.trades;
    for (int file = 0; file < ARCHIVE_FILES; file++) {
        sums->rows += file < ARCHIVE_TABLES ? s->manifest.files[file].rows : 0;
        sums->bytes += s->manifest.files[file].bytes;
    }
    audit_tell(s->c->audit, "rows of the archive", "", sums->rows);
    return TL_OK;
}

/* ------------------------------------------------------------------------ the whole -- */

static tl_status show_twice(void *context, const struct lines *l)
{
    struct set *s = context;
    store_audit_place at;

    for (; s->shown_count > 0 && s->shown->row == s->row; s->shown++, s->shown_count--) {
        take_place(&at, l);
        at.rev = 0;
        audit_report(s->c->audit, "succeeded-twice", &at,
                     "it was purged, asked for anew, and succeeded again");
    }
    s->row++;
    return TL_OK;
}

/* Reads the sets of the rows that are shown once more, for their keys. */
static tl_status report_twice(struct set *s, size_t count)
{
    if (count == 0)
        return TL_OK;
    qsort(s->c->lives.all, count, sizeof *s->c->lives.all, by_set);
    s->shown = s->c->lives.all;
    while (count > 0) {
        const uint32_t set = SET_OF(s->shown);

        for (s->shown_count = 0;
             s->shown_count < count && SET_OF(&s->shown[s->shown_count]) == set;)
            s->shown_count++;
        count -= s->shown_count;
        s->row = 0;
        TRY(archive_read_manifest(s->archive, set, &s->manifest));
        TRY(read_lines(s->archive, &s->manifest, ARCHIVE_TRADE_LOCK, show_twice, s));
    }
    return TL_OK;
}

/* Each manifest has the sum of the one before: none is missing or from elsewhere. */
static tl_status next_manifest(struct set *s, uint32_t set, char before[ARCHIVE_SHA])
{
    TRY(archive_read_manifest(s->archive, set, &s->manifest));
    if (strcmp(s->manifest.before, before) != 0)
        return error_set(TL_INVALID, "%s/%08" PRIu32 " does not follow the set before it",
                         s->archive->path, set);
    memcpy(before, s->manifest.sha, ARCHIVE_SHA);
    return TL_OK;
}

tl_status audit_archive_look(audit_comparison *c)
{
    archive_manifest server;
    archive_dir archive;
    tl_status status = archive_open(&archive, c->archive, 0);

    if (status == TL_OK)
        status = archive_check_server(&archive, c->audit->connection, &server);
    archive_close(&archive);
    return status;
}

tl_status audit_archive(audit_comparison *c)
{
    char before[ARCHIVE_SHA] = "-";
    archive_dir archive;
    struct set s = {.c = c, .archive = &archive, .steps = {.audit = c->audit}};
    tl_status status = archive_open(&archive, c->archive, 0);

    for (uint32_t set = 1; status == TL_OK && set <= archive.last && !c->audit->stopped; set++) {
        status = next_manifest(&s, set, before);
        if (status == TL_OK)
            status = audit_set(&s);
    }
    if (status == TL_OK && !c->audit->stopped && c->lives.count > 0) {
        qsort(c->lives.all, c->lives.count, sizeof *c->lives.all, by_life);
        status = report_twice(&s, find_twice(c));
    }
    memory_free(s.past);
    archive_close(&archive);
    return status;
}
