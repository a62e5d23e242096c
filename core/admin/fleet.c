/*
 * A database becomes a shard of a fleet.
 *
 * Whoever joins has the turn to migrate at every shard, so two that join at once do not take the
 * same slot.  The slots come first, then the triggers, and last the name: a join that was cut off
 * has refused nobody whose slot is here, and is run again.  A customer without a slot here may be
 * asked for until the triggers are there, so strangers are looked for before and after; if one came
 * meanwhile, the triggers go again.
 */
#include "admin/migrate.h"

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "client/read.h"
#include "client/shard.h"
#include "store/bind.h"
#include "store/record.h"
#include "store/server.h"

#include "sql_text.h"

#include <tradelock/admin/fleet.h>

#include <stdio.h>
#include <string.h>

#define SHARDS_MAX 64

struct joining {
    const tl_fleet_joining *said;
    tl_client *const *clients;
    size_t count, own;
    db *shards[SHARDS_MAX];
    char fleet[TL_FLEET_NAME_MAX + 1], shard[TL_FLEET_NAME_MAX + 1]; /* what the database is */
    unsigned char here[TL_FLEET_SLOTS];                              /* has a row; 2: owned */
    /* Which other shard has it, and what it is called. */
    unsigned char elsewhere[TL_FLEET_SLOTS];
    char digits[TL_FLEET_SLOTS + 1]; /* '1': it is to be here */
    tl_fleet_joined joined;
};

/* ------------------------------------------------------------------------ the slots -- */

static tl_status read_name(db *connection, char *fleet, char *shard)
{
    RESULT r = DB_RESULT_INIT;
    const db_answer answer = db_run(connection, &sql_fleet_of, NULL, 0, &r);

    fleet[0] = shard[0] = '\0';
    if (answer == DB_DONE && r.rows == 1 && !db_is_null(&r, 0, FLEET_OF_NAME)) {
        text_copy(fleet, TL_FLEET_NAME_MAX + 1, db_get_text(&r, 0, FLEET_OF_NAME));
        text_copy(shard, TL_FLEET_NAME_MAX + 1, db_get_text(&r, 0, FLEET_OF_SHARD));
    }
    return read_status(connection, answer, "reading which fleet this is of");
}

/* A slot that another shard had, and handed over, is not free: whoever got it may have lost it with
 * what was paid there. */
static void take_row(struct joining *j, size_t shard, const db_result *r, size_t row)
{
    const size_t slot = (size_t)db_get_uint(r, row, COLUMN_slot_list_slot);
    const int is_owned = strcmp(db_get_text(r, row, COLUMN_slot_list_state), "owned") == 0;

    if (slot >= TL_FLEET_SLOTS)
        return;
    if (shard == j->own)
        j->here[slot] = is_owned ? 2 : 1;
    else
        j->elsewhere[slot] = (unsigned char)(shard + 1);
}

static tl_status read_slots(struct joining *j, size_t shard)
{
    RESULT r = DB_RESULT_INIT;
    const db_answer answer = db_run(j->shards[shard], &sql_slot_list, NULL, 0, &r);

    for (size_t row = 0; answer == DB_DONE && row < r.rows; row++)
        take_row(j, shard, &r, row);
    return read_status(j->shards[shard], answer, "reading the slots of a shard");
}

static tl_status wants(struct joining *j, size_t slot)
{
    const int asked = j->said->slots != NULL && j->said->slots[slot] != 0;

    if (asked && j->here[slot] == 1)
        return error_set(TL_REFUSED,
                         "slot %zu was here and is not owned here now: `tradelock fleet move` "
                         "brings it back",
                         slot);
    if (asked && j->elsewhere[slot] != 0)
        return error_set(TL_REFUSED,
                         "slot %zu is another shard's, or was: `tradelock fleet move` moves it",
                         slot);
    if (j->here[slot] != 0 || (j->elsewhere[slot] == 0 && (asked || j->said->slots == NULL)))
        j->digits[slot] = '1';
    return TL_OK;
}

static tl_status choose(struct joining *j)
{
    for (size_t i = 0; i < j->count; i++)
        TRY(read_slots(j, i));
    memset(j->digits, '0', TL_FLEET_SLOTS);
    for (size_t slot = 0; slot < TL_FLEET_SLOTS; slot++)
        TRY(wants(j, slot));
    return TL_OK;
}

/* ---------------------------------------------------------------------- the database -- */

static tl_status look_for_strangers(struct joining *j)
{
    db *own = j->shards[j->own];
    RESULT r = DB_RESULT_INIT;
    const db_answer answer = SQL_RUN(own, &r, slot_strangers, .slots = db_text(j->digits));

    TRY(read_status(own, answer, "looking for customers of other slots"));
    if (r.rows > 0)
        return error_set(TL_REFUSED,
                         "customer %s has trades in this database and belongs to slot %s, which "
                         "is not among those that it would have",
                         db_get_text(&r, 0, 0),
                         db_is_null(&r, 0, 1) ? "NULL" : db_get_text(&r, 0, 1));
    return TL_OK;
}

