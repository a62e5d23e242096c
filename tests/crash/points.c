#include "points.h"

#include "support/theme.h"

static unsigned nth_of(const points *self, const point *seen)
{
    unsigned nth = 1;

    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->list[i].name, seen->name) == 0 &&
            strcmp(self->list[i].when, seen->when) == 0 && self->list[i].nth >= nth)
            nth = self->list[i].nth + 1;
    return nth;
}

static void add(points *self, const point *seen, unsigned nth_max)
{
    point found = *seen, *larger;

    found.nth = nth_of(self, seen);
    if (found.nth > nth_max)
        return;
    larger = realloc(self->list, (self->count + 1) * sizeof *self->list);
    assert_non_null(larger);
    self->list = larger;
    self->list[self->count++] = found;
}

static void count(points *self, const point *seen)
{
    if (strcmp(seen->when, "before") != 0)
        return;
    if (strcmp(seen->kind, "connect") == 0)
        self->connects++;
    else if (strcmp(seen->kind, "http") == 0)
        self->calls++;
    else if (strcmp(seen->kind, "callback") == 0)
        self->callbacks++;
    else
        self->statements++;
}

void points_read(points *self, const char *path, unsigned nth_max)
{
    FILE *file = fopen(path, "re");
    char line[512];

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        point seen = {.nth = 0};

        assert_int_equal(
            sscanf(line, "%*d\t%*u\t%15[^\t]\t%63[^\t]\t%7[^\n]", seen.kind, seen.name, seen.when),
            3);
        count(self, &seen);
        add(self, &seen, nth_max);
    }
    fclose(file);
    assert_true(self->count > 0);
}

void points_free(points *self)
{
    free(self->list);
    memset(self, 0, sizeof *self);
}

void point_environment(const point *self, char only[96], char kill[32])
{
    snprintf(only, 96, "TL_FAULT_ONLY=%s/%s", self->name, self->when);
    snprintf(kill, 32, "TL_FAULT_KILL=%u", self->nth);
}

static const char of_these[] =
    "mysql.general_log WHERE thread_id NOT IN (%s) AND argument NOT LIKE 'INSERT INTO "
    "%%\\_log%%' AND argument NOT LIKE 'INSERT INTO trade\\_lock\\_past%%' AND "
    "argument NOT LIKE 'SET GLOBAL general\\_log%%'";

void points_seen(MYSQL *sql, const char *others, long long *connects, long long *statements)
{
    char from[512];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_true(snprintf(from, sizeof from, of_these, others) < (int)sizeof from);
#pragma GCC diagnostic pop
    *connects = database_number(sql, "SELECT COUNT(*) FROM %s AND command_type = 'Connect'", from);
    *statements = database_number(
        sql, "SELECT COUNT(*) FROM %s AND command_type IN ('Query', 'Execute')", from);
}

long long points_asked(MYSQL *sql)
{
    return database_number(sql, "SELECT g.variable_value - s.variable_value FROM "
                                "information_schema.global_status g JOIN "
                                "information_schema.session_status s USING (variable_name) WHERE "
                                "variable_name = 'Questions'");
}

void points_show(MYSQL *sql, const char *others)
{
    char from[512], *all;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(from, sizeof from, of_these, others);
#pragma GCC diagnostic pop
    all = database_text(sql,
                        "SELECT GROUP_CONCAT(thread_id, ' ', command_type, ' ', "
                        "LEFT(argument, 60) ORDER BY event_time SEPARATOR '\n') FROM %s "
                        "AND command_type IN ('Query', 'Execute')",
                        from);
    /* Past cmocka, which cuts what is long. */
    fprintf(stderr, "%s\n", all != NULL ? all : "nothing");
    free(all);
}
