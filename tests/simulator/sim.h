/*
 * A real simulator process in a directory of its own, and real HTTP to it.
 */
#ifndef TEST_SIM_H
#define TEST_SIM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sim {
    char directory[64];
    char ledger[96];
    char port_file[96];
    char request_log[96];
    char errors[96];       /* what it wrote to standard error, all lives of it */
    pid_t pid;             /* 0: not running */
    _Atomic unsigned port; /* clients go on while it is started anew */
    int64_t file_limit;    /* bytes that it may write to a file; 0: no limit */
};

/* An answer, or status 0 when the connection ended without one. */
struct answer {
    long status;
    json_t *json; /* or NULL */
    char *text;
};

void sim_prepare(struct sim *sim);
/* Starts it with further arguments, NULL-terminated; waits until it listens. sim_start() fails the
 * test when it does not; sim_try_start() gives the exit status. */
void sim_start(struct sim *sim, const char *const arguments[]);
int sim_try_start(struct sim *sim, const char *const arguments[]);
/* SIGTERM, and the exit status must be the one expected. */
void sim_stop(struct sim *sim, int expected);
void sim_kill(struct sim *sim);
/* Stops it if it runs, and removes the directory. */
void sim_remove(struct sim *sim);

/* Runs the program to its end with standard output and error in *output; exit status. */
int sim_run(const char *const arguments[], char **output);

/* method NULL: GET, or POST when there is a body.  Always on a connection of its own, since libcurl
 * sends again by itself when a used connection is closed on it. */
struct answer sim_ask(const struct sim *sim, const char *method, const char *path, const char *body,
                      long timeout_ms);
void answer_free(struct answer *answer);

/* Ask, compare the status and one field of the answer, and free it. */
void sim_expect(const struct sim *sim, const char *method, const char *path, const char *body,
                long status, const char *field, const char *value);
int64_t sim_stat(const struct sim *sim, const char *name);
/* Names this channel in a settings file of the sample, unless it names one; more: further lines of
 * that section. */
void sim_name_in(const struct sim *sim, const char *option_file, const char *more);
/* stats.faults.KIND */
int64_t sim_faults(const struct sim *sim, const char *kind);

/* A pay body; free() it. */
char *order_text(const char *channel_key, const char *serial_no, const char *cust_no,
                 int64_t amount_minor);
/* Sends one for customer C1, 100 EUR, and compares as sim_expect() does. */
void pay_expect(const struct sim *sim, const char *channel_key, long status, const char *field,
                const char *value);

/* The payments in the ledger as --export-csv prints them; to be freed with free(). */
char *ledger_text(const struct sim *sim);
/* How many of these lines hold the text between two commas. */
int64_t ledger_holds(const char *text, const char *value);
/* The same of the ledger as it is now; NULL counts all lines after the header. */
int64_t ledger_count(const struct sim *sim, const char *value);

char *file_read(const char *path);
int64_t text_count(const char *text, const char *wanted);
int64_t now_ms(void);

#endif
