/*
 * tradelock-try: runs a service's handlers against a real database and a channel that goes wrong,
 * and says which rules of workflows/README.md they break.
 *
 * Each case is one trade of its own.  A child runs it as the service would; another one ends what
 * is left, as a worker would.  Then the row, the channel's log of requests and the sums of the
 * business tables are looked at.  A case with kills is run once to count its crash points, and once
 * for each of them.
 */
#include "audit.h"
#include "cases.h"
#include "simulator.h"
#include "host.h"
#include "plan.h"
#include "plugin.h"

#include <tradelock/worker.h>

#include <getopt.h>
#include <inttypes.h>
#include <mysql.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "tradelock-try"
#define SUMS_MAX 32u
#define NAME_SPACE 65
#define PORT_MAX 65535
#define LOOK_MS 20
#define SERVES_MAX 10
#define SETTLE_MS 1000

static const char usage[] =
    "usage: tradelock-try PLUGIN --config FILE --database NAME --port N --payload FILE\n"
    "                     --cust NAME [OPTION]... [-- SIMULATOR-OPTION...]\n"
    "\n"
    "Runs a plug-in's handlers through answers that prove nothing, and through kills before\n"
    "and after each callback and statement, and says which rules they break.\n"
    "\n"
    "  --config FILE        settings and connection; the plug-in's own section names the\n"
    "                       channel http://127.0.0.1:N.  Short times make it quick\n"
    "  --database NAME      the database that FILE leads to, said once more: trades and\n"
    "                       business rows are written there, so it is one for tests\n"
    "  --port N             where tradelock-simulator is to listen, as the channel between\n"
    "  --payload FILE       what is to be paid, as the service writes it\n"
    "  --cust NAME          a customer who may pay it a few hundred times\n"
    "  --op CODE            the operation, where the plug-in registers several\n"
    "  --amount-minor N     what each request says of itself, with\n"
    "  --currency CODE      its currency\n"
    "  --sum TABLE.COLUMN   a sum that a failure leaves as it was, and that each success\n"
    "                       changes alike; also DATABASE.TABLE.COLUMN; may be\n"
    "                       repeated\n"
    "  --patience-ms N      how long a trade may take to end (default 60000)\n"
    "  --no-kills           leave out the kills, which take most of the time\n"
    "  --verbose            log every step\n"
    "  --help, --version    print this, or the version, and end\n"
    "\n"
    "What follows -- is for the simulator, such as --proxy URL: then it stands before a\n"
    "channel of your own.  Ends with 0 when no rule is broken, 1 when one is, 2 when used\n"
    "wrongly or with a plug-in that is refused, 3 without a server, 4 without its schema,\n"
    "5 when the server is not safe for money, 70 otherwise.\n";

struct sum {
    char database[NAME_SPACE], table[NAME_SPACE], column[NAME_SPACE]; /* database "": the own */
};

static struct
try {
    host_options host;
    const char *plugin_file, *database, *payload_file, *cust, *op_code, *currency;
    int64_t port, patience_ms, amount_minor;
    int kills;
    struct sum sums[SUMS_MAX];
    unsigned sum_count;
    void *payload;
    size_t payload_size;
    channel_process channel;
    char serial[TL_SERIAL_MAX + 1];
    unsigned trades, cases, points;
    int64_t settled_ms;        /* when the last request that was held up has arrived */
    int64_t success[SUMS_MAX]; /* what one success changes */
    int success_known;
}
t = {.host = {.program = PROGRAM, .least = TL_ALARM + 1}, .patience_ms = 60000, .kills = 1};

/* --------------------------------------------------------------------- options -- */

enum {
    OPT_CONFIG = 256,
    OPT_DATABASE,
    OPT_PORT,
    OPT_PAYLOAD,
    OPT_CUST,
    OPT_OP,
    OPT_AMOUNT,
    OPT_CURRENCY,
    OPT_SUM,
    OPT_PATIENCE,
    OPT_NO_KILLS,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_VERSION
};

