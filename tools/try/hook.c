/*
 * Stands between the plug-in, the library and the server, as the program's own definitions of three
 * functions, which the dynamic linker prefers: tl_workflow_register() gives the library callbacks
 * that look at the plug-in's, and mysql_real_query() and mysql_stmt_execute() are the places where
 * statements leave.  The library is the one that is installed, and knows nothing of it.
 *
 * A crash point is a passage before or after a callback, or before or after a statement of the
 * thread that runs the trade.  The process dies there by SIGKILL, as of an OOM killer.  Statements
 * of other threads (heartbeats, claims) are no points: they come by time, and the same number would
 * be another place each time.
 */
#include "plan.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <jansson.h>
#include <mysql.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORKFLOWS_MAX 16

static tl_workflow given[WORKFLOWS_MAX];
static unsigned given_count;
static int counting;
static __thread int follows; /* this thread's statements are crash points */

void hook_begin(int whole)
{
    counting = 1;
    follows = whole;
}

const tl_workflow *hook_workflow(const char *op_code)
{
    for (unsigned i = 0; i < given_count; i++)
        if (op_code == NULL || strcmp(given[i].op_code, op_code) == 0)
            return &given[i];
    return NULL;
}

static void point(const char *name, const char *when)
{
    if (!counting)
        return;
    if (++the_plan->passages != the_plan->kill_at)
        return;
    snprintf(the_plan->killed_at, sizeof the_plan->killed_at, "%s %s", when, name);
    kill(getpid(), SIGKILL);
}

static void begin(const char *name)
{
    follows = 1;
    point(name, "before");
}

static void end(const char *name)
{
    point(name, "after");
}

/* ------------------------------------------------------------------- the server -- */

/* The next definition after this program's.  A function has no portable conversion. */
#define REAL(pointer, name)                                                                        \
    do {                                                                                           \
        void *found = dlsym(RTLD_NEXT, name);                                                      \
        if (found == NULL)                                                                         \
            abort();                                                                               \
        memcpy(&(pointer), &found, sizeof found);                                                  \
    } while (0)

TL_EXPORT int STDCALL mysql_real_query(MYSQL *mysql, const char *query, unsigned long length)
{
    int (*real)(MYSQL *, const char *, unsigned long);
    int result;

    REAL(real, "mysql_real_query");
    if (follows)
        point("a statement", "before");
    result = real(mysql, query, length);
    if (follows)
        point("a statement", "after");
    return result;
}

TL_EXPORT int STDCALL mysql_stmt_execute(MYSQL_STMT *statement)
{
    int (*real)(MYSQL_STMT *);
    int result;

    REAL(real, "mysql_stmt_execute");
    if (follows)
        point("a statement", "before");
    result = real(statement);
    if (follows)
        point("a statement", "after");
    return result;
}

/* ------------------------------------------------------------------ the channel -- */

static long requests_end(void)
{
    FILE *file = fopen(the_plan->requests, "re");
    long end = 0;

    if (file == NULL)
        return 0;
    if (fseek(file, 0, SEEK_END) == 0)
        end = ftell(file);
    fclose(file);
    return end;
}

/* What the channel's log has of one call: its requests, and the answer to the last of them. */
typedef struct heard {
    unsigned requests;
    json_int_t last;
    int status; /* HTTP; 0: none was given */
    char outcome[32];
} heard;

static const char *text_of(const json_t *line, const char *field)
{
    const char *text = json_string_value(json_object_get(line, field));

    return text != NULL ? text : "";
}

/* Each request must have the key, and each send of a key the same order. */
static void check_request(const json_t *line, const tl_attempt *attempt, const char *call)
{
    const char *key = text_of(line, "channel_key"), *differs = text_of(line, "differs");

    if (key[0] == '\0')
        plan_found("rule 1 is broken: %s sends no key", call);
    else if (strcmp(key, attempt->channel_key) != 0)
        plan_found("rule 1 is broken: %s sends another key than attempt->channel_key", call);
    if (differs[0] != '\0')
        plan_found("rule 2 is broken: %s sends another %s than the first send of this key", call,
                   differs);
}

static void hear_line(heard *it, const json_t *line, const tl_attempt *attempt, const char *call)
{
    const json_int_t number = json_integer_value(json_object_get(line, "request"));

    if (strcmp(text_of(line, "event"), "received") == 0) {
        *it = (heard){.requests = it->requests + 1, .last = number};
        check_request(line, attempt, call);
    } else if (it->requests > 0 && number == it->last) {
        it->status = (int)json_integer_value(json_object_get(line, "status"));
        snprintf(it->outcome, sizeof it->outcome, "%s", text_of(line, "outcome"));
    }
}

