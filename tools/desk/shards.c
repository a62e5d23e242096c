/* Opens the shards of a session and finds customers, through tl_fleet.  Touches databases by the
 * library alone. */
#include "shards.h"

#include "log_print.h"
#include "print.h"
#include "sessions.h"

#include <tradelock/fleet.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Rights may be taken from an account at any time: before an act they are looked at anew, and
 * between acts so often. */
#define LOOK_MS 30000

/* What was asked; the rest asks the library. */
struct shard {
    int64_t looked_ms; /* 0: it has to be looked at */
    tl_account account;
};

struct shards {
    tl_client *client; /* of one database; NULL: it is a fleet */
    tl_fleet *fleet;
    size_t count;
    pthread_mutex_t mutex;
    struct shard *shard; /* under the mutex */
};

/* --------------------------------------------------------------------- accounts -- */

/* Why this account cannot use the desk; NULL: it can. */
static const char *refuses(const tl_account *account)
{
    if (!account->needs_password)
        return "The server lets this account in without its password, as whoever the desk runs "
               "as. Such an account is nobody's own: log in with another.";
    if (!account->may_read)
        return "This account has no role for operators: it needs DATABASE_operator to decide, "
               "or DATABASE_reader to look.";
    return NULL;
}

static tl_status look(struct shards *shards, size_t i, tl_client *client, tl_account *account)
{
    struct shard *shard = &shards->shard[i];
    tl_status status = TL_OK;
    int is_looked;

    pthread_mutex_lock(&shards->mutex);
    is_looked = shard->looked_ms > 0 && steady_ms() - shard->looked_ms < LOOK_MS;
    *account = shard->account;
    pthread_mutex_unlock(&shards->mutex);
    if (is_looked)
        return TL_OK;
    *account = (tl_account)TL_ACCOUNT_INIT;
    status = tl_account_look(client, account);
    if (status != TL_OK)
        return status;
    pthread_mutex_lock(&shards->mutex);
    shard->account = *account;
    shard->looked_ms = steady_ms();
    pthread_mutex_unlock(&shards->mutex);
    return TL_OK;
}

/* ---------------------------------------------------------------------- opening -- */

void shards_close(struct shards *shards)
{
    if (shards == NULL)
        return;
    tl_client_close(shards->client);
    tl_fleet_close(shards->fleet);
    pthread_mutex_destroy(&shards->mutex);
    free(shards->shard);
    free(shards);
}

/* The slot of the customer that this thread asks for, by the databases' rule: a service may have put
 * its own in the place of ours. */
static _Thread_local uint16_t slot_asked;

static uint16_t slot_of(void *context, const char *cust_no)
{
    (void)context, (void)cust_no;
    return slot_asked;
}

/* The library's own lines are for those who run a service. */
static void log_access(void *context, const tl_log_line *line)
{
    char trade[256] = "";

    (void)context;
    if (strncmp(line->message, SHARDS_ACCESS, strlen(SHARDS_ACCESS)) != 0)
        return;
    if (line->serial_no[0] != '\0')
        snprintf(trade, sizeof trade, " %s %s %s", line->serial_no, line->cust_no, line->op_code);
    log_say(TL_INFO, "%s%s", line->message, trade);
}

static tl_status open_all(struct shards *shards, const struct options *options, const char *user,
                          const char *password)
{
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;
    tl_fleet_options fleet = TL_FLEET_OPTIONS_INIT;
    size_t count = 0;
    tl_status status = tl_fleet_count(options->config_file, &count);
    const int is_fleet = status == TL_OK && count > 0 && options->shard == NULL;

    client.flags = TL_CLIENT_NO_SESSION;
    client.config_file = options->config_file;
    client.shard = options->shard;
    client.program = "tradelock desk";
    client.user = user;
    client.password = password;
    client.log = options->logs_access ? log_access : NULL;
    fleet.client = &client;
    fleet.slot = slot_of;
    status =
        is_fleet ? tl_fleet_open(&shards->fleet, &fleet) : tl_client_open(&shards->client, &client);
    if (status != TL_OK)
        return status;
    shards->count = is_fleet ? tl_fleet_size(shards->fleet) : 1;
    shards->shard = calloc(shards->count, sizeof *shards->shard);
    return shards->shard != NULL ? TL_OK
                                 : tl_error_report(TL_NO_MEMORY, "out of memory for a session");
}

/* At each shard that answers. */
static tl_status look_at_all(struct shards *shards, tl_account *account, char why[WHY_TEXT])
{
    tl_status status = TL_OK, missed = TL_OK;
    char sentence[1024] = "";
    size_t known = 0;

    for (size_t i = 0; i < shards->count; i++) {
        tl_client *client = NULL;
        tl_account here = TL_ACCOUNT_INIT;

        status = shards_client(shards, i, &client, &here);
        if (status == TL_REFUSED)
            snprintf(why, WHY_TEXT, "%s", tl_error_message());
        if (status == TL_REFUSED || status == TL_ACCESS_DENIED)
            return status;
        if (status != TL_OK) {
            missed = status;
            snprintf(sentence, sizeof sentence, "%s", tl_error_message());
            continue;
        }
        here.may_decide |= known++ > 0 && account->may_decide;
        *account = here;
    }
    if (known == 0)
        return tl_error_report(missed, "%s", sentence);
    if (shards_is_fleet(shards))
        snprintf(account->database, sizeof account->database, "fleet %s",
                 tl_fleet_name(shards->fleet));
    return TL_OK;
}

