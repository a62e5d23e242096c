/*
 * tradelock fleet: a database becomes a shard, the slots of all shards, moving one, and removing
 * what it left behind.
 *
 * It goes by the settings file, which names the shards, and by what each database says; which shard
 * a slot is moved from is read from all of them.
 */
#include "command.h"

#include "fleet.h"
#include "fleet_map.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLES_MAX 64
#define WAIT_MS (INT64_C(5) * 60 * 1000)

struct said {
    const char *slots, *cust, *to, *reason, *actor, *at;
    const char *tables[TABLES_MAX];
    size_t tables_count;
    int64_t wait_ms;
    int back, has_yes;
    uint64_t yes;
};

static int refuse(const char *sentence, const char *name)
{
    fprintf(stderr, "tradelock: %s%s\n", sentence, name);
    return EXIT_REFUSED;
}

/* ------------------------------------------------------------------------- joining -- */

static int read_slot(const char **at, unsigned long *slot)
{
    char *end;

    if (**at < '0' || **at > '9')
        return 0;
    *slot = strtoul(*at, &end, 10);
    *at = end;
    return *slot < TL_FLEET_SLOTS;
}

/* 0-511,600 */
static int read_slots(const char *text, unsigned char *slots)
{
    for (;;) {
        unsigned long first, last;

        if (!read_slot(&text, &first))
            return 0;
        last = first;
        if (*text == '-') {
            text++;
            if (!read_slot(&text, &last))
                return 0;
        }
        if (last < first)
            return 0;
        memset(slots + first, 1, last - first + 1);
        if (*text == '\0')
            return 1;
        if (*text++ != ',')
            return 0;
    }
}

static int open_all(tl_client **clients, unsigned flags)
{
    for (size_t i = 0; i < fleet_size(); i++) {
        clients[i] = fleet_client(i, flags);
        if (clients[i] == NULL)
            return fleet_code(EXIT_DONE, EXIT_DONE);
    }
    return EXIT_DONE;
}

static int join(const struct said *said, char **operands)
{
    unsigned char slots[TL_FLEET_SLOTS] = {0};
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
    tl_fleet_joined joined = {0};
    tl_client **clients = calloc(fleet_size(), sizeof *clients);
    const size_t own = fleet_shard_of(operands[1]);
    tl_status status;
    int code;

    joining.fleet = operands[0];
    joining.shard = operands[1];
    joining.reason = said->reason;
    if (said->slots != NULL) {
        (void)read_slots(said->slots, slots);
        joining.slots = slots;
    }
    code = clients != NULL ? open_all(clients, TL_CLIENT_NO_SCHEMA) : EXIT_INTERNAL;
    if (code == EXIT_DONE) {
        status = tl_fleet_join(clients, fleet_size(), own, &joining, &joined);
        code = status == TL_OK ? EXIT_DONE : report(status);
    }
    free(clients);
    if (code != EXIT_DONE)
        return code;
    if (common.json)
        return print_json(json_pack("{s:s, s:s, s:i, s:i, s:i}", "fleet", joining.fleet, "shard",
                                    joining.shard, "taken", (int)joined.taken, "owned",
                                    (int)joined.owned, "made", (int)joined.made),
                          EXIT_DONE);
    printf("The database is shard %s of fleet %s: it owns %u slots, %u of them since now.\n"
           "Accounts read the slots after `tradelock migrate --grants --shard %s`.\n",
           joining.shard, joining.fleet, joined.owned, joined.taken, joining.shard);
    return finish_output(EXIT_DONE);
}