static tl_status take_slots(struct joining *j)
{
    char json[TL_FLEET_SLOTS * 5 + 3] = "[";
    db *own = j->shards[j->own];
    size_t at = 1;
    db_answer answer = DB_DONE;

    for (size_t slot = 0; slot < TL_FLEET_SLOTS; slot++) {
        if (j->digits[slot] != '1')
            continue;
        if (j->here[slot] == 0) {
            at += (size_t)snprintf(json + at, sizeof json - at, "%s%zu", at > 1 ? "," : "", slot);
            j->joined.taken++;
        }
        j->joined.owned += j->here[slot] != 1;
    }
    snprintf(json + at, sizeof json - at, "]");
    if (j->joined.taken > 0)
        answer = SQL_RUN(own, NULL, slot_take, .slots = db_text(json),
                         .reason = db_text(j->said->reason != NULL ? j->said->reason : ""));
    return db_error_status(own, answer, "taking the slots");
}

static tl_status drop_triggers(db *own)
{
    for (size_t i = 0; i < sql_fleet_objects_count; i++) {
        char text[128];
        db_answer answer;

        if (strcmp(sql_fleet_objects[i].kind, "trigger") != 0)
            continue;
        snprintf(text, sizeof text, "DROP TRIGGER IF EXISTS %s", sql_fleet_objects[i].name);
        answer = db_run_script(own, "a trigger of a fleet", text);
        if (answer != DB_DONE)
            return db_error_status(own, answer, "dropping a trigger");
    }
    return TL_OK;
}

/* The rule alone: a database that nobody joined has it without harm. */
static tl_status make_rule(db *own)
{
    RESULT there = DB_RESULT_INIT;
    db_answer answer = db_run(own, &sql_migrate_objects, NULL, 0, &there);
    int has = 0;

    for (size_t row = 0; answer == DB_DONE && row < there.rows; row++)
        has |= strcmp(db_get_text(&there, row, 0), "function tl_customer_slot") == 0;
    for (size_t i = 0; i < sql_fleet_objects_count && answer == DB_DONE && !has; i++)
        if (strcmp(sql_fleet_objects[i].kind, "function") == 0)
            answer = db_run_script(own, "the rule of slots", sql_fleet_objects[i].text);
    return db_error_status(own, answer, "making the rule of slots");
}

/* The sentence says why it was refused. */
static tl_status take_back(db *own)
{
    char sentence[ERROR_MAX];

    text_copy(sentence, sizeof sentence, tl_error_message());
    TRY(drop_triggers(own));
    if (db_run(own, &sql_slot_untake, NULL, 0, NULL) != DB_DONE)
        TRY(db_error_status(own, DB_ERROR, "giving the slots back"));
    return error_set(TL_REFUSED, "%s", sentence);
}

/* Customers of other slots may have come until the triggers were there. */
static tl_status shut_out(struct joining *j)
{
    db *own = j->shards[j->own];
    tl_status status = migrate_fleet_objects(own, &j->joined.made);

    if (status != TL_OK || j->fleet[0] != '\0')
        return status;
    status = look_for_strangers(j);
    return status == TL_REFUSED ? take_back(own) : status;
}

static tl_status name_it(struct joining *j)
{
    db *own = j->shards[j->own];

    return db_error_status(own,
                           SQL_RUN(own, NULL, fleet_name, .fleet = db_text(j->said->fleet),
                                   .shard = db_text(j->said->shard)),
                           "naming the shard");
}

/* ---------------------------------------------------------------------------- names -- */

static tl_status check_name(const char *what, const char *name)
{
    size_t size;

    if (name == NULL || name[0] == '\0')
        return error_set(TL_INVALID, "the name of the %s is missing", what);
    size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    if (name[size] != '\0' || size > TL_FLEET_NAME_MAX)
        return error_set(TL_INVALID,
                         "the name of a %s has letters, digits, '-' and '_', %d at most, not '%s'",
                         what, TL_FLEET_NAME_MAX, name);
    return TL_OK;
}

static tl_status check(const struct joining *j)
{
    if (j->said == NULL || j->said->version != TL_FLEET_JOINING_VERSION)
        return error_set(TL_INVALID, "joining is NULL or its version is not set");
    if (j->clients == NULL || j->own >= j->count || j->count > SHARDS_MAX)
        return error_set(TL_INVALID, "a fleet has 1 to %d shards, of which one joins", SHARDS_MAX);
    TRY(check_name("fleet", j->said->fleet));
    TRY(check_name("shard", j->said->shard));
    if (j->said->reason != NULL)
        TRY(strlen(j->said->reason) > TL_REMARK_MAX
                ? error_set(TL_INVALID, "the reason is longer than %d bytes", TL_REMARK_MAX)
                : text_check_utf8("reason", j->said->reason));
    return TL_OK;
}

