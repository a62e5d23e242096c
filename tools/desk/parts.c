/* Parts that several pages have.  Writes only. */
#include "parts.h"

#include "print.h"

#include <string.h>

static const char *kind_of(tl_state state)
{
    static const char *const kinds[TL_STATE_CLOSED + 1] = {[TL_STATE_IN_DOUBT] = "doubt",
                                                           [TL_STATE_PARKED] = "bad",
                                                           [TL_STATE_SUCCEEDED] = "good",
                                                           [TL_STATE_LIVE] = "live",
                                                           [TL_STATE_WORKING] = "live"};

    return kinds[state] != NULL ? kinds[state] : "calm";
}

const char *part_state_words(tl_state state)
{
    return state == TL_STATE_SUCCEEDED ? "paid"
           : state == TL_STATE_PARKED  ? "waits for a person"
                                       : tl_state_name(state);
}

void part_state(struct visit *visit, const void *view)
{
    struct page *page = &visit->answer->page;
    const tl_view *trade = view;

    page_format(page, "<span><span class=\"state %s\">%s</span>", kind_of(trade->state),
                part_state_words(trade->state));
    if (trade->conflict)
        page_put(page, " <span class=\"state bad\">conflict</span>");
    page_put(page, "</span>");
}

void part_ref(struct visit *visit, const tl_key *key, char to[SECRET_TEXT])
{
    struct ref ref;

    ref_of_trade(&ref, key->serial_no, key->cust_no, key->op_code);
    refs_keep(visit->desk->refs, &ref, to);
}

void part_link(struct visit *visit, const tl_key *key, const char *path)
{
    char text[SECRET_TEXT];

    part_ref(visit, key, text);
    page_format(&visit->answer->page, "<a class=\"serial\" href=\"%s?r=%s\">%s</a>", path, text,
                key->serial_no);
}

void part_trade_link(struct visit *visit, const void *view)
{
    const tl_view *trade = view;

    part_link(visit, &(tl_key){trade->serial_no, trade->cust_no, trade->op_code}, "/trade");
}

void part_sums(struct page *page, const tl_list_end *sums)
{
    uint64_t without = sums->trades;

    for (unsigned i = 0; i < sums->money_count; i++) {
        char amount[TL_AMOUNT_TEXT];

        without -= sums->money[i].trades;
        page_put(page, i > 0 ? ", " : ": ");
        page_money(page, tl_sum_text(amount, sums->money[i].sum_minor, sums->money[i].currency));
    }
    if (without > 0)
        page_format(page, "%s%s without amount", sums->money_count > 0 ? ", " : ": ",
                    COUNT_TEXT(without));
}

void part_sum_line(struct page *page, const char *what, const tl_list_end *sum)
{
    page_format(page, "<p>%s %s", what, COUNT_TEXT(sum->trades));
    part_sums(page, sum);
    page_put(page, "</p>\n");
}

/* FNV-1a, each text with its end: whoever changes what they see deceives nobody but themselves. */
uint64_t part_seen(uint64_t seen, const char *text)
{
    do
        seen = (seen ^ (unsigned char)*text) * UINT64_C(1099511628211);
    while (*text++ != '\0');
    return seen;
}

/* -------------------------------------------------------------------------- channels -- */

void part_channel_id(struct page *page, const char *shard, const char *channel, const char *op_code)
{
    page_format(page, "channel-%s-%s-%s", shard, channel, op_code);
}

void part_channel_button(struct page *page, const char *shard, const char *channel,
                         const char *op_code, const char *kind, const char *words)
{
    page_format(page, "<a class=\"button%s\" href=\"/channels#", kind);
    part_channel_id(page, shard, channel, op_code);
    page_format(page, "\">%s</a>\n", words);
}

void part_probes(struct page *page, const tl_pause_row *row)
{
    if (row->probed_us == 0) {
        page_put(page, "No probe was made yet");
    } else {
        page_format(page, "Probes without an answer: %lld; %s ", (long long)row->silent_probes,
                    row->probes ? "one goes on since" : "the last one began at");
        page_moment(page, row->probed_us);
    }
    if (row->probe_us != 0) {
        page_put(page, row->probes ? ". The next one begins no later than "
                                   : ". The next one may begin at ");
        page_moment(page, row->probe_us);
    }
    page_put(page, ".");
}

