/* What the audit of rows, of an archive and of a channel's statement share. */
#ifndef TL_ADMIN_AUDIT_ARCHIVE_H
#define TL_ADMIN_AUDIT_ARCHIVE_H

#include "admin/archive.h"
#include "admin/audit_report.h"
#include "admin/shard_copies.h"

#include <tradelock/admin/audit.h>

typedef struct audit_paid {
    const tl_payment *payment;
    int has_row;
} audit_paid;

/* A lock row, as it is compared with what its channel paid. */
typedef struct audit_row {
    store_audit_place at; /* row_rev: its revision */
    char status;
    uint32_t epoch;
    const char *channel_key;
    const char *channel, *amount_minor, *currency; /* "": none */
    int conflict, success_filed, is_sync, repeatable;
    int64_t ended_us; /* when its last step was */
    uint64_t made_rev;
} audit_row;

/* Each lock row that was read, whose key may come again: in another set, in the database, or as
 * another life.  32 bytes a row. */
typedef struct audit_life {
    uint64_t key; /* a hash of it */
    uint64_t made_rev, rev;
    uint32_t set_paid; /* 0: the row is in the database; the lowest bit: it succeeded for good */
    uint32_t row;      /* of the set's file */
} audit_life;
typedef struct audit_lives {
    audit_life *all;
    size_t count;
} audit_lives;
tl_status audit_lives_add(audit_lives *self, const audit_row *row, uint32_t set, uint32_t number);
void audit_lives_free(audit_lives *self);

/* The payments, sorted by (customer, serial), and where the walk through the rows stands. */
typedef struct audit_comparison {
    audit *audit;
    audit_paid *paid;
    size_t count;
    int given;
    const char *archive; /* NULL: there is none */
    const tl_audit_scope *scope;
    audit_lives lives;
    tl_archived archived;
    shard_copies copies;
    tl_status slots; /* why a customer's slot could not be read; TL_OK: it could */
} audit_comparison;

/* Checks a sync row, and compares it with what was paid. */
void audit_check_row(audit_comparison *c, const audit_row *row);

/* Whether there is such an archive, and it is this database's. */
tl_status audit_archive_look(audit_comparison *c);
/* Reads every set: its sums, its rows, their history; then which rows and lives came twice. */
tl_status audit_archive(audit_comparison *c);

#endif
