/* Goes over the shards of a fleet: opens each, says which is missing, and names each in rows. */
#include "fleet.h"

#include "array_room.h"
#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MOST 32

struct shard {
    char name[NAME_MOST + 1]; /* "": the settings are of one database */
    tl_client *client;
    int missed; /* the exit code; 0: it told all it was asked for */
};

static struct fleet {
    const char *one; /* --shard; or NULL */
    struct shard *shard;
    size_t count, now; /* now == count: none */
    int is_one;        /* the others do not matter any more */
    int by_pages, headed;
    json_t *pages;
} fleet;

/* -------------------------------------------------------------------- which -- */

static int add(struct fleet *to, const char *name)
{
    if (!array_room(&to->shard, to->count, sizeof *to->shard))
        out_of_memory();
    to->shard[to->count] = (struct shard){.client = NULL};
    snprintf(to->shard[to->count].name, sizeof to->shard[0].name, "%s", name);
    to->now = ++to->count;
    return 0;
}

static int take(void *context, const char *name)
{
    return add(context, name);
}

int fleet_begin(const char *shard)
{
    const char *file = command_config();
    tl_status status = TL_OK;

    fleet_end();
    if (file == NULL)
        return EXIT_USAGE;
    fleet.one = shard;
    if (shard == NULL)
        status = tl_shards(file, take, &fleet);
    if (status == TL_OK && fleet.count == 0)
        add(&fleet, "");
    return status == TL_OK ? EXIT_DONE : report(status);
}

void fleet_end(void)
{
    for (size_t i = 0; i < fleet.count; i++)
        tl_client_close(fleet.shard[i].client);
    free(fleet.shard);
    json_decref(fleet.pages);
    fleet = (struct fleet){.count = 0};
}

int fleet_is(void)
{
    return fleet.count > 0 && !fleet.is_one && fleet.shard[0].name[0] != '\0';
}

int fleet_has_column(void)
{
    return fleet_is() && !fleet.by_pages;
}

void fleet_keep(size_t i)
{
    for (size_t other = 0; other < fleet.count; other++) {
        if (other != i) {
            tl_client_close(fleet.shard[other].client);
            fleet.shard[other].client = NULL;
        }
        fleet.shard[other].missed = 0;
    }
    fleet.is_one = 1;
    fleet.now = i;
}

const char *fleet_kept(void)
{
    return fleet.is_one && fleet.shard[fleet.now].name[0] != '\0' ? fleet.shard[fleet.now].name
                                                                  : NULL;
}

const char *fleet_now(void)
{
    return fleet_is() && fleet.now < fleet.count ? fleet.shard[fleet.now].name : NULL;
}

const char *fleet_said_by(void)
{
    static char text[NAME_MOST + 24];
    const char *name = fleet_now();

    if (name == NULL)
        return "tradelock: ";
    snprintf(text, sizeof text, "tradelock: shard %s: ", name);
    return text;
}

size_t fleet_at(void)
{
    return fleet.now;
}

size_t fleet_size(void)
{
    return fleet.count;
}

const char *fleet_name(size_t i)
{
    return fleet.shard[i].name;
}

void fleet_go_to(size_t i)
{
    fleet.now = i;
}

/* -------------------------------------------------------------------- going -- */

tl_client *fleet_client(size_t i, unsigned flags)
{
    struct shard *shard = &fleet.shard[i];
    const size_t was = fleet.now;

    if (shard->client != NULL || shard->missed != 0)
        return shard->client;
    fleet.now = i;
    shard->missed = open_client(&shard->client, shard->name[0] != '\0' ? shard->name : fleet.one,
                                TL_CLIENT_NO_SESSION | flags, "tradelock");
    fleet.now = was;
    return shard->client;
}

int fleet_each(unsigned flags, fleet_fn each, void *context)
{
    int code = EXIT_DONE;

    for (size_t i = 0; i < fleet.count; i++) {
        tl_client *client = fleet_client(i, flags);

        fleet.now = i;
        if (client != NULL && fleet.shard[i].missed == 0)
            code = fleet_code(code, each(client, context));
    }
    fleet.now = fleet.count;
    return fleet_code(code, EXIT_DONE);
}

int fleet_told(tl_status status)
{
    const int code = status == TL_OK ? EXIT_DONE : report(status);

    if (code != EXIT_DONE && fleet.now < fleet.count)
        fleet.shard[fleet.now].missed = code;
    return code;
}

int fleet_is_incomplete(void)
{
    for (size_t i = 0; i < fleet.count; i++)
        if (fleet.shard[i].missed != 0)
            return 1;
    return 0;
}

void fleet_forget(void)
{
    fleet.headed = 0;
    for (size_t i = 0; i < fleet.count; i++)
        fleet.shard[i].missed = 0;
}

static int weight(int code)
{
    switch (code) {
    case EXIT_DONE:
        return 0;
    case EXIT_REFUSED:
        return 1;
    case EXIT_OPEN:
        return 2;
    case EXIT_UNSAFE:
        return 3;
    default:
        return 4;
    }
}

int fleet_code(int code, int other)
{
    for (size_t i = 0; i < fleet.count; i++)
        if (fleet.shard[i].missed != 0)
            return fleet.shard[i].missed;
    return weight(other) > weight(code) ? other : code;
}

/* ------------------------------------------------------------------- output -- */

void fleet_by_pages(void)
{
    fleet.by_pages = 1;
}

void fleet_heading(void)
{
    if (!fleet_is())
        return;
    printf("%sShard %s\n\n", fleet.headed ? "\n" : "", fleet_now());
    fleet.headed = 1;
}

int fleet_page(json_t *document, int code)
{
    if (!fleet_is())
        return print_json(document, code);
    if (fleet.pages == NULL)
        fleet.pages = json_array();
    return json_array_append_new(fleet.pages, fleet_row(document)) == 0 ? code : EXIT_INTERNAL;
}

int fleet_print_pages(json_t *rest, int code)
{
    json_t *document = rest != NULL ? rest : json_object();

    if (!fleet_is()) {
        json_decref(document);
        return code;
    }
    json_object_set_new(document, "shards", fleet.pages != NULL ? fleet.pages : json_array());
    fleet.pages = NULL;
    return print_json(fleet_document(document), code);
}

json_t *fleet_row(json_t *row)
{
    const char *shard = fleet_kept() != NULL ? fleet_kept() : fleet_now();

    if (shard != NULL)
        json_object_set_new(row, "shard", json_string(shard));
    return row;
}

json_t *fleet_document(json_t *document)
{
    json_t *missing;

    if (!fleet_is())
        return document;
    missing = json_array();
    for (size_t i = 0; i < fleet.count; i++)
        if (fleet.shard[i].missed != 0)
            json_array_append_new(missing, json_string(fleet.shard[i].name));
    json_object_set_new(document, "missing", missing);
    return document;
}
