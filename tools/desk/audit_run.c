/* Runs audits and closes what they found, with the account of whoever asks for it. */
#include "audit_run.h"

#include "print.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct audit_keeper {
    struct sessions *sessions;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    pthread_t thread;
    int has_thread;
    struct audit_report report;
    struct compared *last; /* its statement, or NULL */
    /* Of the run that is under way. */
    atomic_int is_stopped; /* by whoever asks for it, under no mutex */
    struct session *session;
    size_t shard; /* SHARD_NOBODY: all */
    struct compared *compared;
    struct compared none; /* of a run without a statement */
    size_t *first;        /* the first payment of each shard, then of none */
};

struct audit_keeper *audit_keeper_new(struct sessions *sessions)
{
    struct audit_keeper *keeper = calloc(1, sizeof *keeper);

    if (keeper == NULL)
        return NULL;
    keeper->sessions = sessions;
    pthread_mutex_init(&keeper->mutex, NULL);
    return keeper;
}

void violation_point(struct violation *violation)
{
    tl_violation *found = &violation->found;

    found->rule = violation->rule;
    found->key = (tl_key){violation->serial_no, violation->cust_no, violation->op_code};
    found->account = violation->account;
    found->sentence = violation->sentence;
    found->finding = violation->finding;
    found->proposed_by = violation->proposed_by;
    found->proposed_reason = violation->proposed_reason;
}

static void copy(struct violation *to, const tl_violation *found)
{
    to->found = *found;
    snprintf(to->rule, sizeof to->rule, "%s", found->rule);
    snprintf(to->serial_no, sizeof to->serial_no, "%s", found->key.serial_no);
    snprintf(to->cust_no, sizeof to->cust_no, "%s", found->key.cust_no);
    snprintf(to->op_code, sizeof to->op_code, "%s",
             found->key.op_code != NULL ? found->key.op_code : "");
    snprintf(to->account, sizeof to->account, "%s", found->account);
    snprintf(to->sentence, sizeof to->sentence, "%s", found->sentence);
    snprintf(to->finding, sizeof to->finding, "%s", found->finding);
    snprintf(to->proposed_by, sizeof to->proposed_by, "%s", found->proposed_by);
    snprintf(to->proposed_reason, sizeof to->proposed_reason, "%s", found->proposed_reason);
}

/* What the library's callbacks work with. */
struct auditing {
    struct audit_keeper *keeper;
    struct audit_report *report;
};

static int is_stopped(void *context, const tl_progress *progress)
{
    const struct auditing *auditing = context;

    (void)progress;
    return atomic_load(&auditing->keeper->is_stopped);
}

static int take(void *context, const tl_violation *found)
{
    const struct auditing *auditing = context;
    struct audit_report *report = auditing->report;
    struct audit_run *run = found->is_of_payment ? &report->statement : &report->books;

    if (found->closed)
        run->closed++;
    else if (++run->open <= VIOLATIONS_MOST)
        copy(&run->violations[run->violation_count++], found);
    return 0;
}

/* Those that were found since `first` are of this shard. */
static void set_shard(struct audit_run *run, unsigned first, const char *shard)
{
    for (unsigned i = first; i < run->violation_count; i++)
        snprintf(run->violations[i].shard, sizeof run->violations[i].shard, "%s", shard);
}

static void add_counts(tl_audit_counts *to, const tl_audit_counts *counts)
{
    const tl_audit_counts before = *to;

    *to = *counts;
    if (before.noted != TL_OK)
        to->noted = before.noted;
    to->rows += before.rows;
    to->steps += before.steps;
    to->grants += before.grants;
    to->payments += before.payments;
}

static void add_problem(struct audit_run *run, const char *shard, tl_status status)
{
    const size_t size = strlen(run->problem);

    run->status = status;
    snprintf(run->problem + size, sizeof run->problem - size, "%s%s%s%s", size > 0 ? " " : "",
             shard[0] != '\0' ? "Shard " : "", shard, shard[0] != '\0' ? ": " : "");
    snprintf(run->problem + strlen(run->problem), sizeof run->problem - strlen(run->problem), "%s",
             said_at(shard, status));
}

static void end_one(struct audit_run *run, const char *shard, unsigned first, tl_status status,
                    const tl_audit_counts *counts)
{
    set_shard(run, first, shard);
    if (status != TL_OK) {
        add_problem(run, shard, status);
        return;
    }
    run->done++;
    add_counts(&run->counts, counts);
}

