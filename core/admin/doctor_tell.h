/* One run of the doctor, and how each examination tells what it found. */
#ifndef TL_ADMIN_DOCTOR_TELL_H
#define TL_ADMIN_DOCTOR_TELL_H

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

#endif
