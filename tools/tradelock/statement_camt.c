/* Reads ISO 20022 camt.053 into the records of a statement: one of each transaction, or of an entry
 * that details none.  No DTD is read, so nothing in the file refers to anything else. */
#include "statement_read.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

#define PATH 256
#define TEXT 256
#define ENTRY "/Document/BkToCstmrStmt/Stmt/Ntry"
#define DETAILS "/NtryDtls/TxDtls"
#define CHUNK ((size_t)1 << 20)

/* What an entry says of itself, and a transaction instead of it. */
struct side {
    unsigned line;
    char amount[TEXT], currency[8], direction[8];
};

struct camt {
    struct reading *r;
    XML_Parser parser;
    char path[PATH], text[TEXT];
    size_t size;
    struct side entry, detail;
    int is_reversal, is_returned; /* of the entry; of the transaction */
    int is_booked, pays;          /* a transaction of the entry is a payment, or one's return */
    char reference[TEXT];         /* of the entry that a name of the map asks for */
    enum column reference_of;
    uint64_t said, details; /* how many transactions; 0 said: it does not say */
    int64_t sum;            /* of their amounts, while all are of the entry's currency */
    int has_sum;
};

static int is_at(const struct camt *c, const char *path)
{
    return strncmp(c->path, ENTRY, strlen(ENTRY)) == 0 &&
           strcmp(c->path + strlen(ENTRY), path) == 0;
}

static int is_in_details(const struct camt *c)
{
    static const char details[] = ENTRY DETAILS "/";

    return strncmp(c->path, details, strlen(details)) == 0;
}

/* Nothing more is parsed once that is refused. */
static void stop(struct camt *c)
{
    if (c->r->problem[0] != '\0')
        XML_StopParser(c->parser, XML_FALSE);
}

static void refuse_doctype(void *context, const char *name, const char *system, const char *public,
                           int has_internal)
{
    struct camt *c = context;

    (void)name, (void)system, (void)public, (void)has_internal;
    c->r->line = (unsigned)XML_GetCurrentLineNumber(c->parser);
    refuse(c->r, "a document type stands in it, which no statement has");
    stop(c);
}

static void take_currency(struct side *side, const char **attributes)
{
    for (; attributes[0] != NULL; attributes += 2)
        if (strcmp(attributes[0], "Ccy") == 0)
            snprintf(side->currency, sizeof side->currency, "%s", attributes[1]);
}

static void begin_entry(struct camt *c)
{
    memset(&c->entry, 0, sizeof c->entry);
    c->entry.line = c->r->line;
    c->is_reversal = c->is_booked = c->pays = 0;
    c->said = c->details = 0;
    c->sum = 0;
    c->has_sum = 1;
    c->reference[0] = '\0';
}

static void begin_detail(struct camt *c)
{
    memset(&c->detail, 0, sizeof c->detail);
    c->detail.line = c->r->line;
    c->is_returned = 0;
    c->details++;
}

static void begin(void *context, const char *full, const char **attributes)
{
    struct camt *c = context;
    const char *space = strrchr(full, ' '), *name = space != NULL ? space + 1 : full;
    const size_t size = strlen(c->path);

    c->r->line = (unsigned)XML_GetCurrentLineNumber(c->parser);
    c->size = 0;
    if (size == 0 && (strcmp(name, "Document") != 0 || strstr(full, ":camt.053.") == NULL))
        refuse(c->r, "it is XML, and no camt.053");
    if (size + strlen(name) + 2 > sizeof c->path)
        refuse(c->r, "its elements are nested too deeply");
    else
        snprintf(c->path + size, sizeof c->path - size, "/%s", name);
    if (is_at(c, ""))
        begin_entry(c);
    else if (is_at(c, DETAILS))
        begin_detail(c);
    else if (is_at(c, DETAILS "/RtrInf"))
        c->is_returned = 1;
    else if (is_at(c, "/Amt"))
        take_currency(&c->entry, attributes);
    else if (is_at(c, DETAILS "/Amt") || is_at(c, DETAILS "/AmtDtls/TxAmt/Amt"))
        take_currency(&c->detail, attributes);
    stop(c);
}

static void take_text(void *context, const char *text, int size)
{
    struct camt *c = context;
    const size_t room = sizeof c->text - 1 - c->size;
    const size_t taken = (size_t)size < room ? (size_t)size : room;

    memcpy(c->text + c->size, text, taken);
    c->size += taken;
}

/* -------------------------------------------------------------------- records -- */

/* What came in and was taken back, or returned, is no payment that came back. */
static enum statement_kind kind_of(struct camt *c, const char *direction)
{
    const int is_credit = strcmp(direction, "CRDT") == 0;

