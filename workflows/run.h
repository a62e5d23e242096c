/* A run that is under way; the answer keeps it, so that it can be settled. */
#ifndef TL_WORKFLOWS_RUN_H
#define TL_WORKFLOWS_RUN_H

#include "ending.h"

typedef enum run_phase {
    RUN_ASKING, /* not granted yet, or not known whether it was */
    RUN_ENDING, /* granted; the outcome is known and has to be written */
    RUN_OVER
} run_phase;

struct tl_run {
    run_phase phase;
    tl_workflows *workflows;
    const workflow *workflow;
    tl_lock *lock;
    attempt attempt;
    ending ending;
    int64_t wait_ms;
    int paid;                     /* granted: this call was the attempt */
    struct submission *submitted; /* how it stands, if it was submitted (submit.c); or NULL */
};

/* The parts of a call, which a submitted run makes one by one. */
tl_status run_check(tl_workflows *workflows, const tl_request *request, tl_answer *answer);
tl_status run_new(struct tl_run **out, tl_workflows *workflows, const tl_request *request);
void run_free(struct tl_run *run);
/* Shows prepare the epoch and the key that the grant will have. */
tl_status run_show_next_epoch(struct tl_run *run, uint32_t epoch);
/* The lock is held: this run is the attempt. */
void run_granted(struct tl_run *run);
void run_choose_ending(struct tl_run *run, tl_execute_result executed);
/* Fills in the answer; the thread's sentence is that of the status. */
tl_status run_answer(tl_answer *answer, struct tl_run *run, tl_status status);

/* A piece of work.  It is over when its function is, however that is left; the thread then says
 * what it said before. */
struct work {
    int began;
    tl_said said;
};
#define RUN_WORK __attribute__((cleanup(work_over))) struct work
struct work work_new(void);
void work_over(const struct work *work);

/* submit.c: whether it is under way; keeps the thread's sentence for tl_answer_sentence(), if it
 * was submitted; frees what it has made. */
int submission_is_under_way(const struct submission *s);
void submission_said(struct submission *s);
void submission_free(struct submission *s);

/*
 * Asks the channel about every earlier key, before a failure that rests on "no such payment" or "it
 * never left" is tried anew: a new key beside an old payment would pay twice.  view: the failed
 * row. TL_OK: none was paid.  TL_IN_CONFLICT: one was paid, or still may be; that was filed.
 * TL_UNKNOWN: the channel did not say.
 */
tl_status reclaim_check(tl_client *client, attempt *a, const tl_view *view);

#endif
