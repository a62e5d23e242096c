/* Reads from every shard which slots it has, and tells whose a customer is. */
#include "fleet_map.h"

#include "fleet.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ reading -- */

static int take_slot(void *context, const tl_slot_row *row)
{
    struct fleet_shard_slots *shard = context;

    if (row->slot < TL_FLEET_SLOTS) {
        struct fleet_slot *slot = &shard->slot[row->slot];

        slot->state = row->state[0];
        slot->version = row->version;
        snprintf(slot->other, sizeof slot->other, "%s", row->other);
    }
    return 0;
}

static int read_one(tl_client *client, void *context)
{
    struct fleet_map *map = context;
    struct fleet_shard_slots *shard = &map->shard[fleet_at()];
    char fleet[TL_FLEET_NAME_MAX + 1], name[TL_FLEET_NAME_MAX + 1];
    const tl_status status = tl_slot_list(client, fleet, name, take_slot, shard);

    shard->told = status == TL_OK;
    return fleet_told(status);
}

int fleet_map_read(struct fleet_map *map)
{
    map->count = fleet_size();
    map->shard = calloc(map->count, sizeof *map->shard);
    if (map->shard == NULL)
        out_of_memory();
    return fleet_each(0, read_one, map);
}

void fleet_map_free(struct fleet_map *map)
{
    free(map->shard);
    *map = (struct fleet_map){.count = 0};
}

/* ------------------------------------------------------------------- asking -- */

size_t fleet_shard_of(const char *name)
{
    for (size_t i = 0; i < fleet_size(); i++)
        if (strcmp(fleet_name(i), name) == 0)
            return i;
    return FLEET_NOBODY;
}

const char *fleet_slot_word(char state)
{
    switch (state) {
    case 'o':
        return "owned";
    case 'l':
        return "leaving";
    case 'g':
        return "gone";
    case 'a':
        return "arriving";
    default:
        return "none";
    }
}

size_t fleet_map_owner(const struct fleet_map *map, unsigned slot)
{
    tl_slot_claim *claims = calloc(map->count + 1, sizeof *claims);
    size_t owner;

    if (claims == NULL)
        out_of_memory();
    for (size_t i = 0; i < map->count; i++) {
        const struct fleet_slot *one = slot < TL_FLEET_SLOTS ? &map->shard[i].slot[slot] : NULL;

        claims[i].state = one != NULL && one->state != 0 ? fleet_slot_word(one->state) : "";
        claims[i].version = one != NULL ? one->version : 0;
        claims[i].other = one != NULL ? fleet_shard_of(one->other) : FLEET_NOBODY;
    }
    owner = tl_slot_owner(claims, map->count);
    free(claims);
    return owner;
}

int fleet_map_has(const struct fleet_map *map, size_t shard, unsigned slot)
{
    const char state = map->shard[shard].slot[slot].state;

    return state == 'o' || state == 'l';
}

int fleet_map_is_behind(const struct fleet_map *map, size_t shard, unsigned slot)
{
    const struct fleet_slot *own = &map->shard[shard].slot[slot];

    if (!fleet_map_has(map, shard, slot))
        return 0;
    for (size_t i = 0; i < map->count; i++) {
        const struct fleet_slot *one = &map->shard[i].slot[slot];

        if (one->state != 0 && one->state != 'a' && one->version > own->version)
            return 1;
    }
    return 0;
}

unsigned fleet_map_owners(const struct fleet_map *map, unsigned slot)
{
    unsigned owned = 0, leaving = 0;

    for (size_t i = 0; i < map->count; i++) {
        owned += map->shard[i].slot[slot].state == 'o';
        leaving += map->shard[i].slot[slot].state == 'l';
    }
    return owned + leaving > 1 ? owned + leaving : owned;
}

tl_status fleet_slots_of(const char *const *cust_nos, size_t count, unsigned *slots)
{
    for (size_t i = 0; i < fleet_size(); i++) {
        tl_client *client = fleet_client(i, 0);

        if (client != NULL)
            return tl_slots_of(client, cust_nos, count, slots);
    }
    return tl_error_report(TL_UNREACHABLE, "no shard can be asked");
}

