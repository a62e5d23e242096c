/* What the tests of the simulator share: one that is prepared before each test and removed after
 * it. */
#ifndef TESTS_SIMULATOR_FIXTURE_H
#define TESTS_SIMULATOR_FIXTURE_H

#include "sim.h"

extern struct sim sim;

int set_up(void **state);
int tear_down(void **state);
/* In the middle of a test: it goes, and so does its ledger. */
void start_anew(void);

void sleep_ms(long wait_ms);

#endif