/* The fleet's name in the settings, since clients will compare it with what is written now. */
static int check_join(const struct said *said, int operands, char **names)
{
    unsigned char slots[TL_FLEET_SLOTS];
    char fleet[TL_FLEET_NAME_MAX + 1];
    tl_status status;

    if (operands != 2)
        return usage_error("join takes two operands: FLEET SHARD");
    if (said->to != NULL || said->cust != NULL || said->tables_count > 0 || said->back ||
        said->at != NULL || said->has_yes)
        return usage_error("join takes --slots and --reason alone");
    if (said->slots != NULL && !read_slots(said->slots, slots))
        return usage_error("--slots is a list of slots from 0 to %d, as 0-511,600, not %s",
                           TL_FLEET_SLOTS - 1, said->slots);
    status = tl_fleet_named(command_config(), fleet);
    if (status != TL_OK)
        return report(status);
    if (strcmp(fleet, names[0]) != 0)
        return usage_error("the settings are of fleet %s, not of %s", fleet, names[0]);
    if (fleet_shard_of(names[1]) == FLEET_NOBODY)
        return usage_error("the settings name no shard %s", names[1]);
    return EXIT_DONE;
}

/* ---------------------------------------------------------------------------- a list -- */

static int is_same(const struct fleet_slot *a, const struct fleet_slot *b)
{
    return a->state == b->state && a->version == b->version && strcmp(a->other, b->other) == 0;
}

static void add_range(struct table *table, json_t *rows, size_t shard, unsigned first,
                      unsigned last, const struct fleet_slot *slot)
{
    char range[24], version[24];

    snprintf(range, sizeof range, first == last ? "%u" : "%u-%u", first, last);
    snprintf(version, sizeof version, "%llu", (unsigned long long)slot->version);
    table_add(table, range, fleet_slot_word(slot->state), version, slot->other);
    json_array_append_new(
        rows, json_pack("{s:s, s:i, s:i, s:s, s:I, s:o}", "shard", fleet_name(shard), "first",
                        (int)first, "last", (int)last, "state", fleet_slot_word(slot->state),
                        "version", (json_int_t)slot->version, "other", json_text(slot->other)));
}

static void add_shard(struct table *table, json_t *rows, size_t shard,
                      const struct fleet_slot *slots)
{
    fleet_go_to(shard); /* which the table tells */
    for (unsigned first = 0, last; first < TL_FLEET_SLOTS; first = last + 1) {
        last = first;
        while (last + 1 < TL_FLEET_SLOTS && is_same(&slots[first], &slots[last + 1]))
            last++;
        if (slots[first].state != 0)
            add_range(table, rows, shard, first, last, &slots[first]);
    }
}

static int list(void)
{
    struct fleet_map map = {.count = 0};
    struct table *table = table_new("SLOTS", "STATE", "VERSION", "OTHER", NULL);
    json_t *rows = json_array();
    int code = fleet_map_read(&map);

    for (size_t i = 0; i < map.count; i++)
        if (map.shard[i].told)
            add_shard(table, rows, i, map.shard[i].slot);
    fleet_map_free(&map);
    if (common.json) {
        code = print_json(fleet_document(json_pack("{s:o}", "slots", rows)), code);
    } else {
        table_print_or_say(table, "no shard has a slot");
        json_decref(rows);
        code = finish_output(code);
    }
    table_free(table);
    return code;
}

/* ---------------------------------------------------------------------------- moving -- */

static int tell(void *context, const char *step, const tl_slot_moved *moved)
{
    const struct said *said = context;

    if (strcmp(step, "agree") == 0)
        return !said->has_yes || said->yes != moved->in_the_way;
    if (strcmp(step, "unknown") == 0)
        fprintf(stderr, "only there: trade %s of customer %s (%s), %s\n", moved->serial_no,
                moved->cust_no, moved->op_code, moved->why);
    else if (common.json || strcmp(step, "waiting") == 0)
        return 0;
    else if (strcmp(step, "copied") == 0)
        fprintf(stderr, "copied: %s rows of %s customers\n", COUNT_TEXT(moved->rows),
                COUNT_TEXT(moved->customers));
    else
        fprintf(stderr, "%s\n", step);
    return 0;
}

/* Who let it go to `to`, the last time.  `after`: the next one that says so under that version; else
 * FLEET_NOBODY. */
