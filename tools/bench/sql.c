/* Plain connections, shared by the callers of the contestants that are hand-written. */
#include "bench.h"

#include <mysql.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SQL_SPACE 512

static struct {
    MYSQL **connections;
    unsigned *free_numbers, free_count, count;
    pthread_mutex_t mutex;
    pthread_cond_t given;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER};

int sql_run(struct st_mysql *connection, const char *text)
{
    if (mysql_query(connection, text) != 0)
        bench_fail("%s: %.200s", mysql_error(connection), text);
    mysql_free_result(mysql_store_result(connection));
    return 0;
}

void sql_runf(struct st_mysql *connection, const char *format, ...)
{
    char sql[SQL_SPACE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    sql_run(connection, sql);
}

double sql_number(struct st_mysql *connection, const char *text)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    double number;

    if (mysql_query(connection, text) != 0 || (result = mysql_store_result(connection)) == NULL)
        bench_fail("%s: %.200s", mysql_error(connection), text);
    row = mysql_fetch_row(result);
    if (row == NULL || row[0] == NULL)
        bench_fail("nothing found: %.200s", text);
    number = strtod(row[0], NULL);
    mysql_free_result(result);
    return number;
}

struct st_mysql *sql_connect(const bench_options *options)
{
    MYSQL *connection = mysql_init(NULL);
    unsigned seconds = 30;

    if (connection == NULL)
        bench_fail("out of memory");
    /* Without one a thread waits for ever when the network is cut: nobody who pays leaves it
     * out. */
    mysql_options(connection, MYSQL_OPT_READ_TIMEOUT, &seconds);
    mysql_options(connection, MYSQL_OPT_WRITE_TIMEOUT, &seconds);
    if (mysql_real_connect(connection, NULL, options->user, NULL, options->database, 0,
                           options->socket, 0) == NULL)
        bench_fail("no connection: %s", mysql_error(connection));
    sql_run(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    sql_run(connection, "SET time_zone = '+00:00'");
    return connection;
}

int sql_open(const bench_options *options, int (*prepare)(struct st_mysql *, unsigned))
{
    pool.count = options->connections;
    pool.connections = calloc(pool.count, sizeof *pool.connections);
    pool.free_numbers = calloc(pool.count, sizeof *pool.free_numbers);
    if (pool.connections == NULL || pool.free_numbers == NULL)
        bench_fail("out of memory");
    for (unsigned i = 0; i < pool.count; i++) {
        pool.connections[i] = sql_connect(options);
        pool.free_numbers[i] = i;
        if (prepare != NULL && prepare(pool.connections[i], i) != 0)
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
