/*
 * A Unix socket between clients and the server, any number of connections at once, where a test
 * loses, delays or stalls what it chooses.  A rule looks for a word in what the clients send
 * (serial numbers, session ids and text statements are there as they are) and acts on one request.
 */
#ifndef TESTS_SUPPORT_TAP_H
#define TESTS_SUPPORT_TAP_H

typedef struct tap tap;

#define TAP_RULES 9

typedef enum tap_act {
    TAP_LOSE_REQUEST,  /* swallowed; both ends are closed */
    TAP_LOSE_ANSWER,   /* carried out; the answer is swallowed, both ends are closed */
    TAP_HOLD_REQUEST,  /* the client's end is closed; the request goes on at tap_release() */
    TAP_DELAY_REQUEST, /* goes on at tap_release(), as if nothing had been */
    TAP_DELAY_ANSWER,  /* carried out; the answer goes on at tap_release() */
    TAP_STALL,         /* swallowed; both ends stay open and silent */
    TAP_STALL_ALL      /* the same with this request and all later ones that match: the
                       * rule is never used up, and tap_done() never true */
} tap_act;

tap *tap_start(const char *server_socket);
void tap_free(tap *self);
const char *tap_socket(const tap *self);

/* The request after `skip` others that contain the word.  down: from then on the line is down too.
 * At most TAP_RULES at once; the first that matches counts. */
void tap_rule(tap *self, const char *word, unsigned skip, tap_act act, int down);
/* Whether all rules have been used up. */
int tap_done(const tap *self);
/* How many have not. */
int tap_left(const tap *self);
/* Forgets those. */
void tap_clear(tap *self);
void tap_release(tap *self);

/* Connections that come from now on lead to this server; those that there are stay where they
 * are. */
void tap_lead(tap *self, const char *server_socket);

/* Down: all connections are cut and new ones are cut at once. */
void tap_down(tap *self, int down);
/* All that there are are cut, stalled ones too; new ones are served. */
void tap_cut(tap *self);

#endif
