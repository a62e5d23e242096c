/* Compares what the shards say of their slots and trades.  Reads only. */
#include "fleet_check.h"

#include "array_room.h"
#include "fleet.h"
#include "print.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 512
#define SENTENCE 1024

static void add_name(char *to, const char *name)
{
    const size_t size = strlen(to);

    snprintf(to + size, NAMES - size, "%s%s", size > 0 ? ", " : "", name);
}

/* ------------------------------------------------------------------- slots -- */

/* What is said of one slot, or of several in a row; rule "": nothing. */
struct said {
    const char *rule;
    char shards[NAMES], sentence[SENTENCE];
};

static void say_unowned(struct said *said, const struct fleet_map *map, unsigned slot)
{
    const size_t leaving = fleet_map_owner(map, slot);

    for (size_t i = 0; i < map->count; i++)
        if (map->shard[i].slot[slot].state != 0)
            add_name(said->shards, fleet_name(i));
    if (leaving != FLEET_NOBODY) {
        said->rule = "slot-moves";
        snprintf(
            said->sentence, sizeof said->sentence,
            "it is being moved, and nobody owns it meanwhile: if that was broken off, the same "
            "`tradelock fleet move` goes on");
        return;
    }
    if (fleet_is_incomplete())
        return;
    said->rule = "slot-nobody";
    snprintf(said->sentence, sizeof said->sentence,
             "no shard owns it: its customers are refused everywhere");
}

/* The one that has it was restored to before it let it go, and it came back. */
static void say_behind(struct said *said, const struct fleet_map *map, unsigned slot)
{
    for (size_t i = 0; i < map->count; i++)
        if (fleet_map_is_behind(map, i, slot)) {
            said->rule = "slot-behind";
            said->shards[0] = '\0';
            add_name(said->shards, fleet_name(i));
            snprintf(said->sentence, sizeof said->sentence,
                     "it lacks what others had and gave away since: complete the move to the shard "
                     "that it went to last, while a restore is open there");
        }
}

static void judge(struct said *said, const struct fleet_map *map, unsigned slot)
{
    const unsigned owners = fleet_map_owners(map, slot);

    *said = (struct said){.rule = ""};
    if (owners > 1) {
        said->rule = "slot-twice";
        for (size_t i = 0; i < map->count; i++)
            if (fleet_map_has(map, i, slot))
                add_name(said->shards, fleet_name(i));
        snprintf(
            said->sentence, sizeof said->sentence,
            "several shards own it, or have not let it go: a customer of it could be paid by each "
            "of them; `tradelock fleet move SLOT --back` ends a claim under an earlier version");
    } else if (owners == 0)
        say_unowned(said, map, slot);
    if (owners <= 1)
        say_behind(said, map, slot);
}

void fleet_check_slots(const struct fleet_map *map, fleet_finding_fn each, void *context)
{
    struct said now, next;

    judge(&next, map, 0);
    for (unsigned first = 0, slot = 0; slot < TL_FLEET_SLOTS; slot++) {
        now = next;
        next = (struct said){.rule = ""};
        if (slot + 1 < TL_FLEET_SLOTS)
            judge(&next, map, slot + 1);
        if (slot + 1 < TL_FLEET_SLOTS && strcmp(now.rule, next.rule) == 0 &&
            strcmp(now.shards, next.shards) == 0)
            continue;
        if (now.rule[0] != '\0') {
            const struct fleet_finding finding = {.rule = now.rule,
                                                  .first = first,
                                                  .last = slot,
                                                  .shards = now.shards,
                                                  .sentence = now.sentence};

            each(context, &finding);
        }
        first = slot + 1;
    }
}

/* ------------------------------------------------------------------- trades -- */

struct customer {
    char cust_no[TL_CUST_MAX + 1];
    unsigned slot;
};

struct search {
    const struct fleet_map *map;
    fleet_finding_fn each;
    void *context;
    size_t here; /* the shard whose customers are looked at */
    unsigned slot;
    struct customer *customer; /* those that may stand where they may not */
    size_t count;
    tl_status status;
    size_t failed; /* the shard that could not be asked */
    char why[SENTENCE];
};