static const struct option names[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"database", required_argument, NULL, OPT_DATABASE},
    {"port", required_argument, NULL, OPT_PORT},
    {"payload", required_argument, NULL, OPT_PAYLOAD},
    {"cust", required_argument, NULL, OPT_CUST},
    {"op", required_argument, NULL, OPT_OP},
    {"amount-minor", required_argument, NULL, OPT_AMOUNT},
    {"currency", required_argument, NULL, OPT_CURRENCY},
    {"sum", required_argument, NULL, OPT_SUM},
    {"patience-ms", required_argument, NULL, OPT_PATIENCE},
    {"no-kills", no_argument, NULL, OPT_NO_KILLS},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int bad(const char *what, const char *value)
{
    fprintf(stderr, PROGRAM ": %s: '%s'\n", what, value);
    return EXIT_USAGE;
}

/* Letters that need no quoting. */
static int is_identifier(const char *text)
{
    const size_t size = strlen(text);

    return size > 0 && size < NAME_SPACE &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == size;
}

/* The part of the text up to the next dot, or its end. */
static int take_part(char **rest, char *to)
{
    const char *part = strsep(rest, ".");

    if (part == NULL || !is_identifier(part))
        return 0;
    memcpy(to, part, strlen(part) + 1);
    return 1;
}

static int take_sum(const char *text)
{
    struct sum *sum = &t.sums[t.sum_count];
    char copy[3 * NAME_SPACE], *rest = copy;
    int fine = t.sum_count < SUMS_MAX && strlen(text) < sizeof copy;

    if (fine) {
        memcpy(copy, text, strlen(text) + 1);
        if (strchr(copy, '.') != strrchr(copy, '.'))
            fine = take_part(&rest, sum->database);
        fine =
            fine && take_part(&rest, sum->table) && take_part(&rest, sum->column) && rest == NULL;
    }
    if (!fine)
        return bad("--sum is TABLE.COLUMN or DATABASE.TABLE.COLUMN, at most 32 of them", text);
    t.sum_count++;
    return -1;
}

/* -1: go on; else the exit code. */
static int take_option(int option)
{
    switch (option) {
    case OPT_CONFIG:
        t.host.config_file = optarg;
        break;
    case OPT_DATABASE:
        t.database = optarg;
        break;
    case OPT_PORT:
        if (!host_read_number(&t.port, optarg, 1, PORT_MAX))
            return bad("--port is 1 to 65535", optarg);
        break;
    case OPT_PAYLOAD:
        t.payload_file = optarg;
        break;
    case OPT_CUST:
        t.cust = optarg;
        break;
    case OPT_OP:
        t.op_code = optarg;
        break;
    case OPT_AMOUNT:
        if (!host_read_number(&t.amount_minor, optarg, 0, INT64_MAX))
            return bad("--amount-minor is a whole number", optarg);
        break;
    case OPT_CURRENCY:
        t.currency = optarg;
        break;
    case OPT_SUM:
        return take_sum(optarg);
    case OPT_PATIENCE:
        if (!host_read_number(&t.patience_ms, optarg, 1000, 3600000))
            return bad("--patience-ms is 1000 to 3600000", optarg);
        break;
    case OPT_NO_KILLS:
        t.kills = 0;
        break;
    case OPT_VERBOSE:
        t.host.least = TL_INFO;
        break;
    case OPT_HELP:
        fputs(usage, stdout);
        return EXIT_DONE;
    case OPT_VERSION:
        printf(PROGRAM " %s\n", tl_version());
        return EXIT_DONE;
    default:
        fputs("try " PROGRAM " --help\n", stderr);
        return EXIT_USAGE;
    }
    return -1;
}

/* The plug-in is the argument before `--`; what follows is the simulator's. */
static int read_options(int argc, char **argv, char ***simulator)
{
    int option, own = argc;

    for (int i = 1; i < argc && own == argc; i++)
        if (strcmp(argv[i], "--") == 0)
            own = i;
    *simulator = own < argc ? argv + own + 1 : argv + argc;
    while ((option = getopt_long(own, argv, "", names, NULL)) != -1) {
        int code = take_option(option);
        if (code >= 0)
            return code;
    }
    if (optind + 1 < own)
        return bad("it takes one plug-in, and this is another", argv[optind + 1]);
    t.plugin_file = optind < own ? argv[optind] : NULL;
    if (t.plugin_file == NULL || t.host.config_file == NULL || t.database == NULL || t.port == 0 ||
        t.payload_file == NULL || t.cust == NULL) {
        fputs(PROGRAM
              ": PLUGIN, --config, --database, --port, --payload and --cust are needed; try "
              "--help\n",
              stderr);
        return EXIT_USAGE;
    }
    if ((t.currency == NULL) != (t.amount_minor == 0))
        return bad("--amount-minor and --currency come together",
                   t.currency != NULL ? t.currency : "no --currency");
    return -1;
}

