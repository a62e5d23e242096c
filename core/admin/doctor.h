/* The doctor's examinations, in their order. */
#ifndef TL_ADMIN_DOCTOR_H
#define TL_ADMIN_DOCTOR_H

#include "admin/doctor_tell.h"

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
