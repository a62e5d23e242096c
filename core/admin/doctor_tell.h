/* A doctor's visit, and how each look tells what it found. */
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
    int serves;       /* its version: else not every statement can be tried on it */
    tl_status schema; /* TL_OK, or what is wrong with it */
    int incomplete;   /* a part of it is missing: what rests on it is not tried */
    char account[130], role[130];
} doctor;

/* Tells one finding.  found: what the server says; the sentence: what it means and what to do about
 * it. */
void doctor_tell(doctor *d, tl_finding_level level, const char *check, const char *found,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
