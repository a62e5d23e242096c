/*
 * A purge that writes an archive first: what it writes, that nothing goes before it is written, at
 * whatever moment the purge is killed, and what it refuses.
 */
#include "command.h"
#include "fields.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <pthread.h>

static struct world {
    fixture f;
    const char *config;
    char dir[64], archive[80];
} w;

/* A line for the shell, which finds $DIR, $ARCHIVE and $CONFIG; its output, to be freed. */
static char *shell(const char *line)
{
    output *o;
    char *out;

    o = command_shell(NULL, line);
    if (o->code != 0)
        server_panic("'%s' ended with %d: %s", line, o->code, o->err);
    out = strdup(o->out);
    output_free(o);
    return out;
}

static void do_shell(const char *line)
{
    free(shell(line));
}

static long long shell_number(const char *line)
{
    char *out = shell(line);
    const long long number = atoll(out);

    free(out);
    return number;
}

FIXTURE(set_up)
{
    fixture_open(&w.f, "janitor=0\nbeat_ms=50\nsession_ms=1m\n");
    w.config = database_option_file(w.f.db);
    strcpy(w.dir, "/tmp/tl-archive-XXXXXX");
    if (mkdtemp(w.dir) == NULL)
        server_panic("no directory for the archive");
    snprintf(w.archive, sizeof w.archive, "%s/archive", w.dir);
    setenv("DIR", w.dir, 1);
    setenv("ARCHIVE", w.archive, 1);
    setenv("CONFIG", w.config, 1);
}

FIXTURE(tear_down)
{
    do_shell("rm -rf \"$DIR\"");
    fixture_close(&w.f);
}

/* ------------------------------------------------------------------ what is there -- */

#define PURGE(...) RUN("purge", "--older", "90d", "--config", w.config, __VA_ARGS__)
#define TO_ARCHIVE(...) PURGE("--archive", w.archive, "--set", "100", __VA_ARGS__)

static void clean(void)
{
    database_run(w.f.sql, "DELETE FROM trade_lock; DELETE FROM trade_lock_past; DELETE FROM "
                          "trade_evidence; DELETE FROM trade_resolution; "
                          "DELETE FROM tl_archive_set");
    do_shell("rm -rf \"$ARCHIVE\" && mkdir -m 700 \"$ARCHIVE\"");
}

/* Old trades, a year ago: so many, every tenth with a retry row, three kept steps, a piece of
 * evidence and a decision. */
static void make_many(unsigned trades)
{
    database_run(
        w.f.sql,
        "DROP TRIGGER IF EXISTS trade_evidence_inserted; DROP TRIGGER IF EXISTS "
        "trade_evidence_filed; DROP TRIGGER IF EXISTS "
        "trade_resolution_inserted; DROP TRIGGER IF EXISTS trade_resolution_confirmed;"
        "SET @then = UTC_TIMESTAMP(6) - INTERVAL 1 YEAR;"
        "SET @made = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', @then);"
        "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, "
        "token, fence, rev, created_at, updated_at, payload, remark, channel, channel_key) "
        "SELECT CONCAT('C', seq MOD 7), CONCAT('M', seq), 'WITHDRAW', 'S', 'Y', 'ask', UUID(), "
        "UNHEX(MD5(seq)), @made, @made + 2 * (seq MOD 10 = 0), @then, @then, "
        "CONCAT('pay\\n\"', seq, '\",\\0'), IF(seq MOD 3, NULL, ''), 'bank', 'K' "
        "FROM seq_1_to_%u;"
        "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, "
        "token, fence, rev, created_at, updated_at) "
        "SELECT CONCAT('C', seq * 10 MOD 7), CONCAT('M', seq * 10), 'WITHDRAW_RETRY', 'R', 'F', "
        "'close', UUID(), UNHEX(MD5(seq)), @made, @made, @then, @then FROM seq_1_to_%u;"
        "INSERT INTO trade_lock_past (cust_no, serial_no, op_code, rev, logged_at, step, status, "
        "thread_no, token, fence, epoch, attempts, claims, sends, conflict, proof, account) "
        "SELECT t.cust_no, t.serial_no, t.op_code, @made + p.seq, @then, IF(p.seq = 0, 'ask', "
        "'open'), 'P', UUID(), UNHEX(MD5(p.seq)), @made, 1, 0, 0, 0, 0, '-', USER() "
        "FROM trade_lock t, seq_0_to_1 p WHERE t.lane = 'S' AND t.rev = @made + 2;"
        "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, "
        "account, filed_at) "
        "SELECT cust_no, serial_no, op_code, 1, 'SUCCEEDED', 'bank, \"the\" bank', '', @then FROM "
        "trade_lock "
        "WHERE lane = 'S' AND rev = @made + 2;"
        "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, "
        "epoch, reason, actor, thread_no) SELECT cust_no, serial_no, op_code, rev, 'C', 1, fence, "
        "epoch, 'r', 'a', UUID() FROM trade_lock WHERE lane = 'S' AND rev = @made + 2;",
        trades, trades / 10);
}

