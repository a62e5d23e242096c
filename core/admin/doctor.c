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

static tl_status look(doctor *d)
{
    TRY(doctor_server(d));
    TRY(doctor_settings(d));
    TRY(doctor_schema(d));
    TRY(doctor_mode(d));
    if (d->schema != TL_OK)
        return TL_OK;
    TRY(doctor_clock(d));
    TRY(doctor_schema_objects(d));
    if (!d->incomplete) {
        TRY(doctor_schema_made(d));
        TRY(doctor_restore(d));
        TRY(doctor_history(d));
    }
    TRY(doctor_account(d));
    return d->incomplete ? TL_OK : doctor_trades(d);
}

static int look_at_all(void *context)
{
    return (int)look(context);
}

tl_status tl_doctor(tl_client *client, tl_finding_fn each, void *context)
{
    doctor d = {.client = client, .each = each, .context = context, .schema = TL_OK};
    READING at = {.client = client};

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    d.connection = at.connection;
    TRY(read_and_show(look_at_all, &d));
    return conclude(&d);
}