/* Whether trades of the slot count at this shard: not what it gave away, nor what is being copied
 * to it. */
static int counts_at(const struct search *s, size_t shard, unsigned slot)
{
    const char state = s->map->shard[shard].slot[slot].state;

    return s->map->shard[shard].told && state != 'g' && state != 'a';
}

/* Whether the trades of its customers may stand at this shard where they may not. */
static int is_looked_at(const struct fleet_map *map, size_t shard, unsigned slot)
{
    return map->shard[shard].slot[slot].state == 0 ||
           (fleet_map_has(map, shard, slot) && fleet_map_owners(map, slot) > 1);
}

static int take_customer(void *context, const tl_slot_customer *one)
{
    struct search *s = context;

    if (one->slot >= TL_FLEET_SLOTS || !is_looked_at(s->map, s->here, one->slot))
        return 0;
    if (!array_room(&s->customer, s->count, sizeof *s->customer))
        out_of_memory();
    s->customer[s->count].slot = one->slot;
    snprintf(s->customer[s->count++].cust_no, sizeof s->customer->cust_no, "%s", one->cust_no);
    return 0;
}

static int see(void *context, const tl_view *view)
{
    (void)context;
    (void)view;
    return 0;
}

static void tell_trade(const struct search *s, const tl_key *key, size_t other)
{
    char shards[NAMES] = "";
    const struct fleet_finding finding = {
        .rule = other != FLEET_NOBODY ? "two-shards" : "stray",
        .first = s->slot,
        .last = s->slot,
        .key = key,
        .shards = shards,
        .sentence = other != FLEET_NOBODY
                        ? "it is on two shards, and none of them gave it away: it may be paid twice"
                        : "its customer's slot never was of this shard"};

    add_name(shards, fleet_name(s->here));
    if (other != FLEET_NOBODY)
        add_name(shards, fleet_name(other));
    s->each(s->context, &finding);
}

/* Two shards that both look at a customer tell of a trade once. */
static int compare_trade(void *context, const tl_view *view)
{
    struct search *s = context;
    const tl_key key = {view->serial_no, view->cust_no, view->op_code};
    int is_twice = 0;

    for (size_t other = 0; other < s->map->count; other++) {
        tl_status status = TL_NOT_FOUND;

        if (other != s->here && counts_at(s, other, s->slot))
            status = tl_show(fleet_client(other, 0), &key, TL_LANE_SYNC, see, NULL);
        if (status == TL_NOT_FOUND)
            continue;
        if (status != TL_OK) {
            s->failed = other;
            s->status = status;
            snprintf(s->why, sizeof s->why, "%s", tl_error_message());
            return 1;
        }
        is_twice = 1;
        if (other > s->here || !is_looked_at(s->map, other, s->slot))
            tell_trade(s, &key, other);
    }
    if (!is_twice && s->map->shard[s->here].slot[s->slot].state == 0)
        tell_trade(s, &key, FLEET_NOBODY);
    return 0;
}

static int look_at(tl_client *client, void *context)
{
    struct search *s = context;
    tl_status status;

    s->here = s->failed = fleet_at();
    s->status = TL_OK;
    s->count = 0;
    status = tl_slot_customers(client, take_customer, s);
    for (size_t i = 0; i < s->count && status == TL_OK && s->status == TL_OK; i++) {
        tl_filter filter = TL_FILTER_INIT;

        filter.cust = s->customer[i].cust_no;
        filter.lane = 'S';
        filter.limit = UINT_MAX;
        s->slot = s->customer[i].slot;
        status = tl_list(client, &filter, compare_trade, s);
    }
    if (s->status != TL_OK) {
        fleet_go_to(s->failed);
        status = tl_error_report(s->status, "%s", s->why);
    }
    return fleet_told(status);
}

int fleet_check_trades(const struct fleet_map *map, fleet_finding_fn each, void *context)
{
    struct search search = {.map = map, .each = each, .context = context};
    const int code = fleet_each(0, look_at, &search);

    free(search.customer);
    return code;
}
