/* Reads the settings file, and checks its lines, its sections and who may read it.  Touches that
 * file only. */
#include "base/config.h"

#include "base/config_client.h"
#include "base/error.h"
#include "base/writers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CUST_KEY_LEAST 16
#define LINE_MAX_BYTES 4096 /* as libmariadb's */
#define OWN_GROUP "tradelock-client"
#define ENVIRONMENT "the environment (TRADELOCK_...)"

typedef enum section {
    SECTION_NONE,
    SECTION_SETTINGS, /* [tradelock] */
    SECTION_OWN,      /* [tradelock-client...]: ours, read by libmariadb */
    SECTION_PLUGIN,   /* [service-NAME], a plug-in's, and [statement-NAME]: passed over */
    SECTION_FOREIGN   /* [client], [mariadb] ...: for other programs too */
} section;

struct reader {
    struct config_file from;
    const char *file;
    unsigned line;
    section section;
    const char *suffix; /* of the section [tradelock-client<suffix>] that must be there; "": none */
    int suffix_found;
    struct text_buffer sections; /* "\n-a\n-b\n": all suffixes of [tradelock-client...] */
    struct config config;
    unsigned lines[CONFIG_SETTINGS]; /* on which line each setting stands; 0: on none */
    tl_status status;
    char text[LINE_MAX_BYTES];
};

const char *config_file_name(const char *file)
{
    return file[0] != '\0' ? file : ENVIRONMENT;
}

/* Stops the reading; "file:line: " is put before the sentence that was set.  Line 0 is the
 * environment. */
static void fail(struct reader *reader)
{
    if (reader->line == 0)
        reader->status = error_prefix(TL_BAD_CONFIG, ENVIRONMENT);
    else
        reader->status = error_prefix(TL_BAD_CONFIG, "%s:%u", reader->file, reader->line);
}

/* Whether a password may stand in the file: its owner alone may read it, or it is root's and a group
 * of this process may read it too, as secrets of containers are mounted. */
static int is_private(const struct stat *about)
{
    gid_t groups[256];
    int count;

    if ((about->st_mode & 066) == 0)
        return 1;
    if ((about->st_mode & 026) != 0 || about->st_uid != 0)
        return 0;
    if (about->st_gid == getegid())
        return 1;
    count = getgroups(256, groups);
    while (count > 0 && groups[count - 1] != about->st_gid)
        count--;
    return count > 0;
}

static char *trim(char *text)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]); end--)
        ;
    *end = '\0';
    return text;
}

static int starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void enter_section(struct reader *reader, char *line)
{
    char *end = strchr(line, ']');

    if (end == NULL) {
        error_set(TL_BAD_CONFIG, "the section's ']' is missing");
        fail(reader);
        return;
    }
    *end = '\0';
    line++;
    if (strcmp(line, "tradelock") == 0) {
        reader->section = SECTION_SETTINGS;
    } else if (starts_with(line, OWN_GROUP)) {
        reader->section = SECTION_OWN;
        reader->suffix_found |= strcmp(line + strlen(OWN_GROUP), reader->suffix) == 0;
        text_buffer_append_format(&reader->sections, "%s\n", line + strlen(OWN_GROUP));
    } else if (starts_with(line, "client") || starts_with(line, "mysql") ||
               starts_with(line, "mariadb")) {
        reader->section = SECTION_FOREIGN;
    } else if (starts_with(line, "service-") || starts_with(line, "statement-")) {
        reader->section = SECTION_PLUGIN;
    } else {
        error_set(TL_BAD_CONFIG,
                  "unknown section [%s]; tradelock reads [tradelock] and [" OWN_GROUP
                  "], and passes over [service-NAME] and [statement-NAME]",
                  line);
        fail(reader);
    }
}

/* Checks a line that libmariadb will read; it is split as libmariadb splits it. */
static void check_client_line(struct reader *reader, char *line)
{
    char *value = strchr(line, '=');

    if (value != NULL) {
        *value++ = '\0';
        value = trim(value);
    }
    const char *name = trim(line);
    if (config_client_secret(name, value) && !reader->from.is_private) {
        error_set(TL_BAD_CONFIG,
                  "the file holds a password and others than its owner can read or "
                  "write it (mode %04o); chmod 600 it",
                  (unsigned)(reader->from.mode & 07777));
        fail(reader);
    } else if (reader->section == SECTION_OWN && config_client_check(name, value) != TL_OK)
        fail(reader);
}

