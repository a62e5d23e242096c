/*
 * Purges trades into an archive.  Pages of trades are named, their rows read and written to a set
 * of the archive; the set is completed and on the disk; then the same trades are removed, page by
 * page, each only if it is still what was named.
 *
 *   - cut off before the set has its name: nothing was removed, and the set is begun anew
 *   - cut off after it: the next purge first goes on removing what it names
 *   - a trade that changed in between stays, and goes into a later set with a higher revision
 *
 * So every row is in the database or in a complete set; if in both, with the same key and revision.
 */
#include "admin/purge.h"

#include "client/read.h"

#include "base/text.h"
#include "store/bind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* So many trades are about 10 MB packed, and a few minutes until the first of them goes. */
#define SET_TRADES 50000

/* --------------------------------------------------------------------- reading -- */

struct page {
    db_result named, rows[ARCHIVE_TABLES];
    const char *text; /* what was named */
    unsigned seen;
    tl_purged has;
};

/* The tables are read one after the other, and a trade may change in between.  What is not the
 * number of rows that was named is read again; what else changed stays (tl_purge_archived). */
static tl_status read_rows(struct purge *p, struct page *page, const tl_purged *wanted)
{
    const db_value named = db_text(page->text);
    const uint64_t counts[ARCHIVE_TABLES] = {wanted->lock_rows, wanted->steps, wanted->evidence,
                                             wanted->decisions};

    for (int table = 0; table < ARCHIVE_TABLES; table++) {
        db_result_free(&page->rows[table]);
        if (counts[table] == 0)
            continue;
        TRY(read_status(p->connection,
                        db_run(p->connection, archive_tables[table].rows, &named,
                               archive_tables[table].values, &page->rows[table]),
                        "reading what goes to the archive"));
        if (page->rows[table].rows != counts[table])
            return error_set(TL_TRY_AGAIN, "trades changed while they were read for the archive");
        if (page->rows[table].columns != archive_tables[table].count)
            return error_set(TL_INTERNAL, "the columns of %s are not those of its file",
                             archive_tables[table].table);
    }
    return TL_OK;
}

/* Counts in *p only once the page is read. */
static tl_status read_page(struct purge *p, struct place *after, struct page *page)
{
    const store_list_place *place = &after->trade;
    struct purge counts = {.done = {.trades = 0}};
    struct place next = *after;

    TRY(read_status(p->connection,
                    SQL_RUN(p->connection, NULL, purge_named, .older_ms = db_int(p->older_ms),
                            .most = db_uint(PURGE_PAGE), .cust_no = db_text(place->cust_no),
                            .serial_no = db_text(place->serial_no),
                            .op_code = db_text(place->op_code)),
                    "naming old trades"));
    TRY(read_run(p->connection, &sql_purge_named_result, &page->named, "reading what was named"));
    if (page->named.rows != 1 ||
        !purge_take_trades(&counts, db_get_text(&page->named, 0, 0), &next, &page->seen))
        return error_set(TL_INTERNAL, "the purge did not say what it named");
    page->text = db_get_text(&page->named, 0, 1);
    TRY(read_rows(p, page, &counts.done));
    page->has = counts.done;
    p->done.looked_at += page->seen;
    *after = next;
    return TL_OK;
}

/* -------------------------------------------------------------------- removing -- */

struct removal {
    struct purge *purge;
    const archive_manifest *of;
    int64_t older_ms;
    uint64_t removed;
    struct text_buffer line;
};

static tl_status remove_page(struct removal *r)
{
    struct purge *p = r->purge;
    struct purge counts = {.done = {.trades = 0}};
    struct place nowhere = {.trade = {.us = 0}};
    RESULT result = DB_RESULT_INIT;
    unsigned repeats = 0, seen = 0;
    tl_status status;

    do
        status = read_status(
            p->connection,
            SQL_RUN(p->connection, NULL, purge_archived, .older_ms = db_int(r->older_ms),
                    .named = db_text(text_buffer_text(&r->line)), .sha = db_text(r->of->sha),
                    .before_sha = db_text(r->of->before), .set_no = db_uint(r->of->set)),
            "purging");
    while (purge_may_repeat(status, &repeats));
    TRY(status);
    TRY(read_run(p->connection, &sql_purge_result, &result, "reading what was purged"));
    /* A set that was removed before names nothing that is there. */
    if (result.rows != 1 || sscanf(db_get_text(&result, 0, 0), "%*u %u", &seen) != 1 ||
        (seen > 0 && !purge_take_trades(&counts, db_get_text(&result, 0, 0), &nowhere, &seen)))
        return error_set(TL_INTERNAL, "the purge did not say what it did");
    r->removed += counts.done.trades;
    p->done.trades += counts.done.trades;
    p->done.lock_rows += counts.done.lock_rows;
    p->done.steps += counts.done.steps;
    p->done.evidence += counts.done.evidence;
    p->done.decisions += counts.done.decisions;
    return purge_tell(p, "lock rows", "trade_lock", p->done.looked_at, p->done.trades);
}

