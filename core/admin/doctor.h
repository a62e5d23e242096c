/* One run of the doctor, and how each examination tells what it found. */
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
    int serves;       /* the server's version serves; else not every statement can be tried */
    tl_status schema; /* TL_OK, or what is wrong with the schema */
    int is_newest;    /* the schema is of this library's version, and not of a later one */
    int of_fleet;     /* a shard of one */
    int incomplete;   /* a schema object is missing: what needs it is not tried */
    char account[130], role[130], database[65];
} doctor;

/* Tells one finding.  found: what the server says.  The sentence says what that means, and what to
 * do about it. */
void doctor_tell(doctor *d, tl_finding_level level, const char *check, const char *found,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The doctor's examinations, in their order. */
/* Each returns TL_OK, whatever it found; or why the server could not be asked. */
tl_status doctor_settings(doctor *d);       /* the server's settings */
tl_status doctor_mode(doctor *d);           /* replicas, Galera, and the hosts of a list */
tl_status doctor_server(doctor *d);         /* version, clock, transport */
tl_status doctor_schema(doctor *d);         /* the schema's version */
tl_status doctor_restore(doctor *d);        /* identity, and whether a restore is open */
tl_status doctor_clock(doctor *d);          /* whether the server's clock was set */
tl_status doctor_schema_objects(doctor *d); /* triggers, functions, procedures, views */
tl_status doctor_schema_made(doctor *d);    /* whether they are as this library makes them */
tl_status doctor_history(doctor *d);        /* whether steps are recorded */
tl_status doctor_account(doctor *d);        /* rights of this account */
tl_status doctor_trades(doctor *d);         /* sessions, due work, conflicts */

#endif
