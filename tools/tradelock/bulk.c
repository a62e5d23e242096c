/*
 * A change of many rows: what it would do is shown, the number is agreed, each row is done under
 * the fence that was seen, and one act tells of all.  SIGINT and SIGTERM stop it between two rows.
 */
#include "bulk.h"

#include "fleet.h"
#include "list_print.h"
#include "print.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
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

void bulk_leave_out(struct bulk *self, const tl_key *key, const char *why)
{
    if (self->left_out == NULL)
        self->left_out = json_array();
    json_array_append_new(
        self->left_out,
        fleet_row(json_pack("{s:s, s:s, s:s, s:s}", "serial_no", key->serial_no, "cust_no",
                            key->cust_no, "op_code", key->op_code, "why", why)));
}

/* Those from `first` on, by name. */
static void print_left_out(const struct bulk *self, size_t first)
{
    const size_t count = json_array_size(self->left_out);
    const char *serial_no, *cust_no, *op_code, *why;

    for (size_t i = first; i < count && i < first + BULK_EXAMPLES; i++)
        if (json_unpack(json_array_get(self->left_out, i), "{s:s, s:s, s:s, s:s}", "serial_no",
                        &serial_no, "cust_no", &cust_no, "op_code", &op_code, "why", &why) == 0)
            printf("Left alone: %s %s %s: %s.\n", serial_no, cust_no, op_code, why);
    if (count > first + BULK_EXAMPLES)
        printf("and %s more; --json names them all\n", COUNT_TEXT(count - first - BULK_EXAMPLES));
}

static void show(const struct bulk *self)
{
    fputs("Would ", stdout);
    fputs(self->verb, stdout);
    putchar(' ');
    list_print_totals(&self->money, "trade");
    if (self->apart[0] != '\0')
        printf("%s\n", self->apart);
    print_left_out(self, 0);
    if (self->count == 0)
        return;
    putchar('\n');
    table_print(self->examples);
    if (self->count > BULK_EXAMPLES)
        printf("and %s more\n", COUNT_TEXT(self->count - BULK_EXAMPLES));
    fflush(stdout);
}

/* ---------------------------------------------------------------- progress -- */

struct progress {
    struct bulk *bulk;
    time_t told;
    int terminal;
};

static void tell_progress(struct progress *p, uint64_t row)
{
    const time_t now = time(NULL);

    if (p->told == 0)
        p->told = p->terminal ? now - 1 : now;
    if (now - p->told < (p->terminal ? 1 : LINE_EVERY_S))
        return;
    p->told = now;
    fprintf(stderr, p->terminal ? "\r%s of %s " : "tradelock: %s of %s\n", COUNT_TEXT(row),
            COUNT_TEXT(p->bulk->count));
}

/* Names a row that was left alone, and ends the act where somebody wants that. */
static int hear(void *listener, uint64_t row, tl_status status)
{
    struct progress *progress = listener;
    struct bulk *bulk = progress->bulk;

    if (status != TL_OK && status != TL_IN_CONFLICT && bulk->run.is_of_row(status)) {
        tl_key key;

        bulk->name(bulk->run.context, row, &key);
        bulk_leave_out(bulk, &key, tl_error_message());
    }
    tell_progress(progress, row + 1);
    return stopped;
}

/* ------------------------------------------------------------------- doing -- */

struct outcome {
    uint64_t done, skipped;
    int code;     /* not 0: a database could not be asked, or broke off */
    json_t *acts; /* of each database */
    size_t act_count;
    uint64_t act_no; /* of the last one */
    size_t named;    /* of those that are left out, before anything was done */
};

static uint64_t left_of(const struct bulk *self, const struct outcome *o)
{
    return self->count - o->done - o->skipped;
}

struct doing {
    struct bulk *bulk;
    struct outcome *outcome;
};

static void add_outcome(struct outcome *o, const struct act_run *run)
{
    o->done += run->done;
    o->skipped += run->skipped;
    o->act_no = run->act_no;
    o->act_count++;
    json_array_append_new(
        o->acts, fleet_row(json_pack("{s:I, s:I, s:I, s:I}", "act", (json_int_t)run->act_no,
                                     "planned", (json_int_t)run->act.planned, "done",
                                     (json_int_t)run->done, "skipped", (json_int_t)run->skipped)));
}

