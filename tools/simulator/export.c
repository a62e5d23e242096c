/* Reads a ledger, in use or not, and writes its payments as CSV. */
#include "export.h"
#include "ledger.h"
#include "sim_time.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Quotes only what has to be quoted. */
static void write_text(FILE *csv, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fprintf(csv, ",%s", text);
        return;
    }
    fputs(",\"", csv);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', csv);
        fputc(*text, csv);
    }
    fputc('"', csv);
}

static bool write_paid(void *context, const struct record *record, struct problem *problem)
{
    const struct order *order = &record->order;
    FILE *csv = context;
    char at[TIME_TEXT_SIZE];

    if (record->type != RECORD_PAID)
        return true;
    time_write(record->at_us, at);
    fprintf(csv, "%" PRId64 ",%s", record->seq, at);
    write_text(csv, record->channel_ref);
    write_text(csv, order->channel_key);
    write_text(csv, order->serial_no);
    write_text(csv, order->cust_no);
    write_text(csv, order->op_code);
    fprintf(csv, ",%" PRId64 ",%s", order->amount_minor, order->currency);
    write_text(csv, order->payee);
    fputc('\n', csv);
    return !ferror(csv) || problem_set(problem, "cannot write the CSV");
}

bool export_csv(const char *ledger_path, int64_t limit, FILE *csv, struct problem *problem)
{
    FILE *file = fopen(ledger_path, "re");
    int64_t end;
    bool fine;

    if (!file)
        return problem_set(problem, "cannot open the ledger %s: %s", ledger_path, strerror(errno));
    fputs("seq,paid_at,channel_ref,channel_key,serial_no,cust_no,op_code,amount_minor,"
          "currency,payee\n",
          csv);
    fine = ledger_scan(file, ledger_path, limit, write_paid, csv, &end, problem);
    fclose(file);
    if (fine && fflush(csv) != 0)
        fine = problem_set(problem, "cannot write the CSV: %s", strerror(errno));
    return fine;
}
