/* Writes the output file: each input line with its answer and final status. */
#include "answers.h"

#include "csv_guard.h"

#include <csv.h>
#include <ctype.h>
#include <string.h>

const char *row_kind_name(row_kind kind)
{
    static const char *const names[] = {"open",    "new", "repeated", "mismatch",
                                        "refused", "bad", "error"};

    return names[kind];
}

row_kind answer_kind(tl_status status, int own)
{
    if (own)
        return ROW_NEW;
    switch (status) {
    case TL_ALREADY_DONE:
    case TL_FAILED:
    case TL_BUSY:
    case TL_IN_DOUBT:
    case TL_QUEUED:
    case TL_PARKED:
    case TL_IN_CONFLICT:
        return ROW_REPEATED;
    case TL_MISMATCH:
        return ROW_MISMATCH;
    case TL_REFUSED:
    case TL_CUSTOMER_BUSY:
        return ROW_REFUSED;
    case TL_INVALID:
    case TL_UNKNOWN_OPERATION:
        return ROW_BAD;
    default:
        return ROW_ERROR;
    }
}

const char *answer_name(char *to, size_t space, const row *of)
{
    const char *name = of->kind == ROW_BAD ? "bad" : tl_status_name(of->status);
    size_t at = 0;

    if (strncmp(name, "TL_", 3) == 0)
        name += 3;
    for (; name[at] != '\0' && at + 1 < space; at++)
        to[at] = (char)tolower((unsigned char)name[at]);
    to[at] = '\0';
    return to;
}

/* Quoted only where it must be, so that what was plain stays so. */
static void write_field(FILE *file, const char *text)
{
    if (csv_wants_guard(text))
        putc('\'', file);
    if (text[strcspn(text, ",\"\r\n")] == '\0')
        fputs(text, file);
    else
        csv_fwrite(file, text, strlen(text));
}

static void write_row(FILE *file, const row *of)
{
    char name[32];

    for (unsigned i = 0; i < ROW_COLUMNS; i++) {
        write_field(file, of->columns[i]);
        putc(',', file);
    }
    fprintf(file, "%s,%s,%s,", answer_name(name, sizeof name, of), of->final,
            row_kind_name(of->kind));
    write_field(file, of->sentence != NULL ? of->sentence : "");
    putc('\n', file);
}

int answers_write(FILE *file, const rows *all)
{
    fputs(ANSWERS_HEADER "\n", file);
    for (size_t i = 0; i < all->count; i++)
        write_row(file, &all->list[i]);
    return fflush(file) != 0 || ferror(file) ? -1 : 0;
}