static tl_status check_is(const struct joining *j)
{
    if (j->fleet[0] == '\0')
        return TL_OK;
    if (strcmp(j->fleet, j->said->fleet) == 0 && strcmp(j->shard, j->said->shard) == 0)
        return TL_OK;
    return error_set(TL_REFUSED, "this database is shard %s of fleet %s already", j->shard,
                     j->fleet);
}

/* Before anybody's turn is taken, since one database has one turn.  A database that says nothing yet
 * has no name by which it could be told from another. */
static tl_status check_apart(const struct joining *j)
{
    char installations[SHARDS_MAX][SHARD_INSTALLATION];
    tl_status status = TL_OK;

    for (size_t i = 0; i < j->count && status == TL_OK; i++) {
        READ_REPEATED(status, shard_installation(j->clients[i], installations[i]));
        for (size_t k = 0; k < i && status == TL_OK; k++)
            if (installations[i][0] != '\0' && strcmp(installations[i], installations[k]) == 0)
                status = error_set(TL_BAD_CONFIG,
                                   "two of these shards lead to one database, or to a copy of it "
                                   "(installation %s)",
                                   installations[i]);
    }
    return status;
}

/* No other shard has the name, and none is of another fleet. */
static tl_status check_others(struct joining *j)
{
    char fleet[TL_FLEET_NAME_MAX + 1], shard[TL_FLEET_NAME_MAX + 1];
    tl_status status = read_name(j->shards[j->own], j->fleet, j->shard);

    if (status == TL_OK)
        status = check_is(j);
    for (size_t i = 0; i < j->count && status == TL_OK; i++) {
        if (i == j->own)
            continue;
        status = read_name(j->shards[i], fleet, shard);
        if (status != TL_OK || fleet[0] == '\0')
            continue;
        if (strcmp(fleet, j->said->fleet) != 0)
            status = error_set(TL_REFUSED, "one of the other databases is of fleet %s", fleet);
        else if (strcmp(shard, j->said->shard) == 0)
            status = error_set(TL_REFUSED, "another database is shard %s already", shard);
    }
    return status;
}

static tl_status join(struct joining *j)
{
    TRY(check_others(j));
    TRY(choose(j));
    TRY(make_rule(j->shards[j->own]));
    if (j->fleet[0] == '\0')
        TRY(look_for_strangers(j));
    TRY(take_slots(j));
    TRY(shut_out(j));
    return name_it(j);
}

tl_status tl_fleet_join(tl_client *const *shards, size_t count, size_t own,
                        const tl_fleet_joining *joining, tl_fleet_joined *joined)
{
    struct joining j = {.said = joining, .clients = shards, .count = count, .own = own};
    tl_status status;

    error_clear();
    status = check(&j);
    if (status == TL_OK)
        status = check_apart(&j);
    for (size_t i = 0; i < count && status == TL_OK; i++)
        status = migrate_take_turn(shards[i], &j.shards[i]);
    if (status == TL_OK)
        status = join(&j);
    for (size_t i = 0; i < count && i < SHARDS_MAX; i++)
        if (j.shards[i] != NULL)
            pool_close_extra(shards[i]->connections, j.shards[i]);
    if (status == TL_OK && joined != NULL)
        *joined = j.joined;
    return status;
}

tl_status tl_fleet_named(const char *config_file, char *fleet)
{
    struct config config;

    error_clear();
    if (config_file == NULL || fleet == NULL)
        return error_set(TL_INVALID, "config_file or fleet is NULL");
    TRY(config_load(&config, config_file));
    text_copy(fleet, TL_FLEET_NAME_MAX + 1, config.fleet);
    return TL_OK;
}

/* ----------------------------------------------------------------------------- a list -- */

#define AT(member) COLUMN_slot_list_##member

tl_status tl_slot_list(tl_client *client, char *fleet, char *shard, tl_slot_fn each, void *context)
{
    char its_fleet[TL_FLEET_NAME_MAX + 1] = "", its_shard[TL_FLEET_NAME_MAX + 1] = "";
    RESULT rows = DB_RESULT_INIT;
    const db_result *const result = &rows;
    READING at = {.client = client};
    tl_slot_row told, *to = &told;
    tl_status status;

    TRY(read_check_each(each != NULL));
    TRY(read_begin(&at));
    READ_REPEATED(status, read_name(at.connection, its_fleet, its_shard));
    if (status == TL_OK && its_fleet[0] != '\0')
        READ_REPEATED(status, read_run(at.connection, &sql_slot_list, &rows, "reading the slots"));
    read_end(&at);
    for (size_t row = 0; status == TL_OK && row < rows.rows; row++) {
        TL_SLOT_MAP(RECORD_READ)
        if (each(context, &told) != 0)
            break;
    }
    if (fleet != NULL)
        text_copy(fleet, TL_FLEET_NAME_MAX + 1, its_fleet);
    if (shard != NULL)
        text_copy(shard, TL_FLEET_NAME_MAX + 1, its_shard);
    return status;
}