static void audit_one(struct audit_keeper *keeper, struct audit_report *report, size_t shard)
{
    tl_audit_counts counts = TL_AUDIT_COUNTS_INIT;
    const struct statement *statement = &keeper->compared->statement;
    struct shards *shards = keeper->session->shards;
    const unsigned books = report->books.violation_count;
    const unsigned payments = report->statement.violation_count;
    tl_client *client = NULL;
    tl_audit_scope scope = {.version = TL_AUDIT_SCOPE_VERSION};
    tl_account account = TL_ACCOUNT_INIT;
    struct auditing auditing = {keeper, report};
    tl_status status = shards_client(shards, shard, &client, &account);

    scope.actor = keeper->session->user;
    if (statement->payments != NULL) {
        scope.statement = keeper->compared->name;
        scope.channel = statement->channel;
        scope.payments = statement->payments + keeper->first[shard];
        scope.payment_count = keeper->first[shard + 1] - keeper->first[shard];
    }
    counts.paid = &report->statement.trades;
    if (status == TL_OK)
        status = tl_audit(client, &scope, take, is_stopped, &auditing, &counts, NULL);
    end_one(&report->books, shards_name(shards, shard), books, status, &counts);
    end_one(&report->statement, shards_name(shards, shard), payments, status, &counts);
}

static void begin_run(struct audit_run *run, const struct audit_keeper *keeper)
{
    const struct shards *shards = keeper->session->shards;

    run->has_run = 1;
    run->is_of_fleet = shards_is_fleet(shards);
    if (keeper->shard != SHARD_NOBODY)
        snprintf(run->shard, sizeof run->shard, "%s", shards_name(shards, keeper->shard));
    snprintf(run->statement, sizeof run->statement, "%s", keeper->compared->name);
    run->counts = (tl_audit_counts)TL_AUDIT_COUNTS_INIT;
    run->paid = run->returned = run->trades = (tl_list_end)TL_LIST_END_INIT;
}

/* Finds whose payments they are of which the bank names no customer.  -1: that was not to be known,
 * and the report says why. */
static int find_trades(struct audit_keeper *keeper, struct audit_run *run)
{
    struct statement *statement = &keeper->compared->statement;
    struct shards *shards = keeper->session->shards;
    const int wanted = statement_find_begin(statement);
    char problem[128] = "out of memory";

    for (size_t i = 0; wanted > 0 && i < shards_count(shards); i++) {
        tl_client *client = NULL;
        tl_account account = TL_ACCOUNT_INIT;
        tl_status status = shards_client(shards, i, &client, &account);

        if (status == TL_OK)
            status = tl_payment_find(client, statement->payments, statement->count,
                                     statement->channel, statement_take_trade, statement);
        if (status != TL_OK)
            add_problem(run, shards_name(shards, i), status);
    }
    /* What is of a shard that does not answer is not compared. */
    if (wanted == 0 || (wanted > 0 && statement_find_end(statement, run->status != TL_OK, problem,
                                                         sizeof problem) == 0))
        return 0;
    add_problem(run, "", tl_error_report(TL_INVALID, "%s: %s", keeper->compared->name, problem));
    return -1;
}

int split_payments(struct shards *shards, struct statement *statement, size_t *first)
{
    const size_t count = statement->count, all = shards_count(shards);
    const char **cust_nos = calloc(count + 1, sizeof *cust_nos);
    size_t *owners = calloc(count + 1, sizeof *owners);
    int result = cust_nos != NULL && owners != NULL ? 0 : -1;

    for (size_t i = 0; result == 0 && i < count; i++)
        cust_nos[i] =
            statement_names_customer(&statement->payments[i]) ? statement->payments[i].cust_no : "";
    if (result == 0 && count > 0 && shards_is_fleet(shards)) {
        shards_look_again(shards);
        shards_owners(shards, cust_nos, count, owners);
    }
    for (size_t i = 0; result == 0 && i < count; i++)
        if (cust_nos[i][0] == '\0')
            owners[i] = 0;
        else if (owners[i] == SHARD_NOBODY)
            owners[i] = all;
    if (result == 0)
        result = statement_sort(statement, owners, all + 1, first);
    free(cust_nos);
    free(owners);
    return result;
}

