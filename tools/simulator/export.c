/* Reads a ledger, in use or not, and writes its payments as CSV. */
#include "export.h"

#include "csv_guard.h"
#include "ledger.h"
#include "passages.h"
#include "sim_time.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct work {
    FILE *csv;
    struct passages *passages;
    int64_t nameless;
    bool of_proxy;
};

void export_text(FILE *csv, const char *text)
{
    const char *guard = csv_wants_guard(text) ? "'" : "";

    if (!strpbrk(text, ",\"\r\n")) {
        fprintf(csv, ",%s%s", guard, text);
        return;
    }
    fprintf(csv, ",\"%s", guard);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', csv);
        fputc(*text, csv);
    }
    fputc('"', csv);
}

static bool write_payment(FILE *csv, const struct record *record, const char *channel_ref,
                          const struct order *order, struct problem *problem)
{
    char at[TIME_TEXT_SIZE];

    time_write(record->at_us, at);
    fprintf(csv, "%" PRId64 ",%s", record->seq, at);
    export_text(csv, channel_ref);
    for (size_t i = 0; i <= ORDER_FACTS; i++) {
        const struct field *field = &order_fields[i];

        if (field->kind != FIELD_INT)
            export_text(csv, field_text(field, order));
        else if (field_int(field, order))
            fprintf(csv, ",%" PRId64, field_int(field, order));
        else
            fputc(',', csv); /* a proxy may not know it; a channel always does */
    }
    fputc('\n', csv);
    return !ferror(csv) || problem_set(problem, "cannot write the CSV");
}

static bool write_paid(void *context, const struct record *record, struct problem *problem)
{
    struct work *work = context;
    struct order order;

    if (record->type == RECORD_PAID)
        return write_payment(work->csv, record, record->channel_ref, &record->order, problem);
    if (!passages_add(work->passages, record, problem))
        return false;
    if (!passages_paid(work->passages, record, &order))
        return true;
    if (!order.serial_no[0]) {
        work->nameless++;
        return true;
    }
    return write_payment(work->csv, record, record->passage.channel_ref, &order, problem);
}

static bool keep_request(void *context, const struct record *record, struct problem *problem)
{
    struct work *work = context;

    if (record->type == RECORD_LEDGER)
        work->of_proxy = record->of_proxy;
    if (!work->of_proxy)
        return true;
    return passages_add(work->passages, record, problem);
}

static bool scan(const char *path, int64_t limit, record_visitor visit, struct work *work,
                 struct problem *problem)
{
    FILE *file = fopen(path, "re");
    int64_t end;
    bool fine;

    if (!file)
        return problem_set(problem, "cannot open the ledger %s: %s", path, strerror(errno));
    if (visit == write_paid) {
        fputs("seq,paid_at,channel_ref", work->csv);
        for (size_t i = 0; i <= ORDER_FACTS; i++)
            fprintf(work->csv, ",%s", order_fields[i].name);
        fputc('\n', work->csv);
    }
    fine = ledger_scan(file, path, limit, visit, work, &end, problem);
    fclose(file);
    return fine;
}

static bool written(FILE *csv, struct problem *problem)
{
    return (fflush(csv) == 0 && !ferror(csv)) ||
           problem_set(problem, "cannot write the CSV: %s", strerror(errno));
}

bool export_csv(const char *ledger_path, int64_t limit, FILE *csv, int64_t *nameless,
                struct problem *problem)
{
    struct work work = {csv, passages_new(), 0, false};
    bool fine;

    fine = scan(ledger_path, limit, write_paid, &work, problem) && written(csv, problem);
    passages_free(work.passages);
    *nameless = work.nameless;
    return fine;
}

bool export_requests(const char *ledger_path, FILE *csv, struct problem *problem)
{
    struct work work = {csv, passages_new(), 0, false};
    bool fine = scan(ledger_path, -1, keep_request, &work, problem);

    if (fine && !work.of_proxy)
        fine =
            problem_set(problem, "the ledger %s is that of a channel, not of a proxy", ledger_path);
    if (fine) {
        passages_print(work.passages, csv);
        fine = written(csv, problem);
    }
    passages_free(work.passages);
    return fine;
}
