/* Tells one finding to the doctor's caller, and counts unsafe ones.  Touches the doctor only. */
#include "admin/doctor_tell.h"

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