static size_t let_go_to(const struct fleet_map *map, unsigned slot, size_t to, size_t after)
{
    size_t last = after;

    for (size_t i = after == FLEET_NOBODY ? 0 : after + 1; i < map->count; i++) {
        const struct fleet_slot *one = &map->shard[i].slot[slot];
        const uint64_t so_far = last != FLEET_NOBODY ? map->shard[last].slot[slot].version : 0;

        if (one->state != 'g' || fleet_shard_of(one->other) != to)
            continue;
        if (after != FLEET_NOBODY && one->version == so_far)
            return i;
        if (after == FLEET_NOBODY && one->version > so_far)
            last = i;
    }
    return after == FLEET_NOBODY ? last : FLEET_NOBODY;
}

/* From where the slot goes: its owner, or where it is leaving, or whoever let it go to `to`, which may
 * have forgotten in a restore that it arrived, or that it left before. */
static size_t source_of(const struct fleet_map *map, unsigned slot, size_t to)
{
    size_t owner = fleet_map_owner(map, slot);

    if (owner != FLEET_NOBODY && owner != to && map->shard[owner].slot[slot].state != 'a')
        return owner;
    if (fleet_map_has(map, to, slot) && !fleet_map_is_behind(map, to, slot))
        return FLEET_NOBODY;
    if (owner == to)
        return let_go_to(map, slot, to, FLEET_NOBODY);
    return map->shard[to].slot[slot].state == 'a' ? fleet_shard_of(map->shard[to].slot[slot].other)
                                                  : FLEET_NOBODY;
}

static int find_slot(const struct said *said, const char *operand, unsigned *slot)
{
    tl_status status;

    if (operand != NULL) {
        *slot = (unsigned)atoi(operand);
        return EXIT_DONE;
    }
    status = fleet_slots_of(&said->cust, 1, slot);
    return status == TL_OK ? EXIT_DONE : report(status);
}

static int print_moved(unsigned slot, size_t from, size_t to, const tl_slot_moved *moved)
{
    if (common.json)
        return print_json(json_pack("{s:i, s:s, s:s, s:I, s:I}", "slot", (int)slot, "from",
                                    fleet_name(from), "to", fleet_name(to), "customers",
                                    (json_int_t)moved->customers, "rows", (json_int_t)moved->rows),
                          EXIT_DONE);
    printf("Slot %u is at shard %s now.  What is left of it at shard %s counts for nothing, and\n"
           "goes with `tradelock fleet clean %u --at %s`.\n",
           slot, fleet_name(to), fleet_name(from), slot, fleet_name(from));
    return finish_output(EXIT_DONE);
}

/* Of several that let it go under one version all but one say so since they gave up what they had:
 * these have not all. */
static int move_from(const struct fleet_map *map, tl_slot_moving *moving, size_t from, size_t to)
{
    tl_client *source = fleet_client(from, 0),
              *target = source != NULL ? fleet_client(to, 0) : NULL;
    tl_slot_moved moved = {0};
    tl_status status;
    size_t next;

    if (target == NULL)
        return fleet_code(EXIT_DONE, EXIT_DONE);
    status = tl_slot_move(source, target, moving, &moved);
    next = status == TL_REFUSED && strcmp(moved.why, "removed") == 0
               ? let_go_to(map, moving->slot, to, from)
               : FLEET_NOBODY;
    if (next != FLEET_NOBODY)
        return move_from(map, moving, next, to);
    if (status == TL_OK || status == TL_ALREADY_DONE)
        return print_moved(moving->slot, from, to, &moved);
    return report(status);
}

/* Where it arrives and does not come any more, and where it is claimed as before it went on.  Asks
 * these shards alone, and each database compares for itself. */
static tl_status give_up(const struct fleet_map *map, const tl_slot_moving *moving, size_t owner,
                         json_t *shards)
{
    tl_status status = TL_OK;

    for (size_t i = 0; i < map->count && status == TL_OK; i++) {
        if (i == owner || !map->shard[i].told ||
            (map->shard[i].slot[moving->slot].state != 'a' &&
             !fleet_map_is_behind(map, i, moving->slot)))
            continue;
        status = tl_slot_give_up(fleet_client(owner, 0), fleet_client(i, 0), moving);
        if (status == TL_OK)
            json_array_append_new(shards, json_string(fleet_name(i)));
    }
    return status;
}