static heard hear(long from, const tl_attempt *attempt, const char *call)
{
    FILE *file = fopen(the_plan->requests, "re");
    char *line = NULL;
    size_t space = 0;
    heard it = {0};

    if (file == NULL)
        return it;
    (void)fseek(file, from, SEEK_SET);
    while (getline(&line, &space, file) > 0) {
        json_t *json = json_loads(line, 0, NULL);

        hear_line(&it, json, attempt, call);
        json_decref(json);
    }
    free(line);
    fclose(file);
    return it;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A busy machine is given a tenth, and a moment. */
static void check_time(const tl_attempt *attempt, int64_t began_ms, const char *call)
{
    const int64_t took_ms = now_ms() - began_ms;

    if (took_ms > attempt->timeout_ms + attempt->timeout_ms / 10 + 100)
        plan_found("rule 3 is broken: %s returned after %" PRId64 " ms, and had %" PRId64 " ms",
                   call, took_ms, attempt->timeout_ms);
}

/* Whether the answer is given without the plug-in, and which. */
static int take(forced *force, int *answer)
{
    if (force->times > 0) {
        force->times--;
        *answer = force->answer;
        return 1;
    }
    *answer = force->then;
    return force->more;
}

/* A reference is given only by a channel that knows the payment: the library keeps that. */
static void pretend(tl_reply *reply, int known)
{
    if (known)
        (void)tl_reply_ref(reply, "TRY-PRETENDED");
    tl_reply_remark(reply, "pretended by tradelock-try");
}

static const char *const execute_names[] = {"UNKNOWN",     "SUCCEEDED", "DECLINED",
                                            "RETRY_LATER", "NOT_SENT",  "ACCEPTED"};
static const char *const query_names[] = {"UNREACHABLE", "SUCCEEDED", "FAILED", "PENDING",
                                          "NOT_FOUND"};

static const char *const cancel_names[] = {"UNKNOWN", "CANCELLED", "ALREADY_DONE"};

static const char *name_of(const char *const *names, size_t count, int number)
{
    return number >= 0 && (size_t)number < count ? names[number] : "a number that is none";
}

/* What a callback may answer after each outcome that the simulator names, besides the one that
 * claims nothing, which is 0 of each: UNKNOWN or UNREACHABLE. */
static const struct {
    const char *call, *outcome;
    int answer;
} meanings[] = {
    {"execute", "succeeded", TL_EXECUTE_SUCCEEDED},
    {"execute", "declined", TL_EXECUTE_DECLINED},
    {"execute", "accepted", TL_EXECUTE_ACCEPTED},
    {"execute", "rate_limited", TL_EXECUTE_RETRY_LATER},
    {"query", "succeeded", TL_QUERY_SUCCEEDED},
    {"query", "failed", TL_QUERY_FAILED},
    {"query", "pending", TL_QUERY_PENDING},
    {"query", "not_found", TL_QUERY_NOT_FOUND},
    {"cancel", "cancelled", TL_CANCEL_CANCELLED},
    {"cancel", "already_done", TL_CANCEL_ALREADY_DONE},
};

/* The answer against what the channel really said.  A channel of the team's own names its outcomes
 * itself: there, only what is no answer is judged. */
static void judge(const heard *it, const char *call, const char *const *names, size_t count,
                  int answer)
{
    int fits = 0;

    if (it->requests == 0 || it->status == 400 ||
        (!the_plan->simulated && it->status > 0 && it->status < 500))
        return;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(meanings[i].call, call) == 0 && strcmp(meanings[i].outcome, it->outcome) == 0)
            fits = meanings[i].answer;
    if (answer == 0 || answer == fits)
        return;
    plan_found("the answer of %s is not %s%s%s but %s after %s (HTTP %d), in: %s", call,
               fits != 0 ? names[fits] : "", fits != 0 ? " or " : "", names[0],
               name_of(names, count, answer), it->status != 0 ? it->outcome : "no answer",
               it->status, the_plan->title);
}

static void judge_late(tl_execute_result answer, unsigned sent)
{
    if (sent > 0)
        plan_found("rule 4 is broken: execute sends when nothing is left of its time");
    else if (answer != TL_EXECUTE_NOT_SENT)
        plan_found("rule 4 is broken: execute answers %s when nothing is left of its time and "
                   "nothing was sent, which is NOT_SENT",
                   name_of(execute_names, 6, (int)answer));
}

