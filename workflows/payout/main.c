/*
 * payout: pays the lines of a batch file, each exactly once.
 *
 * It may be killed at any moment: the same file again resumes the batch, and a worker with the
 * plug-in brings to an end what was under way.  Two runs of one file at a time pay no line twice.
 */
#include "batch.h"

#include <tradelock/layer.h>

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROGRAM "payout"
#define THREADS 8
#define PATIENCE_MS 10000 /* with what could not be taken, while no other line was either */
#define PAUSE_MS 50
#define PAUSE_MOST_MS 1000

static const char usage[] =
    "usage: payout --config FILE --batch NAME FILE.csv\n"
    "\n"
    "Pays the lines of a batch file, each exactly once; the same file again resumes it.\n"
    "The header must be " BATCH_HEADER ".\n"
    "\n"
    "  --config FILE   settings and connection; [service-payout] channel_url names the channel\n"
    "  --batch NAME    of which `tradelock ls --batch` tells how far it is\n"
    "  --help          print this, and end\n"
    "\n"
    "Ends with 0 when every line is paid; 1 when a line failed or was refused; 2 when\n"
    "used wrongly, or FILE.csv cannot be used; 3 without a server, 4 without its schema,\n"
    "5 when the server is not safe for money; 6 when lines are in process still, or were\n"
    "not begun, as while operators keep the channel paused.\n";

enum { DONE = 0, REFUSED = 1, USAGE = 2, SERVER = 3, SCHEMA = 4, UNSAFE = 5, DOUBT = 6, BUG = 70 };

static int exit_code(tl_status status)
{
    switch (status) {
    case TL_BAD_CONFIG:
    case TL_INVALID:
    case TL_UNSAFE:
        return USAGE;
    case TL_NO_SCHEMA:
    case TL_WRONG_SCHEMA:
        return SCHEMA;
    case TL_SERVER_UNSAFE:
    case TL_READ_ONLY:
    case TL_ASK_CHANNEL:
        return UNSAFE;
    default:
        return tl_status_class(status) == TL_CLASS_RETRY || status == TL_ACCESS_DENIED ? SERVER
                                                                                       : BUG;
    }
}

static int fail(int code, const char *sentence)
{
    fprintf(stderr, PROGRAM ": %s\n", sentence);
    return code;
}

static void print_log(void *context, const tl_log_line *said)
{
    char amount[40] = "";

    (void)context;
    if (said->level < TL_WARNING)
        return;
    if (said->currency[0] != '\0')
        snprintf(amount, sizeof amount, ", amount %" PRId64 " %s", said->amount_minor,
                 said->currency);
    fprintf(stderr, PROGRAM ": %s%s%s%s%s%s%s%s\n", said->message,
            said->serial_no[0] != '\0' ? ": " : "", said->serial_no,
            said->trace_id[0] != '\0' ? ", trace " : "", said->trace_id, amount,
            said->batch[0] != '\0' ? ", batch " : "", said->batch);
}

/* ------------------------------------------------------------------------------- a line -- */

typedef struct run {
    tl_workflows *workflows;
    const char *batch_name;
    batch all;
    atomic_size_t next;
    atomic_size_t taken; /* lines that were not told to come again */
    atomic_int stopped;  /* nothing was taken for so long: what is left is not tried */
} run;

/* How long until the next try: as long as the answer says, within bounds. */
static int pause_for(const tl_answer *answer)
{
    const int64_t wanted_ms = answer->next_look_ms;
    const int64_t pause_ms = wanted_ms < PAUSE_MS        ? PAUSE_MS
                             : wanted_ms > PAUSE_MOST_MS ? PAUSE_MOST_MS
                                                         : wanted_ms;
    const struct timespec pause = {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
    return (int)pause_ms;
}

/* Nothing happened where the class is RETRY.  An answer that was lost is settled: it never pays
 * anew.  A limited channel takes one line after the other, so time counts only while it takes
 * none. */
static tl_status pay_patiently(run *self, const tl_request *request, tl_answer *answer)
{
    tl_status status = tl_workflow_run(self->workflows, request, answer);
    size_t taken = atomic_load(&self->taken);

    for (int left_ms = PATIENCE_MS; left_ms > 0;) {
        if (status == TL_UNKNOWN && answer->run != NULL) {
            status = tl_workflow_settle(self->workflows, answer);
            left_ms -= PAUSE_MS;
        } else if (tl_status_class(status) == TL_CLASS_RETRY) {
            left_ms -= pause_for(answer);
            if (taken != atomic_load(&self->taken)) {
                taken = atomic_load(&self->taken);
                left_ms = PATIENCE_MS;
            }
            tl_answer_clear(answer);
            status = tl_workflow_run(self->workflows, request, answer);
        } else {
            break;
        }
    }
    return status;
}

static void note(line *of, line_kind kind, const char *sentence)
{
    of->kind = kind;
    snprintf(of->sentence, sizeof of->sentence, "%s", sentence);
}

static void note_answer(line *of, const run *self, tl_status status, const tl_answer *answer)
{
    of->status = status;
    /* Of another batch: the serial number was used up there, whatever became of it. */
    if (answer->view != NULL && answer->view->status != ' ' &&
        strcmp(answer->view->batch, self->batch_name) != 0) {
        note(of, LINE_REFUSED, "");
        snprintf(of->sentence, sizeof of->sentence,
                 "serial number %.64s was used in batch \"%.64s\"", of->text, answer->view->batch);
        return;
    }
    switch (status) {
    case TL_SUCCEEDED:
        note(of, LINE_PAID, "");
        break;
    case TL_ALREADY_DONE:
        note(of, LINE_BEFORE, "");
        break;
    case TL_FAILED:
        note(of, LINE_FAILED, answer->remark[0] != '\0' ? answer->remark : "it failed, with proof");
        break;
    case TL_MISMATCH:
        note(of, LINE_REFUSED, "this serial number was used with another amount or payee");
        break;
    case TL_REFUSED:
        note(of, LINE_REFUSED, answer->remark);
        break;
    case TL_INVALID:
        note(of, LINE_REFUSED, tl_error_message());
        break;
    case TL_PARKED:
        note(of, LINE_OPEN, "it waits for a person (`tradelock explain` says why)");
        break;
    case TL_IN_DOUBT:
    case TL_QUEUED:
    case TL_BUSY:
    case TL_LOST:
    case TL_UNKNOWN:
    case TL_IN_CONFLICT:
        note(of, LINE_OPEN, "");
        break;
    case TL_OVERLOADED: /* the server is there: a paused or limited channel, or too many at once */
        note(of, LINE_OPEN, tl_error_message());
        break;
    default:
        note(of, LINE_ERROR, tl_error_message());
    }
}

static void pay_line(run *self, line *of)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    char payload[PAYOUT_TEXT];

    payout_order_write(&of->order, payload);
    request.key = (tl_key){of->text, PAYOUT_CUST, PAYOUT_OP};
    request.payload = payload;
    request.payload_size = strlen(payload);
    request.amount_minor = of->order.amount_minor;
    request.currency = of->order.currency;
    request.batch = self->batch_name;
    note_answer(of, self, pay_patiently(self, &request, &answer), &answer);
    if (tl_status_class(of->status) == TL_CLASS_RETRY &&
        (of->kind == LINE_ERROR || of->status == TL_OVERLOADED))
        atomic_store(&self->stopped, 1);
    else
        atomic_fetch_add(&self->taken, 1);
    tl_answer_clear(&answer);
}