/* Every row as one line "table,key,revision or the like", sorted, into the file. */
static void list_rows(const char *file)
{
    char path[160];
    FILE *to;
    MYSQL_RES *rows;
    MYSQL_ROW row;

    snprintf(path, sizeof path, "%s/%s.new", w.dir, file);
    to = fopen(path, "w");
    if (to == NULL ||
        mysql_query(w.f.sql,
                    "SELECT CONCAT_WS(',', 'lock', cust_no, serial_no, op_code, rev, "
                    "LOWER(HEX(payload))) FROM trade_lock UNION ALL "
                    "SELECT CONCAT_WS(',', 'past', cust_no, serial_no, op_code, rev) FROM "
                    "trade_lock_past UNION ALL "
                    "SELECT CONCAT_WS(',', 'evidence', evidence_id, cust_no, serial_no) "
                    "FROM trade_evidence UNION ALL "
                    "SELECT CONCAT_WS(',', 'resolution', cust_no, serial_no, op_code, rev, part) "
                    "FROM trade_resolution") != 0 ||
        (rows = mysql_store_result(w.f.sql)) == NULL)
        server_panic("the rows cannot be listed: %s", mysql_error(w.f.sql));
    while ((row = mysql_fetch_row(rows)) != NULL)
        fprintf(to, "%s\n", row[0]);
    mysql_free_result(rows);
    fclose(to);
    snprintf(path, sizeof path, "cd \"$DIR\" && LC_ALL=C sort %s.new > %s", file, file);
    do_shell(path);
}

/* The same of all complete sets of the archive, into the file "archived".  NULL is nothing, so an
 * empty field at the end of a lock row is left away as CONCAT_WS does. */
static void list_archive(void)
{
    do_shell("cd \"$ARCHIVE\" && rows() { for set in ????????; do "
             "[ ! -f $set/manifest ] || echo $set/$2.csv.gz; done | xargs -r gzip -dc | "
             "sed '/^cust_no,/d; /^evidence_id,/d; s/\"//g; s/^/'$1',/' | cut -d, -f1-$3; }; "
             "{ rows lock trade_lock 4,13,36; rows past trade_lock_past 5; "
             "rows evidence trade_evidence 4; rows resolution trade_resolution 5,7; } | "
             "sed 's/,$//' | LC_ALL=C sort > \"$DIR/archived\"");
}

/* Each row that was listed in "before" is in the database or in a complete set, and no set has a
 * row that was not there. */
static void assert_nothing_lost(void)
{
    list_rows("now");
    list_archive();
    assert_int_equal(
        shell_number("cd \"$DIR\" && LC_ALL=C sort -u now archived | LC_ALL=C comm -23 before - | "
                     "wc -l"),
        0);
    assert_int_equal(
        shell_number(
            "cd \"$DIR\" && LC_ALL=C sort -u archived | LC_ALL=C comm -13 before - | wc -l"),
        0);
}

static long long count_of(const char *table)
{
    return database_number(w.f.sql, "SELECT COUNT(*) FROM %s", table);
}

TEST(test_rows_are_written_then_removed)
{
    json_t *said, *archived;

    clean();
    make_many(650);
    list_rows("before");
    ENDS(PURGE("--archive", w.archive, "--dry-run"), 0,
         "650 trades would be purged: 715 lock rows, 130 steps", WITHOUT("written to"));
    assert_int_equal(shell_number("ls \"$ARCHIVE\" | wc -l"), 0);
    said = output_ended(TO_ARCHIVE("--json"), 0);
    archived = json_object_get(said, "archived");
    assert_int_equal(json_integer_value(json_object_get(said, "trades")), 650);
    assert_int_equal(json_integer_value(json_object_get(said, "lock_rows")), 715);
    assert_int_equal(json_integer_value(json_object_get(said, "steps")), 130);
    assert_int_equal(json_integer_value(json_object_get(said, "evidence")), 65);
    assert_int_equal(json_integer_value(json_object_get(said, "decisions")), 65);
    assert_int_equal(json_integer_value(json_object_get(archived, "trades")), 650);
    assert_int_equal(json_integer_value(json_object_get(archived, "rows")), 715 + 130 + 65 + 65);
    assert_int_equal(json_integer_value(json_object_get(archived, "stayed")), 0);
    assert_int_equal(json_integer_value(json_object_get(archived, "sets")),
                     shell_number("ls -d \"$ARCHIVE\"/???????? | wc -l"));
    assert_true(json_integer_value(json_object_get(archived, "sets")) >= 3);
    json_decref(said);
    assert_int_equal(count_of("trade_lock") + count_of("trade_lock_past") +
                         count_of("trade_evidence") + count_of("trade_resolution"),
                     0);
    assert_nothing_lost();
    assert_int_equal(shell_number("cd \"$DIR\" && LC_ALL=C comm -3 before archived | wc -l"), 0);
    /* What others need to check it by hand. */
    do_shell(
        "cd \"$ARCHIVE\"/00000001 && sed -n 's/^file \\([^ ]*\\) .* sha256 /\\1 /p' manifest | "
        "while read name sum; do echo \"$sum  $name\"; done | sha256sum --check --status");
    assert_int_equal(shell_number("stat -c %a \"$ARCHIVE\"/00000001/trade_lock.csv.gz"), 600);
    /* Nothing is left to do, and nothing is done. */
    ENDS(TO_ARCHIVE("--every", "10s"), 0, "0 trades, 0 rows, 0 bytes written");
}