static int read_payload(void)
{
    FILE *file = t.payload_file != NULL ? fopen(t.payload_file, "re") : NULL;

    t.payload = malloc(TL_PAYLOAD_MAX + 1);
    if (file == NULL || t.payload == NULL) {
        free(t.payload);
        t.payload = NULL;
        if (file != NULL)
            fclose(file);
        return bad("the payload cannot be read", t.payload_file);
    }
    t.payload_size = fread(t.payload, 1, TL_PAYLOAD_MAX + 1, file);
    fclose(file);
    if (t.payload_size > TL_PAYLOAD_MAX)
        return bad("the payload is longer than 65536 bytes", t.payload_file);
    return -1;
}

/* -------------------------------------------------------------------- database -- */

static MYSQL *connect_database(void)
{
    MYSQL *sql = mysql_init(NULL);

    if (sql == NULL)
        return NULL;
    mysql_options(sql, MYSQL_READ_DEFAULT_FILE, t.host.config_file);
    mysql_options(sql, MYSQL_READ_DEFAULT_GROUP, "tradelock-client");
    if (mysql_real_connect(sql, NULL, NULL, NULL, NULL, 0, NULL, 0) != NULL)
        return sql;
    fprintf(stderr, PROGRAM ": no connection: %s\n", mysql_error(sql));
    mysql_close(sql);
    return NULL;
}

/* The first column of the only row; 0: it could not be read. */
static int read_one(MYSQL *sql, const char *query, char *to, size_t space)
{
    MYSQL_RES *result = NULL;
    MYSQL_ROW row = NULL;

    if (mysql_query(sql, query) == 0)
        result = mysql_store_result(sql);
    if (result != NULL)
        row = mysql_fetch_row(result);
    snprintf(to, space, "%s", row != NULL && row[0] != NULL ? row[0] : "");
    mysql_free_result(result);
    if (row == NULL)
        fprintf(stderr, PROGRAM ": %s\n", mysql_error(sql));
    return row != NULL;
}

/* The right database, by its own word. */
static int check_database(void)
{
    MYSQL *sql = connect_database();
    char name[256];
    int found;

    if (sql == NULL)
        return EXIT_SERVER;
    found = read_one(sql, "SELECT DATABASE()", name, sizeof name);
    mysql_close(sql);
    if (!found)
        return EXIT_SERVER;
    if (strcmp(name, t.database) == 0)
        return -1;
    fprintf(stderr, PROGRAM ": %s leads to the database '%s', and --database says '%s'\n",
            t.host.config_file, name, t.database);
    return EXIT_USAGE;
}

/* 0: not all could be read. */
static int read_sums(int64_t sums[SUMS_MAX])
{
    MYSQL *sql = t.sum_count > 0 ? connect_database() : NULL;
    char query[4 * NAME_SPACE], text[64];
    int fine = t.sum_count == 0 || sql != NULL;

    for (unsigned i = 0; i < t.sum_count && fine; i++) {
        snprintf(query, sizeof query, "SELECT CAST(COALESCE(SUM(`%s`), 0) AS SIGNED) FROM %s%s`%s`",
                 t.sums[i].column, t.sums[i].database, t.sums[i].database[0] != '\0' ? "." : "",
                 t.sums[i].table);
        fine = read_one(sql, query, text, sizeof text);
        sums[i] = strtoll(text, NULL, 10);
    }
    if (sql != NULL)
        mysql_close(sql);
    return fine;
}

/* -------------------------------------------------------------------- children -- */

static void note_sentence(tl_status status)
{
    the_plan->status = status;
    snprintf(the_plan->sentence, sizeof the_plan->sentence, "%s", tl_error_message());
}

static const char *operation(host *here)
{
    return t.op_code != NULL ? t.op_code : tl_workflow_operation(here->workflows, 0);
}

