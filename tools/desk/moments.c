/* Gathers the moments of a trade's history, and writes the slider over them.  Touches memory
 * only. */
#include "moments.h"

#include <stdlib.h>

static int by_moment(const void *one, const void *other)
{
    const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;

    return (a > b) - (a < b);
}

int moments_of(struct moments *moments, const struct trade *trade)
{
    const size_t most = trade->step_count + trade->evidence_count + trade->half_count;
    size_t count = 0;

    moments->count = 0;
    moments->us = calloc(most + 1, sizeof *moments->us);
    if (moments->us == NULL)
        return 0;
    for (size_t i = 0; i < trade->step_count; i++)
        moments->us[count++] = trade->steps[i].logged_us;
    for (size_t i = 0; i < trade->evidence_count; i++)
        moments->us[count++] = trade->evidence[i].filed_us;
    for (size_t i = 0; i < trade->half_count; i++)
        moments->us[count++] = trade->halves[i].decided_us;
    qsort(moments->us, count, sizeof *moments->us, by_moment);
    for (size_t i = 0; i < count; i++)
        if (moments->count == 0 || moments->us[moments->count - 1] != moments->us[i])
            moments->us[moments->count++] = moments->us[i];
    return 1;
}

void moments_free(struct moments *moments)
{
    free(moments->us);
    moments->us = NULL;
    moments->count = 0;
}

int64_t moments_at(const struct moments *moments, const char *place)
{
    const unsigned long at = strtoul(place, NULL, 10);

    return at < moments->count ? moments->us[at] : 0;
}

/* The last moment that is not later; behind all: now. */
static size_t place_of(const struct moments *moments, int64_t as_of_us)
{
    size_t place = 0;

    if (as_of_us == 0)
        return moments->count;
    while (place + 1 < moments->count && moments->us[place + 1] <= as_of_us)
        place++;
    return place;
}

static void moment_link(struct page *page, const struct moments *moments, size_t place,
                        const char *ref, const char *rel, const char *name)
{
    page_format(page, "<a class=\"button\" rel=\"%s\" href=\"/trade?r=%s", rel, ref);
    if (place < moments->count)
        page_format(page, "&amp;at=%lld", (long long)moments->us[place]);
    page_format(page, "\">%s</a>\n", name);
}

static void slider(struct page *page, const struct moments *moments, size_t place, int64_t as_of_us,
                   const char *ref)
{
    char when[TL_MOMENT_TEXT];

    page_put(page, "<form class=\"slide\" method=\"get\" action=\"/trade\">\n");
    page_format(page,
                "<input type=\"hidden\" name=\"r\" value=\"%s\">"
                "<label for=\"moment\">Moment %zu of %zu, the last is now</label>"
                "<input type=\"range\" id=\"moment\" name=\"step\" min=\"0\" max=\"%zu\" "
                "value=\"%zu\" aria-valuetext=\"%s\">",
                ref, place + 1, moments->count + 1, moments->count, place,
                as_of_us != 0 ? tl_moment_text(when, as_of_us, 6) : "now");
    page_put(page, "<button class=\"button\">Show</button></form>\n");
}

void moments_write(struct page *page, const struct moments *moments, int64_t as_of_us,
                   const char *ref)
{
    const size_t place = place_of(moments, as_of_us);

    page_put(page, "<section class=\"card past\" aria-label=\"Any past moment\">\n");
    slider(page, moments, place, as_of_us, ref);
    page_put(page, "<div class=\"moves\" data-part>");
    if (place > 0)
        moment_link(page, moments, place - 1, ref, "prev", "Before");
    if (place < moments->count)
        moment_link(page, moments, place + 1, ref, "next", "After");
    if (place < moments->count)
        moment_link(page, moments, moments->count, ref, "last", "Now");
    page_put(page, "</div>\n<form class=\"when\" method=\"get\" action=\"/trade\">");
    page_format(page,
                "<input type=\"hidden\" name=\"r\" value=\"%s\"><label for=\"at\">Or any moment, "
                "in UTC</label><input id=\"at\" name=\"at\" maxlength=\"40\" autocomplete=\"off\" "
                "placeholder=\"2026-03-01 09:30:00.125, or 2h\">"
                "<button class=\"button\">Show</button></form>\n</section>\n",
                ref);
}
