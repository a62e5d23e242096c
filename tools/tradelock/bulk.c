/*
 * A change of many rows: what it would do is shown, the number is agreed, each row is done under
 * the fence that was seen, and one act tells of all.  SIGINT and SIGTERM stop it between two rows.
 */
#include "bulk.h"

#include "list_print.h"
#include "print.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_EVERY_S 10

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

/* A second signal ends the program at once. */
static void stop_between_rows(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ----------------------------------------------------------------- preview -- */

static const char *many(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void show(const struct bulk *self)
{
    fputs("Would ", stdout);
    fputs(self->verb, stdout);
    putchar(' ');
    list_print_totals(&self->money);
    if (self->apart[0] != '\0')
        printf("%s\n", self->apart);
    if (self->count == 0)
        return;
    putchar('\n');
    table_print(self->examples);
    if (self->count > BULK_EXAMPLES)
        printf("and %" PRIu64 " more\n", self->count - BULK_EXAMPLES);
    fflush(stdout);
}

/* --------------------------------------------------------------- agreement -- */

static int is_agreed(const struct bulk *self, uint64_t number)
{
    if (number == self->count)
        return 1;
    fprintf(stderr,
            "tradelock: nothing was changed: it would be %" PRIu64 " trade%s, not %" PRIu64 "\n",
            self->count, many(self->count), number);
    return 0;
}

/* The number, typed on the terminal. */
static int ask(const struct bulk *self)
{
    char line[32];
    uint64_t number;

    fprintf(stderr, "\nType %" PRIu64 " to %s them, anything else to leave them: ", self->count,
            self->verb);
    if (fgets(line, sizeof line, stdin) == NULL)
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (read_number(line, UINT64_MAX, &number))
        return is_agreed(self, number);
    fputs("tradelock: nothing was changed\n", stderr);
    return 0;
}

static int agree(const struct bulk *self)
{
    if (self->has_yes)
        return is_agreed(self, self->yes);
    if (isatty(STDIN_FILENO))
        return ask(self);
    fprintf(stderr, "tradelock: nothing was changed: the same with --yes %" PRIu64 " does it\n",
            self->count);
    return 0;
}

/* ---------------------------------------------------------------- progress -- */

struct progress {
    time_t told;
    int terminal;
};

static void tell_progress(struct progress *p, uint64_t row, uint64_t count)
{
    const time_t now = time(NULL);

    if (p->told == 0)
        p->told = p->terminal ? now - 1 : now;
    if (now - p->told < (p->terminal ? 1 : LINE_EVERY_S))
        return;
    p->told = now;
    fprintf(stderr,
            p->terminal ? "\r%" PRIu64 " of %" PRIu64 " "
                        : "tradelock: %" PRIu64 " of %" PRIu64 "\n",
            row, count);
}

/* ------------------------------------------------------------------- doing -- */

struct outcome {
    uint64_t act_no, done, skipped;
    tl_status status; /* why it broke off */
    char sentence[1024];
};

static uint64_t left_of(const struct bulk *self, const struct outcome *o)
{
    return self->count - o->done - o->skipped;
}

static void do_rows(const struct bulk *self, tl_client *client, struct outcome *o)
{
    struct progress progress = {.terminal = isatty(STDERR_FILENO)};

    for (uint64_t row = 0; row < self->count && !stopped && o->status == TL_OK; row++) {
        const tl_status status = self->each(self->context, client, o->act_no, row);

        if (status == TL_OK || status == TL_IN_CONFLICT)
            o->done++;
        else if (self->is_of_row(status))
            o->skipped++;
        else
            o->status = status;
        tell_progress(&progress, row + 1, self->count);
    }
    if (o->status != TL_OK)
        snprintf(o->sentence, sizeof o->sentence, "%s", tl_error_message());
    if (progress.terminal)
        fputs("\r\033[K", stderr);
}

/* The record is true without its end, which tells that nothing more follows. */
static void end_act(const struct bulk *self, tl_client *client, struct outcome *o)
{
    char counts[64];

    snprintf(counts, sizeof counts, "left=%" PRIu64, left_of(self, o));
    if (tl_act_end(client, o->act_no, counts) != TL_OK)
        fprintf(stderr, "tradelock: the record of act %" PRIu64 " has no end: %s\n", o->act_no,
                tl_error_message());
}

static int print_document(const struct bulk *self, const struct outcome *o, int code)
{
    json_t *document =
        json_pack("{s:o, s:I, s:o, s:O, s:I, s:I, s:I}", "act",
                  o->act_no != 0 ? json_integer((json_int_t)o->act_no) : json_null(), "planned",
                  (json_int_t)self->count, "money", list_json_money(&self->money), "examples",
                  self->examples_json, "done", (json_int_t)o->done, "skipped",
                  (json_int_t)o->skipped, "left", (json_int_t)left_of(self, o));

    json_object_update(document, self->apart_json);
    return print_json(document, code);
}

static int print_outcome(const struct bulk *self, const struct common *common,
                         const struct outcome *o)
{
    const uint64_t left = left_of(self, o);
    int code = o->skipped > 0 || left > 0 ? EXIT_REFUSED : EXIT_DONE;

    if (o->status != TL_OK) {
        fprintf(stderr, "tradelock: %s\n", o->sentence);
        code = exit_code_of(o->status);
    }
    if (common->json)
        return print_document(self, o, code);
    printf("%s%" PRIu64 " of %" PRIu64 " done", self->has_yes ? "" : "\n", o->done, self->count);
    if (o->skipped > 0)
        printf(", %" PRIu64 " left alone since they moved on", o->skipped);
    if (left > 0)
        printf(", %" PRIu64 " not reached: the same again goes on", left);
    printf("; on record as act %" PRIu64 "\n", o->act_no);
    return finish_output(code);
}

static int print_undone(const struct bulk *self, const struct common *common, int code)
{
    const struct outcome nothing = {.act_no = 0};

    return common->json ? print_document(self, &nothing, code) : finish_output(code);
}

int bulk_run(struct bulk *self, tl_client *client, const struct common *common)
{
    struct outcome o = {.status = TL_OK};
    tl_status status;

    self->money.rows = self->money.trades;
    if (!common->json)
        show(self);
    if (self->count == 0)
        fputs("tradelock: there is nothing to do\n", stderr);
    if (self->count == 0 || !agree(self))
        return print_undone(self, common, self->count == 0 ? self->code_of_none : EXIT_REFUSED);
    stop_between_rows();
    self->act.version = TL_ACT_VERSION;
    self->act.planned = self->count;
    status = tl_act_begin(client, &self->act, &o.act_no);
    if (status != TL_OK)
        return report(status);
    do_rows(self, client, &o);
    end_act(self, client, &o);
    return print_outcome(self, common, &o);
}
