/* Schemas as earlier versions made them, and what a schema consists of. */
#ifndef TESTS_SQL_WAS_H
#define TESTS_SQL_WAS_H

#include "support/database.h"

/* Those whose definitions are kept. */
#define WAS_COUNT 10
extern const unsigned was_versions[WAS_COUNT];

/* Makes what `tradelock migrate` of one of these schemas had made. */
void was_make(MYSQL *connection, unsigned version);

/* Sets the connection as the command sets its own, which the server keeps with what is made. */
void was_as_command(MYSQL *connection);

/* Everything that the server says of the tables, triggers, routines and views of this database, a
 * line each, definers left out; to be freed with free(). */
char *was_describe(MYSQL *connection);

/* Fails the test where the two differ, and names the first line that does. */
void was_assert_same(const char *expected, const char *found);

#endif
