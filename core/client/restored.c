/* Finds out whether a database may have lost commits, and writes that down.  Touches tl_schema, and
 * what the client remembers of the servers that it met. */
#include "client/restored.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/blocker.h"
#include "client/client.h"
#include "client/position.h"
#include "client/schema.h"
#include "store/bind.h"
#include "store/position.h"
#include "store/server.h"

#include <tradelock/lane.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Shorter than any age at which a session's row may be purged, which is a day. */
#define WITNESS_MOST_MS (INT64_C(12) * 3600 * 1000)
/* For so long a session that lost the writer waits at a server that takes writes and that nobody has
 * accepted, since it may be promoted, from its first beat there: beats may be slow, and Galera alone
 * takes up to that long to see that a node is gone.  While the installation drains, servers are about
 * to change places, and a person may promote: then it waits for as long as it was certain to live. */
#define PROMOTED_WITHIN_MS 15000
/* As tl_identity(): 255 characters. */
#define IDENTITY_SPACE (255 * 4 + 1)

/* A server that this process met.  It stays until the client is freed. */
struct met_server {
    db_server server; /* first: what connections to it know */
    struct met_server *next;
    char identity[IDENTITY_SPACE];
    /* Under the mutex. */
    restored_term term;
    int may_lack;
    int is_accepted; /* by its own record, whatever this process knows to be missing there */
    int is_rival;    /* it took writes beside another one, under rival_term */
    restored_term rival_term;
    int is_given_up; /* under given_up_term, for a promoted one */
    restored_term given_up_term;
    int is_proved;  /* its last accepting was by itself */
    int has_log;    /* so that its commits may wait for a replica */
    int is_cluster; /* it is a node of Galera; -1: it is not, 0: not known yet */
    /* When it was last seen to answer commits only when another one has them, and what was seen; 0:
     * it does not.  And when somebody looked last. */
    int64_t kept_ms, kept_looked_ms;
    store_kept kept;
    uint64_t looked;      /* the number of the last look that counted */
    uint64_t taken_at;    /* what looks was when that one was taken */
    uint64_t found_at;    /* what looks was when one last found a restore */
    db_server_state told; /* of what the log has its last line */
    int is_unwritten;     /* what was found could not be written down there; the log says so once */
};

/* A term that was seen.  All are kept: two of them may be so that neither is the earlier one. */
struct met_term {
    restored_term term;
    struct met_term *next;
};

/* The identity of a server that is on record at one that was met, itself perhaps gone. */
struct met_kin {
    struct met_kin *next;
    char identity[IDENTITY_SPACE];
};

/* ------------------------------------------------------------------- the servers met -- */

void restored_init(restored_servers *all)
{
    pthread_mutex_init(&all->mutex, NULL);
    marks_init(&all->noted);
}

void restored_end(restored_servers *all)
{
    marks_end(&all->noted);
    pthread_mutex_destroy(&all->mutex);
}

void restored_free(restored_servers *all)
{
    while (all->met != NULL) {
        struct met_server *first = all->met;

        all->met = first->next;
        memory_free(first);
    }
    while (all->terms != NULL) {
        struct met_term *first = all->terms;

        all->terms = first->next;
        memory_free(first);
    }
    while (all->kin != NULL) {
        struct met_kin *first = all->kin;

        all->kin = first->next;
        memory_free(first);
    }
}

static struct met_server *met_before(const restored_servers *all, const char *identity)
{
    struct met_server *one = all->met;

    while (one != NULL && strcmp(one->identity, identity) != 0)
        one = one->next;
    return one;
}

/* NULL: nobody looked at that one.  Needs: all->mutex held. */
static struct met_server *met_of(const restored_servers *all, const db_server *server)
{
    struct met_server *one = all->met;

    while (one != NULL && &one->server != server)
        one = one->next;
    return one;
}

const char *restored_identity(const db_server *server)
{
    return ((const struct met_server *)server)->identity;
}

/* NULL when out of memory.  Needs: all->mutex held. */
static struct met_server *meet(restored_servers *all, const char *identity)
{
    struct met_server *one = met_before(all, identity);

    if (one != NULL)
        return one;
    one = memory_new(sizeof *one);
    if (one == NULL)
        return NULL;
    text_copy(one->identity, sizeof one->identity, identity);
    one->told = DB_SERVER_WHOLE;
    one->next = all->met;
    all->met = one;
    return one;
}

/* 0 when out of memory.  Needs: all->mutex held. */
static int remember(restored_servers *all, restored_term term)
{
    struct met_term *one = all->terms;

    while (one != NULL &&
           (one->term.number != term.number || one->term.accepted_us != term.accepted_us))
        one = one->next;
    if (one != NULL)
        return 1;
    one = memory_new(sizeof *one);
    if (one == NULL)
        return 0;
    one->term = term;
    one->next = all->terms;
    all->terms = one;
    return 1;
}

