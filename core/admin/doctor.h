/* What the doctor looks at, one after the other. */
#ifndef TL_ADMIN_DOCTOR_H
#define TL_ADMIN_DOCTOR_H

#include "admin/doctor_tell.h"

/* Each fails only when the server cannot be asked. */
tl_status doctor_settings(doctor *d);       /* what the server was told */
tl_status doctor_server(doctor *d);         /* version, clock, transport */
tl_status doctor_schema(doctor *d);         /* its version */
tl_status doctor_restore(doctor *d);        /* identity, and a restore that is open */
tl_status doctor_clock(doctor *d);          /* whether it was set */
tl_status doctor_schema_objects(doctor *d); /* triggers, functions, procedures, views */
tl_status doctor_history(doctor *d);        /* whether steps are recorded */
tl_status doctor_account(doctor *d);        /* rights of this account */
tl_status doctor_trades(doctor *d);         /* sessions, due work, conflicts */

#endif
