#include "fleet/map.h"

#include <string.h>

uint16_t map_slot(const char *cust_no)
{
    uint32_t crc = UINT32_MAX;

    for (; *cust_no != '\0'; cust_no++) {
        crc ^= (unsigned char)*cust_no;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? UINT32_C(0xedb88320) : 0);
    }
    return (uint16_t)(~crc % TL_FLEET_SLOTS);
}

static size_t named(const char *name, char *const names[], size_t count)
{
    for (size_t i = 0; name != NULL && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return MAP_NOBODY;
}

slot_claim map_claim_of(const char *state)
{
    if (strcmp(state, "owned") == 0 || strcmp(state, "leaving") == 0)
        return SLOT_HAD;
    return strcmp(state, "gone") == 0 ? SLOT_GONE : SLOT_NONE;
}

int map_take(slot_map *to, const db_result *rows, char *const names[], size_t count)
{
    for (size_t row = 0; row < rows->rows; row++)
        if (db_get_uint(rows, row, 0) >= TL_FLEET_SLOTS || db_is_null(rows, row, 1))
            return 0;
    memset(to->slot, 0, sizeof to->slot);
    for (size_t row = 0; row < rows->rows; row++) {
        slot_said *slot = &to->slot[db_get_uint(rows, row, 0)];

        slot->claim = map_claim_of(db_get_text(rows, row, 1));
        slot->version = db_get_uint(rows, row, 2);
        slot->other = named(db_get_text(rows, row, 3), names, count);
    }
    to->is_read = 1;
    return 1;
}

/* Of one version both ends of a move speak: whoever has it knows more than whoever gave it away. */
static int says_more(const slot_said *said, const slot_said *than)
{
    if (said->claim == SLOT_NONE)
        return 0;
    return than == NULL || said->version > than->version ||
           (said->version == than->version && said->claim > than->claim);
}

void map_judge(slot_verdict *so_far, size_t shard, const slot_said *said)
{
    const slot_said *best = so_far->is_said ? &so_far->best : NULL;

    if (says_more(said, best)) {
        so_far->owner = said->claim == SLOT_HAD ? shard : said->other;
        so_far->best = *said;
        so_far->is_said = 1;
        so_far->is_twice = 0;
    } else if (best != NULL && said->claim == SLOT_HAD && best->claim == SLOT_HAD &&
               said->version == best->version) {
        so_far->is_twice = 1;
    }
}

size_t map_judged(const slot_verdict *of_all)
{
    return of_all->is_said && !of_all->is_twice ? of_all->owner : MAP_NOBODY;
}

size_t map_owner(const slot_map *const maps[], size_t count, unsigned slot, size_t *unread)
{
    slot_verdict verdict = {.is_said = 0};

    *unread = MAP_NOBODY;
    for (size_t i = 0; i < count; i++) {
        if (maps[i]->is_read)
            map_judge(&verdict, i, &maps[i]->slot[slot]);
        else
            *unread = i;
    }
    if (verdict.is_twice)
        *unread = MAP_NOBODY;
    return map_judged(&verdict);
}
