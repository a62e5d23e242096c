/*
 * One line of the ledger: a JSON object that ends in a newline.  README.md describes the fields for
 * outsiders who count payments.
 */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include "order.h"
#include "passage.h"
#include "problem.h"

#include <stdint.h>

#define RECORD_FORMAT 1
#define REF_MAX 32
#define CODE_MAX 64
#define REASON_MAX 200

enum record_type {
    RECORD_LEDGER,    /* the first line: which format this is */
    RECORD_PAID,      /* money moved */
    RECORD_DECLINED,  /* a final refusal; nothing moved */
    RECORD_ACCEPTED,  /* taken; a paid or declined line with accepted_seq follows later */
    RECORD_CANCELLED, /* from here on the key is refused */
    /* Of a proxy alone: */
    RECORD_KEPT,       /* a request that a fault kept back */
    RECORD_FORWARDING, /* on the disk before its first byte may leave */
    RECORD_FORWARDED   /* what came of it; without it nobody knows */
};

struct record {
    enum record_type type;
    int64_t seq;
    int64_t at_us;
    struct order order; /* cancelled: the channel_key only */
    char channel_ref[REF_MAX + 1];
    char code[CODE_MAX + 1]; /* declined, and accepted that will be declined */
    char reason[REASON_MAX + 1];
    int64_t accepted_seq; /* paid, declined: the accepted line it settles, or 0 */
    int64_t due_ms;       /* accepted: when it is settled */
    bool replied;         /* accepted: the client is told so; else it waits for the end */
    int64_t format;       /* ledger: RECORD_FORMAT */
    bool of_proxy;        /* ledger: it is a proxy's */
    /* Kept, forwarding and forwarded; of the order what the request said, the rest is "" or 0. */
    struct passage passage;
};

/* The line with its newline; free() it. */
char *record_write(const struct record *record);
/* Reads a line without its newline. */
bool record_read(const char *line, size_t length, struct record *record, struct problem *problem);

#endif
