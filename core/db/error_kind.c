/* What each server error means: its kind, the status and the sentence for a caller, and whether it
 * proves that nothing was committed.  Reads the connection's last error, and sends nothing. */
#include "db/db_internal.h"

#include "base/error.h"

#include <errmsg.h>
#include <string.h>

/* One line for each server error that means something to tradelock. */
static const struct error_line {
    unsigned number;
    db_error_kind kind;
    tl_status status;
    const char *sentence;
} table[] = {
    {1213, DB_KIND_REPEAT, TL_TRY_AGAIN, "a deadlock was resolved against this work"},
    {1205, DB_KIND_REPEAT, TL_TRY_AGAIN, "another transaction holds the row"},
    {1020, DB_KIND_REPEAT, TL_TRY_AGAIN, "another transaction changed the row meanwhile"},
    {ERROR_NOT_PREPARED, DB_KIND_REPEAT, TL_TRY_AGAIN,
     "the server has forgotten a prepared statement"},
    {1062, DB_KIND_DUPLICATE, TL_SERVER_ERROR, "a row with this key is there already"},
    {1290, DB_KIND_READ_ONLY, TL_READ_ONLY, "the server is read-only"},
    {1792, DB_KIND_READ_ONLY, TL_READ_ONLY, "the transaction is read-only"},
    {1836, DB_KIND_READ_ONLY, TL_READ_ONLY, "the server is read-only"},
    {1047, DB_KIND_READ_ONLY, TL_READ_ONLY, "the server is not part of a working cluster now"},
    {1040, DB_KIND_OVERLOADED, TL_OVERLOADED, "the server has too many connections"},
    {1203, DB_KIND_OVERLOADED, TL_OVERLOADED, "the account has too many connections"},
    {1226, DB_KIND_OVERLOADED, TL_OVERLOADED, "the account has used up a limit"},
    {1021, DB_KIND_OVERLOADED, TL_OVERLOADED, "the server's disk is full"},
    {1037, DB_KIND_OVERLOADED, TL_OVERLOADED, "the server is out of memory"},
    {1041, DB_KIND_OVERLOADED, TL_OVERLOADED, "the server is out of memory"},
    {1114, DB_KIND_OVERLOADED, TL_OVERLOADED, "the server has no room for another row"},
    {1206, DB_KIND_OVERLOADED, TL_OVERLOADED, "the server has no room for more locks"},
    {ERROR_BROKEN_TRIGGER, DB_KIND_OVERLOADED, TL_TRY_AGAIN,
     "the server keeps a broken copy of a trigger, since a statement was killed while it was read; "
     "FLUSH TABLES mends that"},
    {1461, DB_KIND_OVERLOADED, TL_OVERLOADED, "the server has no room for a prepared statement"},
    {1044, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1045, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1129, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1130, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1142, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1143, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1227, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1370, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1698, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1820, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {4151, DB_KIND_ACCESS, TL_ACCESS_DENIED, NULL},
    {1046, DB_KIND_OTHER, TL_INVALID, "the connection has no database"}, /* a caller's connection */
    {1049, DB_KIND_SCHEMA, TL_NO_SCHEMA, "there is no such database"},
    {1054, DB_KIND_SCHEMA, TL_NO_SCHEMA, "the schema is of another version"},
    {1146, DB_KIND_SCHEMA, TL_NO_SCHEMA, "the schema is missing"},
    {1305, DB_KIND_SCHEMA, TL_NO_SCHEMA, "the schema is missing"},
    {1419, DB_KIND_OTHER, TL_ACCESS_DENIED,
     "with a binary log on, the server takes triggers and functions from an account with SUPER, or "
     "of all administrators where log_bin_trust_function_creators is 1"},
    {1449, DB_KIND_OTHER, TL_NO_SCHEMA,
     "the account that ran `tradelock migrate` is gone, and its triggers and procedures run no "
     "more: run `tradelock migrate` as another administrator, which makes them anew"},
    {1053, DB_KIND_GONE, TL_UNREACHABLE, "the server is shutting down"},
    {1152, DB_KIND_GONE, TL_UNREACHABLE, "the server ended the connection"},
    {1153, DB_KIND_OTHER, TL_SERVER_UNSAFE,
     "the request is larger than the server takes: set max_allowed_packet to 1M or more"},
    {1158, DB_KIND_GONE, TL_UNREACHABLE, "the server ended the connection"},
    {1159, DB_KIND_GONE, TL_UNREACHABLE, "the server ended the connection"},
    {1160, DB_KIND_GONE, TL_UNREACHABLE, "the server ended the connection"},
    {1161, DB_KIND_GONE, TL_UNREACHABLE, "the server ended the connection"},
    {1184, DB_KIND_GONE, TL_UNREACHABLE, "the server ended the connection"},
    {ERROR_RESTORED, DB_KIND_OTHER, TL_ASK_CHANNEL,
     "the server was restored or replaced: nothing fails before it is accepted"},
    {ERROR_MISDIRECTED, DB_KIND_OTHER, TL_MISDIRECTED,
     "this customer's slot is not of this shard; nothing was written"},
    {ERROR_SLOT_MOVES, DB_KIND_MOVES, TL_OVERLOADED,
     "this customer's slot is being moved to another shard; nothing was written"},
    {ERROR_BENT, DB_KIND_GONE, TL_UNREACHABLE, "the session had made a temporary table"},
    {ERROR_INTERRUPTED, DB_KIND_GONE, TL_UNREACHABLE, "the statement was interrupted"},
    {1927, DB_KIND_GONE, TL_UNREACHABLE, "the connection was killed"},
    {1969, DB_KIND_GONE, TL_UNREACHABLE, "the statement took longer than is allowed"},
    {4031, DB_KIND_GONE, TL_UNREACHABLE, "the server ended an idle connection"},
};

static const struct error_line *line_of(unsigned number)
{
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].number == number)
            return &table[i];
    return NULL;
}