/* Takes a piece of trades.gz; each line is a page. */
static tl_status take_lines(void *context, const char *data, size_t size)
{
    struct removal *r = context;

    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        const size_t part = end != NULL ? (size_t)(end - data) : size;

        text_buffer_append(&r->line, data, part);
        if (r->line.failed)
            return error_set(TL_NO_MEMORY, "out of memory for a page of an archive");
        if (end == NULL)
            return TL_OK;
        TRY(remove_page(r));
        text_buffer_clear(&r->line);
        data += part + 1;
        size -= part + 1;
    }
    return TL_OK;
}

/* Whether the name of the set outlives a power cut: whoever renamed it may have died before. */
static tl_status keep_name(const struct purge *p, uint32_t set)
{
    if (fsync(p->archive.fd) == 0)
        return TL_OK;
    return error_set(TL_INVALID,
                     "the archive's directory cannot be written to the disk (%s): set %u "
                     "stays, and nothing of it was removed",
                     strerror(errno), set);
}

/* Removes what the set names, after reading every file of it anew. */
static tl_status remove_set(struct purge *p, uint32_t set, uint64_t *removed)
{
    const int64_t least = p->client->config.retention_ms;
    archive_manifest manifest;
    struct removal r = {.purge = p, .of = &manifest};
    tl_status status;

    TRY(archive_read_manifest(&p->archive, set, &manifest));
    TRY(archive_verify(&p->archive, &manifest));
    TRY(keep_name(p, set));
    /* What this server has need not be what the set was written from. */
    if (strcmp(manifest.server, p->server.server) != 0) {
        if (removed != NULL)
            *removed = 0;
        return archive_mark_removed(&p->archive, set, 0);
    }
    r.older_ms = manifest.older_ms > least ? manifest.older_ms : least;
    text_buffer_init(&r.line);
    status = archive_read(&p->archive, set, ARCHIVE_TRADES, take_lines, &r);
    text_buffer_free(&r.line);
    if (status == TL_OK)
        status = archive_mark_removed(&p->archive, set, r.removed);
    if (removed != NULL)
        *removed = r.removed;
    return status;
}

/* --------------------------------------------------------------------- writing -- */

static tl_status add_page(struct purge *p, archive_writer **writer, const struct page *page)
{
    if (page->has.trades == 0)
        return TL_OK;
    if (*writer == NULL)
        TRY(archive_begin(&p->archive, writer));
    return archive_add(*writer, page->text, page->has.trades, page->rows);
}

static tl_status finish_set(struct purge *p, archive_writer *writer)
{
    archive_manifest manifest = p->server;
    uint64_t removed = 0;
    tl_status status;

    manifest.older_ms = p->older_ms;
    TRY(archive_finish(writer, &manifest));
    status = remove_set(p, manifest.set, &removed);
    p->archived.sets++;
    p->archived.trades += manifest.trades;
    for (int file = 0; file < ARCHIVE_FILES; file++) {
        p->archived.rows += file < ARCHIVE_TABLES ? manifest.files[file].rows : 0;
        p->archived.bytes += manifest.files[file].bytes;
    }
    if (status == TL_OK)
        p->archived.stayed += manifest.trades - removed;
    return status;
}

/* Fills a set and removes its trades.  *seen tells how large the last page was. */
static tl_status purge_set(struct purge *p, struct place *after, unsigned *seen)
{
    const uint64_t most = p->options->archive_trades > 0 ? p->options->archive_trades : SET_TRADES;
    struct page page = {.named = DB_RESULT_INIT};
    archive_writer *writer = NULL;
    uint64_t trades = 0;
    tl_status status = TL_OK;

    while (status == TL_OK && *seen == PURGE_PAGE && trades < most) {
        unsigned repeats = 0;

        do
            status = read_page(p, after, &page);
        while (purge_may_repeat(status, &repeats));
        if (status == TL_OK)
            status = add_page(p, &writer, &page);
        if (status != TL_OK)
            break;
        *seen = page.seen;
        trades += page.has.trades;
        status = purge_tell(p, "lock rows", "trade_lock", p->done.looked_at, p->done.trades);
    }
    if (status == TL_OK && writer != NULL)
        status = finish_set(p, writer);
    archive_end(writer);
    db_result_free(&page.named);
    for (int table = 0; table < ARCHIVE_TABLES; table++)
        db_result_free(&page.rows[table]);
    return status;
}

tl_status purge_to_archive(struct purge *p)
{
    struct place after = {.trade = {.us = 0}};
    unsigned seen = PURGE_PAGE;

    if (p->archive.last > 0 && !archive_is_removed(&p->archive, p->archive.last))
        TRY(remove_set(p, p->archive.last, NULL));
    while (seen == PURGE_PAGE)
        TRY(purge_set(p, &after, &seen));
    return TL_OK;
}
