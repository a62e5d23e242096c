/*
 * The settings: section [tradelock] of the options file.  libmariadb itself reads the section
 * [tradelock-client] of the same file.  That section is only checked here, since libmariadb says
 * nothing about a name that it does not know.
 *
 * CONFIG_MAP is the one list.  The structure, the parser, the sample config/tradelock.cnf and the
 * test that compares them come from it:
 *     X(type, name, default, least, most, meaning)
 * Durations are written as 250ms, 30s, 10m, 2h or 7d; a plain number is in the unit at the end of
 * the setting's name, and so are least and most.
 */
#ifndef TL_BASE_CONFIG_H
#define TL_BASE_CONFIG_H

#include "base/text.h"

#include <tradelock/metrics.h>

#include <stdio.h>
#include <sys/types.h>

#define CONFIG_SECOND INT64_C(1000)
#define CONFIG_MINUTE (60 * CONFIG_SECOND)
#define CONFIG_HOUR (60 * CONFIG_MINUTE)
#define CONFIG_DAY (24 * CONFIG_HOUR)
#define CONFIG_LISTEN_MAX (sizeof TL_LISTEN_PUBLIC - 1 + 21) /* public:127.255.255.255:65535 */
#define CONFIG_SHARD_MAX 32 /* bytes of the name of a fleet or a shard */
#define CONFIG_SHARDS_MAX 32

