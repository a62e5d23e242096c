/*
 * Statements with a safety rule switched off, for builds with TL_TEST_HOOKS: a test that passes
 * without the rule proves nothing about it.
 *   fence   no statement compares the fence
 *   token   no statement compares the token, and a lost answer is settled without it
 * In every other build this does nothing and costs nothing.
 */
#ifndef TL_STORE_MUTATION_H
#define TL_STORE_MUTATION_H

#ifdef TL_TEST_HOOKS
struct sql_text;
/* The same statement, or its mutated form; valid for ever. */
const struct sql_text *store_mutated(const struct sql_text *statement);
#else
#define store_mutated(statement) (statement)
#endif

#endif
