/* Runs audits, with the account of whoever started them. */
#include "audit_run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct audit_keeper {
    struct sessions *sessions;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    pthread_t thread;
    int has_thread;
    struct session *session;
    struct audit_report report;
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

static int take(void *context, const tl_violation *found)
{
    struct audit_report *report = context;
    struct violation *mine = &report->violations[report->violation_count];

    if (found->closed)
        return 0;
    if (report->violation_count == VIOLATIONS_MOST) {
        report->cut = 1;
        return 0;
    }
    snprintf(mine->rule, sizeof mine->rule, "%s", found->rule);
    snprintf(mine->serial_no, sizeof mine->serial_no, "%s", found->key.serial_no);
    snprintf(mine->cust_no, sizeof mine->cust_no, "%s", found->key.cust_no);
    snprintf(mine->op_code, sizeof mine->op_code, "%s",
             found->key.op_code != NULL ? found->key.op_code : "");
    snprintf(mine->account, sizeof mine->account, "%s", found->account);
    snprintf(mine->sentence, sizeof mine->sentence, "%s", found->sentence);
    snprintf(mine->finding, sizeof mine->finding, "%.16s", found->finding);
    snprintf(mine->proposed_by, sizeof mine->proposed_by, "%s", found->proposed_by);
    report->violation_count++;
    return 0;
}

static void *run(void *context)
{
    struct audit_keeper *keeper = context;
    struct audit_report *report = calloc(1, sizeof *report);
    const int64_t began_ms = steady_ms();
    struct session *session = keeper->session;

    if (report != NULL) {
        report->counts = (tl_audit_counts)TL_AUDIT_COUNTS_INIT;
        report->status = tl_audit(session->client, NULL, 0, take, report, &report->counts);
        snprintf(report->problem, sizeof report->problem, "%s",
                 report->status != TL_OK ? tl_error_message() : "");
        report->took_ms = steady_ms() - began_ms;
        report->has_run = 1;
    }
    pthread_mutex_lock(&keeper->mutex);
    if (report != NULL)
        keeper->report = *report;
    keeper->report.is_running = 0;
    keeper->session = NULL;
    pthread_mutex_unlock(&keeper->mutex);
    session_put(keeper->sessions, session);
    free(report);
    return NULL;
}

void audit_keeper_free(struct audit_keeper *keeper)
{
    if (keeper == NULL)
        return;
    if (keeper->has_thread)
        pthread_join(keeper->thread, NULL);
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper);
}

int audit_start(struct audit_keeper *keeper, struct session *session)
{
    int started = 0;

    pthread_mutex_lock(&keeper->mutex);
    if (!keeper->report.is_running) {
        if (keeper->has_thread)
            pthread_join(keeper->thread, NULL);
        keeper->session = session_keep(keeper->sessions, session);
        started = pthread_create(&keeper->thread, NULL, run, keeper) == 0;
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
