/* What was probably meant by a word that is not known. */
#ifndef TRADELOCK_NEAREST_H
#define TRADELOCK_NEAREST_H

#include "command.h"

#include <getopt.h>

/* How many letters differ; more than `most` counts as most + 1. */
unsigned nearest_distance(const char *a, const char *b, unsigned most);

/* The long option that was probably meant by "--optoin"; NULL: none is near. */
const char *nearest_option(const char *typed, const struct option *options);

/* The filter that was probably meant by this word of --where, as the option is named; or NULL. */
const char *nearest_condition(const char *word, const struct command_option *options);

/* report(), and for a trade that is not there the operation that was probably meant. */
int report_trade(tl_client *client, tl_status status, const tl_key *key);

#endif