/* By which the ledger is asked afterwards. */
static void note_key(const tl_attempt *attempt)
{
    snprintf(the_plan->channel_key, sizeof the_plan->channel_key, "%s", attempt->channel_key);
}

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const tl_workflow *it = context;
    tl_attempt seen = *attempt;
    const int64_t began_ms = now_ms();
    const long from = requests_end();
    tl_execute_result answer;
    heard said;
    int pretended;

    begin("execute");
    note_key(attempt);
    the_plan->calls++;
    if (take(&the_plan->execute, &pretended)) {
        pretend(reply, pretended == TL_EXECUTE_SUCCEEDED || pretended == TL_EXECUTE_ACCEPTED);
        end("execute");
        return (tl_execute_result)pretended;
    }
    if (the_plan->nothing_left) {
        seen.until_ms = began_ms - 1;
        seen.timeout_ms = 0;
    }
    answer = it->execute(it->context, &seen, reply);
    said = hear(from, attempt, "execute");
    the_plan->sent += said.requests;
    if (said.requests > 1)
        plan_found("execute sends %u requests, and may send one", said.requests);
    if (the_plan->nothing_left) {
        judge_late(answer, said.requests);
    } else {
        check_time(attempt, began_ms, "execute");
        judge(&said, "execute", execute_names, 6, (int)answer);
    }
    the_plan->nothing_left = 0;
    end("execute");
    return answer;
}

static tl_query_result query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const tl_workflow *it = context;
    const int64_t began_ms = now_ms();
    const long from = requests_end();
    tl_query_result answer;
    heard said;
    int pretended;

    begin("query");
    note_key(attempt);
    if (take(&the_plan->query, &pretended)) {
        pretend(reply, pretended == TL_QUERY_SUCCEEDED || pretended == TL_QUERY_PENDING);
        end("query");
        return (tl_query_result)pretended;
    }
    answer = it->query(it->context, attempt, reply);
    check_time(attempt, began_ms, "query");
    said = hear(from, attempt, "query");
    judge(&said, "query", query_names, 5, (int)answer);
    end("query");
    return answer;
}

static tl_cancel_result cancel(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const tl_workflow *it = context;
    const int64_t began_ms = now_ms();
    const long from = requests_end();
    tl_cancel_result answer;
    heard said;

    begin("cancel");
    answer = it->cancel(it->context, attempt, reply);
    check_time(attempt, began_ms, "cancel");
    said = hear(from, attempt, "cancel");
    judge(&said, "cancel", cancel_names, 3, (int)answer);
    end("cancel");
    return answer;
}

/* ------------------------------------------------------------------ the books -- */

#define AROUND(name, call)                                                                         \
    do {                                                                                           \
        const tl_workflow *it = context;                                                           \
        tl_status status;                                                                          \
                                                                                                   \
        begin(name);                                                                               \
        status = it->call;                                                                         \
        end(name);                                                                                 \
        return status;                                                                             \
    } while (0)

static tl_status sql_prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                             struct st_mysql *connection)
{
    AROUND("sql_prepare", sql_prepare(it->context, attempt, reply, connection));
}

static tl_status sql_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                             struct st_mysql *connection)
{
    AROUND("sql_success", sql_success(it->context, attempt, reply, connection));
}

static tl_status sql_failure(void *context, const tl_attempt *attempt, const tl_reply *reply,
                             tl_proof proof, struct st_mysql *connection)
{
    AROUND("sql_failure", sql_failure(it->context, attempt, reply, proof, connection));
}

static tl_status book_prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                              tl_book *book)
{
    AROUND("book_prepare", book_prepare(it->context, attempt, reply, book));
}

static tl_status book_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              tl_book *book)
{
    AROUND("book_success", book_success(it->context, attempt, reply, book));
}

static tl_status book_failure(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              tl_proof proof, tl_book *book)
{
    AROUND("book_failure", book_failure(it->context, attempt, reply, proof, book));
}

TL_EXPORT tl_status tl_workflow_register(tl_workflows *workflows, const tl_workflow *workflow)
{
    tl_status (*real)(tl_workflows *, const tl_workflow *);
    tl_workflow *it = &given[given_count];
    tl_workflow watched;
    tl_status status;

    REAL(real, "tl_workflow_register");
    if (workflow == NULL || given_count == WORKFLOWS_MAX)
        return real(workflows, workflow);
    *it = watched = *workflow;
    watched.context = it;
#define WATCH(name) watched.name = workflow->name != NULL ? name : NULL
    WATCH(execute);
    WATCH(query);
    WATCH(cancel);
    WATCH(sql_prepare);
    WATCH(sql_success);
    WATCH(sql_failure);
    WATCH(book_prepare);
    WATCH(book_success);
    WATCH(book_failure);
#undef WATCH
    status = real(workflows, &watched);
    if (status == TL_OK) {
        it->op_code = strdup(workflow->op_code);
        if (it->op_code == NULL)
            abort();
        given_count++;
    }
    return status;
}