    if (!is_credit && strcmp(direction, "DBIT") != 0)
        misread(c->r, "'%.8s' is neither CRDT nor DBIT", direction);
    if (!c->is_booked)
        return KIND_UNBOOKED;
    if (c->is_reversal || c->is_returned)
        return is_credit ? KIND_RETURNED : KIND_RECEIVED;
    return is_credit ? KIND_RECEIVED : KIND_PAID;
}

static const char *first_of(const char *text, const char *otherwise)
{
    return text[0] != '\0' ? text : otherwise;
}

/* What a transaction does not say of itself is its entry's, but only a lone one's amount is. */
static void end_transaction(struct camt *c, const struct side *side)
{
    struct reading *r = c->r;
    const int is_own = side->amount[0] != '\0';
    const char *amount = is_own ? side->amount : c->entry.amount;
    const char *currency = is_own ? side->currency : c->entry.currency;

    r->line = side->line;
    r->kind = kind_of(c, first_of(side->direction, c->entry.direction));
    c->pays |= r->kind == KIND_PAID || r->kind == KIND_RETURNED;
    if (!is_own && (c->said > 1 || c->details > 1))
        misread(r, "the transaction has no amount of its own");
    take_cell(r, COL_AMOUNT, amount, strlen(amount));
    take_cell(r, COL_CURRENCY, currency, strlen(currency));
    end_record(r);
}

static void add_to_sum(struct camt *c)
{
    const struct side *side = c->detail.amount[0] != '\0' ? &c->detail : &c->entry;
    int64_t amount = 0;

    c->has_sum = c->has_sum && strcmp(side->currency, c->entry.currency) == 0 &&
                 amount_units(side->amount, '.', side->currency, &amount) &&
                 !__builtin_add_overflow(c->sum, amount, &c->sum);
}

/* A batch whose details are not all there would leave payments out. */
static void end_entry(struct camt *c)
{
    struct reading *r = c->r;
    enum statement_kind kind;
    int64_t amount = 0;

    c->is_returned = 0;
    if (c->details == 0) {
        if (c->reference[0] != '\0')
            take_cell(r, c->reference_of, c->reference, strlen(c->reference));
        if (c->said > 1)
            misread(r, "the entry is of %llu transactions, and details none",
                    (unsigned long long)c->said);
        end_transaction(c, &c->entry);
        return;
    }
    kind = kind_of(c, c->entry.direction);
    if (r->wrong[0] == '\0' && !c->pays && (kind == KIND_RECEIVED || kind == KIND_UNBOOKED))
        return;
    if (c->said > 0 && c->said != c->details)
        misread(r, "the entry is of %llu transactions, and details %llu",
                (unsigned long long)c->said, (unsigned long long)c->details);
    else if (c->has_sum && amount_units(c->entry.amount, '.', c->entry.currency, &amount) &&
             amount != c->sum)
        misread(r, "the entry is of %.40s %.8s, and its transactions come to another sum",
                c->entry.amount, c->entry.currency);
    if (r->wrong[0] != '\0')
        end_transaction(c, &c->entry);
}

/* ------------------------------------------------------------------- elements -- */

static void keep(struct camt *c, char *to, size_t space)
{
    snprintf(to, space, "%.*s", (int)space - 1, c->text);
}

static void take_entry(struct camt *c)
{
    uint64_t number = 0;

    if (is_at(c, "/Amt"))
        keep(c, c->entry.amount, sizeof c->entry.amount);
    else if (is_at(c, "/CdtDbtInd"))
        keep(c, c->entry.direction, sizeof c->entry.direction);
    else if (is_at(c, "/RvslInd"))
        c->is_reversal = strcmp(c->text, "true") == 0 || strcmp(c->text, "1") == 0;
    else if (is_at(c, "/Sts") || is_at(c, "/Sts/Cd"))
        c->is_booked |= strcmp(c->text, "BOOK") == 0;
    else if (is_at(c, "/NtryDtls/Btch/NbOfTxs"))
        c->said += read_number(c->text, UINT32_MAX, &number) ? number : 0;
}

static void take_detail(struct camt *c)
{
    if (is_at(c, DETAILS "/Amt") || is_at(c, DETAILS "/AmtDtls/TxAmt/Amt"))
        keep(c, c->detail.amount, sizeof c->detail.amount);
    else if (is_at(c, DETAILS "/CdtDbtInd"))
        keep(c, c->detail.direction, sizeof c->detail.direction);
}

