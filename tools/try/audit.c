/* Compares rows with the simulator's ledger, once all that was on its way has arrived.  Keeps the
 * trades in memory. */
#include "audit.h"

#include "array_room.h"

#include <tradelock/money.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tried {
    char key[TL_CHANNEL_KEY_MAX + 1], state, where[96];
    const char *title;
    unsigned paid;
};

static struct tried *all;
static size_t count;

void audit_note(const char *title, const char *where)
{
    if (!array_room(&all, count, sizeof *all))
        abort();
    all[count] = (struct tried){.state = the_plan->state, .title = title};
    snprintf(all[count].key, sizeof all[count].key, "%s", the_plan->channel_key);
    snprintf(all[count].where, sizeof all[count].where, "%s", where);
    count++;
}

static void take_payment(const json_t *line, int64_t amount_minor, const char *currency)
{
    const char *type = json_string_value(json_object_get(line, "type"));
    const char *key = json_string_value(json_object_get(line, "channel_key"));
    const char *paid_in = json_string_value(json_object_get(line, "currency"));
    const json_int_t paid = json_integer_value(json_object_get(line, "amount_minor"));
    char told[TL_AMOUNT_TEXT], said[TL_AMOUNT_TEXT];

    if (type == NULL || key == NULL || paid_in == NULL || strcmp(type, "paid") != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].key, key) != 0)
            continue;
        all[i].paid++;
        if (currency != NULL && (paid != amount_minor || strcmp(paid_in, currency) != 0))
            plan_found("the channel paid %s, and the request says %s, in: %s%s",
                       tl_amount_text(told, paid, paid_in),
                       tl_amount_text(said, amount_minor, currency), all[i].title, all[i].where);
    }
}

static void compare(const struct tried *it)
{
    if (it->paid > 1)
        plan_found("the channel paid %u times, in: %s%s", it->paid, it->title, it->where);
    else if (it->state == 'Y' && it->paid == 0)
        plan_found("the trade succeeded, and the channel did not pay, in: %s%s", it->title,
                   it->where);
    else if ((it->state == 'F' || it->state == ' ') && it->paid > 0)
        plan_found("the trade %s, and the channel paid, in: %s%s",
                   it->state == 'F' ? "failed" : "has no row", it->title, it->where);
}

int audit_ledger(const char *path, int64_t amount_minor, const char *currency)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t space = 0;

    if (file == NULL)
        return -1;
    while (getline(&line, &space, file) > 0) {
        json_t *json = json_loads(line, 0, NULL);

        take_payment(json, amount_minor, currency);
        json_decref(json);
    }
    free(line);
    fclose(file);
    for (size_t i = 0; i < count; i++)
        compare(&all[i]);
    free(all);
    all = NULL;
    return (int)count;
}