static tl_status open_host(host *here)
{
    tl_status status;
    char problem[1024];

    /* Loaded in the child: the parent runs none of the plug-in's code. */
    t.host.plugin = plugin_load(t.plugin_file, problem, sizeof problem);
    if (t.host.plugin == NULL)
        status = tl_error_report(TL_BAD_CONFIG, "%s", problem);
    else
        status = host_open(here, &t.host);
    if (status == TL_OK && hook_workflow(operation(here)) == NULL) {
        status = tl_error_report(TL_INVALID, "the plug-in registered no operation %s", t.op_code);
        note_sentence(status);
        host_close(here);
        return status;
    }
    if (status != TL_OK)
        note_sentence(status);
    return status;
}

/* The service: one trade. */
static void run_service(void *context)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    host here;

    (void)context;
    if (open_host(&here) != TL_OK)
        return;
    request.key = (tl_key){t.serial, t.cust, operation(&here)};
    request.payload = t.payload;
    request.payload_size = t.payload_size;
    request.amount_minor = t.amount_minor;
    request.currency = t.currency;
    hook_begin(1);
    note_sentence(tl_workflow_run(here.workflows, &request, &answer));
    if (the_plan->status == TL_REFUSED)
        snprintf(the_plan->sentence, sizeof the_plan->sentence, "%s", answer.view.remark);
    tl_answer_clear(&answer);
    host_close(&here);
}

static int note_view(void *context, const tl_view *view)
{
    (void)context;
    the_plan->state = view->status;
    snprintf(the_plan->parked, sizeof the_plan->parked, "%s", view->parked);
    return 0;
}

static int has_ended(host *here)
{
    const tl_key key = {t.serial, t.cust, operation(here)};

    the_plan->state = ' ';
    the_plan->parked[0] = '\0';
    switch (tl_show(here->client, &key, TL_LANE_SYNC, note_view, NULL)) {
    case TL_OK:
        break;
    case TL_NOT_FOUND:
        return 1;
    default:
        return 0;
    }
    /* Why it is parked stands on the retry row. */
    if (the_plan->state == 'P') {
        (void)tl_show(here->client, &key, TL_LANE_RETRY, note_view, NULL);
        the_plan->state = 'P';
    }
    return the_plan->state != 'P' || the_plan->parked[0] != '\0';
}

/* The worker: until the trade has ended, or the parent's patience. */
static void run_worker(void *context)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;
    host here;

    (void)context;
    if (open_host(&here) != TL_OK)
        return;
    options.threads = 1;
    options.idle_max_ms = 2 * LOOK_MS;
    hook_begin(0);
    note_sentence(tl_worker_start(&worker, here.workflows, &options));
    while (worker != NULL && !has_ended(&here))
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    tl_worker_free(worker);
    host_close(&here);
}

/* ----------------------------------------------------------------------- cases -- */

/* Without queries there is nothing to ask; a channel's own promise decides how it ends then. */
static int can_query;

static void compare_sums(const one_case *it, const int64_t before[SUMS_MAX],
                         const int64_t after[SUMS_MAX], const char *where)
{
    const int known = t.success_known;

    if (the_plan->state == 'Y' && !known) {
        for (unsigned i = 0; i < t.sum_count; i++)
            t.success[i] = after[i] - before[i];
        t.success_known = 1;
    }
    for (unsigned i = 0; i < t.sum_count; i++) {
        const int64_t change = after[i] - before[i];

        if ((the_plan->state == 'F' || the_plan->state == ' ') && change != 0)
            plan_found("rule 6 is broken: %s.%s is other by %" PRId64
                       " after a failure, which undoes what was written with P (%s%s)",
                       t.sums[i].table, t.sums[i].column, change, it->title, where);
        if (the_plan->state == 'Y' && known && change != t.success[i])
            plan_found("rule 7 is broken: a success changed %s.%s by %" PRId64
                       ", and the first one by %" PRId64 " (%s%s)",
                       t.sums[i].table, t.sums[i].column, change, t.success[i], it->title, where);
    }
}

