/* What anybody wrote becomes text of a page, whatever its bytes are and wherever they end. */
#include "page.h"

#include "support/theme.h"

#include <stdlib.h>

static const struct {
    const char *bytes;
    size_t size;
    const char *shown;
} cases[] = {
    {"a<b>&\"'", 7, "a&lt;b&gt;&amp;&quot;&#39;"},
    {"\xe2\x82\xac \xf0\x9f\x98\x80", 8, "\xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\0\x1b\x7f\xc2\x85", 5, "\\u{0}\\u{1b}\\u{7f}\\u{85}"},
    {"\xe2\x80\xae", 3, "\\u{202e}"},
    /* No UTF-8: over-long, a surrogate, beyond Unicode, a byte that begins nothing. */
    {"\xc0\xaf", 2, "\\xc0\\xaf"},
    {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},
    {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"},
    {"\xbf", 1, "\\xbf"},
    /* They end within a character. */
    {"a\xc3", 2, "a\\xc3"},
    {"\xe2\x82", 2, "\\xe2\\x82"},
    {"\xf0\x9f\x98", 3, "\\xf0\\x9f\\x98"},
};

TEST(bytes_of_anybody)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct page page = {.text = NULL};
        char *bytes = malloc(cases[i].size); /* nothing stands behind them */

        assert_non_null(bytes);
        memcpy(bytes, cases[i].bytes, cases[i].size);
        page_bytes(&page, bytes, cases[i].size);
        assert_false(page.failed);
        assert_string_equal(page.text, cases[i].shown);
        page_free(&page);
        free(bytes);
    }
}

TESTS_OF(page, NULL, NULL)
