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

#ifdef __SANITIZE_THREAD__
#define UNDER_THREAD_SANITIZER 1
#else
#define UNDER_THREAD_SANITIZER 0
#endif

/* ThreadSanitizer notices a race whether or not it does harm, so a share of the runs shows it. */
unsigned tier_pick(unsigned first, unsigned deep, unsigned full)
{
    if (tier_is_long())
        return full;
    return tier_is("first") || UNDER_THREAD_SANITIZER ? first : deep;
}

void theme_spare_programs(void)
{
    if (getenv("TL_LEAKS") == NULL)
        (void)setenv("ASAN_OPTIONS", "detect_leaks=0:malloc_context_size=5", 0);
}
