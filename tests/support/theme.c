#include "support/theme.h"

#include "support/server.h"

#include <fnmatch.h>
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

/* Of AddressSanitizer, which calls it: what was freed is watched until 16 MiB more are freed, and
 * pages are not given back to the system. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=16:thread_local_quarantine_size_kb=64:malloc_context_size=8:"
           "allocator_release_to_os_interval_ms=-1:max_uar_stack_size_log=17";
}

void theme_spare_programs(void)
{
    if (getenv("TL_LEAKS") == NULL)
        (void)setenv("ASAN_OPTIONS", "detect_leaks=0:malloc_context_size=5", 0);
}

struct text text_of(const char *format, ...)
{
    struct text text;
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(text.is, sizeof text.is, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof text.is)
        server_panic("no room for the text %s...", text.is);
    return text;
}

static struct test *tests; /* of the folder, by their lines */

void test_add(struct test *self)
{
    struct test **at = &tests;

    while (*at != NULL && (*at)->line < self->line)
        at = &(*at)->next;
    self->next = *at;
    *at = self;
}

static const char *chosen = "*";

void tests_choose(const char *pattern)
{
    chosen = pattern;
    cmocka_set_test_filter(pattern);
}

int tests_run_file(const char *file, test_fixture set_up, test_fixture tear_down)
{
    static struct CMUnitTest of_file[100];
    size_t count = 0, matching = 0;

    for (const struct test *test = tests; test != NULL; test = test->next) {
        if (strcmp(test->file, file) != 0 || count == sizeof of_file / sizeof of_file[0])
            continue;
        matching += fnmatch(chosen, test->cmocka.name, 0) == 0;
        of_file[count++] = test->cmocka;
    }
    assert_in_range(count, 1, sizeof of_file / sizeof of_file[0] - 1);
    if (matching == 0)
        server_panic("no test of %s has a name like %s", file, chosen);
    return server_run_group(file, of_file, count, set_up, tear_down);
}