static void expect_listed(const char *name, output *o)
{
    json_t *document = output_json(o), *set = json_object();

    fields_add(set, document);
    fields_expect(set, name);
    json_decref(set);
    json_decref(document);
    output_free(o);
}

/* Each column of each table is in its file: one that a migration adds and nobody wrote down here
 * would be lost with the first purge. */
TEST(test_every_column_is_written)
{
    static const char *const tables[] = {"trade_lock", "trade_lock_past", "trade_evidence",
                                         "trade_resolution"};

    for (size_t i = 0; i < 4; i++) {
        char line[160], *header, *missing;

        snprintf(line, sizeof line, "zcat \"$ARCHIVE\"/00000001/%s.csv.gz | head -1 | tr -d '\\n'",
                 tables[i]);
        header = shell(line);
        missing = database_text(w.f.sql,
                                "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns "
                                "WHERE table_schema = DATABASE() AND table_name = '%s' AND "
                                "generation_expression IS NULL AND NOT FIND_IN_SET(column_name, "
                                "'%s')",
                                tables[i], header);
        if (missing != NULL)
            print_error("%s has columns that its archive lacks: %s\n", tables[i], missing);
        assert_null(missing);
        free(header);
    }
}

TEST(test_fields_are_listed)
{
    clean();
    make_many(10);
    expect_listed("purge", TO_ARCHIVE("--json"));
}

/* What an audit knows from other tables stands behind a row: how many operators decided its last
 * step, and when the session that made it ended. */
TEST(test_what_an_audit_needs_is_written)
{
    char *written, *wanted;

    clean();
    make_many(20);
    database_run(
        w.f.sql,
        "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, "
        "epoch, reason, actor, thread_no, account, decided_at) SELECT cust_no, serial_no, op_code, "
        "rev, 'C', 2, fence, epoch, 'r', 'b', UUID(), 'bob@b', decided_at FROM trade_resolution "
        "WHERE serial_no = 'M20';"
        "INSERT INTO tl_session (session_id, program, host, pid, connection_name, timeout_ms, "
        "started_at, alive_until, ended_at, swept_at) VALUES "
        "('33333333-1111-4111-8111-111111111111', 'p', 'h', 1, UUID(), 1, '2020-01-01', "
        "'2020-01-01', '2020-02-03 04:05:06.000007', UTC_TIMESTAMP(6));"
        "UPDATE trade_lock SET step = 'resolve clear', rev = rev + 1, session_id = "
        "'33333333-1111-4111-8111-111111111111' WHERE serial_no IN ('M10', 'M20') AND lane = 'S'");
    wanted = database_text(w.f.sql, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', "
                                    "'2020-02-03 04:05:06.000007')");
    ENDS(TO_ARCHIVE("--json"), 0);
    written = shell("zcat \"$ARCHIVE\"/00000001/trade_lock.csv.gz | grep resolve | tr -d '\"' | "
                    "sed 's/,.*,\\([0-9]*\\),[0-9]*,\\([0-9]*\\)$/ \\1 \\2/' | LC_ALL=C sort");
    {
        char expected[160];

        snprintf(expected, sizeof expected, "C3 %s 1\nC6 %s 2\n", wanted, wanted);
        assert_string_equal(written, expected);
    }
    free(written);
    free(wanted);
}

/* What is not old, in process or in conflict is not written either. */
TEST(test_only_what_may_go_is_written)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *lock;

    clean();
    make_many(10);
    lock = granted(w.f.client, "YOUNG", "C1", &options);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    tl_lock_free(granted(w.f.client, "LIVE", "C1", &options));
    database_run(w.f.sql, "UPDATE trade_lock SET conflict = 1 WHERE serial_no = 'M3'");
    database_run(w.f.sql, "UPDATE trade_lock SET updated_at = updated_at - INTERVAL 2 YEAR "
                          "WHERE serial_no IN ('M3', 'LIVE')");
    ENDS(TO_ARCHIVE("--every", "10s"), 0, "9 trades purged");
    assert_int_equal(shell_number("zcat \"$ARCHIVE\"/*/trade_lock.csv.gz | "
                                  "grep -c -e YOUNG -e LIVE -e '\"M3\"' || true"),
                     0);
    assert_int_equal(database_number(w.f.sql, "SELECT COUNT(*) FROM trade_lock WHERE serial_no IN "
                                              "('YOUNG', 'LIVE', 'M3')"),
                     3);
    database_run(w.f.sql, "UPDATE trade_lock SET status = 'Y' WHERE serial_no = 'LIVE'");
}

/* -------------------------------------------------------------------- cut off -- */

