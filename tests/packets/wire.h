/*
 * A Unix socket between clients and the server that knows where each packet of MariaDB's protocol
 * begins and ends.  It numbers the packets of all its connections, in both directions, in the order
 * in which they come by, and does one thing to one of them.
 *
 * Any number of connections at once; one thread serves them all.
 */
#ifndef TESTS_PACKETS_WIRE_H
#define TESTS_PACKETS_WIRE_H

typedef struct wire wire;

typedef enum wire_act {
    WIRE_CUT_BEFORE, /* the packet is swallowed and both ends are closed */
    WIRE_CUT_AFTER,  /* the packet arrives, then both ends are closed */
    WIRE_LATE,       /* a request: the client's end is closed, the server's stays open and
                        gets the packet at wire_release(); an answer: as CUT_BEFORE */
    WIRE_STALL,      /* both ends stay open; the packet goes on at wire_release() */
    WIRE_ACTS
} wire_act;

/* Which packet, counted from 1; 0: none.  down: from then on nobody gets through. */
typedef struct wire_fault {
    unsigned packet;
    wire_act act;
    int down;
} wire_fault;

wire *wire_start(const char *server_socket);
void wire_free(wire *self);
const char *wire_socket(const wire *self);

/* Begins to count at the next packet; NULL counts only. */
void wire_arm(wire *self, const wire_fault *fault);
/* Packets since then. */
unsigned wire_count(wire *self);
/* 0: the fault has not struck; '>': it struck a request; '<': an answer. */
int wire_struck(wire *self);

/* The line is down: all connections are cut, and new ones at once; a late packet keeps its end. */
void wire_down(wire *self, int down);

/* What was held back goes on; returns when the server has taken it or has closed the connection, at
 * most 300 ms later.  1 when the server still took it. */
int wire_release(wire *self);
/* Closes the server's end of what was late. */
void wire_hang_up(wire *self);
/* The ends that were held open are closed; the next case begins. */
void wire_reset(wire *self);

/* Each packet takes that much longer, so that steps of many threads meet. */
void wire_delay_us(wire *self, unsigned delay_us);

#endif