/* Their shard is down, and named already; or their slot is nobody's, or of two shards. */
static void say_uncompared(const struct audit_keeper *keeper, struct audit_run *run)
{
    const size_t all = shards_count(keeper->session->shards);
    const size_t count =
        keeper->first[all + 1] - keeper->first[all] + keeper->compared->statement.unfound;
    const size_t size = strlen(run->problem);

    if (count == 0)
        return;
    run->status = run->status == TL_OK ? TL_MISDIRECTED : run->status;
    snprintf(run->problem + size, sizeof run->problem - size,
             "%sPayments that were not compared, since no shard that answers has their customers "
             "now: %s.",
             size > 0 ? " " : "", COUNT_TEXT(count));
}

static void audit(struct audit_keeper *keeper, struct audit_report *report)
{
    struct statement *statement = &keeper->compared->statement;
    const size_t count = shards_count(keeper->session->shards);
    const int64_t began_ms = steady_ms();

    begin_run(&report->books, keeper);
    begin_run(&report->statement, keeper);
    keeper->first = calloc(count + 2, sizeof *keeper->first);
    if (find_trades(keeper, &report->statement) != 0) {
        free(keeper->first);
        return;
    }
    statement_sum(statement->payments, statement->count, &report->statement.paid,
                  &report->statement.returned);
    statement_aside(report->statement.aside, sizeof report->statement.aside, statement);
    if (keeper->first == NULL ||
        split_payments(keeper->session->shards, statement, keeper->first) != 0) {
        const tl_status status = tl_error_report(TL_NO_MEMORY, "out of memory for the payments");

        add_problem(&report->books, "", status);
        add_problem(&report->statement, "", status);
    } else {
        for (size_t i = 0; i < count; i++)
            if (keeper->shard == SHARD_NOBODY || keeper->shard == i)
                audit_one(keeper, report, i);
        say_uncompared(keeper, &report->statement);
    }
    free(keeper->first);
    report->books.took_ms = report->statement.took_ms = steady_ms() - began_ms;
}

/* What is of the run alone is not touched by others until is_running is 0 again. */
static void *run(void *context)
{
    struct audit_keeper *keeper = context;
    struct audit_report *report = calloc(1, sizeof *report);
    struct session *session = keeper->session;
    struct compared *before = NULL;

    if (report != NULL)
        audit(keeper, report);
    pthread_mutex_lock(&keeper->mutex);
    if (report != NULL)
        keeper->report.books = report->books;
    if (keeper->compared != &keeper->none) {
        if (report != NULL)
            keeper->report.statement = report->statement;
        if (report == NULL || report->statement.status != TL_OK)
            snprintf(keeper->compared->unfiled, sizeof keeper->compared->unfiled,
                     "the comparison did not come to its end");
        before = keeper->last;
        keeper->last = keeper->compared;
    }
    keeper->report.statement.counts.paid = NULL;
    keeper->report.books.counts.paid = NULL;
    keeper->report.is_running = 0;
    keeper->session = NULL;
    pthread_mutex_unlock(&keeper->mutex);
    session_put(keeper->sessions, session);
    audit_put(keeper, before);
    free(report);
    return NULL;
}

void audit_stop(struct audit_keeper *keeper)
{
    atomic_store(&keeper->is_stopped, 1);
}

void audit_keeper_free(struct audit_keeper *keeper)
{
    if (keeper == NULL)
        return;
    audit_stop(keeper);
    if (keeper->has_thread)
        pthread_join(keeper->thread, NULL);
    audit_put(keeper, keeper->last);
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper);
}

int audit_start(struct audit_keeper *keeper, const struct visit *visit, size_t shard,
                struct compared *compared)
{
    int started = 0;

    pthread_mutex_lock(&keeper->mutex);
    if (!keeper->report.is_running) {
        if (keeper->has_thread)
            pthread_join(keeper->thread, NULL);
        keeper->session = session_keep(keeper->sessions, visit->session);
        keeper->shard = shard;
        atomic_store(&keeper->is_stopped, 0);
        keeper->compared = compared != NULL ? compared : &keeper->none;
        keeper->compared->users = 1;
        started = pthread_create(&keeper->thread, NULL, run, keeper) == 0;
        if (!started)
            session_put(keeper->sessions, visit->session);
        keeper->has_thread = keeper->report.is_running = started;
    }
    pthread_mutex_unlock(&keeper->mutex);
    return started;
}

void audit_look(struct audit_keeper *keeper, struct audit_report *report)
{
    pthread_mutex_lock(&keeper->mutex);
    *report = keeper->report;
    pthread_mutex_unlock(&keeper->mutex);
}

