/*
 * The parts of a fleet.
 *
 * Each shard has a thread, its keeper, which alone opens the shard's client and reads its map, and
 * which may hang as long as that database does.  All others only look at what it left under the
 * mutex, which is never held during a call into the library.
 */
#ifndef TL_FLEET_FLEET_H
#define TL_FLEET_FLEET_H

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "client/shard.h"
#include "fleet/map.h"

#include <pthread.h>

typedef struct shard {
    /* Fixed. */
    tl_fleet *fleet;
    size_t number;
    const char *name; /* in the fleet's config */
    pthread_t keeper;
    int has_keeper;
    /* Under the fleet's mutex. */
    tl_client *client;        /* NULL: it was not opened yet; it stays once it is */
    tl_status status;         /* TL_OK: it was opened, and its map was read last time */
    char sentence[ERROR_MAX]; /* else why not */
    int is_tried;
    int64_t answered_ms; /* when its map was read last */
    uint64_t looked;     /* the highest number of a look that it has answered */
    slot_map map;
    char installation[SHARD_INSTALLATION]; /* of the database; "": not read yet */
    const struct shard *twin;              /* another one of the same installation, or NULL */
} shard;

struct tl_fleet_watch {
    tl_fleet *fleet;
    tl_shard_fn up;
    void *context;
    /* Under the fleet's mutex. */
    tl_fleet_watch *next;
    int is_leaving;
    unsigned running;
    tl_status status[CONFIG_SHARDS_MAX]; /* what up() said last */
    unsigned char called[CONFIG_SHARDS_MAX];
    uint64_t told[CONFIG_SHARDS_MAX]; /* in which round of the shard's keeper */
    char sentence[ERROR_MAX];         /* of the last one that was not TL_OK */
};

struct tl_fleet {
    /* Fixed. */
    unsigned generation;
    struct config config;
    struct logger logger;
    tl_client_options client; /* its texts are the fleet's */
    tl_slot_rule slot;
    void *slot_context;
    char *names[CONFIG_SHARDS_MAX];
    size_t count;
    shard shards[CONFIG_SHARDS_MAX];

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* all wait here for all: it is seldom signalled */
    /* Under the mutex. */
    int is_open, is_closing;
    uint64_t looks; /* from 1 on: how often somebody wanted the map to be read anew */
    tl_fleet_watch *watches;
};

/* Whether a status says that it may go by itself: the shard is down, and not the wrong one. */
int fleet_may_pass(tl_status status);

/* Of the shard's client. */
void fleet_client_options(const shard *s, tl_client_options *options);

/* TL_BAD_CONFIG, where it has a twin.  Needs: fleet->mutex held. */
tl_status keeper_stands_apart(const shard *s);

/* A shard's thread. */
void *keeper_main(void *shard);

/* Whether the shard gave no sign of life for a third of session_ms.  Needs: fleet->mutex held. */
int keeper_is_silent(const shard *s);

#endif
