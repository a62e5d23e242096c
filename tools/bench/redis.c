/* Redis with every write synced: SET NX PX, and a script that compares and deletes. */
#include "bench.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static const char unlock_script[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
    "else return 0 end";

/* A connection for each caller: the fastest that Redis can be used without pipelining. */
static redisContext **connections;
static char unlock_sha[41];

static int open_redis(const bench_options *options)
{
    redisReply *reply;

    if (options->redis_socket == NULL)
        bench_fail("--redis PATH is needed");
    connections = calloc(options->callers, sizeof *connections);
    if (connections == NULL)
        bench_fail("out of memory");
    for (unsigned i = 0; i < options->callers; i++) {
        connections[i] = redisConnectUnix(options->redis_socket);
        if (connections[i] == NULL || connections[i]->err != 0 ||
            redisSetTimeout(connections[i], (struct timeval){30, 0}) != REDIS_OK)
            bench_fail("no connection to Redis: %s",
                       connections[i] != NULL ? connections[i]->errstr : "memory");
    }
    reply = redisCommand(connections[0], "SCRIPT LOAD %s", unlock_script);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        bench_fail("Redis takes no script");
    snprintf(unlock_sha, sizeof unlock_sha, "%s", reply->str);
    freeReplyObject(reply);
    return 0;
}

static int cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];
    redisReply *reply;

    bench_key(caller, number, serial, cust);
    reply = redisCommand(connections[caller], "SET %s/%s %u NX PX 60000", cust, serial, caller);
    if (reply == NULL || reply->type != REDIS_REPLY_STATUS)
        bench_fail("Redis did not lock");
    freeReplyObject(reply);
    reply = redisCommand(connections[caller], "EVALSHA %s 1 %s/%s %u", unlock_sha, cust, serial,
                         caller);
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer != 1)
        bench_fail("Redis did not unlock");
    freeReplyObject(reply);
    return 1;
}

static void close_redis(void)
{
    for (unsigned i = 0; i < bench.callers; i++)
        redisFree(connections[i]);
    free(connections);
}

const contestant contestant_redis = {.name = "redis",
                                     .what =
                                         "SET NX PX, compare-and-delete script, appendfsync always",
                                     .open = open_redis,
                                     .cycle = cycle,
                                     .close = close_redis};