static int has_claims(const struct fleet_map *map, unsigned slot)
{
    for (size_t i = 0; i < map->count; i++)
        if (fleet_map_is_behind(map, i, slot))
            return 1;
    return 0;
}

/* To end what arrives the owner and that shard are enough (tl_slot_give_up): nobody comes to own the
 * slot.  Of one that leaves somebody does, and all must answer, as in a move. */
static int can_be_given_back(const struct fleet_map *map, unsigned slot, size_t owner)
{
    return owner != FLEET_NOBODY && map->shard[owner].told &&
           (!fleet_is_incomplete() || map->shard[owner].slot[slot].state != 'l');
}

static int take_back(const struct fleet_map *map, const tl_slot_moving *moving)
{
    const size_t from = fleet_map_owner(map, moving->slot);
    tl_client *client = can_be_given_back(map, moving->slot, from) ? fleet_client(from, 0) : NULL;
    json_t *shards = json_array();
    tl_status status = TL_OK;
    int code = EXIT_DONE;

    if (client == NULL)
        code =
            from == FLEET_NOBODY && !fleet_is_incomplete()
                ? refuse(fleet_map_owners(map, moving->slot) > 1
                             ? "the slot is owned by several shards under one version: `tradelock "
                               "audit` and operators first"
                             : "no shard is known to have the slot",
                         "")
                : fleet_code(EXIT_DONE, EXIT_DONE);
    else if (!fleet_map_has(map, from, moving->slot) ||
             fleet_map_is_behind(map, from, moving->slot))
        code = refuse("the slot was handed over: complete the move with --to ", fleet_name(from));
    else if (map->shard[from].slot[moving->slot].state != 'l')
        status = give_up(map, moving, from, shards);
    /* Nothing was given up: then there is nothing to be taken back either, which it says. */
    if (code == EXIT_DONE && status == TL_OK && json_array_size(shards) == 0) {
        status = tl_slot_take_back(client, moving);
        if (status == TL_OK)
            status = give_up(map, moving, from, shards);
    }
    if (status != TL_OK)
        code = report(status);
    if (code != EXIT_DONE) {
        json_decref(shards);
        return code;
    }
    if (common.json)
        return print_json(json_pack("{s:i, s:s, s:o}", "slot", (int)moving->slot, "owned_by",
                                    fleet_name(from), "given_up", shards),
                          EXIT_DONE);
    printf("Slot %u is owned by shard %s%s.\n", moving->slot, fleet_name(from),
           json_array_size(shards) == 0    ? " again"
           : has_claims(map, moving->slot) ? ", and by no other"
                                           : ", and arrives nowhere");
    json_decref(shards);
    return finish_output(EXIT_DONE);
}

/* Whoever answers may have gone back in time, in a restore: then what it says of a move that has begun
 * is long over, and a shard that is down may own the slot under a later version, and pay.  So all
 * are asked, also to complete one. */
static int move_in(const struct said *said, const struct fleet_map *map, tl_slot_moving *moving)
{
    const size_t to = said->to != NULL ? fleet_shard_of(said->to) : FLEET_NOBODY;
    size_t from;

    if (said->back)
        return take_back(map, moving);
    if (fleet_is_incomplete())
        return fleet_code(EXIT_DONE, EXIT_DONE);
    from = source_of(map, moving->slot, to);
    if (from == FLEET_NOBODY && map->shard[to].slot[moving->slot].state == 'o')
        return refuse("the slot is already at shard ", said->to);
    if (from == FLEET_NOBODY)
        return refuse("no shard is known to have the slot that goes to ", said->to);
    if (fleet_map_is_behind(map, from, moving->slot))
        return refuse("the slot was handed over once more: complete the move first --to ",
                      fleet_name(from));
    return move_from(map, moving, from, to);
}

