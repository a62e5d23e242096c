/* What a trade's rows mean, for people: the sentences of the library, printed. */
#ifndef TRADELOCK_EXPLAIN_H
#define TRADELOCK_EXPLAIN_H

#include "command.h"

#include <tradelock/admin.h>

#include <jansson.h>

/* What was explained, read before anything is printed. */
struct explained {
    json_t *sentences; /* of each: topic, text, command */
    tl_view view;      /* the row that they are about */
};

/* Takes a sentence; explained->sentences is an array. */
void explained_take(struct explained *explained, const tl_sentence *sentence);
/* For people, within the width of the terminal. */
void explained_print(const struct explained *explained);
/* All texts as one; the caller frees it. */
json_t *explained_text(const struct explained *explained);
void explained_free(struct explained *explained);

/* Whether nothing is sent for it any more. */
int is_past_deadline(const tl_view *view);

/* Whether the trade waits to be found out, or for a person. */
int is_in_doubt_or_parked(const tl_view *view);

#endif
