/* Questions about trades: what a row says, as those who ask see it. */
#ifndef TL_WORKFLOWS_QUESTIONS_H
#define TL_WORKFLOWS_QUESTIONS_H

#include "registry.h"

#include <tradelock/questions.h>

/* What the row is called, whoever looks at it. */
tl_status trade_status(tl_state state, int conflict);
/* Fills in the trade. */
void trade_from_view(tl_trade *trade, const tl_view *view);

/* TL_OK, or TL_INVALID with a sentence. */
tl_status trade_check(const tl_workflows *workflows, const tl_key *key, const tl_trade *trade);

#endif
