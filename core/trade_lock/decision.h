/* A half of a decision, as a row of trade_resolution. */
#ifndef TL_TRADE_LOCK_DECISION_H
#define TL_TRADE_LOCK_DECISION_H

#include "store/decision.h"

#include <tradelock/lane.h>

/* The texts point into the result. */
void decision_read(tl_resolution_row *to, const db_result *result, size_t row);

#endif