static int is_earlier(restored_term a, restored_term b)
{
    return a.number < b.number && a.accepted_us < b.accepted_us;
}

static int is_same(restored_term a, restored_term b)
{
    return a.number == b.number && a.accepted_us == b.accepted_us;
}

/* Needs: all->mutex held. */
static int is_replaced(const restored_servers *all, const struct met_server *one)
{
    for (const struct met_term *later = all->terms; later != NULL; later = later->next)
        if (is_earlier(one->term, later->term))
            return 1;
    return 0;
}

/* Needs: all->mutex held. */
static int is_left(const restored_servers *all, const struct met_server *one)
{
    return (one->is_given_up && is_same(one->term, one->given_up_term)) || is_replaced(all, one);
}

static int takes_writes(const struct met_server *one)
{
    return !atomic_load(&one->server.takes_no_writes);
}

/* Of those that may grant each may be the one that other processes believe in.  A beat of ours that
 * only one of them has decides nothing: it was sent to the one that was taken first.  And what was
 * paid on one of them is not forgotten when that one stops taking writes: both stay rivals until
 * one is accepted anew.  Needs: all->mutex held. */
static void note_rivals(restored_servers *all)
{
    struct met_server *first = NULL;

    for (struct met_server *one = all->has_list ? all->met : NULL; one != NULL; one = one->next) {
        if (!one->is_accepted || !takes_writes(one) || is_left(all, one))
            continue;
        if (first != NULL) {
            first->is_rival = one->is_rival = 1;
            first->rival_term = first->term;
            one->rival_term = one->term;
        }
        first = one;
    }
}

/* Needs: all->mutex held. */
static db_server_state what_it_is(const restored_servers *all, const struct met_server *one)
{
    if (is_left(all, one))
        return DB_SERVER_LEFT;
    if (one->is_rival && is_same(one->term, one->rival_term))
        return DB_SERVER_RIVAL;
    if (!one->may_lack)
        return DB_SERVER_WHOLE;
    return !takes_writes(one) ? DB_SERVER_REPLICA : DB_SERVER_MAY_LACK;
}

/* After a look at one of them.  Needs: all->mutex held. */
static void judge_all(restored_servers *all, struct met_server *looked)
{
    const db_server_state here = what_it_is(all, looked);
    /* Of a list one that is read-only is no reason to leave the others. */
    const int is_writer = here == DB_SERVER_WHOLE && (takes_writes(looked) || !all->has_list);

    atomic_store(&looked->server.state, here);
    for (struct met_server *one = all->met; one != NULL; one = one->next) {
        db_server_state state = what_it_is(all, one);

        if (state != DB_SERVER_WHOLE && is_writer)
            state = state == DB_SERVER_LEFT ? state : DB_SERVER_STALE;
        if (one != looked)
            atomic_store(&one->server.state, state);
    }
}

/* -------------------------------------------------------------------------- a witness -- */

/* A beat that does not rise does not become the witness, so the next look finds the restore.  And
 * what a server confirmed that nobody had accepted takes no other server's word away.  Needs:
 * the mutex held. */
static int replaces(const restored_witness *w, const db_server *only, const db_server *server,
                    const char *session_no, uint64_t beat)
{
    if (w->session[0] == '\0')
        return 1;
    if (w->only != NULL && w->only != server)
        return only == NULL;
    if (w->only == NULL && only != NULL)
        return 0;
    return strcmp(w->session, session_no) != 0 || beat > w->beat;
}

uint64_t restored_sending(void *context)
{
    return marks_begin(&((struct tl_client *)context)->servers.noted);
}

int restored_confirmed(void *context, const session_beat *beat)
{
    restored_servers *all = &((struct tl_client *)context)->servers;
    const db_server *server = beat->server;
    const db_server *only = db_state_of(server) == DB_SERVER_WHOLE ? NULL : server;
    restored_witness *w = &all->witness;
    commit_mark m = {.kind = MARK_BEAT, .name = "heartbeat", .number = beat->number};

    text_copy(m.serial_no, sizeof m.serial_no, beat->session_id);
    if (!marks_note(&all->noted, &m, server, beat->sent))
        return 0;
    pthread_mutex_lock(&all->mutex);
    if (replaces(w, only, server, beat->session_id, beat->number)) {
        text_copy(w->session, sizeof w->session, beat->session_id);
        w->beat = beat->number;
        w->confirmed_ms = beat->before_ms;
        w->only = only;
        w->by = server;
    }
    pthread_mutex_unlock(&all->mutex);
    return 1;
}

int restored_is_told(void *context, const db_server *here)
{
    return marks_are_told(&((struct tl_client *)context)->servers.noted, here);
}

/* A look under way, with the witness of the moment at which it began. */
struct look {
    struct tl_client *client;
    db *connection;
    uint64_t number;
    restored_witness witness;
    int64_t age_ms;
    db_result *seen;
    struct met_server *here;
    int compares;     /* restored_compare() */
    int is_overtaken; /* it has to be done again */
};

