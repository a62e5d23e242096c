/*
 * Judges a declared statement by its text alone: one INSERT of one row, UPDATE or DELETE of one
 * table, whose values are all declared.  Names become question marks.  Touches no database.
 */
#include "books/books.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

/* Question marks of a statement; each is one byte of sql_text.marks. */
#define MARKS_MAX 254
#define NAME_MAX_BYTES 64

#define OWN_VALUE(name, type) {#name, type},
static const struct {
    const char *name;
    book_type type;
} own_values[] = {BOOK_OWN_MAP(OWN_VALUE)};
#undef OWN_VALUE

static const char *const type_names[] = {
    [BOOK_INT] = "int", [BOOK_TEXT] = "text", [BOOK_BYTES] = "bytes"};

const char *book_type_name(book_type type)
{
    return type_names[type];
}

const char *book_value_name(const book_statement *statement, unsigned value)
{
    return value < BOOK_OWN_COUNT ? own_values[value].name
                                  : statement->values[value - BOOK_OWN_COUNT].name;
}

book_type book_value_type(const book_statement *statement, unsigned value)
{
    return value < BOOK_OWN_COUNT ? own_values[value].type
                                  : statement->values[value - BOOK_OWN_COUNT].type;
}

static tl_status no_memory(void)
{
    return error_set(TL_NO_MEMORY, "out of memory for the statement");
}

static int is(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && memcmp(text, word, size) == 0;
}

/* ----------------------------------------------------- the declared values, "name type, ..." -- */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The number of the value with this name, or `none`. */
static unsigned find_value(const book_statement *to, const char *name, size_t size, unsigned none)
{
    const unsigned count = BOOK_OWN_COUNT + to->value_count;

    for (unsigned i = 0; i < count; i++)
        if (is(name, size, book_value_name(to, i)))
            return i;
    return none;
}

static int read_type(book_type *out, const char *word, size_t size)
{
    for (unsigned i = 0; i < sizeof type_names / sizeof type_names[0]; i++)
        if (is(word, size, type_names[i])) {
            *out = (book_type)i;
            return 1;
        }
    return 0;
}