static void *pay_lines(void *context)
{
    run *self = context;
    size_t turn;

    while (!atomic_load(&self->stopped) &&
           (turn = atomic_fetch_add(&self->next, 1)) < self->all.count)
        if (self->all.lines[turn].kind == LINE_OPEN)
            pay_line(self, &self->all.lines[turn]);
    return NULL;
}

/* -------------------------------------------------------------------------- all of them -- */

/* 0, or -1: no thread could be started. */
static int pay_all(run *self)
{
    pthread_t threads[THREADS];
    int started = 0;

    while (started < THREADS && pthread_create(&threads[started], NULL, pay_lines, self) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started > 0 ? 0 : -1;
}

static int tell(const run *self, const char *file)
{
    size_t counts[LINE_KINDS] = {0};
    tl_status error = TL_OK;

    for (size_t i = 0; i < self->all.count; i++) {
        const line *of = &self->all.lines[i];

        counts[of->kind]++;
        if (of->kind == LINE_ERROR)
            error = of->status;
        if (of->sentence[0] != '\0')
            fprintf(stderr, PROGRAM ": %s:%u: %s\n", file, of->number, of->sentence);
    }
    printf("batch %s: %zu lines = paid %zu + before %zu + open %zu + failed %zu + refused %zu"
           " + error %zu\n",
           self->batch_name, self->all.count, counts[LINE_PAID], counts[LINE_BEFORE],
           counts[LINE_OPEN], counts[LINE_FAILED], counts[LINE_REFUSED], counts[LINE_ERROR]);
    if (error != TL_OK)
        return exit_code(error);
    if (atomic_load(&self->stopped))
        fprintf(stderr,
                PROGRAM ": nothing was taken for %d seconds, so the rest was not begun; the same "
                        "file again resumes the batch\n",
                PATIENCE_MS / 1000);
    if (counts[LINE_FAILED] + counts[LINE_REFUSED] > 0)
        return REFUSED;
    return counts[LINE_OPEN] > 0 ? DOUBT : DONE;
}

static int serve(run *self, const char *config_file, const char *file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    payout *opened = NULL;
    int code = DONE;
    tl_status status;

    options.config_file = config_file;
    options.program = PROGRAM;
    options.operations = PAYOUT_OP;
    options.log = print_log;
    status = tl_client_open(&client, &options);
    if (status == TL_OK)
        status = tl_workflows_new(&self->workflows, client);
    if (status == TL_OK)
        status = payout_open(&opened, client, self->workflows, config_file);
    if (status != TL_OK)
        code = fail(exit_code(status), tl_error_message());
    else if (pay_all(self) != 0)
        code = fail(BUG, "no thread could be started");
    else
        code = tell(self, file);
    tl_workflows_free(self->workflows);
    payout_close(opened);
    tl_client_close(client);
    return code;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"config", required_argument, NULL, 'c'},
                                          {"batch", required_argument, NULL, 'b'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *config_file = NULL;
    char problem[512];
    run self = {0};
    int option, code;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'c')
            config_file = optarg;
        else if (option == 'b')
            self.batch_name = optarg;
        else if (option == 'h')
            return fputs(usage, stdout) < 0 ? BUG : DONE;
        else
            return fail(USAGE, "try payout --help");
    }
    if (config_file == NULL || self.batch_name == NULL || optind + 1 != argc)
        return fail(USAGE, "--config, --batch and one file are needed; try payout --help");
    if (tl_batch_check(self.batch_name) != TL_OK)
        return fail(USAGE, tl_error_message());
    if (batch_read(&self.all, argv[optind], problem, sizeof problem) != 0)
        code = fail(USAGE, problem);
    else
        code = serve(&self, config_file, argv[optind]);
    batch_free(&self.all);
    return code;
}
