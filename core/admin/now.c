/* Who is logged in.  Touches no row. */
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"

#include <tradelock/admin/now.h>

#include <string.h>

/* What asks for the account's own password. */
static int asks_for_password(const char *plugin, size_t size)
{
    static const char *const plugins[] = {"mysql_native_password", "ed25519", "parsec",
                                          "caching_sha2_password", "pam"};

    for (size_t i = 0; i < sizeof plugins / sizeof plugins[0]; i++)
        if (strlen(plugins[i]) == size && strncmp(plugins[i], plugin, size) == 0)
            return 1;
    return 0;
}

/* Behind "USING '...'", if that stands there. */
static const char *behind_using(const char *text)
{
    if (strncmp(text, " USING '", 8) != 0)
        return text;
    text += 8;
    while (*text != '\0' && *text != '\'')
        text += text[0] == '\\' && text[1] != '\0' ? 2 : 1;
    return *text == '\'' ? text + 1 : text;
}

/* Judges "... IDENTIFIED BY PASSWORD '*..'" and "... IDENTIFIED VIA a USING '..' OR b ...". */
static int needs_password(const char *made)
{
    const char *via = strstr(made, " IDENTIFIED VIA ");

    if (via == NULL)
        return strstr(made, " IDENTIFIED BY PASSWORD '") != NULL;
    via += strlen(" IDENTIFIED VIA ");
    for (;;) {
        const size_t size = strcspn(via, " ");

        if (!asks_for_password(via, size))
            return 0;
        via = behind_using(via + size);
        if (strncmp(via, " OR ", 4) != 0)
            return 1;
        via += 4;
    }
}

/* Whether a statement that touches no row is allowed. */
static tl_status try_right(db *connection, const struct sql_text *statement, int *may)
{
    const db_answer answer = db_run(connection, statement, NULL, 0, NULL);

    *may = answer == DB_DONE;
    return answer == DB_DONE || answer == DB_ERROR
               ? TL_OK
               : read_status(connection, answer, "trying the rights");
}

static tl_status look_at_name(db *connection, tl_account *account)
{
    RESULT r = DB_RESULT_INIT;

    TRY(read_run(connection, &sql_account_name, &r, "asking who is connected"));
    if (r.rows == 1) {
        text_copy(account->name, sizeof account->name, db_get_text(&r, 0, 0));
        text_copy(account->database, sizeof account->database, db_get_text(&r, 0, 1));
        TRY(read_run(connection, &sql_account_made, &r, "asking how the account is told"));
        if (r.rows == 1)
            account->needs_password = needs_password(db_get_text(&r, 0, 0));
    }
    return TL_OK;
}

static tl_status look_at_account(db *connection, tl_account *account)
{
    TRY(look_at_name(connection, account));
    TRY(try_right(connection, &sql_right_read_log, &account->may_read));
    return try_right(connection, &sql_right_decide, &account->may_decide);
}

tl_status tl_account_look(tl_client *client, tl_account *account)
{
    db *connection = NULL;
    tl_account found = TL_ACCOUNT_INIT;
    tl_status status;

    error_clear();
    TRY(client_check(client));
    if (account == NULL || account->version != TL_ACCOUNT_VERSION)
        return error_set(TL_INVALID, "account is NULL or its version is not set");
    /* A connection keeps the rights that it was made with. */
    TRY(pool_open_extra(client->connections, POOL_QUICK, &connection));
    status = look_at_account(connection, &found);
    if (status == TL_OK)
        *account = found;
    pool_close_extra(client->connections, connection);
    return status;
}
