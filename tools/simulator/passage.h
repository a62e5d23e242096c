/*
 * A request that passed a proxy, or was kept back by it, as the lines of its ledger have it.
 */
#ifndef SIM_PASSAGE_H
#define SIM_PASSAGE_H

#include <stdbool.h>
#include <stdint.h>

#define METHOD_MAX 20
#define TARGET_MAX 2000
#define SHA256_TEXT 64
#define FAULT_NAME_MAX 32
#define THEIR_REF_MAX 128
#define WHY_MAX 200

struct passage {
    /* kept and forwarding: */
    char method[METHOD_MAX + 1];
    char path[TARGET_MAX + 1]; /* with its query; visible ASCII */
    char body_sha256[SHA256_TEXT + 1];
    char fault[FAULT_NAME_MAX + 1]; /* "none" for most */
    /* forwarded: */
    int64_t forwarding_seq;
    bool sent;      /* a byte of it may have left */
    int64_t status; /* of the upstream; 0: there was no answer */
    char channel_ref[THEIR_REF_MAX + 1];
    char why[WHY_MAX + 1]; /* there was no answer; or "" */
};

#endif