db_error_kind db_error_kind_of(unsigned number)
{
    const struct error_line *line = line_of(number);

    if (line)
        return line->kind;
    return db_error_is_client(number) ? DB_KIND_GONE : DB_KIND_OTHER;
}

/* The server answers 1290 for every option that forbids a statement, and when it kills a statement
 * that takes too much memory. */
static int says_read_only(const db *connection)
{
    return connection->error_number != 1290 || strstr(connection->error_text, "read-only");
}

int db_error_is_read_only(const db *connection)
{
    return db_error_kind_of(connection->error_number) == DB_KIND_READ_ONLY &&
           says_read_only(connection);
}

static int commit_is_doubtful(const db *connection)
{
    unsigned number = connection->error_number;
    const struct error_line *line = line_of(number);

    if (number == ERROR_NO_SAVEPOINT)
        return 0; /* the commit of a callback transaction stopped before its COMMIT */
    /* Only an answer that says why proves that a COMMIT did nothing: it was rolled back, or not
     * allowed to begin. */
    return !line ||
           (line->kind != DB_KIND_REPEAT &&
            !(line->kind == DB_KIND_READ_ONLY && number != 1047 && says_read_only(connection)));
}

static int statement_is_doubtful(const db *connection)
{
    switch (connection->error_number) {
    case 3:    /* writing the binary log failed ... */
    case 1026: /* ... */
    case 1180: /* got an error during COMMIT */
    case 1181: /* got an error during ROLLBACK */
    case 1534: /* writing one row to the binary log failed */
        return 1;
    default:
        return db_error_kind_of(connection->error_number) == DB_KIND_GONE;
    }
}

static int block_is_doubtful(const db *connection)
{
    switch (db_error_kind_of(connection->error_number)) {
    case DB_KIND_REPEAT:
    case DB_KIND_DUPLICATE:
    case DB_KIND_ACCESS:
    case DB_KIND_SCHEMA:
    case DB_KIND_MOVES: /* a trigger's refusal comes before the block's COMMIT */
        return 0;
    case DB_KIND_READ_ONLY:
        return connection->error_number == 1047 || !says_read_only(connection);
    default:
        return connection->error_number != ERROR_MISDIRECTED;
    }
}

int db_error_is_doubtful(const db *connection, int is_commit)
{
    if (is_commit)
        return commit_is_doubtful(connection);
    /* Such a statement commits nothing that an error could leave in doubt. */
    if (connection->begins)
        return db_error_kind_of(connection->error_number) == DB_KIND_GONE;
    return connection->in_block ? block_is_doubtful(connection) : statement_is_doubtful(connection);
}

unsigned db_failed_with(const db *connection)
{
    unsigned number = connection->error_number;

    if (db_error_kind_of(number) == DB_KIND_OVERLOADED ||
        db_error_kind_of(number) == DB_KIND_MOVES || db_error_kind_of(number) == DB_KIND_REPEAT)
        return 0;
    return db_error_is_client(number) || statement_is_doubtful(connection) ? 0 : number;
}

int db_error_ends_connection(unsigned number)
{
    switch (number) {
    case ERROR_INTERRUPTED: /* KILL QUERY leaves the connection open */
    case 1969:
        return 0;
    case 1153: /* the rest of the packet is never read */
        return 1;
    default:
        return db_error_kind_of(number) == DB_KIND_GONE;
    }
}

static int says_connecting_failed(unsigned number)
{
    switch (number) {
    case CR_CONNECTION_ERROR:
    case CR_CONN_HOST_ERROR:
    case CR_UNKNOWN_HOST:
    case CR_IPSOCK_ERROR:
    case CR_SOCKET_CREATE_ERROR:
    case CR_SERVER_GONE_ERROR:
    case CR_SERVER_LOST:
    case CR_SERVER_HANDSHAKE_ERR:
    case CR_SERVER_LOST_EXTENDED:
        return 1;
    default:
        return 0;
    }
}

