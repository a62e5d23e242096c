/* Which programs that run do not obey a decision.  Reads the sessions. */
#include "disobedient.h"

#include <tradelock/admin.h>

#include <string.h>

struct disobedient {
    const char *what;
    json_t *names;
};

static int take_disobedient(void *context, const tl_session_row *row)
{
    struct disobedient *all = context;

    if (strcmp(row->state, "ended") != 0 && strstr(row->obeys, all->what) == NULL)
        json_array_append_new(all->names, json_sprintf("%s %llu@%s", row->program,
                                                       (unsigned long long)row->pid, row->host));
    return 0;
}

tl_status disobedient_list(tl_client *client, const char *what, json_t **names)
{
    struct disobedient all = {what, json_array()};

    *names = all.names;
    return tl_session_list(client, take_disobedient, &all);
}