/* Copies the witness before the database is asked, since a beat may be confirmed meanwhile.  A
 * witness that is too old says nothing. */
static void begin(struct look *l)
{
    restored_servers *all = &l->client->servers;

    pthread_mutex_lock(&all->mutex);
    l->number = ++all->looks;
    l->witness = all->witness;
    pthread_mutex_unlock(&all->mutex);
    l->age_ms = clock_boottime_ms() - l->witness.confirmed_ms;
    if (l->age_ms > WITNESS_MOST_MS)
        l->witness.session[0] = '\0';
}

/* Forgets the witness once it is written down: it belongs to the time before.  Only where it was
 * confirmed: that another server lacks the beat says nothing of what this one will have when it is
 * back. */
static void dismiss_witness(const struct look *l)
{
    restored_servers *all = &l->client->servers;
    restored_witness *w = &all->witness;

    pthread_mutex_lock(&all->mutex);
    if (w->by == &l->here->server && w->beat == l->witness.beat &&
        strcmp(w->session, l->witness.session) == 0)
        w->session[0] = '\0';
    pthread_mutex_unlock(&all->mutex);
}

/* Whether this database has lost a beat that was confirmed, and no restore was accepted since; *why
 * says which. */
static int witness_speaks(const struct look *l, char *why, size_t space)
{
    const restored_witness *w = &l->witness;
    uint64_t beat = db_get_uint(l->seen, 0, RESTORED_BEAT);

    if (w->session[0] == '\0' || (w->only != NULL && w->only != &l->here->server) ||
        db_get_int(l->seen, 0, RESTORED_ACCEPTED_SINCE))
        return 0;
    if (db_is_null(l->seen, 0, RESTORED_BEAT))
        snprintf(why, space, "the row of session %s is gone", w->session);
    else if (beat < w->beat)
        snprintf(why, space, "session %s has beat %" PRIu64 ", and %" PRIu64 " had been confirmed",
                 w->session, beat, w->beat);
    else
        return 0;
    return 1;
}

/* --------------------------------------------------------------------- what was found -- */

static tl_status write_down(const struct look *l, const char *why)
{
    db_answer answer = SQL_RUN(l->connection, NULL, restore_found,
                               .accepted = db_uint(db_get_uint(l->seen, 0, RESTORED_ACCEPTED)),
                               .why = db_text(why));
    restored_servers *all = &l->client->servers;
    tl_status status;
    int is_told;

    pthread_mutex_lock(&all->mutex);
    is_told = l->here->is_unwritten;
    l->here->is_unwritten = answer != DB_DONE;
    pthread_mutex_unlock(&all->mutex);
    if (answer == DB_DONE)
        return TL_OK;
    status = db_error_status(l->connection, answer, "writing down that it was restored");
    if (!is_told)
        log_line(&l->client->logger, TL_WARNING, NULL, 0, "%s", tl_error_message());
    return status;
}

static restored_term seen_term(const struct look *l)
{
    return (restored_term){db_get_uint(l->seen, 0, RESTORED_ACCEPTED),
                           db_get_int(l->seen, 0, RESTORED_ACCEPTED_US)};
}

/* Whether this process attests to that server: to one of a term alone.  Needs: all->mutex held. */
static int attests_to(const restored_servers *all, const struct met_server *here)
{
    return all->promoted == NULL || all->promoted == here ||
           !is_same(all->promoted_before, here->term);
}

/* Gives up all other servers for a promoted one, so that nothing more is learnt of them.  Needs:
 * all->mutex held. */
static void give_up_others(restored_servers *all, struct met_server *here, uint64_t number)
{
    if (all->promoted != here || all->promoted_no != number)
        all->has_attested = all->lacks = 0;
    all->promoted = here;
    all->promoted_no = number;
    all->promoted_before = here->term;
    for (struct met_server *one = all->met; one != NULL; one = one->next) {
        if (one == here)
            continue;
        one->is_given_up = 1;
        one->given_up_term = one->term;
    }
    here->is_given_up = 0;
}

/* Needs: all->mutex held. */
static void take_promotion(const struct look *l)
{
    restored_servers *all = &l->client->servers;
    const uint64_t number = db_get_uint(l->seen, 0, RESTORED_PROMOTED);

    l->here->is_proved = db_get_int(l->seen, 0, RESTORED_PROVED) != 0;
    if (l->client->flags & TL_CLIENT_NO_SESSION)
        return;
    if (number != 0 && takes_writes(l->here) && !is_left(all, l->here) && attests_to(all, l->here))
        give_up_others(all, l->here, number);
    /* One that is met later is given up as well. */
    if (all->promoted != NULL && l->here != all->promoted &&
        is_same(l->here->term, all->promoted_before)) {
        l->here->is_given_up = 1;
        l->here->given_up_term = l->here->term;
    }
}

