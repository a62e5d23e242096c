/*
 * The ledger: one append-only file, the only thing of the simulator that outlives it.
 *
 * Records are appended in the order in which the channel decided (the caller serialises
 * ledger_append() by its own lock) and become durable in groups: whoever waits first writes and
 * syncs everything that was appended so far, the others wait for that.  No answer leaves before
 * ledger_wait() said that its record is on the disk.
 *
 * A write or sync that fails ends the service: nobody can know what the disk holds, so every
 * waiting request is left without an answer, and the next start reads the file.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "problem.h"
#include "record.h"

#include <stdint.h>
#include <stdio.h>

struct ledger;

/* Called for each record in order; false refuses the ledger. */
typedef bool (*record_visitor)(void *context, const struct record *record, struct problem *problem);

/*
 * Opens or creates the file (a channel's or a proxy's; one of the other kind is refused), locks it
 * against every other simulator, gives each record to visit, and cuts off what no newline ends (a
 * write that a crash interrupted).
 */
struct ledger *ledger_open(const char *path, bool of_proxy, record_visitor visit, void *context,
                           struct problem *problem);
/* Writes what is left.  Accepts NULL. */
void ledger_close(struct ledger *ledger);

/*
 * Gives the record its number, its time and, when it is a payment, its channel_ref, and queues it.
 * Returns the number.
 */
int64_t ledger_append(struct ledger *ledger, struct record *record);
/* Waits until record seq is durable.  False when the ledger can no longer be written. */
bool ledger_wait(struct ledger *ledger, int64_t seq);

/*
 * Reads a ledger that may be in use: the complete lines of the first `limit` bytes, or of all with
 * a negative limit.  *end is where the last complete line ends.
 */
bool ledger_scan(FILE *file, const char *path, int64_t limit, record_visitor visit, void *context,
                 int64_t *end, struct problem *problem);

const char *ledger_path(const struct ledger *ledger);
/* How many bytes of the file are durable. */
int64_t ledger_durable_bytes(struct ledger *ledger);
/* The sentence after ledger_wait() was false. */
void ledger_failure(struct ledger *ledger, struct problem *problem);

#endif