static int move(struct said *said, const char *operand)
{
    tl_slot_moving moving = TL_SLOT_MOVING_INIT;
    struct fleet_map map = {.count = 0};
    int code = find_slot(said, operand, &moving.slot);

    if (code == EXIT_DONE) {
        (void)fleet_map_read(&map);
        moving.actor = said->actor;
        moving.reason = said->reason;
        moving.wait_ms = said->wait_ms >= 0 ? said->wait_ms : WAIT_MS;
        moving.tables = said->tables;
        moving.tables_count = said->tables_count;
        moving.progress = tell;
        moving.context = said;
        code = move_in(said, &map, &moving);
    }
    fleet_map_free(&map);
    return code;
}

static int check_slot(const char *what, const struct said *said, int operands, char **names)
{
    uint64_t slot;

    if (operands > 1 || (operands == 1) == (said->cust != NULL))
        return usage_error("%s takes a slot, or --cust", what);
    if (operands == 1 && !read_number(names[0], TL_FLEET_SLOTS - 1, &slot))
        return usage_error("a slot is a number from 0 to %d, not %s", TL_FLEET_SLOTS - 1, names[0]);
    if (said->slots != NULL)
        return usage_error("--slots is for join");
    return EXIT_DONE;
}

static int check_move(const struct said *said, int operands, char **names)
{
    const int code = check_slot("move", said, operands, names);

    if (code != EXIT_DONE)
        return code;
    if (said->at != NULL)
        return usage_error("--at is for clean");
    if (said->back && (said->to != NULL || said->tables_count > 0 || said->wait_ms >= 0))
        return usage_error("--back takes no --to, --table and --for");
    if (!said->back && said->to == NULL)
        return usage_error("--to is missing: the shard where the slot goes");
    if (said->to != NULL && fleet_shard_of(said->to) == FLEET_NOBODY)
        return usage_error("the settings name no shard %s", said->to);
    return needs_reason(said->reason);
}

/* -------------------------------------------------------------------------- cleaning -- */

struct cleaning {
    const struct said *said;
    unsigned slot;
    size_t at, owner;
    struct table *table;
    json_t *tables;
    int agreed;
};

static void take_table(void *context, const char *name, uint64_t rows)
{
    struct cleaning *c = context;

    table_add(c->table, name, COUNT_TEXT(rows));
    json_array_append_new(c->tables,
                          json_pack("{s:s, s:I}", "table", name, "rows", (json_int_t)rows));
}

static int agree_to_clean(void *context, const char *step, const tl_slot_moved *left)
{
    struct cleaning *c = context;

    if (strcmp(step, "counted") != 0 || left->rows == 0)
        return 0;
    if (!common.json) {
        printf("Would remove what slot %u left at shard %s: %s rows of %s customer%s\n\n", c->slot,
               fleet_name(c->at), COUNT_TEXT(left->rows), COUNT_TEXT(left->customers),
               left->customers == 1 ? "" : "s");
        table_print(c->table);
        fflush(stdout);
    }
    c->agreed = is_agreed(left->rows, "row", "remove", c->said->has_yes, c->said->yes);
    return !c->agreed;
}

static int print_cleaned(const struct cleaning *c, const tl_slot_moved *left, int code)
{
    if (common.json)
        return print_json(json_pack("{s:i, s:s, s:s, s:I, s:I, s:O, s:b}", "slot", (int)c->slot,
                                    "shard", fleet_name(c->at), "owned_by", fleet_name(c->owner),
                                    "customers", (json_int_t)left->customers, "rows",
                                    (json_int_t)left->rows, "tables", c->tables, "removed",
                                    c->agreed),
                          code);
    if (code == EXIT_DONE)
        printf("Nothing of slot %u is at shard %s any more; shard %s has it.\n", c->slot,
               fleet_name(c->at), fleet_name(c->owner));
    return finish_output(code);
}

static int clean_at(struct cleaning *c)
{
    tl_slot_cleaning cleaning = TL_SLOT_CLEANING_INIT;
    tl_slot_moved left = {0};
    tl_client *at = fleet_client(c->at, 0), *owner = at != NULL ? fleet_client(c->owner, 0) : NULL;
    tl_status status;

    if (owner == NULL)
        return fleet_code(EXIT_DONE, EXIT_DONE);
    cleaning.slot = c->slot;
    cleaning.actor = c->said->actor;
    cleaning.reason = c->said->reason;
    cleaning.each_table = take_table;
    cleaning.progress = agree_to_clean;
    cleaning.context = c;
    status = tl_slot_clean(at, owner, &cleaning, &left);
    if (status == TL_OK)
        return print_cleaned(c, &left, EXIT_DONE);
    /* Counted, and not agreed to. */
    return left.rows > 0 && !c->agreed ? print_cleaned(c, &left, EXIT_REFUSED) : report(status);
}

