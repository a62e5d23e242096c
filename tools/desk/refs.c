/* Keeps references: a table of sets, in each of which the one used longest ago makes room. */
#include "refs.h"

#include <tradelock/lane.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAYS 8u
#define SETS 2048u

struct place {
    char text[SECRET_TEXT];
    uint64_t used; /* 0: free */
    struct ref ref;
};

struct refs {
    unsigned char key[SECRET_KEY];
    pthread_mutex_t mutex;
    uint64_t now;
    struct place places[SETS][WAYS];
};

struct refs *refs_new(void)
{
    struct refs *refs = calloc(1, sizeof *refs);

    if (refs == NULL)
        return NULL;
    secret_random(refs->key, sizeof refs->key);
    pthread_mutex_init(&refs->mutex, NULL);
    return refs;
}

void refs_free(struct refs *refs)
{
    if (refs == NULL)
        return;
    pthread_mutex_destroy(&refs->mutex);
    free(refs);
}

/* The text is random, so that its letters spread references evenly. */
static struct place *set_of(struct refs *refs, const char *text)
{
    const unsigned hash = (unsigned char)text[0] * 4093u + (unsigned char)text[1] * 61u +
                          (unsigned char)text[2] * 7u + (unsigned char)text[3];

    return refs->places[hash % SETS];
}

void refs_keep(struct refs *refs, const struct ref *ref, char to[SECRET_TEXT])
{
    struct place *set, *place;

    secret_mark(to, refs->key, ref, sizeof *ref);
    pthread_mutex_lock(&refs->mutex);
    set = place = set_of(refs, to);
    for (unsigned i = 0; i < WAYS; i++) {
        if (strcmp(set[i].text, to) == 0) {
            place = &set[i];
            break;
        }
        if (set[i].used < place->used)
            place = &set[i];
    }
    memcpy(place->text, to, SECRET_TEXT);
    place->ref = *ref;
    place->used = ++refs->now;
    pthread_mutex_unlock(&refs->mutex);
}

int refs_find(struct refs *refs, const char *text, struct ref *ref)
{
    struct place *set;
    int found = 0;

    if (strlen(text) != SECRET_TEXT - 1)
        return 0;
    pthread_mutex_lock(&refs->mutex);
    set = set_of(refs, text);
    for (unsigned i = 0; i < WAYS && !found; i++)
        if (secret_equal(set[i].text, text)) {
            *ref = set[i].ref;
            set[i].used = ++refs->now;
            found = 1;
        }
    pthread_mutex_unlock(&refs->mutex);
    return found;
}

void ref_of_trade(struct ref *ref, const char *serial_no, const char *cust_no, const char *op_code)
{
    memset(ref, 0, sizeof *ref);
    snprintf(ref->serial_no, sizeof ref->serial_no, "%s", serial_no);
    snprintf(ref->cust_no, sizeof ref->cust_no, "%s", cust_no);
    snprintf(ref->op_code, sizeof ref->op_code, "%.*s", (int)tl_business_op_size(op_code), op_code);
}

tl_key ref_key(const struct ref *ref)
{
    return (tl_key){ref->serial_no, ref->cust_no, ref->op_code};
}