tl_status shards_open(struct shards **out, const struct options *options, const char *user,
                      const char *password, tl_account *account, char why[WHY_TEXT])
{
    struct shards *shards = calloc(1, sizeof *shards);
    char sentence[1024];
    tl_status status;

    why[0] = '\0';
    if (shards == NULL)
        return tl_error_report(TL_NO_MEMORY, "out of memory for a session");
    pthread_mutex_init(&shards->mutex, NULL);
    status = open_all(shards, options, user, password);
    if (status == TL_OK)
        status = look_at_all(shards, account, why);
    if (status == TL_OK) {
        *out = shards;
        return TL_OK;
    }
    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    shards_close(shards);
    return tl_error_report(status, "%s", sentence);
}

/* -------------------------------------------------------------------- questions -- */

int shards_is_fleet(const struct shards *shards)
{
    return shards->fleet != NULL;
}

size_t shards_count(const struct shards *shards)
{
    return shards->count;
}

const char *shards_name(const struct shards *shards, size_t i)
{
    const char *name = tl_fleet_shard(shards->fleet, i);

    return name != NULL ? name : "";
}

size_t shards_find(const struct shards *shards, const char *name)
{
    for (size_t i = 0; i < shards->count; i++)
        if (strcmp(shards_name(shards, i), name) == 0)
            return i;
    return SHARD_NOBODY;
}

void shards_look_anew(struct shards *shards)
{
    pthread_mutex_lock(&shards->mutex);
    for (size_t i = 0; i < shards->count; i++)
        shards->shard[i].looked_ms = 0;
    pthread_mutex_unlock(&shards->mutex);
}

tl_status shards_client(struct shards *shards, size_t i, tl_client **client, tl_account *account)
{
    char sentence[1024];
    tl_status status = TL_OK;

    if (i >= shards->count)
        return tl_error_report(TL_UNREACHABLE, "the settings name no such shard any more");
    *client = shards->client;
    if (shards->fleet != NULL)
        status = tl_fleet_shard_client(shards->fleet, i, client);
    if (status != TL_OK)
        return status;
    status = look(shards, i, *client, account);
    if (status == TL_OK && refuses(account) == NULL)
        return TL_OK;
    snprintf(sentence, sizeof sentence, "%s",
             status == TL_OK ? refuses(account) : tl_error_message());
    status = status == TL_OK ? TL_REFUSED : status;
    if (shards->fleet == NULL)
        return tl_error_report(status, "%s", sentence);
    return tl_error_report(status, "shard %s: %s", shards_name(shards, i), sentence);
}

/* All shards have one rule, so any tells. */
static tl_status slots_of(struct shards *shards, const char *const *cust_nos, size_t count,
                          unsigned *slots)
{
    tl_status status = TL_UNREACHABLE;

    for (size_t i = 0; i < shards->count && status != TL_OK; i++) {
        tl_client *client = NULL;

        status = tl_fleet_shard_client(shards->fleet, i, &client);
        if (status == TL_OK)
            status = tl_slots_of(client, cust_nos, count, slots);
    }
    return status;
}

static tl_status look_for_owner(struct shards *shards, const char *cust_no, size_t *shard)
{
    unsigned slot = 0;
    tl_status status = slots_of(shards, &cust_no, 1, &slot);

    if (status != TL_OK)
        return status;
    slot_asked = (uint16_t)slot;
    status = tl_fleet_owner(shards->fleet, cust_no, shard);
    return status == TL_OK ? tl_fleet_confirm(shards->fleet, cust_no, *shard) : status;
}

void shards_look_again(struct shards *shards)
{
    (void)tl_fleet_look_again(shards->fleet);
}

/* The map may be a beat old, so what it tells is asked for again where it is not so. */
tl_status shards_owner(struct shards *shards, const char *cust_no, size_t *shard)
{
    tl_status status;

    *shard = 0;
    if (shards->fleet == NULL)
        return TL_OK;
    status = look_for_owner(shards, cust_no, shard);
    if (status != TL_MISDIRECTED)
        return status;
    shards_look_again(shards);
    return look_for_owner(shards, cust_no, shard);
}

void shards_owners(struct shards *shards, const char *const *cust_nos, size_t count, size_t *owners)
{
    unsigned *slots = calloc(count + 1, sizeof *slots);
    int is_known = 0;

    if (slots != NULL && shards->fleet != NULL && count > 0)
        is_known = slots_of(shards, cust_nos, count, slots) == TL_OK;
    for (size_t i = 0; i < count; i++) {
        owners[i] = SHARD_NOBODY;
        slot_asked = is_known ? (uint16_t)slots[i] : 0;
        if (is_known && tl_fleet_owner(shards->fleet, cust_nos[i], &owners[i]) != TL_OK)
            owners[i] = SHARD_NOBODY;
    }
    free(slots);
}