/* All are asked, as for a move: of two that own the slot nobody can tell which one has what. */
static int find_ends(struct cleaning *c, const struct fleet_map *map)
{
    const struct fleet_slot *slot = &map->shard[c->at].slot[c->slot];

    if (fleet_is_incomplete())
        return fleet_code(EXIT_DONE, EXIT_DONE);
    if (slot->state != 'g') {
        fprintf(stderr, "tradelock: slot %u is not gone from shard %s: it is '%s' there\n", c->slot,
                fleet_name(c->at), fleet_slot_word(slot->state));
        return EXIT_REFUSED;
    }
    if (fleet_map_owners(map, c->slot) > 1)
        return refuse("the slot is owned by several shards: first `tradelock fleet move --back`",
                      "");
    c->owner = fleet_map_owner(map, c->slot);
    return c->owner == FLEET_NOBODY || c->owner == c->at
               ? refuse("no shard is known to have the slot: what is left of it stays", "")
               : EXIT_DONE;
}

static int clean(const struct said *said, const char *operand)
{
    struct cleaning c = {.said = said,
                         .at = said->at != NULL ? fleet_shard_of(said->at) : FLEET_NOBODY};
    struct fleet_map map = {.count = 0};
    int code = find_slot(said, operand, &c.slot);

    if (code == EXIT_DONE) {
        (void)fleet_map_read(&map);
        code = find_ends(&c, &map);
    }
    fleet_by_pages(); /* the table is of one shard */
    if (code == EXIT_DONE) {
        c.table = table_new("TABLE", "ROWS", NULL);
        c.tables = json_array();
        code = clean_at(&c);
        table_free(c.table);
        json_decref(c.tables);
    }
    fleet_map_free(&map);
    return code;
}

static int check_clean(const struct said *said, int operands, char **names)
{
    const int code = check_slot("clean", said, operands, names);

    if (code != EXIT_DONE)
        return code;
    if (said->to != NULL || said->tables_count > 0 || said->wait_ms >= 0 || said->back)
        return usage_error("clean takes no --to, --table, --for and --back");
    if (said->at == NULL)
        return usage_error("--at is missing: the shard that the slot is gone from");
    if (fleet_shard_of(said->at) == FLEET_NOBODY)
        return usage_error("the settings name no shard %s", said->at);
    return needs_reason(said->reason);
}

/* ---------------------------------------------------------------------- the command -- */

static struct said request = {.wait_ms = -1};

static int take_table_name(const char *value, void *to)
{
    struct said *said = to;

    if (said->tables_count == TABLES_MAX)
        return usage_error("more than %d tables", TABLES_MAX);
    said->tables[said->tables_count++] = value;
    return EXIT_DONE;
}

static int operand_count;
static char **operands;

static int check(int argc, char **argv)
{
    operand_count = argc;
    operands = argv;
    return common.shard == NULL ? EXIT_DONE
                                : usage_error("fleet is about all shards, so it takes no --shard");
}

static int work(tl_client *client)
{
    struct said *said = &request;
    const char *what = operand_count > 0 ? operands[0] : "";
    const char *slot = operand_count > 1 ? operands[1] : NULL;
    int code;

    (void)client;
    if (!fleet_is())
        return usage_error("the settings name no shards: set fleet and shards in them");
    if (strcmp(what, "ls") == 0)
        return operand_count == 1 ? list() : usage_error("ls takes no operand");
    if (strcmp(what, "join") == 0) {
        code = check_join(said, operand_count - 1, operands + 1);
        return code == EXIT_DONE ? join(said, operands + 1) : code;
    }
    if (strcmp(what, "clean") == 0) {
        code = check_clean(said, operand_count - 1, operands + 1);
        return code == EXIT_DONE ? clean(said, slot) : code;
    }
    if (strcmp(what, "move") != 0)
        return usage_error("say what: join, ls, move or clean");
    code = check_move(said, operand_count - 1, operands + 1);
    return code == EXIT_DONE ? move(said, slot) : code;
}

