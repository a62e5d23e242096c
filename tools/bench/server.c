/*
 * What the server counts, read at the borders of the measurement alone, so that the warm-up is not
 * in it.
 *
 * Which counter: Questions counts what clients send, prepared executions and compound blocks (BEGIN
 * NOT ATOMIC ... END) as one each, and nothing of what triggers do; Com_... and Queries count
 * inside of triggers too, and Handler_commit counts the commits of statements inside a transaction.
 * Of commits trx_rw_commits counts those that had something to make durable, and plain reads not.
 */
#include "bench.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char counters_sql[] =
    "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
    "WHERE VARIABLE_NAME IN ('QUESTIONS', 'INNODB_DATA_FSYNCS', 'INNODB_OS_LOG_WRITTEN') "
    "UNION ALL SELECT NAME, COUNT FROM information_schema.INNODB_METRICS "
    "WHERE NAME = 'trx_rw_commits'";

static const char others_sql[] =
    "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() "
    "AND COMMAND <> 'Daemon' AND USER <> 'system user'";

#define ALONE_TRIES 2000
#define ALONE_TRY_US 5000

static MYSQL *connection;
static double own_statements; /* of this connection, since it was opened */
static int64_t process;

static unsigned count_others(void)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    unsigned count;

    if (mysql_query(connection, others_sql) != 0 ||
        (result = mysql_store_result(connection)) == NULL ||
        (row = mysql_fetch_row(result)) == NULL)
        bench_fail("connections: %s", mysql_error(connection));
    count = (unsigned)strtoul(row[0], NULL, 10);
    mysql_free_result(result);
    return count;
}

/* Whoever has ended may be taking its leave still, which is counted as a statement. */
static void wait_until_alone(void)
{
    for (int i = 0; i < ALONE_TRIES && count_others() > 0; i++)
        bench_sleep_us(ALONE_TRY_US);
}

void server_open(const bench_options *options)
{
    connection = sql_connect(options);
    process = options->server_pid;
    wait_until_alone();
    sql_run(connection, "SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'");
    own_statements = 0;
}

double server_cpu_of(int64_t pid)
{
    char path[64], text[1024];
    unsigned long user = 0, system = 0;
    const char *end;
    size_t size;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    file = pid != 0 ? fopen(path, "re") : NULL;
    if (file == NULL)
        return 0;
    size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    end = strrchr(text, ')'); /* of the name, which may be anything */
    if (end == NULL || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                              &user, &system) != 2)
        return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void take_counter(server_counts *counts, const char *name, double value)
{
    if (strcmp(name, "QUESTIONS") == 0)
        counts->statements = value - own_statements;
    else if (strcmp(name, "INNODB_DATA_FSYNCS") == 0)
        counts->syncs = value;
    else if (strcmp(name, "INNODB_OS_LOG_WRITTEN") == 0)
        counts->redo_bytes = value;
    else
        counts->commits = value;
}

void server_read(server_counts *counts)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    unsigned got = 0;

    own_statements++;
    if (mysql_query(connection, counters_sql) != 0 ||
        (result = mysql_store_result(connection)) == NULL)
        bench_fail("counters: %s", mysql_error(connection));
    while ((row = mysql_fetch_row(result)) != NULL) {
        take_counter(counts, row[0], strtod(row[1], NULL));
        got++;
    }
    mysql_free_result(result);
    if (got != 4)
        bench_fail("the server knows only %u of 4 counters", got);
    counts->cpu_s = server_cpu_of(process);
}

void server_close(void)
{
    mysql_close(connection);
    connection = NULL;
}
