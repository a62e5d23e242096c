/*
 * admin/now.h - who is logged in.
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

/* Logs in anew, so that what it says is so now, and connections that were made before may still have
 * other rights.  TL_OK: *account says who is connected, and tries its rights; no row is touched.
 * TL_ACCESS_DENIED: the account is dropped or locked, or its password was changed. */
TL_EXPORT tl_status tl_account_look(tl_client *client, tl_account *account);

#ifdef __cplusplus
}
#endif
#endif