/* Whether it is over what was committed on servers before this one: operators have accepted it.  If
 * it was accepted by itself, this process first looks.  Needs: all->mutex held. */
static int is_decided(const restored_servers *all, const struct met_server *here)
{
    if (all->promoted != NULL && here != all->promoted &&
        !is_earlier(all->promoted_before, here->term))
        return 0;
    return !here->is_proved || (here == all->promoted && all->has_attested && !all->lacks);
}

/* Of two looks that were under way together nobody knows which one read first.  Where they saw
 * different terms, what the second one saw would make a server an earlier one than itself; or it
 * would keep from the first that the server may lack something, though it was accepted since.
 * Needs: all->mutex held. */
static int is_overtaken(const struct look *l)
{
    const struct met_server *here = l->here;

    return (l->number <= here->taken_at || l->number <= here->found_at) &&
           !is_same(here->term, seen_term(l));
}

/* Takes what was seen of the server that it was seen on, and says what that is; an overtaken look
 * is not taken.  0 when out of memory. */
static int take(struct look *l, int may_lack, db_server_state *state)
{
    restored_servers *all = &l->client->servers;
    struct met_server *here = l->here;
    db_server_state is;

    pthread_mutex_lock(&all->mutex);
    l->is_overtaken = is_overtaken(l);
    if (l->is_overtaken || !remember(all, seen_term(l))) {
        pthread_mutex_unlock(&all->mutex);
        return l->is_overtaken;
    }
    if (may_lack)
        here->found_at = all->looks;
    if (may_lack || l->number > here->found_at)
        here->may_lack = may_lack;
    if (l->number > here->looked) {
        here->looked = l->number;
        here->taken_at = all->looks;
        atomic_store(&here->server.takes_no_writes,
                     db_get_int(l->seen, 0, RESTORED_READ_ONLY) != 0);
        here->is_accepted = !db_get_int(l->seen, 0, RESTORED_NOW);
        here->term = seen_term(l);
        here->has_log = db_get_int(l->seen, 0, RESTORED_LOG) != RESTORED_NO_LOG;
        if (db_get_int(l->seen, 0, RESTORED_LOG) != RESTORED_LOG_SEMI_SYNC &&
            here->is_cluster <= 0) {
            here->kept_ms = 0;
            here->kept_looked_ms = clock_boottime_ms();
        }
        take_promotion(l);
        note_rivals(all);
        is = what_it_is(all, here);
        /* A host that is only looked at may have been accepted earlier than the one in use. */
        if (l->compares ? is == DB_SERVER_WHOLE &&
                              here->term.accepted_us > atomic_load(&l->client->accepted_us)
                        : is != DB_SERVER_LEFT)
            atomic_store(&l->client->accepted_us, here->term.accepted_us);
    }
    judge_all(all, here);
    is = atomic_load(&here->server.state);
    if (is == DB_SERVER_WHOLE && is_decided(all, here))
        marks_forget_left(&all->noted);
    pthread_mutex_unlock(&all->mutex);
    *state = is;
    return 1;
}

/* Whether the look was on the promoted server to which this process attests, and under which
 * number.  A process that only begins has nothing to attest. */
static int is_to_attest(const struct look *l, uint64_t *number, int *has_attested,
                        position_found *found)
{
    restored_servers *all = &l->client->servers;
    int is;

    pthread_mutex_lock(&all->mutex);
    is = all->promoted == l->here && l->client->session != NULL && !l->compares &&
         db_get_uint(l->seen, 0, RESTORED_PROMOTED) == all->promoted_no;
    *number = all->promoted_no;
    *has_attested = all->has_attested;
    *found = all->found;
    pthread_mutex_unlock(&all->mutex);
    return is;
}

/* Whether this server was accepted by itself before this process had met it: nobody knew of its
 * session, or it had none then. */
static int is_to_look_late(const struct look *l)
{
    restored_servers *all = &l->client->servers;
    int is;

    pthread_mutex_lock(&all->mutex);
    is = l->here->is_proved && !l->compares && !(l->client->flags & TL_CLIENT_NO_SESSION) &&
         !(all->promoted == l->here && all->has_attested && !all->lacks);
    pthread_mutex_unlock(&all->mutex);
    return is;
}

static void keep_late_look(const struct look *l)
{
    restored_servers *all = &l->client->servers;

    pthread_mutex_lock(&all->mutex);
    all->promoted = l->here;
    all->promoted_no = l->here->term.number;
    all->has_attested = 1;
    all->lacks = 0;
    all->found = (position_found){.kept = -1};
    marks_forget_left(&all->noted);
    pthread_mutex_unlock(&all->mutex);
}

static void keep_attestation(restored_servers *all, uint64_t number, const position_found *found)
{
    pthread_mutex_lock(&all->mutex);
    if (all->promoted_no == number) {
        all->has_attested = 1;
        all->lacks |= found->missing > 0;
        all->found = *found;
    }
    pthread_mutex_unlock(&all->mutex);
}

