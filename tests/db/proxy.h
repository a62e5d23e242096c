/*
 * A Unix socket between a client and the server, which counts the client's turns and can lose an
 * answer at a chosen place.  One connection after the other, one thread each.
 */
#ifndef TESTS_DB_PROXY_H
#define TESTS_DB_PROXY_H

typedef struct proxy proxy;

typedef enum proxy_cut {
    PROXY_PASS,
    PROXY_CUT_REQUEST, /* the next request is swallowed, then both ends are closed */
    PROXY_CUT_ANSWER,  /* the next request arrives; its answer is swallowed */
    PROXY_CUT_TAIL     /* the last 5 bytes of the next answer are swallowed */
} proxy_cut;

proxy *proxy_start(const char *server_socket);
void proxy_free(proxy *self);
const char *proxy_socket(const proxy *self);
void proxy_set(proxy *self, proxy_cut cut);
/* How often the client spoke after it had listened. */
unsigned proxy_turns(const proxy *self);

#endif
