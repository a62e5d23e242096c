/*
 * A payment house for tests: a database with the business tables, a real simulator, a client, and
 * the sample workflow registered for one kind of channel.
 */
#ifndef TESTS_WORKFLOWS_HOUSE_H
#define TESTS_WORKFLOWS_HOUSE_H

#include "simulator/sim.h"
#include "support/database.h"
#include "withdraw.h"

#include <tradelock/worker.h>

#define HOUSE_WINDOW_MS 60000
#define ALARMS_MAX 64

/* Fast enough for tests, slow enough for a busy machine.  Who is to die gets a session of its own:
 * nobody else shall. */
#define HOUSE_SETTINGS_WITH(session_ms, max_hold_ms, execute_ms, commit_ms, deadline_ms)           \
    "site=test\nbeat_ms=100ms\nsession_ms=" session_ms "\nmax_hold_ms=" max_hold_ms                \
    "\nexecute_ms=" execute_ms "\ncommit_ms=" commit_ms "\ndeadline_ms=" deadline_ms               \
    "\nschedule=50ms,100ms\nattempts=8\ngrace_ms=200ms\nclock_margin_ms=50ms\n"                    \
    "business_lock_wait_s=1\n"
#define HOUSE_SETTINGS_OF(session_ms) HOUSE_SETTINGS_WITH(session_ms, "5s", "800ms", "1s", "30s")
#define HOUSE_SETTINGS HOUSE_SETTINGS_OF("30s")
/* The same, but nothing is over while a machine stands still. */
#define HOUSE_PATIENT_SETTINGS HOUSE_SETTINGS_WITH("1m", "1m", "20s", "5s", "10m")

typedef struct house {
    server *own; /* NULL: the shared one */
    database *db;
    MYSQL *sql;
    struct sim sim;
    tl_client *client;
    tl_workflows *workflows;
    withdraw *withdraw;
    withdraw_kind kind;
    int exclusive;
    int64_t wait_ms;         /* of house_run() */
    const char *traceparent; /* likewise; NULL: none */
    const char *batch;       /* likewise */
    int says_nothing;        /* likewise: of its amount */
    char url[64];
    pthread_mutex_t mutex;
    /* Under the mutex. */
    char alarms[ALARMS_MAX][256];
    unsigned alarm_count;
} house;

/* settings NULL: HOUSE_SETTINGS.  where NULL: the shared server. */
void house_open(house *self, withdraw_kind kind, const char *settings, server *where);
/* Without the sample's workflow, tables and channel: the test registers its own. */
void house_open_bare(house *self, const char *settings, server *where);
void house_close(house *self);
/* Ends the client and its workflows; the rows and the channel stay. */
void house_leave(house *self);
/* Ends the client and makes a new one, with another kind or exclusive flag if changed. */
void house_reopen(house *self);

/* A client for decisions, without a session; to be closed. */
tl_client *house_operator(const house *self);

/* The customer's account in EUR. */
void house_account(house *self, const char *cust, int64_t balance_minor);

/* One withdrawal in EUR, payee "Anna". */
tl_status house_run(house *self, const char *serial, const char *cust, int64_t amount_minor,
                    uint32_t reclaim_epoch, tl_answer *answer);
/* The same; the answer is only compared. */
void house_expect(house *self, const char *serial, const char *cust, int64_t amount_minor,
                  tl_status expected);

/* A worker that looks for work each 50 ms; threads 0: as many as it has by itself. */
tl_worker *house_worker(tl_workflows *workflows, unsigned threads);
/* So many trades of C1, asked for with bare locks and ended without an answer. */
void house_leave_in_doubt(house *self, const char *op, const char *channel, const char *prefix,
                          int count);
/* Runs a worker until no trade waits or is in process, at most wait_ms; gives counts. */
tl_worker_counts house_work(house *self, unsigned threads, int64_t wait_ms);

/* "P 1 1 -" = status, epoch, sends, proof of the sync row; "none" when it is absent. */
void house_row(house *self, const char *serial, const char *expected);
void house_retry_row(house *self, const char *serial, const char *status, const char *parked);
/* The channel key on the row. */
void house_key(house *self, const char *serial, char key[TL_CHANNEL_KEY_MAX + 1]);
/* balance and frozen, as "900 100". */
void house_balance(house *self, const char *cust, const char *expected);
/* A rule for the simulator, as JSON. */
void house_rule(house *self, const char *rule);
int house_alarmed(house *self, const char *part);

/* Every payment of the simulator is in the ledger and the reverse; nobody paid twice. */
void house_books(house *self, int64_t payments);

#define assert_status(got, expected)                                                               \
    assert_string_equal(tl_status_name(got), tl_status_name(expected))

#endif