/* 1: what this process knows to be missing is on record. */
static int attest(const struct look *l)
{
    restored_servers *all = &l->client->servers;
    uint64_t number;
    position_found found;
    int has_attested;
    tl_status status;

    if (!is_to_attest(l, &number, &has_attested, &found))
        return 0;
    /* A session may have begun here before the server was promoted, and the process goes on under it
     * only now. */
    status = has_attested ? position_attest_again(l->client, l->connection, number, &found)
                          : position_attest(l->client, l->connection, number, &found);
    if (status == TL_OK)
        keep_attestation(all, number, &found);
    if (status == TL_OK && !has_attested && found.missing > 0)
        log_line(&l->client->logger, TL_ALARM, NULL, 0,
                 "the promoted server lacks %u of the last commits of this process: operators "
                 "decide (`tradelock restore status`)",
                 found.missing);
    if (status == TL_OK && found.missing == 0)
        status = position_accept(l->connection, number);
    if (status != TL_OK && status != TL_TRY_AGAIN)
        log_line(&l->client->logger, TL_WARNING, NULL, 0, "%s", tl_error_message());
    return status == TL_OK || status == TL_TRY_AGAIN;
}

/* What is missing after all is a restore that is found: nothing was put in doubt. */
static tl_status look_late(const struct look *l)
{
    unsigned missing = 0;
    tl_status status = position_count_missing(l->client, l->connection, &missing);

    if (status == TL_OK && missing == 0)
        keep_late_look(l);
    else if (status == TL_OK)
        status = write_down(l, "commits are missing that this process had been told of");
    return status;
}

/* Tells the log once of each server. */
static void tell(const struct look *l, db_server_state is)
{
    restored_servers *all = &l->client->servers;
    int is_told;

    pthread_mutex_lock(&all->mutex);
    is_told = l->here->told == is;
    l->here->told = is;
    pthread_mutex_unlock(&all->mutex);
    if (is_told || is == DB_SERVER_WHOLE)
        return;
    if (is == DB_SERVER_REPLICA) {
        log_line(&l->client->logger, TL_WARNING, NULL, 0,
                 "this server is read-only, and not the one that was accepted, perhaps a replica: "
                 "it is only read, and may lack what was done last");
        return;
    }
    /* An ending that was confirmed may be missing here. */
    client_lose_track(l->client);
    log_line(&l->client->logger, TL_ALARM, NULL, 0,
             is == DB_SERVER_RIVAL
                 ? "two hosts of the list take writes, and neither was accepted after the other: "
                   "nothing is granted on either before one is accepted anew"
             : is == DB_SERVER_LEFT
                 ? "this server is of an earlier term than one that was accepted: it is not used"
                 : "this server is not the one that was accepted, or was restored: nothing is "
                   "granted or failed until operators accept it");
}

/* Whether other servers read what is written down here.  If that is not known now, the next look
 * asks again. */
static int is_shared(tl_client *client, db *connection)
{
    restored_servers *all = &client->servers;
    RESULT is = DB_RESULT_INIT;
    struct met_server *here;
    const int known = db_run(connection, &sql_server_cluster, NULL, 0, &is) == DB_DONE;
    const int shared = !known || db_get_int(&is, 0, 0) != 0;

    pthread_mutex_lock(&all->mutex);
    here = met_of(all, db_server_of(connection));
    if (here != NULL && known)
        here->is_cluster = shared ? 1 : -1;
    pthread_mutex_unlock(&all->mutex);
    return shared;
}

static int is_left_for_good(const struct look *l)
{
    restored_servers *all = &l->client->servers;
    int is;

    pthread_mutex_lock(&all->mutex);
    is = is_replaced(all, l->here);
    pthread_mutex_unlock(&all->mutex);
    return is;
}

/* Judges what was seen.  Anybody can see that the server is another one, written down or not; what
 * the witness says, nobody else knows, nor which servers this process met. */
