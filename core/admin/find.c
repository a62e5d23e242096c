/* What somebody looks for, without saying what it is: which filters it may be.  Reads only. */
#include "admin/list.h"

#include "base/error.h"
#include "base/text.h"
#include "client/read.h"
#include "store/bind.h"

#include <tradelock/admin/explain.h>

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DAY_US INT64_C(86400000000)

/* In the order in which they are listed.  Whole names come before what has more than one. */
static const struct {
    const char *name;
    size_t member; /* of a tl_filter */
} kinds[] = {{"serial number", offsetof(tl_filter, serial)},
             {"beginning of a serial number", offsetof(tl_filter, serial_prefix)},
             {"customer", offsetof(tl_filter, cust)},
             {"channel reference", offsetof(tl_filter, channel_ref)},
             {"batch", offsetof(tl_filter, batch)},
             {"label", offsetof(tl_filter, label)},
             {"trace id", offsetof(tl_filter, trace)},
             {"amount", offsetof(tl_filter, amount)},
             {"operation", offsetof(tl_filter, op)}};
_Static_assert(sizeof kinds / sizeof kinds[0] == FIND_KINDS, "each has a place");

/* -------------------------------------------------------------------- text -- */

/* The bytes of a blank at `at`, of those that are pasted along; 0: there is none. */
static size_t blank_at(const char *at)
{
    /* no-break, narrow, of no width; the mark of a direction, and of an order of bytes */
    static const char *const blanks[] = {
        " ",           "\t", "\n", "\r", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x8b", "\xe2\x80\x8e",
        "\xef\xbb\xbf"};

    for (size_t i = 0; i < sizeof blanks / sizeof blanks[0]; i++)
        if (strncmp(at, blanks[i], strlen(blanks[i])) == 0)
            return strlen(blanks[i]);
    return 0;
}

/* Without blanks around it, or without any; 0: it is too long. */
static int trim(char to[FIND_MOST], const char *from, int inside)
{
    size_t size = 0, end = 0;

    while (*from != '\0') {
        const size_t blank = blank_at(from), bytes = blank > 0 ? blank : 1;

        if (blank == 0 || (!inside && end > 0)) {
            if (size + bytes >= FIND_MOST && blank == 0)
                return 0;
            if (size + bytes < FIND_MOST)
                memcpy(to + size, from, bytes);
            size += bytes;
        }
        end = blank == 0 ? size : end;
        from += bytes;
    }
    to[end] = '\0';
    return 1;
}

tl_status find_check(const tl_filter *search)
{
    char text[FIND_MOST];

    if (search->log_uuid != NULL || search->as_of_us != 0)
        return error_set(TL_INVALID, "what is looked for is found as it is now, and in no log");
    if (!trim(text, search->find, 0))
        return error_set(TL_INVALID, "what is looked for is longer than any name, %d bytes",
                         FIND_MOST - 1);
    return text_check_line("what is looked for", text, FIND_MOST);
}

/* ------------------------------------------------------------------- kinds -- */

/* Cuts a day off the end of an amount; 0: there is none.  Its first microsecond is above 0. */
static int64_t cut_day(char *text)
{
    const size_t size = strlen(text), day = strlen("YYYY-MM-DD");
    int64_t us;

    if (size <= day || text[size - day - 1] != ' ' || !tl_moment_read(&us, text + size - day))
        return 0;
    text[size - day - 1] = '\0';
    return us;
}

static void make_amount(struct find_part *part)
{
    const int64_t day_us = cut_day(part->text);

    if (day_us == 0)
        return;
    if (part->filter.since_us < day_us)
        part->filter.since_us = day_us;
    if (part->filter.until_us == 0 || part->filter.until_us > day_us + DAY_US)
        part->filter.until_us = day_us + DAY_US;
}

