/* What people and channels said of a trade, taken from its history for show. Only formats. */
#include "said.h"

#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

int step_is_retry(const tl_step *step)
{
    return step->op_code[tl_business_op_size(step->op_code)] != '\0';
}

int said_is_carried(const char *step)
{
    static const char *const silent[] = {"claim",    "arm",      "end", "reap",
                                         "evidence", "operator", NULL};

    for (size_t i = 0; silent[i] != NULL; i++)
        if (strcmp(step, silent[i]) == 0)
            return 1;
    return begins(step, "resolve ");
}

/* workflows/compensate.c puts these in front of what a callback remarked. */
void said_take(struct said *said, const tl_step *step)
{
    if (step->remark == NULL || said_is_carried(step->step) ||
        (!begins(step->remark, "asked: ") && !begins(step->remark, "cancel: ")))
        return;
    snprintf(said->text, sizeof said->text, "%s", step->remark);
    said->when_us = step->logged_us;
}

struct reading {
    const tl_key *key;
    struct said *said;
};

static int take_step(void *context, const tl_step *step)
{
    const struct reading *reading = context;

    if (strcmp(step->op_code, reading->key->op_code) == 0)
        said_take(reading->said, step);
    return 0;
}

tl_status said_read(tl_client *client, const tl_key *key, struct said *said)
{
    struct reading reading = {key, said};

    return tl_timeline(client, key, take_step, &reading);
}

const char *said_text(char to[SAID_SENTENCE], const struct said *said)
{
    char when[TIME_TEXT];

    if (said->text[0] == '\0')
        return "nothing that is on record";
    snprintf(to, SAID_SENTENCE, "%s (%s)", said->text, time_text(when, said->when_us));
    return to;
}
