#include "fixture.h"

#include <curl/curl.h>
#include <time.h>

struct sim sim;

int set_up(void **state)
{
    (void)state;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    sim_prepare(&sim);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    sim_remove(&sim);
    curl_global_cleanup();
    return 0;
}

void start_anew(void)
{
    sim_remove(&sim);
    sim_prepare(&sim);
}

void sleep_ms(long wait_ms)
{
    struct timespec pause = {wait_ms / 1000, (wait_ms % 1000) * 1000000};

    nanosleep(&pause, NULL);
}
