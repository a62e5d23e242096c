#include "fields.h"

#include "support/server.h"

#include "support/theme.h"

void fields_add(json_t *set, json_t *document)
{
    const char *name;
    json_t *value;
    size_t i;

    json_object_foreach(document, name, value)
    {
        json_object_set_new(set, name, json_true());
        fields_add(set, value);
    }
    json_array_foreach(document, i, value) fields_add(set, value);
}

static void read_readme(char **text)
{
    char path[512];
    size_t space = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/tools/README.md", test_source_dir());
    file = fopen(path, "re");
    *text = NULL;
    if (file == NULL || getdelim(text, &space, '\0', file) < 0)
        server_panic("%s cannot be read", path);
    fclose(file);
}

/* The words between back-ticks of one section, which ends at the next comment. */
static void add_listed(json_t *set, const char *name)
{
    char marker[64], *text, *from, *end, *piece;

    read_readme(&text);
    snprintf(marker, sizeof marker, "<!-- json %s -->", name);
    from = strstr(text, marker);
    end = from != NULL ? strstr(from + 1, "<!-- ") : NULL;
    if (end == NULL)
        server_panic("tools/README.md has no section %s that ends", marker);
    *end = '\0';
    /* Every second piece stands between two of them. */
    for (unsigned i = 0; (piece = strsep(&from, "`")) != NULL; i++)
        if (i % 2 == 1)
            json_object_set_new(set, piece, json_true());
    free(text);
}

/* Of "show+row", those of both sections. */
static json_t *listed_fields(const char *names)
{
    char copy[64], *rest = copy, *name;
    json_t *set = json_object();

    snprintf(copy, sizeof copy, "%s", names);
    while ((name = strsep(&rest, "+")) != NULL)
        add_listed(set, name);
    return set;
}

static unsigned missing(json_t *from, json_t *in, const char *name, const char *what)
{
    unsigned count = 0;
    const char *field;
    json_t *value;

    json_object_foreach(from, field, value)
    {
        if (json_object_get(in, field) == NULL) {
            print_error("%s: `%s` is %s\n", name, field, what);
            count++;
        }
    }
    return count;
}

void fields_expect(json_t *set, const char *name)
{
    json_t *listed = listed_fields(name);
    unsigned wrong = missing(set, listed, name, "printed and not listed") +
                     missing(listed, set, name, "listed and not printed");

    json_decref(listed);
    assert_int_equal(wrong, 0);
    assert_true(json_object_size(set) > 0);
}

void fields_expect_more(json_t *set, const char *name, const char *more)
{
    json_t *listed = listed_fields(name), *added = listed_fields(more);
    unsigned wrong = missing(added, set, more, "listed and not printed");

    json_object_update(listed, added);
    wrong += missing(set, listed, more, "printed and not listed");
    json_decref(added);
    json_decref(listed);
    assert_int_equal(wrong, 0);
}
