/*
 * The doctor: asks the server for everything that the guarantees need.  It looks with the account
 * that it is given, so run it with the account of the service.  Writes nothing but a probe, which
 * it rolls back.
 */
#include "admin/doctor.h"

#include "base/error.h"

#include <tradelock/admin/server.h>

#include <stdarg.h>
#include <stdio.h>

#define SENTENCE_SPACE 1024

void doctor_tell(doctor *d, tl_finding_level level, const char *check, const char *found,
                 const char *format, ...)
{
    char sentence[SENTENCE_SPACE];
    tl_finding finding = {level, check, found, sentence};
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (level == TL_FINDING_UNSAFE)
        d->unsafe++;
    if (!d->stopped && d->each(d->context, &finding) != 0)
        d->stopped = 1;
}

static tl_status conclude(const doctor *d)
{
    if (d->schema == TL_OK && d->unsafe > 0)
        return error_set(TL_SERVER_UNSAFE,
                         "%d finding%s make%s this server unsafe for "
                         "money",
                         d->unsafe, d->unsafe == 1 ? "" : "s", d->unsafe == 1 ? "s" : "");
    return d->schema;
}

static int look_at_all(void *context)
{
    doctor *d = context;
    tl_status status = doctor_server(d);

    if (status == TL_OK)
        status = doctor_settings(d);
    if (status == TL_OK)
        status = doctor_schema(d);
    if (status == TL_OK)
        status = doctor_mode(d);
    if (status == TL_OK && d->schema == TL_OK)
        status = doctor_clock(d);
    if (status == TL_OK && d->schema == TL_OK)
        status = doctor_schema_objects(d);
    if (status == TL_OK && d->schema == TL_OK && !d->incomplete)
        status = doctor_schema_made(d);
    if (status == TL_OK && d->schema == TL_OK && !d->incomplete)
        status = doctor_restore(d);
    if (status == TL_OK && d->schema == TL_OK && !d->incomplete)
        status = doctor_history(d);
    if (status == TL_OK && d->schema == TL_OK)
        status = doctor_account(d);
    if (status == TL_OK && d->schema == TL_OK && !d->incomplete)
        status = doctor_trades(d);
    return (int)status;
}

tl_status tl_doctor(tl_client *client, tl_finding_fn each, void *context)
{
    doctor d = {.client = client, .each = each, .context = context, .schema = TL_OK};
    tl_status status = read_begin(client, &d.connection);

    if (status == TL_OK)
        status = read_check_each(each != NULL);
    if (status == TL_OK)
        status = read_and_show(look_at_all, &d);
    read_end(client, d.connection);
    return status == TL_OK ? conclude(&d) : status;
}