/* ---------------------------------------------------------- one customer's -- */

static int say_nobody(const struct fleet_map *map, unsigned slot, const char *cust_no)
{
    const int incomplete = fleet_is_incomplete();

    fprintf(stderr, "tradelock: %s has slot %u of customer %s",
            incomplete ? "no shard that answers" : "no shard", slot, cust_no);
    for (size_t i = 0; i < map->count; i++)
        if (map->shard[i].slot[slot].state == 'g')
            fprintf(stderr, "; it went from %s to %s", fleet_name(i),
                    map->shard[i].slot[slot].other);
    fputc('\n', stderr);
    return incomplete ? fleet_code(EXIT_DONE, EXIT_DONE) : EXIT_REFUSED;
}

static int find_owner(size_t *owner, const char *cust_no)
{
    struct fleet_map map = {.count = 0};
    unsigned slot = 0;
    int code = EXIT_DONE;
    tl_status status;

    (void)fleet_map_read(&map);
    status = fleet_slots_of(&cust_no, 1, &slot);
    *owner = status == TL_OK ? fleet_map_owner(&map, slot) : FLEET_NOBODY;
    if (status != TL_OK)
        code = fleet_is_incomplete() ? fleet_code(EXIT_DONE, EXIT_DONE) : report(status);
    else if (*owner == FLEET_NOBODY)
        code = say_nobody(&map, slot, cust_no);
    fleet_map_free(&map);
    return code;
}

int fleet_owner(tl_client **client, const char *cust_no)
{
    size_t owner = 0;
    int code = fleet_is() ? find_owner(&owner, cust_no) : EXIT_DONE;

    if (code != EXIT_DONE)
        return code;
    *client = fleet_client(owner, 0);
    if (*client == NULL)
        return fleet_code(EXIT_DONE, EXIT_DONE);
    if (fleet_is())
        fleet_keep(owner);
    return EXIT_DONE;
}

/* --------------------------------------------------------------- statements -- */

static tl_status slots_of_payments(const tl_payment *payments, size_t count, unsigned *slots)
{
    const char **cust_nos = calloc(count + 1, sizeof *cust_nos);
    tl_status status = TL_OK;

    if (cust_nos == NULL)
        return tl_error_report(TL_NO_MEMORY, "out of memory for the payments");
    for (size_t i = 0; i < count; i++)
        cust_nos[i] = statement_names_customer(&payments[i]) ? payments[i].cust_no : "";
    status = fleet_slots_of(cust_nos, count, slots);
    for (size_t i = 0; status == TL_OK && i < count; i++)
        if (cust_nos[i][0] == '\0')
            slots[i] = TL_FLEET_SLOTS;
    free(cust_nos);
    return status;
}

/* What is of no shard at all is told by the first one, once. */
static size_t shard_of(const struct fleet_map *map, unsigned slot)
{
    const size_t owner = fleet_map_owner(map, slot);

    if (owner != FLEET_NOBODY)
        return owner;
    if (slot < TL_FLEET_SLOTS && fleet_is_incomplete())
        return map->count;
    for (size_t i = 0; i < map->count; i++)
        if (map->shard[i].told)
            return i;
    return map->count;
}

tl_status fleet_payments(const struct fleet_map *map, struct statement *statement, size_t *first)
{
    const size_t count = statement->count;
    unsigned *slots = calloc(count + 1, sizeof *slots);
    size_t *shards = calloc(count + 1, sizeof *shards);
    tl_status status = TL_OK;

    if (slots == NULL || shards == NULL)
        status = tl_error_report(TL_NO_MEMORY, "out of memory for the payments");
    if (status == TL_OK)
        status = slots_of_payments(statement->payments, count, slots);
    for (size_t i = 0; status == TL_OK && i < count; i++)
        shards[i] = shard_of(map, slots[i]);
    if (status == TL_OK && statement_sort(statement, shards, map->count + 1, first) != 0)
        status = tl_error_report(TL_NO_MEMORY, "out of memory for the payments");
    free(slots);
    free(shards);
    return status;
}
