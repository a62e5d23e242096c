#include "support/theme.h"

#include <stdlib.h>
#include <string.h>

static int tier_is(const char *name)
{
    const char *tier = getenv("TL_TEST_TIER");

    return tier != NULL && strcmp(tier, name) == 0;
}

int tier_is_long(void)
{
    return tier_is("long");
}

unsigned tier_pick(unsigned first, unsigned deep, unsigned full)
{
    if (tier_is_long())
        return full;
    return tier_is("first") ? first : deep;
}