static tl_status add_value(book_statement *to, const char *name, size_t size, book_type type)
{
    const unsigned found = find_value(to, name, size, TL_BOOK_VALUES + BOOK_OWN_COUNT);
    book_value *value = &to->values[to->value_count];

    if (found < BOOK_OWN_COUNT)
        return error_set(TL_INVALID,
                         "the value \"%.*s\" is known from the trade, and not to be declared",
                         (int)size, name);
    if (found < TL_BOOK_VALUES + BOOK_OWN_COUNT)
        return error_set(TL_INVALID, "the value \"%.*s\" is declared twice", (int)size, name);
    if (to->value_count == TL_BOOK_VALUES)
        return error_set(TL_INVALID, "more than %d values are declared", TL_BOOK_VALUES);
    value->name = memory_new(size + 1);
    if (value->name == NULL)
        return no_memory();
    memcpy(value->name, name, size);
    value->type = type;
    to->value_count++;
    return TL_OK;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define LETTERS_AND_DIGITS LETTERS "0123456789"

static tl_status read_value(book_statement *to, const char **at)
{
    const char *name = skip_blanks(*at);
    const size_t size = strspn(name, LETTERS) > 0 ? strspn(name, LETTERS_AND_DIGITS) : 0;
    const char *type = skip_blanks(name + size);
    const size_t type_size = strspn(type, LETTERS_AND_DIGITS);
    const char *end = skip_blanks(type + type_size);
    book_type what;

    if (size == 0 || type == name + size || type_size == 0 || (*end != ',' && *end != '\0'))
        return error_set(TL_INVALID,
                         "its values are declared as \"name type, name type\", and not as \"%s\"",
                         name);
    if (size > NAME_MAX_BYTES)
        return error_set(TL_INVALID, "the name of a value is longer than %d bytes", NAME_MAX_BYTES);
    if (!read_type(&what, type, type_size))
        return error_set(TL_INVALID,
                         "the value \"%.*s\" is of type \"%.*s\"; there are int, text and bytes",
                         (int)size, name, (int)type_size, type);
    *at = end;
    return add_value(to, name, size, what);
}

static tl_status read_values(book_statement *to, const char *values)
{
    const char *at = values != NULL ? skip_blanks(values) : "";
    tl_status status = TL_OK;

    TRY(text_check_utf8("its values", values));
    to->values = memory_new_array(TL_BOOK_VALUES, sizeof *to->values);
    if (to->values == NULL)
        return no_memory();
    while (status == TL_OK && *at != '\0') {
        status = read_value(to, &at);
        if (status != TL_OK || *at != ',')
            continue;
        at++;
        if (*skip_blanks(at) == '\0')
            status = error_set(TL_INVALID, "a value is missing behind the last comma");
    }
    return status;
}

/* ------------------------------------------------------------------ what kind of statement -- */

static tl_status expected(const char *what, const token *found)
{
    return error_set(TL_INVALID, "%s is expected, and not \"%.*s\"", what, TOKEN_SHOWN(found));
}

static tl_status several_tables(void)
{
    return error_set(TL_INVALID, "is of several tables; one statement changes one");
}

/* Takes the name of the table, and moves behind it. */
static tl_status read_table(book_text *text, const token **at)
{
    const token *t = *at;

    if (!token_is_name(t))
        return expected("the name of a table", t);
    text->table = t++;
    if (token_is(t, ".")) {
        text->database = text->table;
        text->table = ++t;
        if (!token_is_name(t))
            return expected("the name of a table", t);
        t++;
    }
    *at = t;
    return TL_OK;
}

/* Words between the verb and its table, none of which is taken. */
static tl_status check_modifier(const book_text *text, const token *t)
{
    static const char *const words[] = {"IGNORE",        "LOW_PRIORITY", "DELAYED",
                                        "HIGH_PRIORITY", "QUICK",        NULL};

    if (token_is_one_of(t, words))
        return error_set(TL_INVALID, "%.*s %.*s is not taken", TOKEN_SHOWN(text->verb),
                         TOKEN_SHOWN(t));
    return TL_OK;
}

static tl_status check_selects(const token *t)
{
    static const char *const words[] = {"SELECT", "WITH", "VALUES", "TABLE", NULL};

    if (token_is_one_of(t, words))
        return error_set(TL_INVALID, "is an INSERT ... %.*s; INSERT INTO ... VALUES is taken",
                         TOKEN_SHOWN(t));
    return TL_OK;
}

static tl_status check_insert_end(const token *t)
{
    if (t->kind == TOKEN_END)
        return TL_OK;
    if (token_is(t, ","))
        return error_set(TL_INVALID, "inserts several rows; each line inserts one");
    if (token_is(t, "ON"))
        return error_set(TL_INVALID, "ON DUPLICATE KEY UPDATE is not taken");
    if (token_is(t, "RETURNING"))
        return error_set(TL_INVALID, "RETURNING is not taken");
    return expected("the end of the statement", t);
}

static tl_status read_insert(book_text *text, const token *t)
{
    TRY(check_modifier(text, t));
    if (!token_is(t, "INTO"))
        return expected("INSERT INTO", t);
    t++;
    TRY(read_table(text, &t));
    if (token_is(t, "(")) {
        text->columns = t;
        TRY(check_selects(t + 1));
        t = token_closing(t) + 1;
    }
    if (token_is(t, "SET"))
        return error_set(TL_INVALID, "is an INSERT ... SET; INSERT INTO ... VALUES is taken");
    if (!token_is(t, "VALUES")) {
        TRY(check_selects(t));
        return expected("VALUES", t);
    }
    if (!token_is(++t, "("))
        return expected("a row in parentheses", t);
    text->row = t;
    return check_insert_end(token_closing(t) + 1);
}

/* What stands behind the condition, or instead of it, and changes which rows are meant. */
static tl_status check_tail(const token *t)
{
    static const char *const words[] = {"ORDER", "LIMIT", "RETURNING", NULL};

    for (; t->kind != TOKEN_END; t++)
        if (t->depth == 0 && token_is_one_of(t, words))
            return error_set(TL_INVALID, "%.*s is not taken", TOKEN_SHOWN(t));
    return TL_OK;
}

static tl_status read_where(book_text *text, const token *t)
{
    TRY(check_tail(t));
    if (t->kind == TOKEN_END)
        return error_set(TL_INVALID, "has no WHERE");
    text->where = t;
    return TL_OK;
}

static const char *const joins[] = {",",     "JOIN",          "INNER",   "CROSS", "LEFT",
                                    "RIGHT", "STRAIGHT_JOIN", "NATURAL", "USING", NULL};

static tl_status read_update(book_text *text, const token *t)
{
    tl_status status;

    TRY(check_modifier(text, t));
    TRY(read_table(text, &t));
    if (token_is_one_of(t, joins))
        return several_tables();
    if (!token_is(t, "SET"))
        return expected("SET", t);
    text->set = t;
    status = check_tail(t);
    while (t->kind != TOKEN_END && !(t->depth == 0 && token_is(t, "WHERE")))
        t++;
    return status == TL_OK ? read_where(text, t) : status;
}

static tl_status read_delete(book_text *text, const token *t)
{
    TRY(check_modifier(text, t));
    if (!token_is(t, "FROM"))
        return expected("DELETE FROM", t);
    t++;
    TRY(read_table(text, &t));
    if (token_is_one_of(t, joins) || token_is(t, "."))
        return several_tables();
    TRY(check_tail(t));
    if (t->kind != TOKEN_END && !token_is(t, "WHERE"))
        return expected("WHERE", t);
    return read_where(text, t);
}

/* Functions that tell what another statement of the connection did, that lock, or that wait.  In a
 * group the statement before is another one, and others wait too.  A name in backticks is the
 * server's own function all the same. */
static int is_refused_function(const token *t)
{
    static const char *const words[] = {
        "LAST_INSERT_ID", "ROW_COUNT",    "FOUND_ROWS", "LASTVAL",
        "GET_LOCK",       "RELEASE_LOCK", "PREVIOUS",   "RELEASE_ALL_LOCKS",
        "SLEEP",          "BENCHMARK",    NULL};
    char name[32];

    if (!token_is(t + 1, "(") && !token_is(t + 1, "VALUE"))
        return 0;
    if (t->kind != TOKEN_NAME)
        return token_is_one_of(t, words);
    for (size_t i = 0; words[i] != NULL && token_name(t, name, sizeof name); i++)
        if (strcasecmp(name, words[i]) == 0)
            return 1;
    return 0;
}

static tl_status check_functions(const token *t)
{
    for (; t->kind != TOKEN_END; t++)
        if (is_refused_function(t))
            return error_set(TL_INVALID, "%.*s is not taken", TOKEN_SHOWN(t));
    return TL_OK;
}

static tl_status read_statement(book_text *text)
{
    const token *verb = text->tokens;
    tl_status status;

    text->verb = verb;
    if (token_is(verb, "INSERT"))
        status = read_insert(text, verb + 1);
    else if (token_is(verb, "UPDATE"))
        status = read_update(text, verb + 1);
    else if (token_is(verb, "DELETE"))
        status = read_delete(text, verb + 1);
    else
        status = expected("INSERT, UPDATE or DELETE", verb);
    return status == TL_OK ? check_functions(text->tokens) : status;
}

/* ------------------------------------------------------------------- names to question marks -- */

static tl_status number_values(book_statement *to)
{
    unsigned char used[BOOK_OWN_COUNT + TL_BOOK_VALUES] = {0};
    const unsigned none = sizeof used;

    for (token *t = to->text.tokens; t->kind != TOKEN_END; t++) {
        if (t->kind != TOKEN_VALUE)
            continue;
        t->value = find_value(to, t->at, t->size, none);
        if (t->value == none)
            return error_set(TL_INVALID, "the value \"%.*s\" is not declared", TOKEN_SHOWN(t));
        used[t->value] = 1;
        if (++to->one.mark_count > MARKS_MAX)
            return error_set(TL_INVALID, "has more than %d places for values", MARKS_MAX);
    }
    for (unsigned i = 0; i < to->value_count; i++)
        if (!used[BOOK_OWN_COUNT + i])
            return error_set(TL_INVALID, "the value \"%s\" is declared and not used",
                             to->values[i].name);
    return TL_OK;
}

static tl_status set_marks(book_statement *to)
{
    unsigned char *mark = to->marks = memory_new(to->one.mark_count + 1u);

    if (mark == NULL)
        return no_memory();
    for (const token *t = to->text.tokens; t->kind != TOKEN_END; t++)
        if (t->kind == TOKEN_VALUE)
            *mark++ = (unsigned char)t->value;
    *mark = (unsigned char)(BOOK_OWN_COUNT + to->value_count);
    return TL_OK;
}

/* The text between two tokens, with question marks, without blanks at its ends. */
static void append(struct text_buffer *to, const token *from, const token *end)
{
    const char *at = from->at - (from->kind == TOKEN_VALUE);
    const char *stop = end[-1].at + end[-1].size;

    for (; from < end; from++)
        if (from->kind == TOKEN_VALUE) {
            text_buffer_append(to, at, (size_t)(from->at - 1 - at));
            text_buffer_append_text(to, "?");
            at = from->at + from->size;
        }
    text_buffer_append(to, at, (size_t)(stop - at));
}

static const token *end_of(const token *t)
{
    while (t->kind != TOKEN_END)
        t++;
    return t;
}

static tl_status make_one(book_statement *to)
{
    struct text_buffer made;

    text_buffer_init(&made);
    append(&made, to->text.tokens, end_of(to->text.tokens));
    to->one_text = made.data;
    return made.failed ? no_memory() : TL_OK;
}

/*
 * The condition in parentheses: what is added belongs to all of it.  RAND() adds nothing to the
 * text but keeps the server from taking the condition for a constant: for the first line of an
 * execution it would compute that once, whether a row is found or not.
 */
static tl_status make_many(book_statement *to)
{
    const token *where = to->text.where, *end = end_of(to->text.tokens);
    struct text_buffer made;

    if (where + 1 == end)
        return expected("a condition behind WHERE", end);
    text_buffer_init(&made);
    append(&made, to->text.tokens, where + 1);
    text_buffer_append_text(&made, " (");
    append(&made, where + 1, end);
    text_buffer_append_text(&made,
                            ") AND (@tl_changed := CONCAT(@tl_changed, ?, LEFT('', RAND()), ' '))"
                            " IS NOT NULL");
    to->many_text = made.data;
    return made.failed ? no_memory() : TL_OK;
}

static void set_texts(book_statement *to)
{
    to->one.name = to->name;
    to->one.text = to->one_text;
    to->one.values = to->one.outside = BOOK_OWN_COUNT + to->value_count;
    to->one.marks = to->marks;
    to->many = to->one;
    if (!to->notes_lines)
        return;
    to->many.text = to->many_text;
    to->many.values++;
    to->many.outside++;
    to->many.mark_count++;
}

static tl_status make_texts(book_statement *to)
{
    to->notes_lines = to->text.where != NULL;
    TRY(number_values(to));
    TRY(set_marks(to));
    TRY(make_one(to));
    if (to->notes_lines)
        TRY(make_many(to));
    set_texts(to);
    return TL_OK;
}

static tl_status set_sort(book_statement *to)
{
    const token *t = to->text.where != NULL ? to->text.where : to->text.tokens;

    to->sort = memory_new(to->one.mark_count + 1u);
    if (to->sort == NULL)
        return no_memory();
    for (; t->kind != TOKEN_END; t++)
        if (t->kind == TOKEN_VALUE && memchr(to->sort, (int)t->value, to->sort_count) == NULL)
            to->sort[to->sort_count++] = (unsigned char)t->value;
    return TL_OK;
}

/* ------------------------------------------------------------------------------ sums of lines -- */

/* The server compares names of other letters by rules of its own. */
static int is_ascii_name(const token *t)
{
    for (size_t i = 0; i < t->size; i++)
        if ((unsigned char)t->at[i] >= 0x80)
            return 0;
    return token_is_name(t);
}

static int is_same_name(const token *a, const token *b)
{
    char one[NAME_MAX_BYTES * 2 + 1], other[sizeof one];

    return is_ascii_name(a) && is_ascii_name(b) && token_name(a, one, sizeof one) &&
           token_name(b, other, sizeof other) && strcasecmp(one, other) == 0;
}

/* SET column = column + :value WHERE, or with a minus. */
static int adds_a_value(const book_text *text)
{
    const token *t = text->set + 1;

    return token_is(&t[1], "=") && is_same_name(&t[0], &t[2]) &&
           (token_is(&t[3], "+") || token_is(&t[3], "-")) && t[4].kind == TOKEN_VALUE &&
           &t[5] == text->where;
}

static int is_constant(const token *t)
{
    return t->kind == TOKEN_VALUE || t->kind == TOKEN_STRING ||
           (t->kind == TOKEN_WORD && t->at[0] >= '0' && t->at[0] <= '9');
}

/* WHERE name = value AND name = value ... */
static int finds_by_equals(const book_text *text)
{
    const token *t = text->where;

    do {
        if (!is_ascii_name(&t[1]) || !token_is(&t[2], "=") || !is_constant(&t[3]))
            return 0;
        t += 4;
    } while (token_is(t, "AND"));
    return t->kind == TOKEN_END;
}

/* Whether the condition asks for what the statement changes. */
static int asks_for_its_sum(const book_text *text, const token *addend)
{
    for (const token *t = text->where; t->kind != TOKEN_END; t++)
        if (is_same_name(t, text->set + 1) || (t->kind == TOKEN_VALUE && t->value == addend->value))
            return 1;
    return 0;
}

/* One line with a sum must do what the lines do one after the other. */
static tl_status set_sum(book_statement *to, const tl_statement *given)
{
    const book_text *text = &to->text;

    if (!given->summed)
        return TL_OK;
    if (!given->shared)
        return error_set(TL_INVALID, "is summed, and not shared");
    if (given->refused != NULL)
        return error_set(TL_INVALID, "is summed, and cannot refuse a single trade");
    if (text->set == NULL || !adds_a_value(text) || !finds_by_equals(text))
        return error_set(TL_INVALID,
                         "is summed, and is not of the form UPDATE table SET column = column + "
                         ":value WHERE column = value AND ..., with names in ASCII");
    if (asks_for_its_sum(text, text->set + 5))
        return error_set(TL_INVALID, "is summed, and its condition asks for what it changes");
    if (book_value_type(to, text->set[5].value) != BOOK_INT)
        return error_set(TL_INVALID, "is summed, and its value is no int");
    to->summed = 1;
    to->addend = text->set[5].value;
    return TL_OK;
}

/* ------------------------------------------------------------------------------- all of it -- */

static tl_status check_name(const char *name)
{
    if (name == NULL || name[0] == '\0')
        return error_set(TL_INVALID, "a statement has no name");
    if (strnlen(name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
        return error_set(TL_INVALID, "the name of a statement is longer than %d bytes",
                         NAME_MAX_BYTES);
    return text_check_utf8("the name of a statement", name);
}

/* What is said besides the text. */
static tl_status check_rest(const book_statement *to, const tl_statement *given)
{
    const int inserts = to->text.row != NULL;

    if (given->rows > TL_BOOK_ROWS)
        return error_set(TL_INVALID, "changes more than %d rows", TL_BOOK_ROWS);
    if (inserts && given->rows > 1)
        return error_set(TL_INVALID, "is an INSERT, which changes one row, and not %u",
                         given->rows);
    if (inserts && given->refused != NULL)
        return error_set(TL_INVALID, "is an INSERT, which refuses nothing");
    if (inserts && to->one.mark_count == 0)
        return error_set(TL_INVALID, "is an INSERT without a value");
    if (given->refused != NULL && given->refused[0] == '\0')
        return error_set(TL_INVALID, "its reason to refuse is empty");
    return text_check_utf8("its reason to refuse", given->refused);
}

static tl_status copy(book_statement *to, const tl_statement *given)
{
    if (given->sql == NULL)
        return error_set(TL_INVALID, "has no text");
    TRY(text_check_utf8("its text", given->sql));
    to->rows = given->rows > 0 ? given->rows : 1;
    to->shared = given->shared != 0;
    to->name = memory_dup_text(given->name);
    to->refused = memory_dup_text(given->refused);
    to->text.sql = memory_dup_text(given->sql);
    if (to->name == NULL || to->text.sql == NULL || (given->refused != NULL && !to->refused))
        return no_memory();
    return TL_OK;
}

static tl_status declare(book_statement *to, const tl_statement *given)
{
    TRY(copy(to, given));
    TRY(tokens_read(&to->text.tokens, to->text.sql));
    TRY(read_statement(&to->text));
    TRY(read_values(to, given->values));
    TRY(make_texts(to));
    TRY(check_rest(to, given));
    TRY(set_sum(to, given));
    return set_sort(to);
}

tl_status book_declare(book_statement *out, const tl_statement *given)
{
    tl_status status = check_name(given->name);

    memset(out, 0, sizeof *out);
    if (status != TL_OK)
        return status;
    status = declare(out, given);
    return status == TL_OK ? TL_OK : error_prefix(status, "statement \"%s\"", given->name);
}

void book_statement_free(book_statement *statement)
{
    for (unsigned i = 0; i < statement->value_count; i++)
        memory_free(statement->values[i].name);
    memory_free(statement->values);
    memory_free(statement->name);
    memory_free(statement->refused);
    memory_free(statement->sort);
    memory_free(statement->marks);
    memory_free(statement->one_text);
    memory_free(statement->many_text);
    memory_free(statement->text.tokens);
    memory_free(statement->text.sql);
}