/* Of a whole trace context its id, and the id in small letters. */
static void make_trace(char *text)
{
    char id[TEXT_TRACE + 1];

    for (char *at = text; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    text_trace(id, text);
    if (id[0] != '\0')
        strcpy(text, id);
}

int find_part(struct find_part *part, const tl_filter *search, unsigned kind)
{
    const char **member;
    int can_be;

    part->filter = *search;
    part->filter.after = NULL;
    if (kind >= FIND_KINDS || !trim(part->text, search->find, 0))
        return 0;
    member = (const char **)(void *)((char *)&part->filter + kinds[kind].member);
    if (*member != NULL)
        return 0;
    if (member == &part->filter.amount)
        make_amount(part);
    if (member == &part->filter.trace)
        make_trace(part->text);
    *member = part->text;
    can_be = list_names_check(&part->filter) == TL_OK;
    error_clear();
    return can_be;
}

int find_comes_before(const tl_filter *search, unsigned kind, const tl_view *view)
{
    struct find_part part;

    for (unsigned i = 0; i < kind; i++)
        if (find_part(&part, search, i) && list_filter_passes(&part.filter, view))
            return 1;
    return 0;
}

unsigned find_goes_on(const char **after)
{
    const unsigned kind = (unsigned)((unsigned char)**after - 'a');

    *after += **after != '\0';
    return kind;
}

tl_status tl_find_kinds(const tl_filter *filter, char to[TL_FIND_KINDS_TEXT])
{
    struct find_part part;

    error_clear();
    TRY(list_filter_check(filter));
    if (to == NULL || filter->find == NULL)
        return error_set(TL_INVALID, "tl_find_kinds: to or filter->find is NULL");
    to[0] = '\0';
    for (unsigned i = 0; i < FIND_KINDS; i++)
        if (find_part(&part, filter, i)) {
            text_add(to, TL_FIND_KINDS_TEXT, to[0] != '\0' ? ", " : "");
            text_add(to, TL_FIND_KINDS_TEXT, kinds[i].name);
        }
    return TL_OK;
}

/* -------------------------------------------------------------------- near -- */

#define PROBES_MOST 64

/* Makes the text in those of capital and small letters that stand next before the serial number.
 * 0: there are none. */
static int next_before(char *to, const char *text, const char *serial_no)
{
    size_t at = 0, place = 0;
    char letter = '\0';

    for (; text[at] != '\0'; at++) {
        const char high = (char)tolower((unsigned char)text[at]);
        const char low = (char)toupper((unsigned char)text[at]);

        if (low < serial_no[at]) {
            letter = high < serial_no[at] ? high : low;
            place = at;
        }
        if (serial_no[at] != low && serial_no[at] != high)
            break;
    }
    if (letter == '\0')
        return 0;
    for (at = 0; text[at] != '\0'; at++)
        to[at] = (char)(at < place    ? serial_no[at]
                        : at == place ? letter
                                      : tolower((unsigned char)text[at]));
    strcpy(to + at, LIST_LAST_TEXT);
    return 1;
}

/* Goes down the index from one spelling of the text to the next, past all that stands between. */
static tl_status find_spelling(db *connection, int conflict, const char *text, const char *search,
                               char to[TL_SERIAL_MAX + 1])
{
    const size_t size = strlen(text);
    char before[TL_SERIAL_MAX + sizeof LIST_LAST_TEXT];
    RESULT found = DB_RESULT_INIT;

    /* All in small letters, which stand behind capital ones. */
    next_before(before, text, LIST_LAST_TEXT);
    for (unsigned i = 0; i < PROBES_MOST; i++) {
        const char *serial_no;
        tl_status status;

        READ_REPEATED(
            status, read_status(connection,
                                SQL_RUN(connection, &found, find_before,
                                        .conflict = db_int(conflict), .serial_no = db_text(before)),
                                "looking for other spellings"));
        TRY(status);
        if (found.rows == 0)
            return TL_OK;
        serial_no = db_get_text(&found, 0, 0);
        if (strncasecmp(serial_no, text, size) == 0 && strncmp(serial_no, search, size) != 0) {
            snprintf(to, TL_SERIAL_MAX + 1, "%.*s", (int)size, serial_no);
            return TL_OK;
        }
        if (!next_before(before, text, serial_no))
            return TL_OK;
    }
    return TL_OK;
}

tl_status tl_find_near(tl_client *client, const tl_filter *filter, char to[TL_SERIAL_MAX + 1])
{
    READING at = {.client = client};
    char text[FIND_MOST], search[FIND_MOST];

    TRY(read_begin(&at));
    TRY(list_filter_check(filter));
    if (to == NULL || filter->find == NULL)
        return error_set(TL_INVALID, "tl_find_near: to or filter->find is NULL");
    to[0] = '\0';
    if (trim(text, filter->find, 1) && trim(search, filter->find, 0) &&
        text_check_name("text", text, TL_SERIAL_MAX) == TL_OK)
        for (int conflict = 0; conflict <= 1 && to[0] == '\0'; conflict++)
            TRY(find_spelling(at.connection, conflict, text, search, to));
    error_clear();
    return TL_OK;
}