/* clang-format off */
#define CONFIG_MAP(X)                                                                    \
    X(NAME, site, "default", 1, TEXT_SITE_MAX,                                           \
      "The name of this installation in channel keys. It must be the same in every "     \
      "process that works on one database, and never change while a trade is in "        \
      "process: another name makes other keys, which a channel would pay anew.")         \
    X(COUNT, pool_size, "12", 1, 256,                                                    \
      "Connections for the library's own statements, in each client. Up to four steps " \
      "at once take one each, where four are left besides; when there are more steps "   \
      "they share the statements of two or three.")                                      \
    X(COUNT, business_pool_size, "8", 1, 256,                                            \
      "Connections for transactions with business rows, in each client: so many for "    \
      "callbacks, and so many for declared books. They are made when they are wanted.")  \
    X(MS, pool_wait_ms, "5s", 1, 10 * CONFIG_MINUTE,                                     \
      "How long a call waits for a free connection before it answers TL_OVERLOADED.")    \
    X(MS, beat_ms, "1s", 20, CONFIG_MINUTE,                                              \
      "How often a process confirms that it is alive.")                                  \
    X(MS, session_ms, "10s", 100, 10 * CONFIG_MINUTE,                                    \
      "How long a process may be silent before others declare it dead. At least "        \
      "three beats.")                                                                    \
    X(MS, max_hold_ms, "60s", 10, TL_HOLD_MAX_MS,                                        \
      "How long an attempt may hold a trade at most. Workflows that use these "          \
      "defaults are refused unless it is at least execute_ms and commit_ms "             \
      "together.")                                                                       \
    X(MS, execute_ms, "30s", 1, CONFIG_DAY,                                              \
      "How long one call of the channel may take.")                                      \
    X(MS, commit_ms, "10s", 1, 10 * CONFIG_MINUTE,                                       \
      "How long an ending may be repeated before it is left to the retry lane.")         \
    X(SCHEDULE, schedule, "90s,3m,10m,30m,1h,2h,4h,8h,24h", 1, 30 * CONFIG_DAY,          \
      "The delays before compensating attempts, at most 16; the last one repeats. A "    \
      "random part is added, never taken away.")                                         \
    X(COUNT, attempts, "20", 1, 1000,                                                    \
      "How many compensating attempts are made before a trade is parked for a "          \
      "person.")                                                                         \
    X(COUNT, poison, "3", 1, 100,                                                        \
      "How often a worker may die while it is alone with one trade, before that "        \
      "trade is parked.")                                                                \
    X(MS, deadline_ms, "72h", 10, 366 * CONFIG_DAY,                                      \
      "Once a trade is this old nothing is sent for it any more.")                       \
    X(MS, grace_ms, "10m", 0, 30 * CONFIG_DAY,                                           \
      "How long a channel must go on saying that it does not know the payment "          \
      "before that counts.")                                                             \
    X(MS, clock_margin_ms, "2s", 10, CONFIG_HOUR,                                        \
      "A change of the server's clock by more than this counts as a clock jump, "        \
      "after which every trade in process is looked through. Workflows keep as "         \
      "much time away from the end of a channel's window, and add as much to its "       \
      "latency.")                                                                        \
    X(MS, ask_wait_min_ms, "5ms", 1, 10 * CONFIG_SECOND,                                 \
      "The first delay of a caller that waits for a lock; it doubles with each ask.")    \
    X(MS, ask_wait_max_ms, "200ms", 1, CONFIG_MINUTE,                                    \
      "The longest delay of a caller that waits for a lock.")                            \
    X(SECONDS, business_lock_wait_s, "5s", 1, 3600,                                      \
      "How long a transaction with business rows waits for a row lock.")                 \
    X(SECONDS, idle_transaction_s, "30s", 1, 3600,                                       \
      "How long the server lets a silent connection of the library keep a transaction "  \
      "open.")                                                                           \
    X(SECONDS, connect_timeout_s, "5s", 1, 300,                                          \
      "How long connecting may take.")                                                   \
    X(SECONDS, read_timeout_s, "30s", 1, 3600,                                           \
      "How long the server may be silent before an answer counts as lost.")              \
    X(CUST, log_cust, "plain", 0, 0,                                                     \
      "Customer numbers in log lines: plain, or hashed (16 digits of HMAC-SHA-256, by "  \
      "log_cust_key).")                                                                  \
    X(NAME, log_cust_key, "none", 1, TEXT_SITE_MAX,                                      \
      "The key of hashed customer numbers, at least 16 characters; whoever has it can "  \
      "try all numbers. Nobody else may read its file.")                                 \
    X(LEVEL, log_level, "info", 0, 0,                                                    \
      "The lowest level of log lines that are written: debug, info, warning or "         \
      "alarm. Refusals that any double tap meets are debug.")                            \
    X(FORMAT, log_format, "text", 0, 0,                                                  \
      "How worker, exporter, desk and sample write log lines: text, or json, an object "  \
      "a line.")                                                                         \
    X(SWITCH, allow_insecure, "0", 0, 1,                                                 \
      "1 allows TCP beyond this machine without verified TLS. Never with real money.")   \
    X(SWITCH, janitor, "1", 0, 1,                                                        \
      "1: this process also opens the retry lane of trades whose holder is dead.")       \
    X(LISTEN, metrics_listen, "off", 0, CONFIG_LISTEN_MAX,                               \
      "Where a program that was built for it serves its metrics to Prometheus, as "      \
      "127.0.0.1:9464; off: nowhere. In each process another port. Beyond this "         \
      "machine's loopback it is public:0.0.0.0:9464: plain HTTP, for whoever reaches "   \
      "it.")                                                                             \
    X(MS, retention_ms, "90d", CONFIG_DAY, 36525 * CONFIG_DAY,                           \
      "How long finished trades are kept at least. It must be longer than any "          \
      "client repeats a request, and than any channel's window: a purged key can "       \
      "be paid again.")                                                                  \
    X(MS, payload_keep_ms, "0", 0, 36525 * CONFIG_DAY,                                   \
      "How long after its end a trade keeps its contents (tools/PRIVACY.md); the "       \
      "janitors blank them then. 0: until it is purged. `tradelock migrate` writes it "  \
      "into the schema, before which nothing is blanked. It must be longer than any "    \
      "channel may still say that a failed payment was made.")                           \
    X(FLEET, fleet, "none", 1, CONFIG_SHARD_MAX,                                         \
      "The name of the fleet whose shards this file names; none: there is one "          \
      "database.")                                                                       \
    X(SHARDS, shards, "none", 1, CONFIG_SHARDS_MAX,                                      \
      "The shards of the fleet, as a, b: each is a primary or a cluster of its own, "    \
      "with customers of its own. Each has a section [tradelock-client-NAME], whose "    \
      "lines count above those of [tradelock-client].")
/* clang-format on */

struct config_schedule {
    int64_t step_ms[TL_SCHEDULE_MAX];
    unsigned count; /* at least 1 */
};

struct config_shards {
    char name[CONFIG_SHARDS_MAX][CONFIG_SHARD_MAX + 1];
    unsigned count; /* 0: this is no file of a fleet */
};

typedef enum config_cust { CONFIG_CUST_PLAIN, CONFIG_CUST_HASHED } config_cust;

