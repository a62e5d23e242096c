/* Counts the forks between this process and the one that first asked.  Touches nothing else. */
#include "base/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint forks;
static int watched;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    watched = pthread_atfork(NULL, NULL, count_fork) == 0;
}

unsigned process_generation(void)
{
    pthread_once(&once, watch_forks);
    /* Without memory for a fork handler, the process number does nearly as well. */
    if (!watched)
        return (unsigned)getpid();
    return atomic_load_explicit(&forks, memory_order_relaxed) + 1;
}
