/*
 * admin/now.h - who is logged in, and how things are at this moment: processes, payments a minute,
 * conflicts.  All of it reads by index, and at most what is said below.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_NOW_H
#define TRADELOCK_ADMIN_NOW_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The account of a client, by the server's word. */
typedef struct tl_account {
    unsigned version;   /* TL_ACCOUNT_VERSION */
    char name[385];     /* as decisions and history name it */
    char database[193]; /* that it looks at */
    int may_read;       /* trades with their history: a reader's or an operator's account */
    int may_decide;     /* an operator's account */
    /* The server lets nobody in as this account without its password.  0: it may also go by who
     * runs the process that connects (unix_socket, GSSAPI). */
    int needs_password;
} tl_account;

#define TL_ACCOUNT_VERSION 1u
#define TL_ACCOUNT_INIT TL_INITIAL(tl_account, TL_ACCOUNT_VERSION)

/* TL_OK: *account says who is connected, and tries its rights; no row is touched. */
TL_EXPORT tl_status tl_account_look(tl_client *client, tl_account *account);

/* One running process: a session that nobody has ended. */
typedef struct tl_process {
    const char *session_id, *program, *host, *operations; /* operations "": it did not say */
    unsigned pid;
    int alive; /* 0: silent for longer than its time-out; an observer is about to end it */
    int64_t started_us, now_us;
    int64_t silent_ms; /* since its last beat */
} tl_process;

/* Returns 0 to go on. */
typedef int (*tl_process_fn)(void *context, const tl_process *process);
/* Tells at most limit of them (0: 200).  TL_OK also when there are none.  Needs an operator's or a
 * reader's account. */
TL_EXPORT tl_status tl_process_list(tl_client *client, unsigned limit, tl_process_fn each,
                                    void *context);

#define TL_PACE_MINUTES 180

/* How many trades succeeded in each of the last minutes, by the server's clock. */
typedef struct tl_pace {
    unsigned version;  /* TL_PACE_VERSION */
    int64_t minute_us; /* the minute that runs now begins there; paid[0] is of it */
    /* So many of the minutes are counted whole.  It is fewer than all where more than 20,000
     * trades of one operation ended in them. */
    unsigned whole;
    uint64_t paid[TL_PACE_MINUTES];
} tl_pace;

#define TL_PACE_VERSION 1u
#define TL_PACE_INIT TL_INITIAL(tl_pace, TL_PACE_VERSION)

/* TL_OK: *pace is counted.  It reads up to 20,000 rows of each operation; ask once a minute. */
TL_EXPORT tl_status tl_pace_look(tl_client *client, tl_pace *pace);

/* Shows trades in conflict, those with the newest evidence first, at most limit (0: 100), among
 * those that the newest 10,000 pieces of evidence are about.  TL_OK also when there are none. */
TL_EXPORT tl_status tl_conflict_list(tl_client *client, unsigned limit, tl_view_fn each,
                                     void *context);

#ifdef __cplusplus
}
#endif
#endif