#define CONFIG_FIELD_NAME(name) char name[TEXT_SITE_MAX + 1];
#define CONFIG_FIELD_COUNT(name) unsigned name;
#define CONFIG_FIELD_MS(name) int64_t name;
#define CONFIG_FIELD_SECONDS(name) unsigned name;
#define CONFIG_FIELD_SCHEDULE(name) struct config_schedule name;
#define CONFIG_FIELD_CUST(name) config_cust name;
#define CONFIG_FIELD_LEVEL(name) tl_level name;
#define CONFIG_FIELD_FORMAT(name) int name; /* 1: json */
#define CONFIG_FIELD_SWITCH(name) int name;
#define CONFIG_FIELD_LISTEN(name) char name[CONFIG_LISTEN_MAX + 1]; /* "": off */
#define CONFIG_FIELD_FLEET(name) char name[CONFIG_SHARD_MAX + 1];   /* "": none */
#define CONFIG_FIELD_SHARDS(name) struct config_shards name;
#define CONFIG_FIELD(type, name, initial, least, most, meaning) CONFIG_FIELD_##type(name)

/* One field for each setting, with the setting's name. */
struct config {
    CONFIG_MAP(CONFIG_FIELD)
};

void config_defaults(struct config *config);

/* TL_OK, or TL_BAD_CONFIG with "file:line: what is wrong"; the config is unchanged then.  A variable
 * TRADELOCK_ and the setting's name in capitals (TRADELOCK_BEAT_MS) counts above the file.  "": there
 * is no file, and TRADELOCK_HOST names the server. */
tl_status config_load(struct config *config, const char *file);

/* The same, and the file must have a section [tradelock-client<suffix>]: without it libmariadb
 * would silently connect as somebody else.  With NULL or "" no section is required. */
tl_status config_load_for(struct config *config, const char *file, const char *suffix);

/* Where in config->shards this one stands.  TL_BAD_CONFIG, with a sentence: not there; or NULL, and
 * the file names shards of which one has to be named. */
tl_status config_find_shard(const struct config *config, const char *file, const char *shard,
                            size_t *at);
/* TL_BAD_CONFIG, with a sentence: it is no name of a fleet or a shard. */
tl_status config_check_shard(const char *what, const char *name);

/* A file that is opened to be read: nobody may write it but root and this account. */
struct config_file {
    FILE *stream;
    mode_t mode;
    int is_private; /* nobody else can read or write it: a password may stand there */
};
/* `what` it is, for the sentence of TL_BAD_CONFIG. */
tl_status config_file_open(struct config_file *out, const char *what, const char *file);

/* "beat_ms": the value of TRADELOCK_BEAT_MS; NULL: it is not set. */
const char *config_variable(const char *name);
/* The file's name, as sentences have it. */
const char *config_file_name(const char *file);

void config_policy(tl_policy *policy, const struct config *config);
tl_status config_load_policy(tl_policy *policy, const char *file);

/* "90s", "10m": the shortest way to write a duration exactly. */
#define CONFIG_DURATION_TEXT 32
const char *config_duration(char to[CONFIG_DURATION_TEXT], int64_t duration_ms);

/* CONFIG_MAP as data, for the parser and the test of the sample. */
typedef enum config_type {
    CONFIG_NAME,
    CONFIG_COUNT,
    CONFIG_MS,
    CONFIG_SECONDS,
    CONFIG_SCHEDULE,
    CONFIG_CUST,
    CONFIG_LEVEL,
    CONFIG_FORMAT,
    CONFIG_SWITCH,
    CONFIG_LISTEN,
    CONFIG_FLEET,
    CONFIG_SHARDS
} config_type;

struct config_setting {
    config_type type;
    size_t offset; /* of the field in struct config */
    const char *name, *initial;
    int64_t least, most;
    const char *meaning;
};

#define CONFIG_ONE(type, name, initial, least, most, meaning) +1
enum { CONFIG_SETTINGS = 0 CONFIG_MAP(CONFIG_ONE) };
#undef CONFIG_ONE

extern const struct config_setting config_settings[CONFIG_SETTINGS];

/* Sets one setting from its text; TL_BAD_CONFIG with "name: what is wrong". */
tl_status config_set(struct config *config, const struct config_setting *setting, const char *text);

#endif
