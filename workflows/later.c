/* One thread for what submitted runs and endings do later.  It sleeps until the first of them is
 * due, and runs them one after the other.  Touches its list only. */
#include "later.h"

#include "schedule.h"

#include <tradelock/callback.h>
#include <tradelock/test_hooks.h>

#include <signal.h>
#include <unistd.h>

tl_status later_init(later *all)
{
    if (pthread_mutex_init(&all->mutex, NULL) != 0)
        return tl_error_report(TL_NO_MEMORY, "no mutex for a workflow registry");
    if (schedule_condition(&all->wake) == 0)
        return TL_OK;
    pthread_mutex_destroy(&all->mutex);
    return tl_error_report(TL_NO_MEMORY, "no condition for a workflow registry");
}

void later_destroy(later *all)
{
    if (all->process == getpid()) {
        pthread_mutex_lock(&all->mutex);
        all->stopping = 1;
        pthread_cond_signal(&all->wake);
        pthread_mutex_unlock(&all->mutex);
        pthread_join(all->thread, NULL);
    }
    /* In the child of a fork they may look used by the parent's thread. */
    if (all->process == 0 || all->process == getpid()) {
        pthread_cond_destroy(&all->wake);
        pthread_mutex_destroy(&all->mutex);
    }
}

/* -------------------------------------------------------------------- the thread -- */

/* Needs: the mutex held.  Takes the one of those that are due that comes first; else NULL, and
 * *wait_ms is until one is; -1: there is none. */
static later_item *take_due(later *all, int64_t *wait_ms)
{
    const int64_t now_ms = schedule_now_ms();
    later_item **first = NULL, *item;

    *wait_ms = -1;
    for (later_item **link = &all->first; *link != NULL; link = &(*link)->next) {
        item = *link;
        if (item->due_ms <= now_ms) {
            /* Of those that came together, the list has the last one first. */
            if (first == NULL ||
                (item->waits != (*first)->waits ? (*first)->waits
                                                : item->due_ms <= (*first)->due_ms))
                first = link;
        } else if (*wait_ms < 0 || item->due_ms - now_ms < *wait_ms) {
            *wait_ms = item->due_ms - now_ms;
        }
    }
    if (first == NULL)
        return NULL;
    item = *first;
    *first = item->next;
    return item;
}

static void *later_main(void *argument)
{
    later *all = argument;

    pthread_mutex_lock(&all->mutex);
    while (!all->stopping) {
        int64_t wait_ms;
        later_item *item = take_due(all, &wait_ms);

        if (item != NULL) {
            pthread_mutex_unlock(&all->mutex);
            item->run(item);
            pthread_mutex_lock(&all->mutex);
        } else {
            schedule_wait(&all->wake, &all->mutex, wait_ms);
        }
    }
    pthread_mutex_unlock(&all->mutex);
    return NULL;
}

/* -------------------------------------------------------------------- the calls -- */

tl_status later_check(const later *all)
{
    if (all->process == 0 || all->process == getpid())
        return TL_OK;
    return tl_error_report(TL_WRONG_PROCESS, "something was submitted with this registry before "
                                             "fork(); the child process must make its own");
}

/* Its signals go to the service's threads. */
static int start_thread(later *all)
{
    sigset_t every, before;
    int error;

    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    error = pthread_create(&all->thread, NULL, later_main, all);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Needs: the mutex held. */
static tl_status start(later *all)
{
    if (all->process != 0)
        return TL_OK;
    if (tl_test_allocation() || start_thread(all) != 0)
        return tl_error_report(TL_NO_MEMORY, "no thread for what is submitted");
    all->process = getpid();
    return TL_OK;
}

tl_status later_enter(later *all)
{
    tl_status status = later_check(all);

    if (status != TL_OK)
        return status;
    pthread_mutex_lock(&all->mutex);
    status = start(all);
    if (status == TL_OK)
        all->under_way++;
    pthread_mutex_unlock(&all->mutex);
    return status;
}

void later_leave(later *all)
{
    pthread_mutex_lock(&all->mutex);
    all->under_way--;
    pthread_mutex_unlock(&all->mutex);
}

int later_any(later *all)
{
    int any;

    if (all->process != getpid())
        return 0;
    pthread_mutex_lock(&all->mutex);
    any = all->under_way > 0;
    pthread_mutex_unlock(&all->mutex);
    return any;
}

void later_put(later *all, later_item *item)
{
    pthread_mutex_lock(&all->mutex);
    item->next = all->first;
    all->first = item;
    pthread_cond_signal(&all->wake);
    pthread_mutex_unlock(&all->mutex);
}