/* A set whose trades are still there, or came anew: as after a purge that was killed. */
TEST(test_a_set_is_gone_on_with)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *lock;

    clean();
    make_many(20);
    list_rows("before");
    ENDS(TO_ARCHIVE("--json"), 0);
    /* The same keys are asked for again, one of them is paid again; and a set was begun. */
    do_shell("rm \"$ARCHIVE\"/00000001/removed && mkdir \"$ARCHIVE\"/00000002.part && "
             "head -c 100 \"$ARCHIVE\"/00000001/trade_lock.csv.gz "
             "> \"$ARCHIVE\"/00000002.part/trade_lock.csv.gz");
    lock = granted(w.f.client, "M7", "C0", &options);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    database_run(w.f.sql, "UPDATE trade_lock SET updated_at = updated_at - INTERVAL 1 YEAR, "
                          "send_until = send_until - INTERVAL 1 YEAR, "
                          "next_run_at = next_run_at - INTERVAL 1 YEAR, "
                          "deadline_at = deadline_at - INTERVAL 1 YEAR");
    ENDS(TO_ARCHIVE("--json"), 0);
    /* It was another life: not what set 1 names, so it has a set of its own. */
    assert_int_equal(count_of("trade_lock"), 0);
    assert_int_equal(shell_number("zcat \"$ARCHIVE\"/00000001/trade_lock.csv.gz | "
                                  "grep -c '\"M7\"'"),
                     1);
    assert_int_equal(shell_number("zcat \"$ARCHIVE\"/00000002/trade_lock.csv.gz | "
                                  "grep -c '\"M7\"'"),
                     1);
    assert_int_equal(shell_number("ls -d \"$ARCHIVE\"/*.part 2>/dev/null | wc -l"), 0);
    assert_int_equal(shell_number("cat \"$ARCHIVE\"/00000001/removed"), 0);
}

#ifdef TL_TEST_HOOKS

static void run_killed_at(unsigned number, int *was_killed)
{
    char fault[40];
    output *o;

    snprintf(fault, sizeof fault, "TL_FAULT_KILL=%u", number);
    o = command_run(fault, (const char *const[]){"purge", "--older", "90d", "--config", w.config,
                                                 "--archive", w.archive, "--set", "100", NULL});
    *was_killed = o->code == -1;
    if (!*was_killed)
        EXPECT_CODE(o, 0);
    output_free(o);
}

/* Killed at its statements, commits and steps of files, and then run again: at each of them in the
 * long test, else at every sixth, from one of six places by chance. */
TEST(test_killed_anywhere)
{
    const unsigned each = tier_pick(6, 6, 1);
    unsigned number = 1 + (unsigned)getpid() % each;
    unsigned kills = 0, half_removed = 0, parts = 0;
    int was_killed = 1;

    print_message("from %u, each %u\n", number, each);
    for (; was_killed; number += each) {
        clean();
        make_many(420);
        list_rows("before");
        run_killed_at(number, &was_killed);
        assert_nothing_lost();
        kills += was_killed != 0;
        half_removed += count_of("trade_lock") > 0 && count_of("trade_lock") < 462;
        parts += shell_number("ls -d \"$ARCHIVE\"/*.part 2>/dev/null | wc -l") > 0;
        ENDS(TO_ARCHIVE("--json"), 0);
        assert_int_equal(count_of("trade_lock") + count_of("trade_evidence"), 0);
        assert_nothing_lost();
        /* What was begun again left no row twice. */
        assert_int_equal(shell_number("LC_ALL=C uniq -d \"$DIR/archived\" | wc -l"), 0);
    }
    print_message("%u kills, %u with a part removed, %u with a set begun\n", kills, half_removed,
                  parts);
    assert_true(kills > 12 && half_removed > 1 && parts > 0);
}