static void judge_end(const one_case *it, const char *where)
{
    if (the_plan->state == ' ' && where[0] == '\0')
        plan_found("the trade has no row in: %s", it->title);
    else if (the_plan->parked[0] != '\0')
        plan_found("the trade was parked (%s) in: %s%s", the_plan->parked, it->title, where);
    else if (the_plan->state == 'P')
        plan_found("the trade did not end in: %s%s", it->title, where);
    else if (it->ends != 0 && the_plan->state != it->ends && the_plan->state != ' ')
        plan_found("the trade became %c, and should be %c, in: %s%s", the_plan->state, it->ends,
                   it->title, where);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int set_rules(const one_case *it)
{
    if (channel_clear(&t.channel) != 0)
        return -1;
    if (it->pay_rule != NULL && channel_rule(&t.channel, it->pay_rule) != 0)
        return -1;
    return it->query_rule != NULL ? channel_rule(&t.channel, it->query_rule) : 0;
}

/* The trade did not come as far as execute, so nothing of the handlers can be judged. */
static int never_called(void)
{
    const int code = host_exit_code(the_plan->status);

    fprintf(stderr, PROGRAM ": execute was not called: %s %s\n", tl_status_name(the_plan->status),
            the_plan->sentence);
    return code == EXIT_DONE || code == EXIT_INTERNAL ? EXIT_USAGE : code;
}

/* "Nothing happened, try again" is repeated, as a service does: a busy machine loses sessions. */
static void serve(unsigned kill_at)
{
    for (unsigned i = 0; i < SERVES_MAX; i++) {
        the_plan->status = TL_OK;
        the_plan->passages = 0;
        the_plan->kill_at = kill_at;
        if (child_run(run_service, NULL, t.patience_ms) != 0 || the_plan->calls > 0 ||
            tl_status_class(the_plan->status) != TL_CLASS_RETRY)
            break;
    }
}

/* One trade; kill_at 0: nobody is killed.  -1: go on; else the exit code. */
static int run_trade(const one_case *it, unsigned kill_at)
{
    int64_t before[SUMS_MAX] = {0}, after[SUMS_MAX] = {0};
    char where[96] = "";

    if (!read_sums(before))
        return EXIT_SERVER;
    if (set_rules(it) != 0) {
        fprintf(stderr, PROGRAM ": the channel does not take the rules of: %s\n", it->title);
        return EXIT_INTERNAL;
    }
    snprintf(t.serial, sizeof t.serial, "TRY-%lld-%ld-%u", (long long)time(NULL), (long)getpid(),
             t.trades++);
    the_plan->title = it->title;
    the_plan->execute = it->execute;
    the_plan->query = it->query;
    the_plan->nothing_left = it->nothing_left;
    the_plan->state = ' ';
    the_plan->parked[0] = '\0';
    the_plan->killed_at[0] = '\0';
    the_plan->channel_key[0] = '\0';
    the_plan->sent = the_plan->calls = 0;
    the_plan->status = TL_OK;
    serve(it->killed == WHO_SERVICE ? kill_at : 0);
    /* Of a queued one the worker is the first to send: a busy machine left the service no time. */
    if (kill_at == 0 && the_plan->calls == 0 && the_plan->status != TL_QUEUED)
        return never_called();
    if (it->killed != WHO_SERVICE)
        the_plan->passages = 0;
    the_plan->kill_at = it->killed == WHO_WORKER ? kill_at : 0;
    {
        const unsigned passages = the_plan->passages;

        (void)child_run(run_worker, NULL, t.patience_ms);
        /* What another worker does afterwards is no point of the killed one. */
        if (it->killed == WHO_SERVICE)
            the_plan->passages = passages;
    }
    the_plan->kill_at = 0;
    if (it->killed == WHO_WORKER && the_plan->killed_at[0] != '\0')
        (void)child_run(run_worker, NULL, t.patience_ms);
    if (the_plan->killed_at[0] != '\0')
        snprintf(where, sizeof where, ", killed %s", the_plan->killed_at);
    if (!read_sums(after))
        return EXIT_SERVER;
    judge_end(it, where);
    compare_sums(it, before, after, where);
    /* What was pretended to the end is in no ledger. */
    if (!it->execute.more && !it->query.more)
        audit_note(it->title, where);
    if (now_ms() + it->late_ms > t.settled_ms)
        t.settled_ms = now_ms() + it->late_ms;
    return -1;
}

/* -1: go on; else the exit code. */
static int run_case(const one_case *it)
{
    const unsigned findings = atomic_load(&the_plan->findings);
    unsigned points;
    int code = run_trade(it, 0);

    if (code >= 0)
        return code;
    if (it == cases && the_plan->state == 'Y' && the_plan->sent == 0) {
        fprintf(stderr,
                PROGRAM ": the plug-in says that it paid, and sent nothing to %s: its settings "
                        "name another channel\n",
                t.channel.url);
        return EXIT_USAGE;
    }
    t.cases++;
    points = it->killed != WHO_NOBODY && t.kills ? the_plan->passages : 0;
    /* Where a channel cannot be asked, what it was made to say is lost with the process. */
    if (it->execute.more && !can_query)
        points = 0;
    for (unsigned i = 1; i <= points && code < 0; i++)
        code = run_trade(it, i);
    if (code >= 0)
        return code;
    printf("%-50s %s", it->title, atomic_load(&the_plan->findings) == findings ? "ok" : "broken");
    if (points > 0)
        printf(", killed at %u points", points);
    t.points += points;
    putchar('\n');
    fflush(stdout);
    return -1;
}

/* -1: go on; else the exit code. */
static int run_all(void)
{
    int code = -1;

    for (const one_case *it = cases; it->title != NULL && code < 0; it++)
        if ((!it->asks || can_query) && (!it->simulated || !t.channel.proxy))
            code = run_case(it);
    return code;
}

/* How many trades agree with the channel's ledger, or were compared; -1: none could be. */
static int audit(void)
{
    char path[128];
    const int64_t rest_ms = t.settled_ms + SETTLE_MS - now_ms();

    if (t.channel.proxy)
        return -1;
    if (rest_ms > 0)
        nanosleep(&(struct timespec){rest_ms / 1000, rest_ms % 1000 * 1000000}, NULL);
    snprintf(path, sizeof path, "%s/ledger", t.channel.dir);
    return audit_ledger(path, t.amount_minor, t.currency);
}

static int run_cases(void)
{
    int code = run_all(), compared;
    unsigned findings;

    if (code >= 0)
        return code;
    compared = audit();
    findings = atomic_load(&the_plan->findings);
    for (unsigned i = 0; i < findings; i++)
        printf("- %s\n", the_plan->finding[i]);
    if (findings == 0)
        puts("no rule is broken");
    printf("tried: %u cases with %u trades, %u of them killed", t.cases, t.trades, t.points);
    if (compared >= 0)
        printf("; %d compared with the channel's ledger", compared);
    else
        fputs("; no ledger, since the channel is another one", stdout);
    puts(t.sum_count == 0 ? "; the books were not looked at, since there is no --sum" : "");
    return findings == 0 ? EXIT_DONE : EXIT_REFUSED;
}

/* Opens the plug-in once, without a session, and tells what it registered. */
static void look_at_plugin(void *context)
{
    host here;

    (void)context;
    t.host.client_flags = TL_CLIENT_NO_SESSION;
    if (open_host(&here) != TL_OK)
        return;
    the_plan->calls = hook_workflow(operation(&here))->query != NULL;
    printf("operation %s\n", operation(&here));
    host_close(&here);
}

int main(int argc, char **argv)
{
    char problem[512], **simulator;
    int code = read_options(argc, argv, &simulator);
    unsigned findings;

    if (code < 0)
        code = read_payload();
    if (code < 0)
        code = check_database();
    if (code >= 0)
        goto out;
    the_plan =
        mmap(NULL, sizeof *the_plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (the_plan == MAP_FAILED) {
        code = EXIT_INTERNAL;
        goto out;
    }
    the_plan->title = "opening the plug-in";
    (void)child_run(look_at_plugin, NULL, t.patience_ms);
    findings = atomic_load(&the_plan->findings);
    if (the_plan->status != TL_OK || findings > 0) {
        fprintf(stderr, PROGRAM ": %s\n", findings > 0 ? the_plan->finding[0] : the_plan->sentence);
        code = findings > 0 ? EXIT_REFUSED : host_exit_code(the_plan->status);
        goto out;
    }
    can_query = (int)the_plan->calls;
    if (channel_start(&t.channel, t.port, simulator, problem, sizeof problem) != 0) {
        fprintf(stderr, PROGRAM ": %s\n", problem);
        code = EXIT_USAGE;
        goto out;
    }
    the_plan->simulated = !t.channel.proxy;
    snprintf(the_plan->requests, sizeof the_plan->requests, "%s/requests", t.channel.dir);
    code = run_cases();
    channel_stop(&t.channel);
out:
    free(t.payload);
    return code;
}
