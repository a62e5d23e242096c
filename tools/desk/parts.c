/* Parts that several pages have.  Writes only. */
#include "parts.h"

#include <stdarg.h>
#include <string.h>

static const char *kind_of(tl_state state)
{
    switch (state) {
    case TL_STATE_IN_DOUBT:
        return "doubt";
    case TL_STATE_PARKED:
        return "bad";
    case TL_STATE_SUCCEEDED:
        return "good";
    case TL_STATE_LIVE:
    case TL_STATE_WORKING:
        return "live";
    default:
        return "calm";
    }
}

void part_state(struct page *page, const tl_view *view)
{
    page_format(page, "<span><span class=\"state %s\">%s</span>", kind_of(view->state),
                tl_state_name(view->state));
    if (view->conflict)
        page_put(page, " <span class=\"state bad\">conflict</span>");
    page_put(page, "</span>");
}

void part_trade_link(struct visit *visit, const tl_view *view)
{
    char text[SECRET_TEXT];
    struct ref ref;

    ref_of_trade(&ref, view->serial_no, view->cust_no, view->op_code);
    refs_keep(visit->desk->refs, &ref, text);
    page_format(&visit->answer->page, "<a class=\"serial\" href=\"/trade?r=%s\">%s</a>", text,
                view->serial_no);
}

void part_shard_column(struct visit *visit)
{
    if (visit_is_of_fleet(visit))
        page_put(&visit->answer->page, "<th scope=\"col\">Shard</th>");
}

void part_shard(struct visit *visit, size_t shard)
{
    if (visit_is_of_fleet(visit))
        page_format(&visit->answer->page, "<td data-l=\"Shard\">%s</td>",
                    shards_name(visit->session->shards, shard));
}

/* Rows stay where a customer went from, until a purge removes them. */
static void shard_of_row(struct visit *visit, const struct listed *listed, size_t i)
{
    const size_t owner = listed->owners != NULL ? listed->owners[i] : SHARD_NOBODY;

    if (owner == SHARD_NOBODY || owner == listed->shard)
        part_shard(visit, listed->shard);
    else
        page_format(
            &visit->answer->page,
            "<td data-l=\"Shard\">%s <span class=\"quiet\">the customer is at %s</span></td>",
            shards_name(visit->session->shards, listed->shard),
            shards_name(visit->session->shards, owner));
}

static void row(struct visit *visit, const struct listed *listed, size_t i)
{
    struct page *page = &visit->answer->page;
    const tl_view *view = &listed->rows.views[i];

    page_put(page, "<tr>");
    shard_of_row(visit, listed, i);
    page_put(page, "<td data-l=\"Serial\">");
    part_trade_link(visit, view);
    page_format(page, "</td><td data-l=\"Customer\">%s</td><td data-l=\"Operation\">%s</td>",
                view->cust_no, view->op_code);
    page_put(page, "<td data-l=\"State\">");
    part_state(page, view);
    page_put(page, "</td><td data-l=\"Amount\" class=\"number\">");
    page_money(page, view->amount_minor, view->currency);
    page_put(page, "</td><td data-l=\"Made\">");
    page_ago(page, view->created_us, view->now_us);
    page_put(page, "</td><td data-l=\"Changed\">");
    page_ago(page, view->updated_us, view->now_us);
    page_put(page, "</td><td data-l=\"Next\">");
    if (view->parked[0] != '\0')
        page_format(page, "a person: %s", view->parked);
    else if (view->status == 'P' && view->next_run_us != 0)
        page_ago(page, view->next_run_us, view->now_us);
    page_put(page, "</td></tr>\n");
}

void part_rows(struct visit *visit, const struct listed *listed, size_t count)
{
    struct page *page = &visit->answer->page;

    page_put(page, "<div class=\"scroll\"><table class=\"rows\"><thead><tr>");
    part_shard_column(visit);
    page_put(page, "<th scope=\"col\">Serial</th>"
                   "<th scope=\"col\">Customer</th><th scope=\"col\">Operation</th>"
                   "<th scope=\"col\">State</th><th scope=\"col\" class=\"number\">Amount</th>"
                   "<th scope=\"col\">Made</th><th scope=\"col\">Changed</th>"
                   "<th scope=\"col\">Next</th></tr></thead><tbody>\n");
    for (size_t at = 0; at < count; at++)
        for (size_t i = 0; i < listed[at].rows.count; i++)
            row(visit, &listed[at], i);
    page_put(page, "</tbody></table></div>\n");
}

/* Never rounded up: only where all succeeded it is 100. */
void part_rate(struct page *page, const tl_channel_state *state)
{
    const uint64_t ended = state->succeeded + state->declined + state->failed;
    const unsigned tenths = ended > 0 ? (unsigned)(state->succeeded * 1000 / ended) : 0;

    if (ended > 0)
        page_format(page, "%u.%u %%", tenths / 10, tenths % 10);
}

void part_probes(struct page *page, int64_t silent, int64_t probed_us, int probes, int64_t probe_us)
{
    if (probed_us == 0) {
        page_put(page, "No probe was made yet");
    } else {
        page_format(page, "Probes without an answer: %lld; %s ", (long long)silent,
                    probes ? "one goes on since" : "the last one began at");
        page_moment(page, probed_us);
    }
    if (probe_us != 0) {
        page_put(page,
                 probes ? ". The next one begins no later than " : ". The next one may begin at ");
        page_moment(page, probe_us);
    }
    page_put(page, ".");
}

void part_command(struct page *page, const char *first, ...)
{
    va_list words;

    page_put(page, "<p class=\"command\"><code>");
    va_start(words, first);
    for (const char *word = first; word != NULL; word = va_arg(words, const char *)) {
        if (word != first)
            page_put(page, " ");
        page_shell(page, word);
    }
    va_end(words);
    page_put(page, "</code></p>\n");
}
