/*
 * A server that fails over to an older copy of itself, under load: services, workers and a channel
 * that goes wrong.  The copy is the data directory at a random moment, as a power cut would have
 * left it; it starts under another identity, or under the same one as a restored server does, with
 * or without the last seconds, and sometimes fails back before anybody looked.  Then two operators
 * do what tools/RESTORE.md says, word by word, and the ledger of the channel decides: nobody paid
 * twice, no failure with money moved, nothing stuck.
 */
#include "crowd.h"

#include "support/crew.h"
#include "support/theme.h"

#include <sys/stat.h>
#include <sys/wait.h>

/* By then something hangs, however busy the machine is. */
#define LIMIT_MS 600000

/* What a failover can be; which one a run takes is random, and every run of the fast suite takes
 * another. */
enum way {
    WAY_NOTHING_LOST, /* the same data under another identity */
    WAY_PROMOTED,     /* an older copy under another identity */
    WAY_RESTORED,     /* an older copy under the same identity: yesterday's directory */
    WAY_FAILED_BACK,  /* promoted, and back under the first identity before any accept */
    WAYS
};

static struct {
    unsigned runs, process_kills;
    long long trades, paid, failed, parked, filed;
} sum;

/* As a power cut would leave it: the server stands still while it is copied. */
static void copy_data(crowd *self)
{
    const server *own = self->town.own;
    const char *dir = server_dir(own);

    server_freeze(own);
    crew_shell("rm -rf %s/copy && cp -a --reflink=auto --sparse=always %s/data %s/copy", dir, dir,
               dir);
    server_thaw(own);
}

static void take_copy(crowd *self)
{
    const char *dir = server_dir(self->town.own);

    crew_shell("rm -rf %s/data && mv %s/copy %s/data", dir, dir, dir);
}

static void start_as(crowd *self, unsigned identity)
{
    char option[32];
    const char *const options[] = {option, NULL};

    snprintf(option, sizeof option, "--server-id=%u", 1 + identity);
    server_restart_with(self->town.own, options);
    town_reconnect(&self->town);
}

static void load_for(crowd *self, unsigned ms)
{
    int64_t end_ms = now_ms() + ms;

    while (now_ms() < end_ms) {
        crowd_look_after(self, 1);
        usleep(50000);
    }
}

static void fail_over(crowd *self, enum way way)
{
    if (way != WAY_NOTHING_LOST) {
        copy_data(self);
        load_for(self, 100 + crowd_random(self, 2000));
        if (crowd_random(self, 2) == 0)
            crowd_kill_one(self, 1);
    }
    server_kill9(self->town.own);
    if (way != WAY_NOTHING_LOST)
        take_copy(self);
    start_as(self, way == WAY_RESTORED ? 0 : 1);
    load_for(self, crowd_random(self, 1500));
    if (way == WAY_FAILED_BACK) {
        server_kill9(self->town.own);
        start_as(self, 0);
        load_for(self, 500);
    }
}

/* The people of the page: two accounts with the operators' role. */
static void make_operator(crowd *self, const char *name)
{
    town *t = &self->town;
    char path[128];
    FILE *file;

    database_run(t->sql, "CREATE OR REPLACE USER %s_%ld@localhost IDENTIFIED BY 'secret'", name,
                 (long)getpid());
    database_run(t->sql, "GRANT {database}_operator TO %s_%ld@localhost", name, (long)getpid());
    database_run(t->sql, "SET DEFAULT ROLE {database}_operator FOR %s_%ld@localhost", name,
                 (long)getpid());
    snprintf(path, sizeof path, "%s/%s.cnf", t->dir, name);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    fprintf(file,
            "[tradelock-client]\nsocket=%s\nuser=%s_%ld\npassword=secret\ndatabase=%s\n"
            "[tradelock]\n" TOWN_SETTINGS,
            server_socket(t->own), name, (long)getpid(), database_name(t->db));
    fclose(file);
}

/* The commands of the page, in its order, with the files that it names; each may find something
 * wrong, and says so by its exit code. */
