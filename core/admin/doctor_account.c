/* What the account of this connection may do, and who else may do too much. */
#include "admin/doctor.h"

#include "store/bind.h"
#include "store/server.h"

#include <stdio.h>
#include <string.h>

static const struct right {
    store_right_of right;
    const char *what;
} dangerous[] = {
    {STORE_RIGHT_WRITE_LOG, "change history"},
    {STORE_RIGHT_WRITE_FIRST, "change what the first step of a row was"},
    {STORE_RIGHT_FORGE, "write locks in another account's name"},
    {STORE_RIGHT_DELETE_LOG, "remove history"},
    {STORE_RIGHT_DELETE_LOCK, "remove locks"},
    {STORE_RIGHT_CHANGE_EVIDENCE, "change evidence"},
};

/* "GRANT SUPER, PROCESS ON *.* TO ..." gives "SUPER, PROCESS" and 1.  0: the line grants nothing,
 * or not on the whole server. */
static int global_rights(const char *line, char *to, size_t space)
{
    const char *end = strstr(line, " ON *.* TO ");
    size_t size;

    if (strncmp(line, "GRANT ", 6) != 0 || end == NULL)
        return 0;
    size = (size_t)(end - line) - 6;
    if (size >= space)
        size = space - 1;
    memcpy(to, line + 6, size);
    to[size] = '\0';
    return strcmp(to, "USAGE") != 0;
}

static tl_status judge_rights(doctor *d)
{
    char rights[128];
    RESULT r = DB_RESULT_INIT;

    TRY(read_run(d->connection, &sql_doctor_grants, &r, "asking for the rights of this account"));
    for (size_t row = 0; row < r.rows; row++)
        if (global_rights(db_get_text(&r, row, 0), rights, sizeof rights))
            doctor_tell(d, TL_FINDING_WARNING, "global rights", rights,
                        "%s has rights on the whole server: keep it for migrations, and "
                        "give services the role %s_application",
                        d->account, d->database);
    return TL_OK;
}

/* A temporary table stands in for one of ours in all that the session calls. */
static tl_status judge_temporary_tables(doctor *d)
{
    RESULT r = DB_RESULT_INIT;

    TRY(read_run(d->connection, &sql_doctor_temporary, &r, "asking who may make temporary tables"));
    for (size_t row = 0; row < r.rows; row++)
        doctor_tell(d, TL_FINDING_UNSAFE, "temporary tables", db_get_text(&r, row, 0),
                    "%s may make temporary tables in this database, which stand in for ours in the "
                    "procedures that it calls: take CREATE TEMPORARY TABLES back",
                    db_get_text(&r, row, 0));
    return TL_OK;
}

/* A role is of the whole server: whoever gave it rights in another database of ours gave them to all
 * its accounts.  An account that may not read mysql.* sees only what it reaches itself. */
static tl_status judge_rights_elsewhere(doctor *d)
{
    enum { GRANTEE, IS_ROLE, ELSEWHERE };
    RESULT r = DB_RESULT_INIT;
    db_answer answer = db_run(d->connection, &sql_doctor_reach, NULL, 0, &r);
    const int sees_all = answer == DB_DONE;

    if (answer == DB_ERROR && db_error_kind_of(db_errno(d->connection)) == DB_KIND_ACCESS)
        answer = db_run(d->connection, &sql_doctor_reach_own, NULL, 0, &r);
    for (size_t row = 0; answer == DB_DONE && row < r.rows; row++)
        doctor_tell(d, db_get_int(&r, row, IS_ROLE) ? TL_FINDING_UNSAFE : TL_FINDING_WARNING,
                    "rights elsewhere", db_get_text(&r, row, ELSEWHERE),
                    "%s also has rights in the database %s, which is tradelock's: roles are of the "
                    "whole server, so each is for one database; revoke them",
                    db_get_text(&r, row, GRANTEE), db_get_text(&r, row, ELSEWHERE));
    if (answer == DB_DONE && r.rows == 0)
        doctor_tell(d, TL_FINDING_OK, "rights elsewhere",
                    sees_all ? "none" : "of others not visible",
                    "%s reaches no other database of tradelock on this server",
                    sees_all ? "nobody with rights here" : d->account);
    return read_status(d->connection, answer, "asking for rights in other databases");
}

static tl_status judge_table_rights(doctor *d)
{
    unsigned found = 0;

    for (size_t i = 0; i < sizeof dangerous / sizeof dangerous[0]; i++) {
        const db_answer answer = store_right(d->connection, dangerous[i].right);

        if (answer == DB_DONE) {
            found++;
            doctor_tell(d, TL_FINDING_WARNING, "rights", dangerous[i].what,
                        "%s may %s: no service, worker or operator needs that; give it "
                        "one of the roles of sql/grants.sql instead",
                        d->account, dangerous[i].what);
        } else if (answer != DB_ERROR) {
            return read_status(d->connection, answer, "trying the rights");
        }
    }
    if (found == 0)
        doctor_tell(d, TL_FINDING_OK, "rights", d->role[0] != '\0' ? d->role : d->account,
                    "%s can neither change history nor remove locks", d->account);
    return TL_OK;
}

/* Tells of a missing right that came with a newer schema: the roles have to be granted anew. */
static db_answer judge_missing_right(doctor *d, store_right_of right, const char *what)
{
    db_answer answer = store_right(d->connection, right);

    if (answer == DB_ERROR)
        doctor_tell(d, TL_FINDING_UNSAFE, "rights", "a right is missing",
                    "%s may not %s: run `tradelock migrate --grants` as an administrator",
                    d->account, what);
    return answer;
}

static tl_status judge_missing_rights(doctor *d)
{
    db_answer answer = store_right(d->connection, STORE_RIGHT_ASK);

    /* An account that may not write locks ends no attempts, so it needs no such right. */
    if (answer == DB_ERROR)
        return TL_OK;
    if (answer == DB_DONE)
        answer = judge_missing_right(d, STORE_RIGHT_READ_RESOLUTION,
                                     "read trade_resolution or call tl_account_name, so no "
                                     "compensating attempt of it can end a trade");
    if (answer == DB_DONE || answer == DB_ERROR)
        answer = judge_missing_right(d, STORE_RIGHT_WRITE_AMOUNT,
                                     "write what a request says of itself (amount, batch, "
                                     "trace, label), so no workflow of it is granted a trade");
    if (answer == DB_DONE || answer == DB_ERROR)
        answer = judge_missing_right(d, STORE_RIGHT_READ_CHANNEL,
                                     "see which channels are paused, so it goes on sending "
                                     "through them");
    return answer == DB_ERROR ? TL_OK : read_status(d->connection, answer, "trying the rights");
}

tl_status doctor_account(doctor *d)
{
    TRY(judge_rights(d));
    TRY(judge_temporary_tables(d));
    TRY(judge_rights_elsewhere(d));
    TRY(judge_table_rights(d));
    return judge_missing_rights(d);
}