static tl_status judge(struct look *l)
{
    const restored_servers *all = &l->client->servers;
    char why[160] = "it is another server than the one that was accepted";
    const int is_restored = db_get_int(l->seen, 0, RESTORED_NOW) != 0;
    const int is_on_record = db_get_int(l->seen, 0, RESTORED_ON_RECORD) != 0;
    const int is_heard = witness_speaks(l, why, sizeof why);
    db_server_state is;
    tl_status status = TL_OK;

    if (!take(l, is_restored || is_heard, &is))
        return error_set(TL_NO_MEMORY, "out of memory for the server");
    if (l->is_overtaken)
        return TL_OK;
    db_set_server(l->connection, &l->here->server);
    if (is == DB_SERVER_MAY_LACK && attest(l)) {
        tell(l, is);
        return TL_OK;
    }
    if (is == DB_SERVER_WHOLE && is_to_look_late(l))
        return look_late(l);
    if (l->compares && is != DB_SERVER_LEFT && is != DB_SERVER_RIVAL)
        return TL_OK;
    /* It was given up for a promoted one, and not replaced yet: it is not told so. */
    if (is == DB_SERVER_LEFT && !is_left_for_good(l))
        return error_set(TL_UNREACHABLE, "another server was promoted, and this one is not used "
                                         "any more before it is accepted anew");
    tell(l, is);
    /* Whoever begins while the other one is away hears it here. */
    if (is == DB_SERVER_RIVAL) {
        if (!is_on_record && !db_get_int(l->seen, 0, RESTORED_READ_ONLY))
            (void)write_down(l, "another host of the list was accepted too, neither after the "
                                "other");
        return TL_OK;
    }
    if (is == DB_SERVER_LEFT && !is_restored && !is_heard)
        text_copy(why, sizeof why, "a later restore was accepted on another server");
    /* The witness of another server is heard at each look. */
    if (is != DB_SERVER_WHOLE && db_get_int(l->seen, 0, RESTORED_READ_ONLY)) {
        /* Nothing is written there, and the witness is kept. */
    } else if (is == DB_SERVER_MAY_LACK && !is_on_record &&
               !(is_heard && l->witness.by == &l->here->server) &&
               is_shared(l->client, l->connection)) {
        /* Of Galera's nodes the accepted one grants, and this one does not, by the record that they
         * share.  "Found" would stop the accepted one; and a beat that is not applied here yet is
         * on its way. */
    } else if (is_heard && (l->witness.by == &l->here->server || !is_on_record)) {
        status = write_down(l, why);
        if (status == TL_OK)
            dismiss_witness(l);
    } else if (is != DB_SERVER_WHOLE && !is_on_record && (is == DB_SERVER_LEFT || !all->has_list)) {
        /* Of a list every process sees by itself which one was accepted; and one that could not
         * connect to that for a moment stops nobody: on a Galera node "found" would reach all. */
        (void)write_down(l, why);
    }
    if (status == TL_OK && is == DB_SERVER_LEFT)
        return error_set(TL_UNREACHABLE,
                         "the server is of an earlier term than one that was accepted: it is not "
                         "used before it is accepted anew");
    return status;
}

/* ---------------------------------------------------------------------------- looking -- */

/* A database without the schema, or with an old one, has its own sentence. */
static tl_status cannot_look(db *connection, db_answer answer)
{
    schema_found found;
    char sentence[ERROR_MAX];
    tl_status status = blocker_add(connection,
                                   db_read_status(connection, answer, "looking for a restore")),
              schema;

    if (answer != DB_ERROR)
        return status;
    text_copy(sentence, sizeof sentence, tl_error_message());
    if (schema_read(connection, &found) == TL_OK) {
        schema = schema_judge(&found);
        if (schema != TL_OK)
            return schema;
    }
    return error_set(status, "%s", sentence);
}

/* Needs: all->mutex held. */
static int is_kin(const restored_servers *all, const char *identity)
{
    const struct met_kin *one = all->kin;

    while (one != NULL && strcmp(one->identity, identity) != 0)
        one = one->next;
    return one != NULL;
}

/* 0 when out of memory.  Needs: all->mutex held. */
static int keep_kin(restored_servers *all, const db_result *kin)
{
    for (size_t row = 0; row < kin->rows; row++) {
        const char *identity = db_get_text(kin, row, 0);
        struct met_kin *one;

        if (identity[0] == '\0' || is_kin(all, identity))
            continue;
        one = memory_new(sizeof *one);
        if (one == NULL)
            return 0;
        text_copy(one->identity, sizeof one->identity, identity);
        one->next = all->kin;
        all->kin = one;
    }
    return 1;
}

static tl_status judge_kin(restored_servers *all, const db_result *kin)
{
    int is_named = 0, is_one_of_us = all->kin == NULL;

    for (size_t row = 0; row < kin->rows; row++) {
        is_named |= db_get_text(kin, row, 0)[0] != '\0';
        is_one_of_us |= is_kin(all, db_get_text(kin, row, 0));
    }
    if (!is_named)
        return error_set(TL_NO_SCHEMA, "it is not on record which server this schema was made on, "
                                       "as a list of hosts needs: run `tradelock migrate`");
    if (!is_one_of_us)
        return error_set(TL_BAD_CONFIG,
                         "this server is of another installation than the hosts before it in the "
                         "list: it has no server on record that they have");
    return keep_kin(all, kin) ? TL_OK : error_set(TL_NO_MEMORY, "out of memory for the server");
}

