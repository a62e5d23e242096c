#include "crowd.h"

#include "support/theme.h"

#include <signal.h>
#include <sys/wait.h>

/* What tradelock-withdraw answers when it has no server for a line. */
#define EXIT_NO_SERVER 3
#define WORKER_THREADS 4

static void set_faults(crowd *self)
{
    char rule[64];
    struct answer answer;

    snprintf(rule, sizeof rule, "{\"rate\":%.2f,\"seed\":7}", self->faults);
    answer = sim_ask(&self->town.sim, NULL, "/v1/faults", rule, 5000);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
}

void crowd_open(crowd *self, const char *kind, const char *const options[])
{
    crowd_open_on(self, kind, server_start(options), "10m");
}

void crowd_open_on(crowd *self, const char *kind, server *where, const char *deadline)
{
    self->random = (uint64_t)now_ms();
    assert_true(self->services + self->workers <= CROWD_MOST);
    town_open_on(&self->town, kind, where, deadline);
    set_faults(self);
    print_message("%s: %u trades, random %llu\n", kind, self->trades,
                  (unsigned long long)self->random);
    for (unsigned i = 0; i < self->services; i++)
        self->rows[i] = town_rows(&self->town, self->trades / self->services);
}

void crowd_close(crowd *self)
{
    for (unsigned i = 0; i < self->services; i++)
        free(self->rows[i]);
    town_close(&self->town);
}

unsigned crowd_random(crowd *self, unsigned below)
{
    self->random = self->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(self->random >> 33) % below;
}

static int is_service(const crowd *self, unsigned who)
{
    return who < self->services;
}

static void start_one(crowd *self, unsigned who)
{
    town *t = &self->town;

    self->running[who] =
        is_service(self, who)
            ? town_service(t, t->worker_config, self->rows[who], self->threads, NULL)
            : town_worker(t, t->worker_config, WORKER_THREADS, NULL);
}

void crowd_start(crowd *self)
{
    for (unsigned who = 0; who < self->services + self->workers; who++)
        start_one(self, who);
}

static void end_one(child *victim)
{
    kill(victim->pid, SIGKILL);
    assert_int_not_equal(child_wait(victim, PATIENCE_MS), -1);
}

/* A service begins its lines anew each time, and with thousands of them would never come to the
 * last one: where it has so many it dies as long as there are trades to begin. */
void crowd_kill_one(crowd *self, int services)
{
    unsigned who = crowd_random(self, self->services + self->workers);
    child *victim = &self->running[who];

    if (victim->pid == 0 || (is_service(self, who) && !services))
        return;
    end_one(victim);
    unlink(victim->output);
    self->kills++;
    start_one(self, who);
}

/* A service that ended has answered its lines, those that it had no server for with that, so it
 * begins anew as long as there are trades to begin; a worker ends only when it cannot connect at
 * its start. */
unsigned crowd_look_after(crowd *self, int more)
{
    unsigned busy = 0;
    int status;

    for (unsigned who = 0; who < self->services + self->workers; who++) {
        child *of = &self->running[who];

        if (of->pid != 0 && child_ended(of, &status) &&
            (!is_service(self, who) || more || WEXITSTATUS(status) == EXIT_NO_SERVER)) {
            usleep(100000);
            start_one(self, who);
        }
        busy += is_service(self, who) && of->pid != 0;
    }
    return busy;
}

void crowd_end(crowd *self)
{
    for (unsigned who = 0; who < self->services + self->workers; who++)
        if (self->running[who].pid != 0)
            end_one(&self->running[who]);
}

long long crowd_begun(crowd *self)
{
    return database_number(self->town.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S'");
}

void crowd_ask_all_again(crowd *self)
{
    for (unsigned i = 0; i < self->services; i++) {
        child service =
            town_service(&self->town, self->town.worker_config, self->rows[i], self->threads, NULL);
        int status = child_wait(&service, PATIENCE_MS);

        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 6)) {
            char *text = file_read(service.output);

            fail_msg("the last service ended with %x: %s", status, text);
        }
    }
}
