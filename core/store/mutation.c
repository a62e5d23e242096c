#include "store/mutation.h"

#ifdef TL_TEST_HOOKS

#include "base/fault.h"
#include "sql_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENTS_MAX 64

static const struct {
    const char *rule, *check, *instead;
} mutations[] = {
    {"fence", "AND fence = ?", "AND ? IS NOT NULL"},
    {"fence", "AND s.fence = ?", "AND ? IS NOT NULL"},
    {"fence", "OR s.fence = ?", "OR ? IS NOT NULL"},
    {"fence", "OR fence = ?) AND retryable", "OR ? IS NOT NULL) AND retryable"},
    {"fence", "AND fence = VALUES(fence)", "AND TRUE"},
    {"fence", "AND s.fence = j.held_fence", "AND TRUE"},
    {"fence", "OR s.fence = j.seen_fence", "OR TRUE"},
    {"token", "AND token = ?", "AND ? IS NOT NULL"},
    {"token", "AND s.token = ?", "AND ? IS NOT NULL"},
    {"token", "SELECT t.token = ?", "SELECT ? IS NOT NULL"},
    {"token", "AND token = VALUES(payload)", "AND TRUE"},
    {"token", "AND s.token = j.held_token", "AND TRUE"},
};

/* Under the mutex.  The rules are read once for each statement. */
static struct {
    pthread_mutex_t mutex;
    const struct sql_text *from[STATEMENTS_MAX];
    struct sql_text to[STATEMENTS_MAX];
    unsigned rules[STATEMENTS_MAX]; /* which were off when it was made */
    size_t count;
} made = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static char *replace(char *text, const char *check, const char *instead)
{
    size_t space = strlen(text) + strlen(instead) + 1;
    char *found = strstr(text, check), *changed;

    if (found == NULL)
        return text;
    changed = need(malloc(space));
    memcpy(changed, text, (size_t)(found - text));
    strcpy(changed + (found - text), instead);
    strcat(changed, found + strlen(check));
    free(text);
    return replace(changed, check, instead);
}

static const char *mutate(const char *text, unsigned rules)
{
    char *changed;

    if (text == NULL)
        return NULL;
    changed = need(strdup(text));
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++)
        if (rules & (strcmp(mutations[i].rule, "fence") == 0 ? 1u : 2u))
            changed = replace(changed, mutations[i].check, mutations[i].instead);
    return changed;
}

/* Needs: made.mutex held. */
static const struct sql_text *make(const struct sql_text *from, unsigned rules)
{
    struct sql_text *to = &made.to[made.count];

    for (size_t i = 0; i < made.count; i++)
        if (made.from[i] == from && made.rules[i] == rules)
            return &made.to[i];
    if (made.count == STATEMENTS_MAX)
        abort();
    to->name = from->name;
    to->text = mutate(from->text, rules);
    to->head = mutate(from->head, rules);
    to->row = mutate(from->row, rules);
    to->tail = mutate(from->tail, rules);
    to->kind = from->kind;
    made.from[made.count] = from;
    made.rules[made.count++] = rules;
    return to;
}

const struct sql_text *store_mutated(const struct sql_text *statement)
{
    unsigned rules = (fault_mutated("fence") ? 1u : 0) | (fault_mutated("token") ? 2u : 0);
    const struct sql_text *changed = statement;

    if (rules == 0)
        return statement;
    pthread_mutex_lock(&made.mutex);
    changed = make(statement, rules);
    pthread_mutex_unlock(&made.mutex);
    return changed;
}

#else

/* ISO C wants something in every file. */
typedef int mutation_needs_test_hooks;

#endif