/* A name that the map asks for: of a transaction's references or texts, or of the entry. */
static void take_reference(struct camt *c, const char *name)
{
    static const char *const places[] = {"/Refs/", "/RmtInf/", "/CdtrRefInf/"};
    const int is_entry = is_at(c, "/NtryRef") || is_at(c, "/AcctSvcrRef");
    struct reading *r = c->r;
    int is_place = is_entry;

    for (size_t i = 0; is_in_details(c) && i < sizeof places / sizeof places[0]; i++) {
        const char *at = strstr(c->path + strlen(ENTRY DETAILS), places[i]);

        is_place |= at != NULL && strcmp(at + strlen(places[i]), name) == 0;
    }
    for (int i = 0; is_place && i <= COL_REF; i++) {
        if (r->names[i] == NULL || strcmp(r->names[i], name) != 0 ||
            strcmp(c->text, "NOTPROVIDED") == 0)
            continue;
        if (is_entry) {
            keep(c, c->reference, sizeof c->reference);
            c->reference_of = (enum column)i;
        } else if (r->row[i] != NULL)
            misread(r, "the transaction has several %s", name);
        else
            take_cell(r, (enum column)i, c->text, c->size);
    }
}

static void trim_text(struct camt *c)
{
    size_t from = 0;

    while (c->size > 0 && strchr(" \t\r\n", c->text[c->size - 1]) != NULL)
        c->size--;
    while (from < c->size && strchr(" \t\r\n", c->text[from]) != NULL)
        from++;
    c->size -= from;
    memmove(c->text, c->text + from, c->size);
    c->text[c->size] = '\0';
}

static void end(void *context, const char *full)
{
    struct camt *c = context;
    const char *space = strrchr(full, ' '), *name = space != NULL ? space + 1 : full;

    trim_text(c);
    take_entry(c);
    take_detail(c);
    take_reference(c, name);
    if (is_at(c, DETAILS)) {
        add_to_sum(c);
        end_transaction(c, &c->detail);
    } else if (is_at(c, "")) {
        end_entry(c);
    }
    c->path[strlen(c->path) - strlen(name) - 1] = '\0';
    c->size = 0;
    stop(c);
}

/* ----------------------------------------------------------------------- file -- */

/* Only what the map names is looked for: by itself the channel key, which a service sends as the
 * end-to-end identification. */
static void read_names(struct reading *r)
{
    const struct statement_rules *rules = &r->rules;
    const char *words = NULL;

    for (int i = 0; i < KINDS; i++)
        words = rules->words[i] != NULL ? rules->words[i] : words;
    r->line = 0;
    for (int i = 0; i < COLUMNS; i++) {
        if (r->names[i] == column_default((enum column)i))
            r->names[i] = NULL;
        else if (i > COL_REF)
            refuse(r, "map: a camt.053 names its amounts and kinds itself");
    }
    if (rules->map == NULL)
        r->names[COL_KEY] = "EndToEndId";
    if (words != NULL || rules->delimiter != NULL || rules->decimal != NULL ||
        rules->preamble != NULL || rules->total != NULL)
        refuse(r, "it is a camt.053: delimiter, decimal, preamble, total, paid, received, returned "
                  "and unbooked are about CSV");
    r->names[COL_AMOUNT] = "Amt";
    r->names[COL_CURRENCY] = "Ccy";
    r->decimal = '.';
    if (r->problem[0] == '\0')
        r->line = 1;
}

void read_camt(struct reading *r, const char *text, size_t size, int is_utf8)
{
    struct camt c = {.r = r, .parser = XML_ParserCreateNS(is_utf8 ? "UTF-8" : NULL, ' ')};
    enum XML_Status status = XML_STATUS_OK;

    read_names(r);
    if (c.parser == NULL) {
        refuse(r, "out of memory");
        return;
    }
    XML_SetUserData(c.parser, &c);
    XML_SetElementHandler(c.parser, begin, end);
    XML_SetCharacterDataHandler(c.parser, take_text);
    XML_SetStartDoctypeDeclHandler(c.parser, refuse_doctype);
    for (size_t at = 0; r->problem[0] == '\0' && status == XML_STATUS_OK && at < size;) {
        const size_t part = size - at < CHUNK ? size - at : CHUNK;

        status = XML_Parse(c.parser, text + at, (int)part, at + part == size);
        at += part;
    }
    if (r->problem[0] == '\0' && status != XML_STATUS_OK) {
        r->line = (unsigned)XML_GetCurrentLineNumber(c.parser);
        refuse(r, "it is no whole XML: %s", XML_ErrorString(XML_GetErrorCode(c.parser)));
    }
    XML_ParserFree(c.parser);
}