static void follow_the_page(crowd *self)
{
    town *t = &self->town;

    crew_shell("%s/bin/tradelock-simulator --export-csv %s >%s/statement.csv", test_build_dir(),
               t->sim.ledger, t->dir);
    crew_shell("awk '/^```console/ { on = 1; next } /^```/ { on = 0 } "
               "on && /^[$>] / { print substr($0, 3) }' %s/tools/RESTORE.md >%s/page.sh && "
               "cd %s && export TRADELOCK_CONFIG=ann.cnf && PATH=%s/bin:$PATH bash -x page.sh "
               ">page.log 2>&1 || "
               "{ cat page.log; false; }",
               test_source_dir(), t->dir, t->dir, test_build_dir());
}

static int is_accepted(crowd *self)
{
    return database_number(self->town.sql, "SELECT tl_restored()") == 0;
}

static void add_up(crowd *self)
{
#define COUNT(from) database_number(self->town.sql, "SELECT COUNT(*) FROM " from)
    sum.runs++;
    sum.process_kills += self->kills;
    sum.trades += COUNT("trade_lock WHERE lane = 'S'");
    sum.paid += COUNT("trade_lock WHERE lane = 'S' AND status = 'Y'");
    sum.failed += COUNT("trade_lock WHERE lane = 'S' AND status = 'F'");
    sum.parked += COUNT("trade_lock_state WHERE lane = 'S' AND state = 'parked'");
    sum.filed += COUNT("trade_lock_log WHERE step = 'filed'");
#undef COUNT
}

static void run_way(const char *kind, enum way way, unsigned trades)
{
    crowd self = {.services = 2, .workers = 2, .threads = 8, .trades = trades, .faults = 0.1};
    static const char *const first[] = {"--server-id=1", NULL};
    int64_t end_ms = now_ms() + LIMIT_MS;
    long long enough;
    char *audit;

    crowd_open(&self, kind, first);
    crew_shell("%s/bin/tradelock migrate --grants --config %s >/dev/null", test_build_dir(),
               database_option_file(self.town.db));
    make_operator(&self, "ann");
    make_operator(&self, "bob");
    crowd_start(&self);
    enough = trades / 4 + crowd_random(&self, trades / 4);
    while (crowd_begun(&self) < enough)
        load_for(&self, 20);
    fail_over(&self, way);
    /* The page is opened when what was under way has arrived, or is noticed to be. */
    load_for(&self, 3000);
    follow_the_page(&self);
    if (!is_accepted(&self)) {
        char *why = database_text(
            self.town.sql,
            "SELECT GROUP_CONCAT(CONCAT_WS(' ', restore_no, step, decided_at, reason) "
            "SEPARATOR '; ') FROM tl_restore");

        crew_shell("cat %s/page.log", self.town.dir);
        fail_msg("the page was followed, and the server is not accepted: %s", why);
    }
    crowd_end(&self);
    town_no_rules(&self.town);
    crowd_ask_all_again(&self);
    town_finish(&self.town, 300000);
    if (town_audit(&self.town, &audit) != 0 || sim_stat(&self.town.sim, "paid_twice") != 0)
        fail_msg("way %d of %s, random %llu: paid twice %lld; %s", way, kind,
                 (unsigned long long)self.random, (long long)sim_stat(&self.town.sim, "paid_twice"),
                 audit);
    free(audit);
    assert_true(now_ms() < end_ms);
    add_up(&self);
    crowd_close(&self);
}

/* Each kind begins with the ways that are worst for it. */
static void run_all(const char *kind, enum way first, unsigned few)
{
    for (unsigned i = 0; i < (tier_is_long() ? 40 : few); i++)
        run_way(kind, (enum way)((first + i) % WAYS), 300);
}

TEST(a_plain_channel)
{
    run_all("plain", WAY_PROMOTED, 2);
}

TEST(an_idempotent_channel)
{
    run_all("idempotent", WAY_FAILED_BACK, 1);
}

TEST(a_channel_with_a_window)
{
    run_all("window", WAY_NOTHING_LOST, 1);
}

TEST_MAIN(failover)
{
    int failed = tests_run(NULL, NULL);

    print_message("%u failovers, %u kills of services and workers; %lld trades: %lld paid, "
                  "%lld failed, %lld parked; %lld rows were filed; paid twice 0\n",
                  sum.runs, sum.process_kills, sum.trades, sum.paid, sum.failed, sum.parked,
                  sum.filed);
    return server_report(failed);
}