/* ----------------------------------------------------------------------------- forms -- */

int part_may_decide(struct visit *visit)
{
    if (!visit->account.may_decide)
        page_put(&visit->answer->page,
                 "<p class=\"notice\">Your account may look, and not decide.</p>\n");
    return visit->account.may_decide;
}

void part_problem(struct page *page, const char *problem, const char *what_follows)
{
    if (problem != NULL)
        page_format(
            page,
            "<p class=\"notice bad\" role=\"alert\"><strong>Nothing was done.</strong> %s %s"
            "</p>\n",
            problem, what_follows);
}

void part_form_of(struct visit *visit, const char *path, const char *const *fields)
{
    struct page *page = &visit->answer->page;

    page_format(page, "<form method=\"post\" action=\"%s\">\n", path);
    layout_token(visit);
    for (; fields[0] != NULL; fields += 2)
        if (fields[1][0] != '\0')
            page_format(page, "<input type=\"hidden\" name=\"%s\" value=\"%s\">\n", fields[0],
                        fields[1]);
}

void part_form_end(struct page *page, const char *id, const char *reason, const char *button)
{
    if (id != NULL)
        page_format(page,
                    "<label for=\"%s\">Reason, for the record</label>"
                    "<input id=\"%s\" name=\"reason\" maxlength=\"%d\" required "
                    "autocomplete=\"off\" value=\"%s\">\n",
                    id, id, TL_REMARK_MAX, reason);
    page_format(page, "<button class=\"button main\">%s</button>\n</form>\n", button);
}

/* An option begins with a dash, which needs no quotes; nothing else of ours does. */
static void put_word(struct page *page, const char *word)
{
    const size_t dashes = strspn(word, "-");
    char quoted[4 * TL_RESOURCE_MAX + 3];

    page_bytes(page, word, dashes);
    tl_shell_quote(quoted, sizeof quoted, word + dashes);
    page_text(page, quoted);
}

void part_command_of(struct page *page, const char *const *words)
{
    page_put(page, "<p class=\"command\"><code>tradelock");
    for (; *words != NULL; words++) {
        if (strncmp(words[0], "--", 2) == 0 && words[1] != NULL && words[1][0] == '\0') {
            words++;
            continue;
        }
        page_put(page, " ");
        put_word(page, *words);
    }
    page_put(page, "</code></p>\n");
}

void part_bar(struct page *page, const char *name, const struct part_segment *segments,
              size_t count, uint64_t longest)
{
    double x = 0;

    page_format(page, "<div class=\"bar-row\"><span class=\"bar-name\">%s</span>", name);
    page_put(page, "<svg class=\"bar-chart\" role=\"img\" height=\"18\"><title>");
    for (size_t i = 0; i < count; i++)
        page_format(page, "%s%s: %s", i > 0 ? ", " : "", segments[i].name,
                    COUNT_TEXT(segments[i].count));
    page_put(page, "</title>");
    for (size_t i = 0; i < count; i++) {
        const double width = (double)segments[i].count / (double)longest;

        if (segments[i].count == 0)
            continue;
        page_format(page, "<rect class=\"%s\" y=\"1\" height=\"16\" x=\"", segments[i].colour);
        page_percent(page, x);
        page_put(page, "\" width=\"");
        page_percent(page, width);
        page_put(page, "\"/>");
        x += width;
    }
    page_put(page, "</svg><span class=\"bar-value\">");
}

void part_legend(struct page *page, const struct part_segment *segments, size_t count)
{
    page_put(page, "<ul class=\"legend\">");
    for (size_t i = 0; i < count; i++)
        page_format(page,
                    "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect "
                    "class=\"%s\" width=\"12\" height=\"12\" rx=\"3\"/></svg>%s</li>",
                    segments[i].colour, segments[i].name);
}
