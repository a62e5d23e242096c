/* Finds the word that was probably meant.  Reads the operations that have rows. */
#include "nearest.h"

#include <tradelock/lane.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 48
#define LETTERS 2

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    const unsigned ab = a < b ? a : b;

    return ab < c ? ab : c;
}

unsigned nearest_distance(const char *a, const char *b, unsigned most)
{
    const size_t size_a = strlen(a), size_b = strlen(b);
    unsigned row[WORD_MAX + 1];

    if (size_a > WORD_MAX || size_b > WORD_MAX)
        return most + 1;
    for (size_t j = 0; j <= size_b; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= size_a; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= size_b; j++) {
            const unsigned above = row[j];
            const int same = strncasecmp(a + i - 1, b + j - 1, 1) == 0;

            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1));
            diagonal = above;
        }
    }
    return row[size_b] > most ? most + 1 : row[size_b];
}

/* Keeps the name, up to a blank, if it is nearer than the nearest so far. */
static void look_at(const char *word, const char *name, unsigned *best, const char **found)
{
    char plain[WORD_MAX + 1];
    unsigned distance;

    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, " "), name);
    distance = nearest_distance(word, plain, LETTERS);
    if (distance >= *best)
        return;
    *best = distance;
    *found = name;
}

const char *nearest_option(const char *typed, const struct option *options)
{
    const char *found = NULL, *end;
    char name[WORD_MAX + 1];
    unsigned best = LETTERS + 1;

    if (strncmp(typed, "--", 2) != 0)
        return NULL;
    end = strchr(typed, '=');
    snprintf(name, sizeof name, "%.*s", (int)(end != NULL ? end - typed - 2 : WORD_MAX), typed + 2);
    for (; options->name != NULL; options++)
        look_at(name, options->name, &best, &found);
    return found;
}

const char *nearest_condition(const char *word, const struct command_option *options)
{
    const char *found = NULL;
    unsigned best = LETTERS + 1;

    for (; options->name != NULL; options++)
        if (options->is_filter)
            look_at(word, options->name, &best, &found);
    return found;
}

struct looking {
    const char *op_code;
    char found[TL_OP_MAX + 1];
    unsigned best;
    int is_there;
};

static int take_operation(void *context, const char *op_code)
{
    struct looking *l = context;
    const unsigned distance = nearest_distance(l->op_code, op_code, LETTERS);

    l->is_there |= strcmp(op_code, l->op_code) == 0;
    if (distance < l->best) {
        l->best = distance;
        snprintf(l->found, sizeof l->found, "%s", op_code);
    }
    return 0;
}

int report_trade(tl_client *client, tl_status status, const tl_key *key)
{
    struct looking l = {.op_code = key->op_code, .best = LETTERS + 1};
    char sentence[1024];

    if (status != TL_NOT_FOUND)
        return report(status);
    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    if (tl_operations(client, take_operation, &l) != TL_OK || l.is_there || l.found[0] == '\0')
        fprintf(stderr, "tradelock: %s\n", sentence);
    else
        fprintf(stderr, "tradelock: %s; did you mean the operation %s?\n", sentence, l.found);
    return exit_code_of(status);
}