static tl_status connect_status(MYSQL *mysql)
{
    unsigned number = mysql_errno(mysql);
    const char *text = mysql_error(mysql);
    const struct error_line *line = line_of(number);

    if (number == CR_OUT_OF_MEMORY)
        return error_set(TL_NO_MEMORY, "out of memory while connecting");
    if (number == CR_SSL_CONNECTION_ERROR)
        return error_set(TL_SERVER_UNSAFE, "no safe connection to the server: %s%s", text,
                         strstr(text, "does not support") != NULL ? "" : "; " DB_NAME_A_CA);
    if (says_connecting_failed(number) || number == 1053)
        return error_set(TL_UNREACHABLE, "the server cannot be reached: %s", text);
    if (db_error_is_client(number))
        return error_set(TL_ACCESS_DENIED, "the server cannot be logged in to: %s", text);
    if (line && line->kind == DB_KIND_SCHEMA)
        return error_set(line->status, "%s: %s; create it, then run `tradelock migrate`",
                         line->sentence, text);
    if (line && line->kind == DB_KIND_ACCESS)
        return error_set(line->status, "the server refuses the account: %s", text);
    if (line && line->sentence)
        return error_set(line->status, "%s: %s", line->sentence, text);
    if (line)
        return error_set(line->status, "%s", text);
    return error_set(TL_SERVER_ERROR, "the server refused the connection: %s (error %u)", text,
                     number);
}

/* Notes that the statement was interrupted, if it was. */
static tl_status noted(tl_status status, unsigned number)
{
    if (status != TL_OK && number == ERROR_INTERRUPTED)
        error_note_interrupted();
    return status;
}

tl_status db_connect_status(MYSQL *mysql)
{
    return noted(connect_status(mysql), mysql_errno(mysql));
}

static tl_status lost_status(const db *connection, db_answer answer, const char *doing)
{
    if (answer == DB_UNANSWERED)
        return error_set(TL_UNKNOWN, "%s: the answer was lost (%s); it may have happened", doing,
                         db_error(connection));
    if (db_wrong_process(connection))
        return error_set(TL_WRONG_PROCESS, "%s: the connection belongs to the parent process",
                         doing);
    if (connection->borrowed && db_errno(connection) == CR_COMMANDS_OUT_OF_SYNC)
        return error_set(TL_WRONG_STATE, "%s: %s", doing, db_error(connection));
    return error_set(TL_UNREACHABLE, "%s: nothing was sent, since %s", doing, db_error(connection));
}

static tl_status error_status(const db *connection, db_answer answer, const char *doing)
{
    unsigned number = db_errno(connection);
    const struct error_line *line = line_of(number);

    switch (answer) {
    case DB_DONE:
        return TL_OK;
    case DB_NO_MEMORY:
        return error_set(TL_NO_MEMORY, "%s: out of memory", doing);
    case DB_NOT_SENT:
    case DB_UNANSWERED:
        return lost_status(connection, answer, doing);
    case DB_ERROR:
        break;
    }
    if (number == 1290 && strstr(db_error(connection), "NO_ENGINE_SUBSTITUTION") != NULL)
        return error_set(TL_SERVER_UNSAFE,
                         "%s: the server makes no InnoDB tables, without which nothing is safe: "
                         "take its setting enforce_storage_engine away",
                         doing);
    if (!line || !says_read_only(connection))
        return error_set(TL_SERVER_ERROR, "%s: the server says: %s (error %u)", doing,
                         db_error(connection), number);
    switch (line->kind) {
    case DB_KIND_SCHEMA:
        return error_set(line->status, "%s: %s: %s; run `tradelock migrate`", doing, line->sentence,
                         db_error(connection));
    case DB_KIND_DUPLICATE: /* the server's sentence would quote the key's values */
        return error_set(line->status, "%s: %s (key %s)", doing, line->sentence,
                         db_duplicate_key(connection));
    case DB_KIND_REPEAT:
        return error_set(line->status, "%s: %s (error %u)", doing, line->sentence, number);
    case DB_KIND_ACCESS:
        return error_set(line->status, "%s: the account lacks a right: %s", doing,
                         db_error(connection));
    default:
        return error_set(line->status, "%s: %s (error %u)", doing, line->sentence, number);
    }
}

tl_status db_error_status(const db *connection, db_answer answer, const char *doing)
{
    return noted(error_status(connection, answer, doing), db_errno(connection));
}

tl_status db_read_status(const db *connection, db_answer answer, const char *doing)
{
    if (answer == DB_UNANSWERED)
        return noted(
            error_set(TL_UNREACHABLE, "%s: the answer was lost (%s)", doing, db_error(connection)),
            db_errno(connection));
    return db_error_status(connection, answer, doing);
}