/* -------------------------------------------------------------- a statement -- */

struct compared *audit_compared(struct audit_keeper *keeper)
{
    struct compared *compared;

    pthread_mutex_lock(&keeper->mutex);
    compared = keeper->last;
    if (compared != NULL)
        compared->users++;
    pthread_mutex_unlock(&keeper->mutex);
    return compared;
}

void audit_put(struct audit_keeper *keeper, struct compared *compared)
{
    int is_last = 0;

    pthread_mutex_lock(&keeper->mutex);
    if (compared != NULL)
        is_last = --compared->users == 0;
    pthread_mutex_unlock(&keeper->mutex);
    if (is_last)
        compared_free(compared);
}

void compared_free(struct compared *compared)
{
    if (compared != NULL)
        statement_free(&compared->statement);
    free(compared);
}

/* ----------------------------------------------------------------- closing -- */

/* Needs: the mutex held.  The place of a violation in what is kept, or NULL. */
static struct violation *find(struct audit_keeper *keeper, const char *finding, const char *shard,
                              struct audit_run **of)
{
    struct audit_run *const runs[] = {&keeper->report.books, &keeper->report.statement};

    for (size_t i = 0; i < 2; i++)
        for (unsigned k = 0; k < runs[i]->violation_count; k++)
            if (strcmp(runs[i]->violations[k].finding, finding) == 0 &&
                strcmp(runs[i]->violations[k].shard, shard) == 0) {
                *of = runs[i];
                return &runs[i]->violations[k];
            }
    return NULL;
}

int audit_find(struct audit_keeper *keeper, const char *finding, const char *shard,
               struct violation *to, char statement[STATEMENT_NAME])
{
    struct audit_run *of = NULL;
    const struct violation *found;

    pthread_mutex_lock(&keeper->mutex);
    found = find(keeper, finding, shard, &of);
    if (found != NULL) {
        *to = *found;
        snprintf(statement, STATEMENT_NAME, "%s",
                 of == &keeper->report.statement ? of->statement : "");
    }
    pthread_mutex_unlock(&keeper->mutex);
    return found != NULL;
}

/* The inbox names a finding by its first digits. */
static int take_proposal(void *context, const tl_proposal *proposal)
{
    struct closing_proposal *to = context;

    if (strcmp(proposal->what, "audit") != 0 ||
        strncmp(proposal->said, to->finding, strlen(proposal->said)) != 0)
        return 0;
    snprintf(to->account, sizeof to->account, "%s", proposal->account);
    snprintf(to->reason, sizeof to->reason, "%s", proposal->reason);
    to->own = proposal->own;
    return 1;
}

tl_status audit_proposal(const struct visit *visit, const char *finding,
                         struct closing_proposal *to)
{
    memset(to, 0, sizeof *to);
    to->finding = finding;
    return tl_inbox(visit->client, take_proposal, to);
}

/* Needs: the mutex held. */
static void drop(struct audit_run *of, struct violation *found)
{
    const size_t behind = (size_t)(of->violations + of->violation_count - found) - 1;

    memmove(found, found + 1, behind * sizeof *found);
    of->violation_count--;
    of->open--;
    of->closed++;
}

tl_status audit_close(struct audit_keeper *keeper, const struct visit *visit,
                      const struct violation *found, int confirms, const char *reason)
{
    tl_closing closing = TL_CLOSING_INIT;
    struct audit_run *of = NULL;
    struct violation *kept;
    tl_status status;

    closing.finding = found->finding;
    closing.rule = found->rule;
    closing.key = (tl_key){found->serial_no, found->cust_no, found->op_code};
    closing.rev = found->found.rev;
    closing.confirms = confirms;
    closing.actor = visit->session->user;
    closing.reason = reason;
    status = tl_audit_close(visit->client, &closing);
    pthread_mutex_lock(&keeper->mutex);
    kept = find(keeper, found->finding, found->shard, &of);
    if (kept != NULL && (status == TL_ALREADY_DONE || (status == TL_OK && confirms))) {
        drop(of, kept);
    } else if (kept != NULL && status == TL_OK) {
        snprintf(kept->proposed_by, sizeof kept->proposed_by, "%s", visit->account.name);
        snprintf(kept->proposed_reason, sizeof kept->proposed_reason, "%s", reason);
    }
    pthread_mutex_unlock(&keeper->mutex);
    return status;
}
