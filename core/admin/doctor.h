/* What the parts of the doctor share. */
#ifndef TL_ADMIN_DOCTOR_H
#define TL_ADMIN_DOCTOR_H

#include "client/read.h"

#include <tradelock/admin/server.h>

typedef struct doctor {
    tl_client *client;
    db *connection;
    tl_finding_fn each;
    void *context;
    int unsafe, stopped;
    int serves;       /* its version: else not every statement can be tried on it */
    tl_status schema; /* TL_OK, or what is wrong with it */
    int incomplete;   /* a part of it is missing: what rests on it is not tried */
    char account[130], role[130];
} doctor;

/* Tells one finding.  found: what the server says; the sentence: what it means and what to do about
 * it. */
void doctor_tell(doctor *d, tl_finding_level level, const char *check, const char *found,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The parts; each fails only when the server cannot be asked. */
tl_status doctor_settings(doctor *d); /* what the server was told */
tl_status doctor_server(doctor *d);   /* version, clock, transport */
tl_status doctor_schema(doctor *d);   /* its version */
tl_status doctor_restore(doctor *d);  /* identity, and a restore that is open */
tl_status doctor_clock(doctor *d);    /* whether it was set */
tl_status doctor_parts(doctor *d);    /* triggers, functions, procedures, views */
tl_status doctor_history(doctor *d);  /* whether steps are recorded */
tl_status doctor_account(doctor *d);  /* rights of this account */
tl_status doctor_trades(doctor *d);   /* sessions, due work, conflicts */

#endif
