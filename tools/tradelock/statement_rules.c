/* The rules by which a statement is read: of a command's options, and of a profile in the settings
 * file, which it reads.  Both are one table. */
#include "statement_read.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SECTION "statement-"
#define LINE_MAX_BYTES 4096 /* as core/base/config.c */

static struct statement_rules base;

/* Where base has a setting, other rules have it too. */
static const struct command_option settings[] = {
    STATEMENT_SETTINGS(base),
    {"op OP", "the operation of payments that name none", OPTION_TEXT, .to = &base.op_code},
    {"currency CUR", "the currency of amounts that name none", OPTION_TEXT, .to = &base.currency},
    {"channel NAME", "the channel that paid", OPTION_TEXT, .to = &base.channel}};

static const char **setting_of(struct statement_rules *rules, const char *name)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (strncmp(settings[i].name, name, strlen(name)) == 0 &&
            settings[i].name[strlen(name)] == ' ')
            return (const char **)(void *)((char *)rules +
                                           ((const char *)settings[i].to - (const char *)&base));
    return NULL;
}

/* ------------------------------------------------------------------- profile -- */

static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

/* The name of the section that begins in this line: NAME, or "" of one that is no statement's.
 * NULL: none begins here. */
static const char *section_in(char *line)
{
    char *end = line[0] == '[' ? strchr(line, ']') : NULL;

    if (end == NULL)
        return NULL;
    *end = '\0';
    return strncmp(line + 1, SECTION, strlen(SECTION)) == 0 ? line + 1 + strlen(SECTION) : "";
}

void statement_profiles(const char *config_file, void (*each)(void *context, const char *name),
                        void *context)
{
    FILE *file = config_file != NULL ? fopen(config_file, "re") : NULL;
    char line[LINE_MAX_BYTES];

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *name = section_in(trim(line));

        if (name != NULL && name[0] != '\0')
            each(context, name);
    }
    if (file != NULL)
        fclose(file);
}

/* One pair of quotes keeps blanks. */
static const char *unquoted(char *value)
{
    const size_t size = strlen(value);

    if (size < 2 || (value[0] != '"' && value[0] != '\'') || value[size - 1] != value[0])
        return value;
    value[size - 1] = '\0';
    return value + 1;
}

static void take_setting(struct reading *r, struct statement_rules *profile, char *line)
{
    char *value = strchr(line, '=');
    const char **to;

    if (value == NULL) {
        refuse(r, "'%.40s' is not of the form name = value", line);
        return;
    }
    *value++ = '\0';
    line = trim(line);
    value = trim(value);
    to = setting_of(profile, line);
    if (to == NULL)
        refuse(r, "no statement has a setting '%.40s'", line);
    else if (*to != NULL)
        refuse(r, "%s stands twice", line);
    else
        *to = keep_text(r, unquoted(value), strlen(unquoted(value)));
}

/* Reads the sections of this profile; 0: there is none. */
static int read_sections(struct reading *r, struct statement_rules *profile, FILE *file)
{
    char line[LINE_MAX_BYTES];
    int is_there = 0, is_in = 0;

    while (r->problem[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        char *text = trim(line);
        const char *section;

        r->line++;
        if (text[0] == '\0' || text[0] == '#' || text[0] == ';')
            continue;
        section = section_in(text);
        if (section != NULL)
            is_there |= is_in = strcmp(section, r->rules.profile) == 0;
        else if (is_in)
            take_setting(r, profile, text);
    }
    return is_there;
}

/* What no option says is the profile's. */
static void add_profile(struct reading *r, const struct statement_rules *profile)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const size_t at = (size_t)((const char *)settings[i].to - (const char *)&base);
        const char **to = (const char **)(void *)((char *)&r->rules + at);

        if (*to == NULL)
            *to = *(const char *const *)(const void *)((const char *)profile + at);
    }
}

static void read_profile(struct reading *r)
{
    const char *path = r->rules.config_file;
    struct statement_rules profile = {.map = NULL};
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char problem[sizeof r->problem];

    if (file == NULL) {
        refuse(r, "no settings file with a section [" SECTION "%.40s] can be read",
               r->rules.profile);
        return;
    }
    if (!read_sections(r, &profile, file) && r->problem[0] == '\0')
        refuse(r, "%.120s has no section [" SECTION "%.40s]", path, r->rules.profile);
    else if (r->problem[0] != '\0') {
        snprintf(problem, sizeof problem, "%.100s:%u: %.180s", path, r->line, r->problem);
        memcpy(r->problem, problem, sizeof problem);
    }
    r->line = 0;
    fclose(file);
    add_profile(r, &profile);
}