/* The rows of one database. */
static int do_one(tl_client *client, void *context)
{
    const struct doing *doing = context;
    struct bulk *bulk = doing->bulk;
    struct progress progress = {.bulk = bulk, .terminal = isatty(STDERR_FILENO)};
    struct act_run run = bulk->run;
    tl_status status;
    int code = EXIT_DONE;

    for (size_t i = 0; bulk->of_shard != NULL && i < fleet_at(); i++)
        run.first += bulk->of_shard[i];
    run.act.version = TL_ACT_VERSION;
    run.act.planned = bulk->of_shard != NULL ? bulk->of_shard[fleet_at()] : bulk->count;
    if (run.act.planned == 0 || stopped)
        return EXIT_DONE;
    run.told = hear;
    run.listener = &progress;
    status = act_run(&run, client);
    if (run.act_no == 0)
        return fleet_told(status);
    if (progress.terminal)
        fputs("\r\033[K", stderr);
    if (status != TL_OK)
        code = report(status);
    if (run.no_end[0] != '\0')
        fprintf(stderr, "%sthe record of act %" PRIu64 " has no end: %s\n", fleet_said_by(),
                run.act_no, run.no_end);
    add_outcome(doing->outcome, &run);
    return code;
}

static int print_document(const struct bulk *self, const struct outcome *o, int code)
{
    json_t *document =
        json_pack("{s:o, s:I, s:o, s:O, s:I, s:I, s:I}", "act",
                  o->act_no != 0 && !fleet_is() ? json_integer((json_int_t)o->act_no) : json_null(),
                  "planned", (json_int_t)self->count, "money", list_json_money(&self->money),
                  "examples", self->examples_json, "done", (json_int_t)o->done, "skipped",
                  (json_int_t)o->skipped, "left", (json_int_t)left_of(self, o));

    json_object_set_new(document, "left_out",
                        self->left_out != NULL ? json_incref(self->left_out) : json_array());
    json_object_update(document, self->apart_json);
    if (fleet_is())
        json_object_set(document, "acts", o->acts);
    return print_json(fleet_document(document), code);
}

/* "; on record as act 7", or "... as act 7 of shard a, act 3 of shard b". */
static void print_acts(const struct outcome *o)
{
    const json_t *act;
    size_t i;

    json_array_foreach(o->acts, i, act)
    {
        const char *shard = json_string_value(json_object_get(act, "shard"));

        printf("%s act %lld%s%s", i == 0 ? "; on record as" : ",",
               (long long)json_integer_value(json_object_get(act, "act")),
               shard != NULL ? " of shard " : "", shard != NULL ? shard : "");
    }
    putchar('\n');
}

/* The command of whoever goes on with the acts: "--act 7", "--act a:7,b:3". */
static void print_then(const struct bulk *self, const struct outcome *o)
{
    const json_t *act;
    size_t i;

    printf("Another operator confirms it, or nothing happens:\n    tradelock resolve confirm %s "
           "--act ",
           self->then);
    json_array_foreach(o->acts, i, act)
    {
        const char *shard = json_string_value(json_object_get(act, "shard"));

        printf("%s%s%s%lld", i > 0 ? "," : "", shard != NULL ? shard : "", shard != NULL ? ":" : "",
               (long long)json_integer_value(json_object_get(act, "act")));
    }
    puts(" --reason TEXT");
}

static int print_outcome(const struct bulk *self, const struct outcome *o)
{
    const uint64_t left = left_of(self, o);
    const int code = fleet_code(o->code, o->skipped > 0 || left > 0 ? EXIT_REFUSED : EXIT_DONE);

    if (common.json)
        return print_document(self, o, code);
    printf("%s%s of %s done", self->has_yes ? "" : "\n", COUNT_TEXT(o->done),
           COUNT_TEXT(self->count));
    if (o->skipped > 0)
        printf(", %s left alone since they moved on", COUNT_TEXT(o->skipped));
    if (left > 0)
        printf(", %s not reached: the same again goes on", COUNT_TEXT(left));
    print_acts(o);
    print_left_out(self, o->named);
    if (self->then != NULL && o->done > 0)
        print_then(self, o);
    return finish_output(code);
}

static int print_undone(const struct bulk *self, int code)
{
    struct outcome nothing = {.acts = json_array()};

    code = fleet_code(code, EXIT_DONE);
    code = common.json ? print_document(self, &nothing, code) : finish_output(code);
    json_decref(nothing.acts);
    return code;
}

int bulk_run(struct bulk *self)
{
    struct outcome o = {.code = EXIT_DONE, .named = json_array_size(self->left_out)};
    struct doing doing = {self, &o};
    int code;

    self->money.rows = self->money.trades;
    if (!common.json)
        show(self);
    if (self->count == 0)
        fputs("tradelock: there is nothing to do\n", stderr);
    if (self->count == 0 || !is_agreed(self->count, "trade", self->verb, self->has_yes, self->yes))
        return print_undone(self, self->count == 0 ? self->code_of_none : EXIT_REFUSED);
    stop_between_rows();
    o.acts = json_array();
    o.code = fleet_each(0, do_one, &doing);
    /* One database that could not begin has nothing to tell. */
    code = o.act_count > 0 || fleet_is() ? print_outcome(self, &o) : o.code;
    json_decref(o.acts);
    return code;
}