/* Stops the purge once the set is complete and before it removes; something comes in between. */
TEST(test_changed_in_between)
{
    char *const arguments[] = {(char *)"tradelock", (char *)"purge",
                               (char *)"--older",   (char *)"90d",
                               (char *)"--json",    (char *)"--archive",
                               w.archive,           (char *)"--config",
                               (char *)w.config,    NULL};
    char path[512];
    int status;
    pid_t pid;

    clean();
    make_many(30);
    snprintf(path, sizeof path, "%s/bin/tradelock", test_build_dir());
    pid = fork();
    if (pid == 0) {
        setenv("TL_FAULT_STOP", "1", 1);
        setenv("TL_FAULT_ONLY", "purge_archived/before", 1);
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execv(path, arguments);
        _exit(127);
    }
    if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
        server_panic("the purge did not stop");
    /* A step, evidence alone, a decision alone, a step by hand of the retry row. */
    database_run(w.f.sql,
                 "UPDATE trade_lock SET rev = rev + 1 WHERE serial_no = 'M1';"
                 "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, "
                 "account, filed_at) VALUES ('C2', 'M2', 'WITHDRAW', 1, 'UNKNOWN', 'late', '', "
                 "UTC_TIMESTAMP(6));"
                 "UPDATE trade_lock SET remark = 'x' WHERE serial_no = 'M20' AND lane = 'R'");
    kill(pid, SIGCONT);
    if (waitpid(pid, &status, 0) != pid)
        server_panic("the purge was lost");
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(database_number(w.f.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S'"),
                     3);
    assert_int_equal(
        database_number(w.f.sql, "SELECT COUNT(*) FROM trade_evidence WHERE source = 'late'"), 1);
    assert_int_equal(shell_number("cat \"$ARCHIVE\"/00000001/removed"), 27);
}

#endif

/* ----------------------------------------------------------------------- audit -- */

/* Makes the manifest's own sum right again. */
#define SIGN                                                                                       \
    "sed -i '$d' manifest && echo \"sha256 $(sha256sum manifest | cut -d' ' -f1)\" >> manifest"

#define AUDIT(...) RUN("audit", "--config", w.config, "--archive", w.archive, __VA_ARGS__)

/* Without a step by hand. */
static void age(void)
{
    database_run(w.f.sql, "DROP TRIGGER trade_lock_updated; DROP TRIGGER trade_lock_kept; UPDATE "
                          "trade_lock SET updated_at = updated_at - INTERVAL 1 YEAR, "
                          "send_until = send_until - INTERVAL 1 YEAR, "
                          "next_run_at = next_run_at - INTERVAL 1 YEAR, "
                          "deadline_at = deadline_at - INTERVAL 1 YEAR");
    do_shell("tradelock migrate --config \"$CONFIG\"");
}

static void pay(const char *serial)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *lock = granted(w.f.client, serial, "C1", &options);

    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

/* First lane, retry lane, success; declined, reclaimed, paid. */
static void make_histories(void)
{
    tl_lock_options options = sync_options("pay"), retry = retry_options();
    tl_lock *lock = granted(w.f.client, "LANES", "C1", &options);

    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
    lock = granted(w.f.other, "LANES", "C1", &retry);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    lock = granted(w.f.client, "ANEW", "C1", &options);
    {
        tl_ending ending = TL_ENDING_INIT;

        ending.outcome = TL_OUTCOME_FAILURE;
        ending.proof = TL_PROOF_DECLINED;
        ending.retryable = 1;
        assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    }
    tl_lock_free(lock);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = granted(w.f.other, "ANEW", "C1", &options);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    pay("PLAIN");
}

static void fill_archive(void)
{
    clean();
    make_histories();
    age();
    ENDS(TO_ARCHIVE("--json"), 0);
    assert_int_equal(count_of("trade_lock"), 0);
}

/* Packs a changed file anew, and makes sums and sizes right: what somebody might do who knows how
 * an archive is made. */
#define FORGE(file, how)                                                                           \
    do_shell("cd \"$ARCHIVE\"/00000001 && zcat " file " | " how " | gzip -n > new && mv new " file \
             " && sed -i \"s/^file " file " .*/file " file " rows $(zcat " file                    \
             " | sed 1d | wc -l) bytes $(stat -c %s " file ") sha256 $(sha256sum " file            \
             " | cut -d' ' -f1)/\" manifest && " SIGN)

/* Puts the sets on record as they are now. */
static void record_sets(void)
{
    char *rows = shell("cd \"$ARCHIVE\" && echo \"DELETE FROM tl_archive_set;\" && for set in "
                       "????????; do sed -n \"s/^before \\(.*\\)/INSERT INTO tl_archive_set (sha, "
                       "before_sha, set_no, trades) VALUES ('$(tail -1 $set/manifest | cut -d' ' "
                       "-f2)', '\\1', '$set', $(sed -n 's/^trades //p' $set/manifest));/p\" "
                       "$set/manifest; done");

    database_run(w.f.sql, "%s", rows);
    free(rows);
}

static void expect_found(const char *rule, const char *serial)
{
    record_sets();
    ENDS(AUDIT("--every", "10s"), 1, rule, serial);
}

TEST(test_audit_of_an_archive)
{
    char line[256];

    fill_archive();
    pay("YOUNG");
    ENDS(AUDIT("--every", "10s"), 0, ": 0 violations", "1 sets, 3 trades, ",
         "all as they were written", WITHOUT("stand twice"));
    /* The statement names trades of both, one that is nowhere, and one twice. */
    do_shell("printf 'serial_no,cust_no\\nLANES,C1\\nANEW,C1\\nPLAIN,C1\\nYOUNG,C1\\n' "
             "> \"$DIR\"/good.csv; (cat \"$DIR\"/good.csv; printf 'PLAIN,C1\\nNOBODY,C1\\n') "
             "> \"$DIR\"/bad.csv; grep -v LANES \"$DIR\"/good.csv > \"$DIR\"/less.csv");
    snprintf(line, sizeof line, "%s/good.csv", w.dir);
    ENDS(AUDIT("--statement", line), 0);
    snprintf(line, sizeof line, "%s/bad.csv", w.dir);
    ENDS(AUDIT("--statement", line), 1, "paid-twice", "unknown-payment", "NOBODY",
         ": 2 violations");
    snprintf(line, sizeof line, "%s/less.csv", w.dir);
    ENDS(AUDIT("--statement", line), 1, "unpaid-success", "LANES", ": 1 violations");
    /* Without the archive its trades are not known. */
    ENDS(RUN("audit", "--config", w.config, "--statement", line), 1, ": 2 violations");
    database_run(w.f.sql, "DELETE FROM trade_lock; DELETE FROM trade_lock_past");
}

/* Histories with a hole, forged with all sums right. */
TEST(test_audit_finds_forged_histories)
{
    fill_archive();
    do_shell("cp -r \"$ARCHIVE\"/00000001 \"$DIR\"/whole");
#define FOUND(rule, serial)                                                                        \
    do {                                                                                           \
        expect_found(rule, serial);                                                                \
        do_shell("rm -rf \"$ARCHIVE\"/00000001 && cp -r \"$DIR\"/whole \"$ARCHIVE\"/00000001");    \
    } while (0)
    /* A kept step is gone; all of them; the row is gone; a failure lost its proof. */
    FORGE("trade_lock_past.csv.gz", "sed '/LANES.*WITHDRAW\"/{0,//d}'");
    FOUND("gap", "LANES");
    FORGE("trade_lock_past.csv.gz", "grep -v ANEW");
    FOUND("gap", "ANEW");
    FORGE("trade_lock.csv.gz", "grep -v 'ANEW'");
    FOUND("removed", "ANEW");
    FORGE("trade_lock.csv.gz", "sed '/PLAIN/s/\"Y\"/\"F\"/'");
    FOUND("no-proof", "PLAIN");
    do_shell("rm -rf \"$DIR\"/whole");
}

/* A key that was purged is asked for again, and paid again; and rows that came back. */
TEST(test_audit_over_lives)
{
    fill_archive();
    pay("PLAIN");
    expect_found("succeeded-twice", "PLAIN");
    age();
    ENDS(TO_ARCHIVE("--json"), 0);
    expect_found("it was purged, asked for anew, and succeeded again", "PLAIN");
    /* A set that holds the same rows: chained by hand, as a copy that was restored would be. */
    do_shell("cd \"$ARCHIVE\" && rm -rf 00000002 && cp -r 00000001 00000002 && cd 00000002 && "
             "sum=$(tail -1 ../00000001/manifest | cut -d' ' -f2) && "
             "sed -i \"s/^set 1/set 2/; s/^before .*/before $sum/\" manifest && " SIGN);
    record_sets();
    ENDS(AUDIT("--every", "10s"), 0, "rows stand twice", "2 sets, 6 trades");
}

static void expect_audit_refused(int code, const char *words)
{
    EXPECT_REFUSED(AUDIT("--every", "10s"), code, words);
}

/* Whatever it finds in rows that were made by hand. */
static void expect_audited(unsigned sets)
{
    output *o = AUDIT("--every", "10s");
    char words[32];

    snprintf(words, sizeof words, "%u sets, ", sets);
    EXPECT_WORDS(o, words);
    EXPECT_WORDS(o, "all as they were written");
    output_free(o);
}

TEST(test_audit_of_what_is_broken)
{
    fill_archive();
    pay("SECOND");
    age();
    ENDS(TO_ARCHIVE("--json"), 0);
    do_shell("cp -r \"$ARCHIVE\" \"$DIR\"/whole");
#define REFUSED(how, code, words)                                                                  \
    do {                                                                                           \
        do_shell("cd \"$ARCHIVE\" && " how);                                                       \
        expect_audit_refused(code, words);                                                         \
        do_shell("rm -rf \"$ARCHIVE\" && cp -r \"$DIR\"/whole \"$ARCHIVE\"");                      \
    } while (0)
    REFUSED("printf X | dd of=00000001/trade_lock.csv.gz bs=1 seek=99 conv=notrunc 2>/dev/null", 2,
            "00000001/trade_lock.csv.gz is not what was written: its SHA-256 is another");
    REFUSED("truncate -s 50 00000002/trade_lock_past.csv.gz", 2, "has 50 bytes, and its manifest");
    REFUSED("rm -r 00000001", 2, "00000001/manifest cannot be read: No such file");
    REFUSED("cp 00000001/manifest 00000002/manifest", 2, "00000002/manifest is not one of an");
    REFUSED("cd 00000001 && sed -i 's/^trades .*/trades 7/' manifest && " SIGN, 2,
            "00000002 does not follow the set before it");
    REFUSED("cd 00000002 && sed -i 's/^schema .*/schema 999/' manifest && " SIGN, 4,
            "was written with schema 999");
    REFUSED("cd 00000002 && sed -i 's/^database .*/database x/' manifest && " SIGN, 2,
            "is the archive of another installation");
    do_shell("rm -rf \"$ARCHIVE\"");
    expect_audit_refused(2, "cannot be opened: No such file");
    do_shell("mv \"$DIR\"/whole \"$ARCHIVE\"");
    /* Sums that are right over what is no archive. */
    FORGE("trade_lock.csv.gz", "sed 1s/epoch/epoche/");
    expect_audit_refused(2, "00000001/trade_lock.csv.gz: it lacks columns that its schema has: "
                            "epoch");
    FORGE("trade_lock.csv.gz", "sed '1s/epoche/epoch/; 2s/$/,\"\"/'");
    expect_audit_refused(2, "00000001/trade_lock.csv.gz: a line has not as many fields");
}

/* -------------------------------------------------------------------- bad input -- */

static void expect_refused(const char *dir, int code, const char *words)
{
    const long long rows = count_of("trade_lock");
    EXPECT_REFUSED(PURGE("--archive", dir), code, words);
    assert_int_equal(count_of("trade_lock"), rows);
}

TEST(test_bad_directories)
{
    char line[256], *said;
    int fd;

    clean();
    make_many(20);
    expect_refused("/nowhere/at/all", 2, "/nowhere/at/all cannot be opened: No such file");
    expect_refused(w.config, 2, "cannot be opened: Not a directory");
    do_shell("chmod 770 \"$ARCHIVE\"");
    expect_refused(w.archive, 2, "may be written by others");
    do_shell("chmod 707 \"$ARCHIVE\"");
    expect_refused(w.archive, 2, "may be written by others");
    do_shell("chmod 500 \"$ARCHIVE\"");
    if (geteuid() != 0)
        expect_refused(w.archive, 2, "lock cannot be written: Permission denied");
    do_shell("chmod 700 \"$ARCHIVE\"");
    if (geteuid() == 0) {
        do_shell("chown 12345 \"$ARCHIVE\"");
        expect_refused(w.archive, 2, "belongs to somebody else");
        do_shell("chown 0 \"$ARCHIVE\"");
    }
    /* Another purge. */
    snprintf(line, sizeof line, "%s/lock", w.archive);
    fd = open(line, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    expect_refused(w.archive, 1, "another purge writes to");
    close(fd);
    said = shell("tradelock purge --older 90d --config \"$CONFIG\" --set 0 2>&1; true");
    assert_non_null(strstr(said, "--set is a number of trades from 1 to 10000000, not 0"));
    free(said);
}

/* The limit of a file's size says what a full disk says, at a place that can be chosen. */
TEST(test_full_disk)
{
    output *o;

    clean();
    make_many(450);
    list_rows("before");
    EXPECT_REFUSED(command_shell(NULL,
                                 "trap '' XFSZ; ulimit -f 8; exec tradelock purge --older 90d "
                                 "--archive \"$ARCHIVE\" --config \"$CONFIG\""),
                   70, "cannot be written: File too large");
    assert_nothing_lost();
    assert_int_equal(count_of("trade_lock"), 495);
    assert_int_equal(shell_number("ls \"$ARCHIVE\" | grep -c -v lock || true"), 0);
    if (geteuid() == 0) {
        o = command_shell(NULL, "mount -t tmpfs -o size=32k,mode=700 none \"$ARCHIVE\" 2>/dev/null "
                                "|| exit 99; tradelock purge --older 90d --archive \"$ARCHIVE\" "
                                "--config \"$CONFIG\"; code=$?; umount \"$ARCHIVE\"; exit $code");
        if (o->code != 99) {
            EXPECT_SENTENCE(o, 70, "No space left on device");
            assert_int_equal(count_of("trade_lock"), 495);
        }
        output_free(o);
    }
    ENDS(TO_ARCHIVE("--json"), 0);
    assert_int_equal(count_of("trade_lock"), 0);
    assert_nothing_lost();
}

/* A last set that is not what it was: nothing is removed by it, and nothing is added to it. */
TEST(test_broken_sets)
{
    clean();
    make_many(20);
    ENDS(TO_ARCHIVE("--json"), 0);
    make_many(20);
    do_shell("cd \"$ARCHIVE\"/00000001 && rm removed && cp -r . \"$DIR\"/good");
#define BROKEN(how, code, words)                                                                   \
    do {                                                                                           \
        do_shell("cd \"$ARCHIVE\"/00000001 && " how);                                              \
        expect_refused(w.archive, code, words);                                                    \
        do_shell("cd \"$ARCHIVE\" && rm -rf 00000001 && cp -r \"$DIR\"/good 00000001");            \
    } while (0)
    BROKEN("printf X | dd of=trades.gz bs=1 seek=40 conv=notrunc 2>/dev/null", 2,
           "00000001/trades.gz is not what was written: its SHA-256 is another");
    BROKEN("truncate -s -1 trade_lock.csv.gz", 2, "and its manifest says");
    BROKEN("rm trade_evidence.csv.gz", 2, "trade_evidence.csv.gz cannot be read: No such file");
    BROKEN("truncate -s -10 manifest", 2, "manifest is cut short or was changed");
    BROKEN("sed -i 's/^trades .*/trades 21/' manifest", 2, "manifest is cut short or was changed");
    BROKEN("rm manifest", 2, "00000001/manifest cannot be read");
    BROKEN("sed -i 's/^schema .*/schema 999/' manifest && " SIGN, 4,
           "was written with schema 999, and this program knows schema");
    BROKEN("sed -i 's/^tradelock-archive 1/tradelock-archive 2/' manifest && " SIGN, 4,
           "it must be upgraded");
    BROKEN("sed -i 's/^installation ..../installation 0000/' manifest && " SIGN, 2,
           "is the archive of another installation: database");
    BROKEN("sed -i '/^installation/d' manifest && " SIGN, 2, "manifest is not one of an archive");
    BROKEN("sed -i 's/^database .*/database other/' manifest && " SIGN, 2,
           "is the archive of another installation: database other on");
    BROKEN("sed -i '/^oldest/d' manifest && " SIGN, 2, "manifest is not one of an archive");
    /* Whatever server it was written on: it is the same installation. */
    do_shell("cd \"$ARCHIVE\"/00000001 && sed -i 's/^server .*/server elsewhere 7 \\/data\\//' "
             "manifest && " SIGN);
    /* But a copy that nobody has accepted writes nothing.  It is declared, so no heartbeat writes
     * down that it found one, perhaps when the test has taken it back. */
    assert_status(tl_restore_declare(w.f.other, "ann", "a copy"), TL_OK);
    ENDS(TO_ARCHIVE("--json"), 5, "! a restore is open, so steps may be missing in this database");
    assert_int_equal(count_of("trade_lock"), 22);
    database_run(w.f.sql, "BEGIN; UPDATE tl_schema SET restore_no = accepted_no; "
                          "DELETE FROM tl_restore; COMMIT");
    ENDS(TO_ARCHIVE("--json"), 0);
    assert_int_equal(count_of("trade_lock"), 0);
    expect_audited(2);
}

/* ------------------------------------------------------------- what is on record */

static void purge_under(const char *sha)
{
    database_run(w.f.sql,
                 "CALL tl_purge_named(7776000000, 1, '', '', '', @purged, @named);"
                 "CALL tl_purge_archived(7776000000, @named, %s, '-', 77, @purged)",
                 sha);
}

/* Sets that are gone from the end, one by one, and one that was made anew with all sums right. */
TEST(test_newest_sets_are_missed)
{
    char *said;

    clean();
    make_many(500);
    output_free(TO_ARCHIVE("--json"));
    assert_int_equal(count_of("tl_archive_set"), 3);
    /* Each with what was really removed. */
    assert_int_equal(database_number(w.f.sql, "SELECT SUM(trades) FROM tl_archive_set"), 500);
    make_many(20);
    do_shell("cp -r \"$ARCHIVE\" \"$DIR\"/whole");
    expect_audited(3);
    do_shell("rm -r \"$ARCHIVE\"/00000003");
    expect_audit_refused(2, "ends with set 2, and set 3 is on record in the database: the newest "
                            "sets are lost");
    expect_refused(w.archive, 2, "the newest sets are lost");
    do_shell("rm -r \"$ARCHIVE\"/00000002");
    expect_audit_refused(2, "ends with set 1, and set 2 is on record");
    do_shell("rm -r \"$ARCHIVE\"/00000001");
    expect_audit_refused(2, "ends with set 0, and set 1 is on record");
    do_shell("rm -r \"$ARCHIVE\" && cp -r \"$DIR\"/whole \"$ARCHIVE\"");
    do_shell("cd \"$ARCHIVE\"/00000003 && sed -i 's/^trades .*/trades 7/' manifest && " SIGN);
    expect_audit_refused(2, "00000003 is not on record in the database: it was changed");
    expect_refused(w.archive, 2, "00000003 is not on record in the database");
    /* A purge by hand names a set that is nowhere, or one that has none of its trades. */
    do_shell("rm -r \"$ARCHIVE\" && cp -r \"$DIR\"/whole \"$ARCHIVE\"");
    purge_under("REPEAT('5', 64)");
    ENDS(AUDIT("--every", "10s"), ANY_CODE,
         "1 trades were removed under 1 sets that are not in it");
    purge_under("(SELECT sha FROM tl_archive_set WHERE set_no = 2)");
    expect_audit_refused(2, "00000002 has 182 trades, and 183 were removed under its name");
    database_run(w.f.sql, "DELETE FROM tl_archive_set WHERE set_no = 77");
    database_run(w.f.sql, "UPDATE tl_archive_set SET trades = trades - 1 WHERE set_no = 2");
    /* A restore loses the record of what came after the backup, not the sets. */
    do_shell("rm -r \"$ARCHIVE\" && cp -r \"$DIR\"/whole \"$ARCHIVE\"");
    database_run(w.f.sql, "DELETE FROM tl_archive_set WHERE set_no = 3");
    expect_audit_refused(2, "00000003 is not on record");
    database_run(w.f.sql, "UPDATE tl_schema SET accepted_at = UTC_TIMESTAMP(6)");
    expect_audited(3);
    output_free(TO_ARCHIVE("--json"));
    expect_audited(4);
    assert_int_equal(count_of("trade_lock"), 0);
    database_run(w.f.sql, "UPDATE tl_schema SET accepted_at = NULL");
    said = database_text(w.f.sql, "SELECT sha FROM tl_archive_set ORDER BY set_no DESC LIMIT 1");
    ENDS(RUN("acts", "--limit", "9", "--json", "--config", w.config), ANY_CODE, "\"sets\": 4",
         said);
    free(said);
    /* Another archive may be begun, and audited from its first set on. */
    do_shell(
        "rm -rf \"$DIR\"/whole && mv \"$ARCHIVE\" \"$DIR\"/whole && mkdir -m 700 \"$ARCHIVE\"");
    /* An empty one proves nothing, also where a restore lost the record of the first set. */
    database_run(w.f.sql, "DELETE FROM tl_archive_set WHERE set_no = 1");
    expect_audit_refused(2, "ends with set 0, and set 2 is on record");
    make_many(20);
    output_free(TO_ARCHIVE("--json"));
    expect_audited(1);
    do_shell("rm -r \"$DIR\"/whole");
}

TESTS_OF(archive, set_up, tear_down)
