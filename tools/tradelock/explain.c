/* tradelock explain: why a trade is where it is, in sentences, and what may be done.  `show` begins
 * with the same. */
#include "explain.h"

#include "fleet.h"
#include "fleet_map.h"
#include "nearest.h"
#include "print.h"
#include "wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL 9

int is_in_doubt_or_parked(const tl_view *view)
{
    return view->state == TL_STATE_IN_DOUBT || view->state == TL_STATE_PARKED;
}

int is_past_deadline(const tl_view *view)
{
    return view->deadline_us != 0 && view->now_us >= view->deadline_us;
}

/* --------------------------------------------------------------------- reading -- */

void explained_take(struct explained *explained, const tl_sentence *sentence)
{
    explained->view = *sentence->view;
    json_array_append_new(explained->sentences,
                          json_pack("{s:s, s:o, s:o}", "topic", tl_topic_name(sentence->topic),
                                    "text", json_text(sentence->text), "command",
                                    json_text(sentence->command)));
}

static int take_sentence(void *context, const tl_sentence *sentence)
{
    explained_take(context, sentence);
    return 0;
}

void explained_free(struct explained *explained)
{
    json_decref(explained->sentences);
    explained->sentences = NULL;
}

static const char *text_of(const json_t *sentence, const char *name)
{
    const char *text = json_string_value(json_object_get(sentence, name));

    return text != NULL ? text : "";
}

json_t *explained_text(const struct explained *explained)
{
    char *text = NULL;
    size_t size = 0, i;
    FILE *to = open_memstream(&text, &size);
    json_t *sentence, *all = NULL;

    if (to == NULL)
        return NULL;
    json_array_foreach(explained->sentences, i, sentence)
        fprintf(to, "%s%s", i > 0 ? "  " : "", text_of(sentence, "text"));
    if (fclose(to) == 0)
        all = json_text(text);
    free(text);
    return all;
}

/* -------------------------------------------------------------------- printing -- */

static const char *label_of(const char *topic)
{
    static const char *const labels[][2] = {{"state", "Why"},  {"channel", "Channel"},
                                            {"before", "Who"}, {"next", "Next"},
                                            {"end", "Y or F"}, {"act", "You may"}};

    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        if (strcmp(labels[i][0], topic) == 0)
            return labels[i][1];
    return "";
}

static void print_quoted(const char *file)
{
    const size_t space = 4 * strlen(file) + 3;
    char *quoted = malloc(space);

    if (quoted != NULL) {
        (void)tl_shell_quote(quoted, space, file);
        printf(" --config %s", quoted);
    }
    free(quoted);
}

/* The command as it can be typed here: with the settings that this one was given. */
static void print_command(const char *command, const struct common *common)
{
    if (command[0] == '\0')
        return;
    printf("%*s%s", LABEL + 2, "", command);
    if (common->config_file != NULL)
        print_quoted(common->config_file);
    putchar('\n');
}

void explained_print(const struct explained *explained, const struct common *common)
{
    const char *last = "";
    json_t *sentence;
    size_t i;

    json_array_foreach(explained->sentences, i, sentence)
    {
        const char *topic = text_of(sentence, "topic");

        wrap_print(strcmp(topic, last) != 0 ? label_of(topic) : "", LABEL,
                   text_of(sentence, "text"));
        print_command(text_of(sentence, "command"), common);
        last = topic;
    }
}

static void print_head(const tl_view *view)
{
    char amount[AMOUNT_TEXT], when[TIME_TEXT];

    amount_text(amount, view->amount_minor, view->currency);
    printf("%s %s %s at %s; times are UTC\n%c, %s%s%s; fence %llu\n\n", view->serial_no,
           view->cust_no, view->op_code, time_text(when, view->now_us), view->status,
           tl_state_name(view->state), amount[0] != '\0' ? "; minor units: " : "", amount,
           (unsigned long long)view->fence);
}

static int print_explained_json(const struct explained *explained, int code)
{
    const tl_view *view = &explained->view;
    const char status[2] = {view->status, '\0'};

    return print_json(fleet_row(json_pack(
                          "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:O}", "serial_no", view->serial_no,
                          "cust_no", view->cust_no, "op_code", view->op_code, "status", status,
                          "state", tl_state_name(view->state), "fence", json_unsigned(view->fence),
                          "read_at", json_time(view->now_us), "sentences", explained->sentences)),
                      code);
}

static int work(tl_client *client, const struct common *common, const tl_key *key)
{
    struct explained explained = {.sentences = json_array()};
    tl_status status = tl_explain(client, key, take_sentence, &explained);
    int code;

    if (status != TL_OK) {
        explained_free(&explained);
        return report_trade(client, status, key);
    }
    code = is_in_doubt_or_parked(&explained.view) ? EXIT_OPEN : EXIT_DONE;
    if (common->json) {
        code = print_explained_json(&explained, code);
    } else {
        print_head(&explained.view);
        explained_print(&explained, common);
        code = finish_output(code);
    }
    explained_free(&explained);
    return code;
}

static int run(const struct command *self, struct common *common, int argc, char **argv)
{
    tl_client *client = NULL;
    tl_key key;
    int code = read_key(self, &key, argc, argv);

    if (code == EXIT_DONE)
        code = fleet_begin(common);
    if (code == EXIT_DONE)
        code = fleet_owner(&client, key.cust_no);
    if (code == EXIT_DONE)
        code = work(client, common, &key);
    fleet_end();
    return code;
}

const struct command command_explain = {
    .name = "explain",
    .summary = "why a trade is where it is, what happens next, and what you may do",
    .arguments = "SERIAL CUST OP [--json]",
    .text = "Tells in sentences who holds the trade until when, what the channel was asked and\n"
            "said, who tried before, what happens next, what would make it Y or F, and what an\n"
            "operator may do now, with the command.  Exit code 6 when the trade is in doubt or\n"
            "parked.\n",
    .run = run,
    .takes_operands = 1,
};