/* Reads the next line of the file into reader->text; NULL at the end or on error. */
static char *read_line(struct reader *reader)
{
    if (fgets(reader->text, sizeof(reader->text), reader->from.stream) == NULL) {
        if (ferror(reader->from.stream))
            reader->status = error_set(TL_BAD_CONFIG, "%s: cannot be read: %s", reader->file,
                                       strerrordesc_np(errno));
        return NULL;
    }
    reader->line++;
    if (strchr(reader->text, '\n') == NULL && !feof(reader->from.stream)) {
        error_set(TL_BAD_CONFIG, "the line is longer than %d bytes or holds a NUL",
                  LINE_MAX_BYTES - 2);
        fail(reader);
        return NULL;
    }
    return trim(reader->text);
}

/*
 * inih reads its lines here, and gets an empty line for all that is no setting of ours.  The other
 * sections are in libmariadb's dialect, which differs in names without a value, colons and indented
 * lines.
 */
static char *next_line(char *to, int space, void *context)
{
    struct reader *reader = context;
    char *line = reader->status == TL_OK ? read_line(reader) : NULL;

    if (line == NULL)
        return NULL;
    to[0] = '\0';
    if (line[0] == '\0' || line[0] == '#' || line[0] == ';')
        return to;
    if (line[0] == '!') {
        error_set(TL_BAD_CONFIG, "!include is not followed; write the settings here");
        fail(reader);
    } else if (line[0] == '[')
        enter_section(reader, line);
    else if (reader->section == SECTION_NONE) {
        error_set(TL_BAD_CONFIG, "there is no section before this line; [tradelock] or "
                                 "[tradelock-client] must come first");
        fail(reader);
    } else if (reader->section != SECTION_SETTINGS && reader->section != SECTION_PLUGIN)
        check_client_line(reader, line);
    else if (strchr(line, '=') == NULL) {
        error_set(TL_BAD_CONFIG, "'%.40s' is not of the form name = value", line);
        fail(reader);
    } else if (reader->section == SECTION_SETTINGS && !text_copy(to, (size_t)space, line)) {
        error_set(TL_BAD_CONFIG, "the line is longer than %d bytes", space - 1);
        fail(reader);
    }
    return reader->status == TL_OK ? to : NULL;
}

static void unknown_setting(struct reader *reader, const char *name)
{
    const char *names[CONFIG_SETTINGS];

    for (size_t i = 0; i < CONFIG_SETTINGS; i++)
        names[i] = config_settings[i].name;
    const char *near = text_nearest(name, names, CONFIG_SETTINGS);
    if (near != NULL)
        error_set(TL_BAD_CONFIG, "unknown setting '%s'; did you mean '%s'?", name, near);
    else
        error_set(TL_BAD_CONFIG, "unknown setting '%s'", name);
    fail(reader);
}

/* Takes one pair of quotes off, as libmariadb does in the same file.  0: one of the two is
 * missing. */
static int unquote(char *value)
{
    size_t size = strlen(value);
    char first = value[0];
    char last = size > 0 ? value[size - 1] : '\0';

    if (first != '"' && first != '\'' && last != '"' && last != '\'')
        return 1;
    if (size < 2 || first != last)
        return 0;
    memmove(value, value + 1, size - 2);
    value[size - 2] = '\0';
    return 1;
}

/* inih calls this for each setting. */
static int take_setting(void *context, const char *ini_section, const char *name, const char *text)
{
    struct reader *reader = context;
    char value[LINE_MAX_BYTES];
    size_t i;

    (void)ini_section; /* next_line() lets one section through only */
    for (i = 0; i < CONFIG_SETTINGS; i++)
        if (strcmp(config_settings[i].name, name) == 0)
            break;
    if (i == CONFIG_SETTINGS) {
        unknown_setting(reader, name);
        return 0;
    }
    text_copy(value, sizeof(value), text);
    if (reader->lines[i] != 0) {
        error_set(TL_BAD_CONFIG, "%s: was already set in line %u", name, reader->lines[i]);
        fail(reader);
    } else if (!unquote(value)) {
        error_set(TL_BAD_CONFIG, "%s: a quote has no counterpart", name);
        fail(reader);
    } else if (config_set(&reader->config, &config_settings[i], value) != TL_OK)
        fail(reader);
    reader->lines[i] = reader->line;
    return reader->status == TL_OK;
}

/* On which line this field's setting stands; 0: on none. */
static unsigned line_of(const struct reader *reader, size_t field)
{
    size_t i = 0;

    while (config_settings[i].offset != field)
        i++;
    return reader->lines[i];
}

/* Fails with a sentence about two settings, at the line of the later one. */
static void place_at(struct reader *reader, size_t first_field, size_t second_field)
{
    const unsigned first = line_of(reader, first_field), second = line_of(reader, second_field);

    reader->line = first > second ? first : second;
    fail(reader);
}

