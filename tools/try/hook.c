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

/* How many requests came since; each must have the key. */
static unsigned requests_since(long from, const tl_attempt *attempt, const char *call)
{
    FILE *file = fopen(the_plan->requests, "re");
    char *line = NULL;
    size_t space = 0;
    unsigned count = 0;

    if (file == NULL)
        return 0;
    (void)fseek(file, from, SEEK_SET);
    while (getline(&line, &space, file) > 0) {
        json_t *json = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(json, "event"));
        const char *key = json_string_value(json_object_get(json, "channel_key"));

        if (event != NULL && strcmp(event, "received") == 0) {
            count++;
            if (key == NULL || key[0] == '\0')
                plan_found("rule 1 is broken: %s sends no key", call);
            else if (strcmp(key, attempt->channel_key) != 0)
                plan_found("rule 1 is broken: %s sends another key than attempt->channel_key",
                           call);
        }
        json_decref(json);
    }
    free(line);
    fclose(file);
    return count;
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

static const char *name_of(const char *const *names, size_t count, int number)
{
    return number >= 0 && (size_t)number < count ? names[number] : "a number that is none";
}

static void judge_execute(tl_execute answer, unsigned sent)
{
    const char *name = name_of(execute_names, 6, (int)answer);

    if (the_plan->nothing_left) {
        if (sent > 0)
            plan_found("rule 4 is broken: execute sends when nothing is left of its time");
        else if (answer != TL_EXECUTE_NOT_SENT)
            plan_found("rule 4 is broken: execute answers %s when nothing is left of its time and "
                       "nothing was sent, which is NOT_SENT",
                       name);
        return;
    }
    if (!the_plan->unanswered || sent == 0)
        return;
    if (answer == TL_EXECUTE_DECLINED)
        plan_found("the answer of execute is no proof: DECLINED after: %s", the_plan->title);
    else if (answer != TL_EXECUTE_UNKNOWN)
        plan_found("the answer of execute is not UNKNOWN but %s after: %s", name, the_plan->title);
}

static tl_execute execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const tl_workflow *it = context;
    tl_attempt seen = *attempt;
    const int64_t began_ms = now_ms();
    const long from = requests_end();
    tl_execute answer;
    unsigned sent;
    int pretended;

    begin("execute");
    the_plan->calls++;
    if (take(&the_plan->execute, &pretended)) {
        pretend(reply, pretended == TL_EXECUTE_SUCCEEDED || pretended == TL_EXECUTE_ACCEPTED);
        end("execute");
        return (tl_execute)pretended;
    }
    if (the_plan->nothing_left) {
        seen.until_ms = began_ms - 1;
        seen.timeout_ms = 0;
    }
    answer = it->execute(it->context, &seen, reply);
    sent = requests_since(from, attempt, "execute");
    the_plan->sent += sent;
    if (!the_plan->nothing_left)
        check_time(attempt, began_ms, "execute");
    if (sent > 1)
        plan_found("execute sends %u requests, and may send one", sent);
    judge_execute(answer, sent);
    the_plan->nothing_left = 0;
    the_plan->unanswered = 0;
    end("execute");
    return answer;
}

static tl_query query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const tl_workflow *it = context;
    const int64_t began_ms = now_ms();
    const long from = requests_end();
    tl_query answer;
    int pretended;

    begin("query");
    if (take(&the_plan->query, &pretended)) {
        pretend(reply, pretended == TL_QUERY_SUCCEEDED || pretended == TL_QUERY_PENDING);
        end("query");
        return (tl_query)pretended;
    }
    answer = it->query(it->context, attempt, reply);
    check_time(attempt, began_ms, "query");
    if (requests_since(from, attempt, "query") > 0 && the_plan->query_unheard &&
        answer != TL_QUERY_UNREACHABLE)
        plan_found("the answer of query is not UNREACHABLE but %s after: %s",
                   name_of(query_names, 5, (int)answer), the_plan->title);
    the_plan->query_unheard = 0;
    end("query");
    return answer;
}

static tl_cancel cancel(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const tl_workflow *it = context;
    const int64_t began_ms = now_ms();
    const long from = requests_end();
    tl_cancel answer;

    begin("cancel");
    answer = it->cancel(it->context, attempt, reply);
    check_time(attempt, began_ms, "cancel");
    (void)requests_since(from, attempt, "cancel");
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

static tl_status prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                         struct st_mysql *connection)
{
    AROUND("prepare", prepare(it->context, attempt, reply, connection));
}

static tl_status apply_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                               struct st_mysql *connection)
{
    AROUND("apply_success", apply_success(it->context, attempt, reply, connection));
}

static tl_status apply_failure(void *context, const tl_attempt *attempt, const tl_reply *reply,
                               tl_proof proof, struct st_mysql *connection)
{
    AROUND("apply_failure", apply_failure(it->context, attempt, reply, proof, connection));
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
    WATCH(prepare);
    WATCH(apply_success);
    WATCH(apply_failure);
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