/* Before a server of a list is judged for the first time, and so before anything is written. */
static tl_status check_kin(const struct look *l)
{
    restored_servers *all = &l->client->servers;
    RESULT kin = DB_RESULT_INIT;
    db_answer answer;
    tl_status status;
    int is_met;

    pthread_mutex_lock(&all->mutex);
    is_met = met_before(all, db_get_text(l->seen, 0, RESTORED_IDENTITY)) != NULL;
    pthread_mutex_unlock(&all->mutex);
    if (!all->has_list || is_met)
        return TL_OK;
    answer = db_run(l->connection, &sql_server_kin, NULL, 0, &kin);
    status = db_read_status(l->connection, answer, "asking which servers are on record");
    if (status == TL_OK) {
        pthread_mutex_lock(&all->mutex);
        status = judge_kin(all, &kin);
        pthread_mutex_unlock(&all->mutex);
    }
    return status;
}

static tl_status judge_here(struct look *l)
{
    restored_servers *all = &l->client->servers;

    if (l->seen->rows != 1)
        return error_set(TL_NO_SCHEMA, "the row of tl_schema is missing: run `tradelock migrate`");
    TRY(check_kin(l));
    pthread_mutex_lock(&all->mutex);
    l->here = meet(all, db_get_text(l->seen, 0, RESTORED_IDENTITY));
    pthread_mutex_unlock(&all->mutex);
    if (l->here == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the server");
    return judge(l);
}

static db_answer read_here(struct look *l)
{
    return SQL_RUN(l->connection, l->seen, server_restored,
                   .session_id = db_text(l->witness.session[0] != '\0' ? l->witness.session : NULL),
                   .age_ms = db_int(l->age_ms));
}

/* Of a beat that a node of Galera lacks it first waits until the node is in step: what others have
 * answered may not be applied there yet. */
static db_answer read_in_step(struct look *l)
{
    store_kept kept;
    db_answer answer = read_here(l);

    if (answer != DB_DONE || l->seen->rows != 1 || l->witness.session[0] == '\0' ||
        db_get_uint(l->seen, 0, RESTORED_BEAT) >= l->witness.beat)
        return answer;
    answer = store_attest_kept(l->connection, &kept);
    if (answer != DB_DONE || kept.cluster[0] == '\0')
        return answer;
    answer = store_attest_in_step(l->connection);
    return answer == DB_DONE ? read_here(l) : answer;
}

static tl_status look(struct tl_client *client, db *connection, int compares)
{
    db_result seen = DB_RESULT_INIT;
    struct look l = {
        .client = client, .connection = connection, .seen = &seen, .compares = compares};
    db_answer answer;
    tl_status status;

    do {
        l.is_overtaken = 0;
        begin(&l);
        answer = read_in_step(&l);
        status = answer == DB_DONE ? judge_here(&l) : cannot_look(connection, answer);
        db_result_free(&seen);
    } while (l.is_overtaken);
    return status;
}

tl_status restored_look(struct tl_client *client, db *connection)
{
    return look(client, connection, 0);
}

tl_status restored_compare(struct tl_client *client, db *connection)
{
    return look(client, connection, 1);
}

session_stay restored_follow(void *context, const db_server *from, const db_server *to,
                             int64_t since_ms)
{
    struct tl_client *client = context;
    restored_servers *all = &client->servers;
    session_stay stay = SESSION_LEAVES;
    const struct met_server *there, *before;
    struct met_server *next;
    const int drains = gates_drained_ms(client) >= 0;

    pthread_mutex_lock(&all->mutex);
    there = all->promoted;
    before = met_of(all, from);
    next = met_of(all, to);
    if (there != NULL && before != NULL && before != there && before->is_given_up && !all->lacks &&
        (to == NULL || to == &there->server)) {
        if (!there->is_accepted)
            stay = SESSION_WAITS;
        else if (there->is_proved && there->term.number == all->promoted_no)
            /* Others may have accepted it before this process has the answer to what it said itself:
             * then it looks once more (look_late()). */
            stay = all->has_attested && to != NULL && db_state_of(to) == DB_SERVER_WHOLE
                       ? SESSION_MOVES
                       : SESSION_WAITS;
    } else if (next != NULL && before != NULL && !is_left(all, before) &&
               db_state_of(to) == DB_SERVER_MAY_LACK && (there == NULL || there == before) &&
               (drains || since_ms == 0 || clock_left_ms(since_ms + PROMOTED_WITHIN_MS) > 0)) {
        stay = SESSION_WAITS; /* it may yet be promoted */
    }
    pthread_mutex_unlock(&all->mutex);
    return stay;
}

/* Where commits were answered before a replica had them nothing is accepted by itself. */
int restored_has_to_answer(void *context, const db_server *lived_at)
{
    restored_servers *all = &((struct tl_client *)context)->servers;
    const struct met_server *one;
    int has;

    pthread_mutex_lock(&all->mutex);
    one = met_of(all, lived_at);
    has = one != NULL && one->kept_ms != 0 &&
          !(all->promoted != NULL && all->promoted != one && all->has_attested);
    pthread_mutex_unlock(&all->mutex);
    return has;
}

int restored_was_kept(struct tl_client *client, const db_server *server, int64_t answered_ms,
                      store_kept *kept)
{
    restored_servers *all = &client->servers;
    const struct met_server *one;
    int64_t looked_ms = 0, seen_ms = 0;
    int was;

    pthread_mutex_lock(&all->mutex);
    one = met_of(all, server);
    if (one != NULL) {
        looked_ms = one->kept_looked_ms;
        seen_ms = one->kept_ms;
        *kept = one->kept;
    }
    pthread_mutex_unlock(&all->mutex);
    was = seen_ms != 0 && answered_ms - seen_ms <= client->config.session_ms;
    if (!was && looked_ms == 0)
        log_line(&client->logger, TL_WARNING, NULL, 0,
                 "nobody had looked whether the server before waits for a replica");
    else if (!was)
        log_line(&client->logger, TL_WARNING, NULL, 0,
                 "the server before is not known to have kept what it answered last: %lld ms "
                 "earlier it was seen to wait for %s",
                 (long long)(answered_ms - looked_ms), seen_ms != 0 ? "its replica" : "no replica");
    return was;
}

/* One that can have no replicas is not asked. */
void restored_look_whether_kept(void *context, db *connection)
{
    struct tl_client *client = context;
    restored_servers *all = &client->servers;
    const db_server *server = db_server_of(connection);
    const int64_t before_ms = clock_boottime_ms();
    struct met_server *here;
    db_answer answer;
    store_kept kept;
    int may_keep, known;

    pthread_mutex_lock(&all->mutex);
    here = met_of(all, server);
    may_keep = here == NULL ? -1 : here->has_log ? 1 : here->is_cluster;
    pthread_mutex_unlock(&all->mutex);
    if (may_keep < 0 || db_state_of(server) != DB_SERVER_WHOLE ||
        (may_keep == 0 && !is_shared(client, connection)))
        return;
    answer = store_attest_kept(connection, &kept);
    if (answer == DB_DONE)
        answer = store_attest_keeper(connection, &kept);
    if (answer == DB_DONE && kept.keeper != STORE_NOBODY && kept.on_record == STORE_NOBODY)
        answer = store_attest_record(connection, &kept);
    client_note(client, WORK_KEPT,
                answer == DB_DONE ? TL_OK : db_read_status(connection, answer, "its answer"));
    if (answer != DB_DONE)
        return;
    known = kept.keeper != STORE_NOBODY && kept.keeper == kept.on_record;
    /* In a planned switch the replica leaves a server that takes no writes any more, perhaps between
     * these statements: that tells nothing of what was answered before. */
    if (!known && kept.kept && !kept.read_only && store_attest_kept(connection, &kept) != DB_DONE)
        return;
    if (!known && kept.read_only)
        return;
    kept.kept = known;
    pthread_mutex_lock(&all->mutex);
    here = met_of(all, server);
    if (here != NULL) {
        here->kept_ms = kept.kept ? before_ms : 0;
        here->kept_looked_ms = before_ms;
        here->kept = kept;
    }
    pthread_mutex_unlock(&all->mutex);
}

/* Until the next look that succeeds, and began after this moment. */
static void distrust(restored_servers *all, const db_server *server)
{
    struct met_server *here;

    pthread_mutex_lock(&all->mutex);
    here = met_of(all, server);
    if (here != NULL) {
        here->may_lack = 1;
        here->found_at = all->looks;
        judge_all(all, here);
    }
    pthread_mutex_unlock(&all->mutex);
}

void restored_look_again(struct tl_client *client)
{
    const life *home = session_life(client->session);
    db *connection = NULL;
    tl_status status =
        pool_get(client->connections, POOL_QUICK, client->config.beat_ms, &connection);

    if (status == TL_OK)
        status = restored_look(client, connection);
    /* If the look fails, the last result stands: the connection looked when it was made.  Where it
     * fails for good, a restore would not be seen any more, so nothing is granted, and then that is
     * told. */
    if (connection != NULL && tl_status_class(status) == TL_CLASS_BROKEN)
        distrust(&client->servers, db_server_of(connection));
    client_note(client, WORK_ACCEPTED, status);
    if (connection == NULL)
        return;
    /* A process stays neither at a replica nor where its session is not, since nothing is asked
     * there; unless that is on its way to there, which is seen on the same connections, many times
     * a second. */
    if (life_is_over(home) || life_is_between(home) || session_waits(client->session))
        home = NULL;
    if (db_state_of(db_server_of(connection)) == DB_SERVER_REPLICA ||
        (home != NULL && !life_is_at(home, db_server_of(connection))))
        db_spoil(connection);
    pool_put(client->connections, connection);
    /* With a list of hosts another one may have been accepted, while this one still answers. */
    if (pool_look_around(client->connections, home) != TL_OK)
        log_line(&client->logger, TL_ALARM, NULL, 0,
                 "a host of the list cannot be used, and is not: %s", tl_error_message());
}

int64_t tl_restore_accepted_us(const tl_client *client)
{
    return client_check(client) == TL_OK ? atomic_load(&client->accepted_us) : 0;
}
