/* Plain connections, shared by the callers of the contestants that are hand-written. */
#include "bench.h"

#include <mysql.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
    MYSQL **connections;
    unsigned *free_numbers, free_count, count;
    pthread_mutex_t mutex;
    pthread_cond_t given;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER};

int sql_run(struct st_mysql *connection, const char *text)
{
    MYSQL_RES *result;

    if (mysql_query(connection, text) != 0)
        bench_fail("%s: %.200s", mysql_error(connection), text);
    result = mysql_store_result(connection);
    mysql_free_result(result);
    return 0;
}

int sql_open(const bench_options *options, int (*prepare)(struct st_mysql *, unsigned))
{
    pool.count = options->connections;
    pool.connections = calloc(pool.count, sizeof *pool.connections);
    pool.free_numbers = calloc(pool.count, sizeof *pool.free_numbers);
    if (pool.connections == NULL || pool.free_numbers == NULL)
        bench_fail("out of memory");
    for (unsigned i = 0; i < pool.count; i++) {
        MYSQL *connection = mysql_init(NULL);

        if (connection == NULL ||
            mysql_real_connect(connection, NULL, options->user, NULL, options->database,
                               0, options->socket, 0) == NULL)
            bench_fail("no connection: %s",
                       connection ? mysql_error(connection) : "memory");
        sql_run(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
        sql_run(connection, "SET time_zone = '+00:00'");
        pool.connections[i] = connection;
        pool.free_numbers[i] = i;
        if (prepare != NULL && prepare(connection, i) != 0)
            return -1;
    }
    pool.free_count = pool.count;
    return 0;
}

void sql_close(void)
{
    for (unsigned i = 0; i < pool.count; i++)
        mysql_close(pool.connections[i]);
    free(pool.connections);
    free(pool.free_numbers);
}

unsigned sql_take(struct st_mysql **connection)
{
    unsigned number;

    pthread_mutex_lock(&pool.mutex);
    while (pool.free_count == 0)
        pthread_cond_wait(&pool.given, &pool.mutex);
    number = pool.free_numbers[--pool.free_count];
    pthread_mutex_unlock(&pool.mutex);
    *connection = pool.connections[number];
    return number;
}

void sql_give(unsigned number)
{
    pthread_mutex_lock(&pool.mutex);
    pool.free_numbers[pool.free_count++] = number;
    pthread_cond_signal(&pool.given);
    pthread_mutex_unlock(&pool.mutex);
}