static void check_together(struct reader *reader)
{
    const struct config *config = &reader->config;
    char first[CONFIG_DURATION_TEXT], second[CONFIG_DURATION_TEXT];

    if (config->session_ms < 3 * config->beat_ms) {
        error_set(TL_BAD_CONFIG, "session_ms: %s is less than three beats (beat_ms) of %s",
                  config_duration(first, config->session_ms),
                  config_duration(second, config->beat_ms));
        place_at(reader, offsetof(struct config, session_ms), offsetof(struct config, beat_ms));
    } else if (config->ask_wait_max_ms < config->ask_wait_min_ms) {
        error_set(TL_BAD_CONFIG, "ask_wait_max_ms: %s is less than ask_wait_min_ms, %s",
                  config_duration(first, config->ask_wait_max_ms),
                  config_duration(second, config->ask_wait_min_ms));
        place_at(reader, offsetof(struct config, ask_wait_max_ms),
                 offsetof(struct config, ask_wait_min_ms));
    } else if (config->log_cust == CONFIG_CUST_HASHED &&
               strlen(config->log_cust_key) < CUST_KEY_LEAST) {
        error_set(TL_BAD_CONFIG, "log_cust: hashed wants a log_cust_key of %d characters or more",
                  CUST_KEY_LEAST);
        place_at(reader, offsetof(struct config, log_cust), offsetof(struct config, log_cust_key));
    } else if (strlen(config->log_cust_key) >= CUST_KEY_LEAST && !reader->from.is_private &&
               line_of(reader, offsetof(struct config, log_cust_key)) != 0) {
        error_set(TL_BAD_CONFIG,
                  "log_cust_key: others than the file's owner can read or write it (mode %04o); "
                  "chmod 600 it",
                  (unsigned)(reader->from.mode & 07777));
        place_at(reader, offsetof(struct config, log_cust_key),
                 offsetof(struct config, log_cust_key));
    }
}

const char *config_variable(const char *name)
{
    char variable[64] = "TRADELOCK_";

    text_add(variable, sizeof variable, name);
    for (char *at = variable; *at != '\0'; at++)
        *at = (char)(*at == '-' ? '_' : toupper((unsigned char)*at));
    return secure_getenv(variable);
}

/* What the environment sets counts above the file. */
static void take_environment(struct reader *reader)
{
    for (size_t i = 0; i < CONFIG_SETTINGS && reader->status == TL_OK; i++) {
        const char *value = config_variable(config_settings[i].name);

        if (value == NULL)
            continue;
        reader->line = reader->lines[i] = 0;
        if (config_set(&reader->config, &config_settings[i], value) != TL_OK)
            fail(reader);
    }
}

static int has_section(const struct reader *reader, const char *shard)
{
    char wanted[CONFIG_SHARD_MAX + 4];

    snprintf(wanted, sizeof wanted, "\n-%s\n", shard);
    return strstr(text_buffer_text(&reader->sections), wanted) != NULL;
}

/* Without its section a shard would be the same database as another one. */
static void check_shards(struct reader *reader)
{
    const struct config *config = &reader->config;
    const size_t fleet = offsetof(struct config, fleet), shards = offsetof(struct config, shards);

    if ((config->fleet[0] != '\0') != (config->shards.count > 0)) {
        error_set(TL_BAD_CONFIG, config->shards.count > 0
                                     ? "shards: the fleet has no name; set fleet besides"
                                     : "fleet: no shards are named; set shards besides");
        place_at(reader, fleet, shards);
        return;
    }
    for (unsigned i = 0; i < config->shards.count && reader->status == TL_OK; i++)
        if (!has_section(reader, config->shards.name[i])) {
            error_set(TL_BAD_CONFIG, "shards: section [" OWN_GROUP "-%s] is missing",
                      config->shards.name[i]);
            place_at(reader, shards, shards);
        }
}

tl_status config_file_open(struct config_file *out, const char *what, const char *file)
{
    struct stat about;
    char resolved[TL_PATH];
    int fd;

    if (writers_check(file, 1, resolved) != TL_OK)
        return error_prefix(TL_BAD_CONFIG, "%s", what);
    fd = open(resolved, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0) {
        error_set(TL_BAD_CONFIG, "%s: %s cannot be opened: %s", file, what, strerrordesc_np(errno));
        if (fd >= 0)
            close(fd);
        return TL_BAD_CONFIG;
    }
    out->stream = fdopen(fd, "r");
    if (out->stream == NULL) {
        close(fd);
        return error_set(TL_NO_MEMORY, "%s: out of memory", file);
    }
    out->mode = about.st_mode;
    out->is_private = is_private(&about);
    return TL_OK;
}