/* ----------------------------------------------------------------------- map -- */

/* "ref=EndToEndId": what the file calls one column. */
static void take_pair(struct reading *r, const char *pair, size_t size)
{
    const char *name = memchr(pair, '=', size);
    const size_t word = name != NULL ? (size_t)(name - pair) : size;
    const enum column column = column_named(pair, word);

    if (name == NULL || word + 1 == size)
        refuse(r, "map: '%.*s' is not of the form ref=COLUMN", (int)size, pair);
    else if (column == COLUMNS)
        refuse(r,
               "map: '%.*s' is none of serial, cust, op, key, ref, amount, minor, received, "
               "currency, sign, kind",
               (int)word, pair);
    else if (r->names[column] != column_default(column))
        refuse(r, "map: %.*s stands twice", (int)word, pair);
    else
        r->names[column] = keep_text(r, name + 1, size - word - 1);
}

static void read_map(struct reading *r)
{
    for (int i = 0; i < COLUMNS; i++)
        r->names[i] = column_default((enum column)i);
    for (const char *at = r->rules.map; at != NULL && *at != '\0' && r->problem[0] == '\0';) {
        const size_t size = strcspn(at, ",");

        take_pair(r, at, size);
        at += size + (at[size] == ',');
    }
    for (int i = 0; i < COLUMNS; i++)
        for (int k = 0; k < i; k++)
            if (r->names[i] != NULL && r->names[k] != NULL && strcmp(r->names[i], r->names[k]) == 0)
                refuse(r, "map: the column '%.80s' would be two things", r->names[i]);
}

/* ---------------------------------------------------------------- set aside -- */

static void take_aside(struct reading *r, const char *word, size_t size)
{
    static const char *const kinds[] = {
        [KIND_RECEIVED] = "received", [KIND_RETURNED] = "returned", [KIND_UNBOOKED] = "unbooked"};
    char text[16] = "";
    uint64_t line;
    size_t at = 0;

    for (int k = KIND_RECEIVED; k < KINDS; k++)
        if (strlen(kinds[k]) == size && memcmp(kinds[k], word, size) == 0) {
            r->is_kind_aside[k] = 1;
            return;
        }
    if (size < sizeof text)
        memcpy(text, word, size);
    if (!read_number(text, UINT32_MAX, &line) || line == 0)
        refuse(r, "aside: '%.*s' is neither a line's number nor received, returned, unbooked",
               (int)size, word);
    while (at < r->aside_count && r->aside[at] != line)
        at++;
    if (at == ASIDE_MOST)
        refuse(r, "aside: more than %d lines are named", ASIDE_MOST);
    else if (at == r->aside_count)
        r->aside[r->aside_count++] = (unsigned)line;
}

static char one_character(struct reading *r, const char *name, const char *text, char otherwise)
{
    if (text == NULL)
        return otherwise;
    if (strcmp(text, "tab") == 0)
        return '\t';
    if (strlen(text) != 1 || (unsigned char)text[0] <= ' ' || (unsigned char)text[0] > '~')
        refuse(r, "%s is one character, not '%.40s'", name, text);
    return text[0];
}

void read_rules(struct reading *r)
{
    struct statement_rules *rules = &r->rules;
    uint64_t preamble = 0;

    if (rules->profile != NULL)
        read_profile(r);
    read_map(r);
    for (const char *at = rules->aside; at != NULL && *at != '\0' && r->problem[0] == '\0';) {
        const size_t size = strcspn(at, ",");

        take_aside(r, at, size);
        at += size + (at[size] == ',');
    }
    r->delimiter = one_character(r, "delimiter", rules->delimiter, ',');
    r->decimal = one_character(r, "decimal", rules->decimal, '.');
    if (r->decimal != '.' && r->decimal != ',')
        refuse(r, "decimal is . or , and not '%c'", r->decimal);
    if (r->delimiter == '"' || r->delimiter == '-' || isalnum((unsigned char)r->delimiter))
        refuse(r, "delimiter: '%c' stands in cells", r->delimiter);
    if (rules->preamble != NULL && !read_number(rules->preamble, 1000, &preamble))
        refuse(r, "preamble is a number of lines up to 1000, not '%.40s'", rules->preamble);
    r->preamble = (unsigned)preamble;
}