static const struct command_option options[] = {
    {"slots LIST", "which slots, as 0-511,600 (all that nobody owns)", OPTION_TEXT,
     .to = &request.slots},
    {"cust CUST", "the slot of this customer", OPTION_TEXT, .to = &request.cust},
    {"to SHARD", "where it goes", OPTION_TEXT, .to = &request.to},
    {"table NAME", "a business table that goes along; may be repeated", OPTION_OTHER,
     .to = &request, .take = take_table_name},
    {"for TIME", "wait for so long until the slot is empty (5m)", OPTION_DURATION,
     .to = &request.wait_ms},
    {"back", "take it back instead", OPTION_FLAG, .to = &request.back},
    {"at SHARD", "where the slot is gone from", OPTION_TEXT, .to = &request.at},
    {"yes N",
     "clean: remove what is left, if it is N rows; move: go on, if\n"
     "N trades are known to a restored end alone",
     OPTION_NUMBER, .to = &request.yes, .given = &request.has_yes,
     .is = "the number of rows or trades"},
    OPTION_REASON_OF(&request.reason, WHY),
    OPTION_ACTOR_OF(&request.actor, "who does it (the login name)"),
    {.name = NULL}};

const struct command command_fleet = {
    .name = "fleet",
    .summary = "make a database a shard, list slots, move one, clean up after it",
    .arguments = "join FLEET SHARD [--slots LIST] [--reason TEXT]\n"
                 "       tradelock fleet ls [--json]\n"
                 "       tradelock fleet move SLOT|--cust CUST --to SHARD --reason TEXT\n"
                 "                 [--table NAME]... [--for TIME] [--yes N] [--actor NAME]\n"
                 "       tradelock fleet move SLOT|--cust CUST --back --reason TEXT [--yes N]\n"
                 "       tradelock fleet clean SLOT|--cust CUST --at SHARD --reason TEXT\n"
                 "                 [--yes N] [--actor NAME]",
    .text =
        "A customer belongs to one of 1024 slots, a slot to one shard.  `join` makes the\n"
        "database a shard, once: it owns the slots of --slots from then on, or all that no\n"
        "other shard of the settings owns, and refuses customers of all others.  All shards\n"
        "must answer; the databases have to be migrated.\n"
        "\n"
        "`move` has nothing begin for the customers of a slot, waits until what was begun has\n"
        "ended, copies their rows to the other shard, compares them, and hands over.  Until\n"
        "then services are told to try again later.  If the time is over before it is empty,\n"
        "it says what is in the way, and the slot stays.  Rows of business tables go along by\n"
        "their column cust_no, if --table names them, parents before children; services write\n"
        "no rows of these customers meanwhile.  When it is killed, the same command goes on;\n"
        "--back takes a slot back that has not been handed over, and has it arrive nowhere;\n"
        "a shard that was restored, and has a slot as before it let it go, has it no more.\n"
        "Trades that such a shard alone knows are told; --yes N says that there are N, and\n"
        "that they were compared with the channel.\n"
        "All shards must answer: one that is down may have the slot by now.\n"
        "\n"
        "`clean` removes what a slot left at a shard that it is gone from: lock rows, history,\n"
        "evidence, decisions, closings of findings, and the rows of the business tables that\n"
        "went along.  Another shard must own the slot by then.  It shows how many rows there\n"
        "are, and takes the number, typed on the terminal or by --yes; killed, it goes on with\n"
        "what is left when it is called again.\n"
        "\n"
        "It needs administrators' accounts at all shards.\n",
    .examples = "  tradelock fleet ls\n"
                "  tradelock fleet move 7 --to b --reason \"more room\"\n",
    .options = options,
    .check = check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
    .of_all_shards = 1,
};