static tl_status read_file(struct reader *reader, const char *file)
{
    tl_status status = config_file_open(&reader->from, "the settings file", file);
    int first_bad;

    if (status != TL_OK)
        return status;
    first_bad = ini_parse_stream(next_line, reader, take_setting, reader);
    fclose(reader->from.stream);
    explicit_bzero(reader->text, sizeof(reader->text)); /* it may have held a password */
    if (reader->status == TL_OK && first_bad != 0) {
        reader->line = first_bad > 0 ? (unsigned)first_bad : reader->line;
        error_set(TL_BAD_CONFIG, "is not of the form name = value");
        fail(reader);
    }
    return reader->status;
}

tl_status config_load(struct config *config, const char *file)
{
    return config_load_for(config, file, NULL);
}

tl_status config_load_for(struct config *config, const char *file, const char *suffix)
{
    struct reader reader = {.status = TL_OK, .suffix = suffix != NULL ? suffix : ""};

    if (file == NULL || (file[0] == '\0' && config_variable("host") == NULL))
        return error_set(TL_BAD_CONFIG,
                         "no settings file was named, nor a server in $TRADELOCK_HOST");
    config_defaults(&reader.config);
    text_buffer_init(&reader.sections);
    text_buffer_append_text(&reader.sections, "\n");
    reader.file = config_file_name(file);
    if (file[0] != '\0')
        reader.status = read_file(&reader, file);
    if (reader.status == TL_OK && reader.suffix[0] != '\0' && !reader.suffix_found)
        reader.status = error_set(TL_BAD_CONFIG, "%s: section [" OWN_GROUP "%s] is missing",
                                  reader.file, suffix);
    if (reader.status == TL_OK)
        take_environment(&reader);
    if (reader.status == TL_OK)
        check_together(&reader);
    if (reader.status == TL_OK && reader.sections.failed)
        reader.status = error_set(TL_NO_MEMORY, "%s: out of memory", reader.file);
    if (reader.status == TL_OK)
        check_shards(&reader);
    text_buffer_free(&reader.sections);
    if (reader.status == TL_OK)
        *config = reader.config;
    return reader.status;
}

void config_defaults(struct config *config)
{
    memset(config, 0, sizeof(*config));
    for (size_t i = 0; i < CONFIG_SETTINGS; i++)
        config_set(config, &config_settings[i], config_settings[i].initial);
}

static void list_shards(char *to, size_t space, const struct config_shards *shards)
{
    text_copy(to, space, "");
    for (unsigned i = 0; i < shards->count; i++) {
        text_add(to, space, i > 0 ? ", " : "");
        text_add(to, space, shards->name[i]);
    }
}

tl_status config_find_shard(const struct config *config, const char *file, const char *shard,
                            size_t *at)
{
    char list[256];

    file = config_file_name(file);
    list_shards(list, sizeof list, &config->shards);
    if (shard == NULL)
        return error_set(TL_BAD_CONFIG,
                         "%s: this is the file of fleet %s: one of its shards has to "
                         "be named: %s",
                         file, config->fleet, list);
    for (size_t i = 0; i < config->shards.count; i++)
        if (strcmp(config->shards.name[i], shard) == 0) {
            *at = i;
            return TL_OK;
        }
    if (config->shards.count == 0)
        return error_set(TL_BAD_CONFIG, "%s: there is no shard '%.40s': this file names none", file,
                         shard);
    return error_set(TL_BAD_CONFIG, "%s: there is no shard '%.40s': fleet %s has %s", file, shard,
                     config->fleet, list);
}

int tl_log_is_json(const char *config_file)
{
    const char *variable = config_variable("log_format");
    struct config config;
    int is_json = variable != NULL && strcmp(variable, "json") == 0;

    if (config_load(&config, config_file) == TL_OK)
        is_json = config.log_format;
    error_clear();
    return is_json;
}

void config_policy(tl_policy *policy, const struct config *config)
{
    memset(policy, 0, sizeof(*policy));
    policy->max_hold_ms = config->max_hold_ms;
    policy->execute_ms = config->execute_ms;
    policy->commit_ms = config->commit_ms;
    policy->deadline_ms = config->deadline_ms;
    policy->grace_ms = config->grace_ms;
    memcpy(policy->schedule_ms, config->schedule.step_ms, sizeof(policy->schedule_ms));
    policy->schedule_count = config->schedule.count;
    policy->attempts = config->attempts;
    policy->poison = config->poison;
    policy->clock_margin_ms = config->clock_margin_ms;
}

tl_status config_load_policy(tl_policy *policy, const char *file)
{
    struct config config;
    tl_status status = config_load(&config, file);

    if (status == TL_OK)
        config_policy(policy, &config);
    return status;
}
