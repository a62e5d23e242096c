/* tradelock explain: why a trade is where it is, in sentences, and what may be done.  `show` begins
 * with the same. */
#include "explain.h"

#include "find.h"
#include "fleet.h"
#include "nearest.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Wraps text at blanks.  Prints. */

#define COLUMNS_LEAST 40

/* The columns of the terminal, or what COLUMNS says, at least 40; 0: the output is no terminal, and
 * lines may be of any length, so that a search finds what stands in them. */
static unsigned terminal_columns(void)
{
    const char *said = getenv("COLUMNS");
    struct winsize size;
    unsigned columns = 0;

    if (said != NULL)
        columns = (unsigned)strtoul(said, NULL, 10);
    else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return columns > 0 && columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
}

/* The text behind a label of that width, wrapped at blanks.  Bytes that a terminal would obey are
 * shown as \x1b. */
static void wrap_print(const char *label, unsigned width, const char *text)
{
    const unsigned columns = terminal_columns();
    unsigned at = width;

    printf("%-*s", (int)width, label);
    for (size_t size; *text != '\0'; text += size) {
        unsigned wide;

        text += strspn(text, " ");
        size = strcspn(text, " ");
        wide = (unsigned)text_width(text, size);
        if (columns > 0 && at > width && at + 1 + wide > columns) {
            printf("\n%*s", (int)width, "");
            at = width;
        } else if (at > width) {
            putchar(' ');
            at++;
        }
        print_harmless(text, size);
        at += wide;
    }
    putchar('\n');
}

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
static void print_command(const char *command)
{
    if (command[0] == '\0')
        return;
    printf("%*s%s", LABEL + 2, "", command);
    if (common.config_file != NULL)
        print_quoted(common.config_file);
    putchar('\n');
}

void explained_print(const struct explained *explained)
{
    const char *last = "";
    json_t *sentence;
    size_t i;

    json_array_foreach(explained->sentences, i, sentence)
    {
        const char *topic = text_of(sentence, "topic");

        wrap_print(strcmp(topic, last) != 0 ? label_of(topic) : "", LABEL,
                   text_of(sentence, "text"));
        print_command(text_of(sentence, "command"));
        last = topic;
    }
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

struct asked {
    struct explained explained;
    char contents[1024]; /* what was asked for, of which the payee is a part; "": it is no text */
};

static int take_sentence(void *context, const tl_sentence *sentence)
{
    struct asked *asked = context;

    explained_take(&asked->explained, sentence);
    return 0;
}

static int take_row(void *context, const tl_view *view)
{
    struct asked *asked = context;

    snprintf(asked->contents, sizeof asked->contents, "%.*s", (int)view->payload_size,
             view->payload != NULL ? (const char *)view->payload : "");
    if (strlen(asked->contents) != view->payload_size)
        asked->contents[0] = '\0';
    return 0;
}

static void print_asked(const struct asked *asked)
{
    const tl_view *view = &asked->explained.view;
    char amount[TL_AMOUNT_TEXT], when[TIME_TEXT];

    tl_amount_text(amount, view->amount_minor, view->currency);
    printf("%s %s %s at %s\n%c, %s%s%s; fence %llu\n\n", view->serial_no, view->cust_no,
           view->op_code, time_text(when, view->now_us), view->status, tl_state_name(view->state),
           amount[0] != '\0' ? "; " : "", amount, (unsigned long long)view->fence);
    if (view->label[0] != '\0')
        wrap_print("Label", LABEL, view->label);
    if (asked->contents[0] != '\0')
        wrap_print("For", LABEL, asked->contents);
    explained_print(&asked->explained);
}

static int work(tl_client *client)
{
    struct asked asked = {.explained = {.sentences = json_array()}};
    struct explained *explained = &asked.explained;
    tl_trade_each each = TL_TRADE_EACH_INIT;
    tl_key key;
    int code = find_trade(&client, &key);
    tl_status status = TL_OK;

    each.row = take_row;
    each.sentence = take_sentence;
    if (code == EXIT_DONE)
        status = tl_trade_read(client, &key, &each, &asked, NULL);
    if (status != TL_OK)
        code = report_trade(client, status, &key);
    if (code == EXIT_DONE) {
        code = is_in_doubt_or_parked(&explained->view) || explained->view.conflict ? EXIT_OPEN
                                                                                   : EXIT_DONE;
        if (!common.json)
            print_asked(&asked);
        code = common.json ? print_explained_json(explained, code) : finish_output(code);
    }
    explained_free(explained);
    return code;
}

const struct command command_explain = {
    .name = "explain",
    .summary = "why a trade is where it is, what happens next, and what you may do",
    .arguments = "SERIAL [CUST [OP]] [--json]",
    .text = "Tells in sentences who holds the trade until when, what the channel was asked and\n"
            "said, who tried before, what happens next, what would make it Y or F, and what an\n"
            "operator may do now, with the command.  A serial number alone, or its beginning,\n"
            "finds the trade.  Exit code 6 when the trade is in doubt, parked or in conflict.\n",
    .examples = "  tradelock explain W2024001\n",
    .check = find_check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
};
