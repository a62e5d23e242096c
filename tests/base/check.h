/* What every test of this room includes, in the order that cmocka wants. */
#ifndef TL_TESTS_BASE_CHECK_H
#define TL_TESTS_BASE_CHECK_H

#include "support/theme.h"

#include <tradelock/tradelock.h>

/* The call failed with this status and left exactly this sentence. */
#define assert_problem(call, wanted_status, wanted_sentence)                                       \
    do {                                                                                           \
        assert_string_equal(tl_status_name(call), tl_status_name(wanted_status));                  \
        assert_string_equal(tl_error_message(), wanted_sentence);                                  \
    } while (0)

#endif
