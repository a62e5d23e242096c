#include "stage.h"

#include "trade_lock/fixture.h"

#include "support/theme.h"

#define HELD_MAX 16
#define WORDS_MAX 16
/* A day and half an hour, so that a list says "1d00h" for long. */
#define LATER_MS 88200000

static struct stage {
    int open, has_house, has_accounts;
    fixture f;
    MYSQL *other; /* another connection of the administrator */
    struct held {
        tl_lock *lock;
        char name[64];
    } held[HELD_MAX];
} stage;

int stage_set_up(void **state)
{
    (void)state;
    return 0;
}

static void open_house(void)
{
    operators_set_up(NULL);
    stage.open = stage.has_house = stage.has_accounts = 1;
}

static void open_plain(const char *settings)
{
    fixture_open(&stage.f, settings);
    operators.h.db = stage.f.db;
    operators.h.sql = stage.f.sql;
    operators.h.client = stage.f.client;
    operators.admin = database_option_file(stage.f.db);
    stage.open = 1;
}

static void need_stage(void)
{
    if (!stage.open)
        open_plain("janitor=0\ncommit_ms=1s\n");
    setenv("ADMIN", operators.admin, 1);
}

int stage_tear_down(void **state)
{
    for (size_t i = 0; i < HELD_MAX; i++)
        tl_lock_free(stage.held[i].lock);
    if (stage.other != NULL)
        mysql_close(stage.other);
    if (stage.has_house)
        return operators_tear_down(state);
    if (stage.has_accounts)
        operators_go();
    if (stage.open)
        fixture_close(&stage.f);
    return 0;
}

output *stage_command(const char *who, const char *command)
{
    static const char *const names[ACCOUNTS] = {"ann$", "bob$", "svc$"};
    const char *config;
    char *environment = NULL, *line = NULL;
    output *o;

    need_stage();
    config = operators.admin;
    for (int i = 0; i < ACCOUNTS; i++) {
        if (strncmp(who, names[i], 4) != 0)
            continue;
        if (!stage.has_accounts)
            operators_come();
        stage.has_accounts = 1;
        config = operators.config[i];
    }
    if (asprintf(&environment, "TRADELOCK_CONFIG=%s", config) < 0 ||
        asprintf(&line, ". %s/tests/cli/transcripts/words.sh; %s", test_source_dir(), command) < 0)
        server_panic("out of memory");
    o = command_shell(environment, line);
    free(line);
    free(environment);
    return o;
}

char *stage_sql(const char *statements)
{
    need_stage();
    if (strncmp(statements, "SELECT", 6) == 0)
        return database_text(operators.h.sql, "%s", statements);
    database_run(operators.h.sql, "%s", statements);
    return NULL;
}

char *stage_pay(const char *text)
{
    char serial[40], fault[24] = "", rule[80];
    tl_answer answer = TL_ANSWER_INIT;
    tl_status status;
    int minor;

    if (sscanf(text, "%39s %d %23s", serial, &minor, fault) < 2)
        server_panic("pay> SERIAL MINOR [FAULT], not %s", text);
    if (fault[0] != '\0') {
        snprintf(rule, sizeof rule, "{\"kind\":\"%s\",\"endpoint\":\"pay\"}", fault);
        house_rule(&operators.h, rule);
    }
    status = house_run(&operators.h, serial, "C1", minor, 0, &answer);
    tl_answer_clear(&answer);
    return strdup(tl_status_name(status));
}

/* ------------------------------------------------------------------- trades -- */

/* Blanks end a word, but for those within quotes. */
static size_t split(char *text, char *words[WORDS_MAX])
{
    size_t count = 0;

    while (*(text += strspn(text, " ")) != '\0' && count < WORDS_MAX) {
        char *to = text;
        int quoted = 0;

        words[count++] = to;
        for (; *text != '\0' && (quoted || *text != ' '); text++)
            if (*text == '\'')
                quoted = !quoted;
            else
                *to++ = *text;
        text += *text != '\0';
        *to = '\0';
    }
    return count;
}

struct trade {
    tl_lock_options options;
    tl_ending ending;
    const char *log; /* the piece of work that it is of */
    int64_t reclaim; /* the epoch; 0: none */
    int armed, by_other;
};

static const struct option {
    const char *name;
    enum { NUMBER, TEXT } type;
    size_t at;
} options[] = {
    {"amount=", NUMBER, offsetof(struct trade, options.amount_minor)},
    {"currency=", TEXT, offsetof(struct trade, options.currency)},
    {"channel=", TEXT, offsetof(struct trade, options.channel)},
    {"batch=", TEXT, offsetof(struct trade, options.batch)},
    {"label=", TEXT, offsetof(struct trade, options.label)},
    {"trace=", TEXT, offsetof(struct trade, options.traceparent)},
    {"label=", TEXT, offsetof(struct trade, options.label)},
    {"hold=", NUMBER, offsetof(struct trade, options.max_hold_ms)},
    {"deadline=", NUMBER, offsetof(struct trade, options.deadline_ms)},
    {"reclaim=", NUMBER, offsetof(struct trade, reclaim)},
    {"next=", NUMBER, offsetof(struct trade, ending.next_run_ms)},
    {"why=", TEXT, offsetof(struct trade, ending.park_reason)},
    {"ref=", TEXT, offsetof(struct trade, ending.channel_ref)},
    {"remark=", TEXT, offsetof(struct trade, ending.remark)},
    {"payload=", TEXT, offsetof(struct trade, options.payload)},
    {"result=", TEXT, offsetof(struct trade, ending.result)},
    {"log=", TEXT, offsetof(struct trade, log)},
};

static const struct ending {
    const char *name;
    tl_outcome outcome;
    tl_proof proof;
    tl_status status;
} endings[] = {
    {"paid", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, TL_SUCCEEDED},
    {"declined", TL_OUTCOME_FAILURE, TL_PROOF_DECLINED, TL_FAILED},
    {"doubtful", TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, TL_IN_DOUBT},
    {"queued", TL_OUTCOME_NOT_SENT, TL_PROOF_NONE, TL_QUEUED},
    {"parked", TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, TL_PARKED},
};

static int set_option(struct trade *trade, char *word)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const size_t size = strlen(options[i].name);
        char *field = (char *)trade + options[i].at;

        if (strncmp(word, options[i].name, size) != 0)
            continue;
        if (options[i].type == NUMBER)
            *(int64_t *)(void *)field = strtoll(word + size, NULL, 10);
        else
            *(char **)(void *)field = word[size] != '\0' ? word + size : NULL;
        return 1;
    }
    return 0;
}

static void set_word(struct trade *trade, char *word)
{
    if (strcmp(word, "retry") == 0) {
        trade->options = retry_options();
    } else if (strcmp(word, "repeatable") == 0) {
        trade->options.flags = TL_ASK_REPEATABLE;
        trade->options.channel = NULL;
    } else if (strcmp(word, "unsent") == 0) {
        trade->options.not_sent = 1;
    } else if (strcmp(word, "armed") == 0) {
        trade->armed = 1;
    } else if (strcmp(word, "other") == 0) {
        trade->by_other = 1;
    } else if (strcmp(word, "retryable") == 0) {
        trade->ending.retryable = 1;
    } else if (!set_option(trade, word)) {
        server_panic("a trade knows no %s", word);
    }
}

/* Those of this name, or a free one. */
static struct held *find_held(const char *serial, const char *cust)
{
    struct held *found = NULL;
    char name[64];

    snprintf(name, sizeof name, "%s %s", serial, cust);
    for (size_t i = 0; i < HELD_MAX && (found == NULL || found->lock == NULL); i++)
        if (stage.held[i].lock == NULL || strcmp(stage.held[i].name, name) == 0)
            found = &stage.held[i];
    if (found == NULL)
        server_panic("too many trades are held");
    snprintf(found->name, sizeof found->name, "%s", name);
    return found;
}

/* A holder that does nothing more. */
static void forget_held(struct held *held)
{
    tl_lock_free(held->lock);
    held->lock = NULL;
}

/* "SERIAL[,SERIAL...] CUST [WORD...] ENDING" in words. */
static void read_trade(struct trade *trade, char *const words[], size_t count)
{
    if (count < 3)
        server_panic("trade> SERIAL CUST [WORD...] ENDING");
    if (strcmp(words[count - 1], "parked") != 0)
        trade->ending.next_run_ms = LATER_MS;
    for (size_t i = 2; i < count - 1; i++)
        set_word(trade, words[i]);
    trade->options.payload_size =
        trade->options.payload != NULL ? strlen(trade->options.payload) : 0;
    trade->ending.result_size = trade->ending.result != NULL ? strlen(trade->ending.result) : 0;
    if (trade->reclaim > 0)
        trade->options.flags |= TL_ASK_RECLAIM;
    trade->options.reclaim_epoch = (uint32_t)trade->reclaim;
}

static void end_trade(struct held *held, tl_ending *ending, const char *name)
{
    size_t i = 0;

    while (i < sizeof endings / sizeof endings[0] && strcmp(name, endings[i].name) != 0)
        i++;
    if (i == sizeof endings / sizeof endings[0])
        server_panic("no trade ends %s", name);
    ending->outcome = endings[i].outcome;
    ending->proof = endings[i].proof;
    assert_status(tl_lock_finish(held->lock, ending), endings[i].status);
    forget_held(held);
}

static void make_one(struct trade *trade, const char *serial, const char *cust, const char *end)
{
    struct held *held = find_held(serial, cust);

    if (held->lock == NULL)
        held->lock = granted(trade->by_other ? stage.f.other : operators.h.client, serial, cust,
                             &trade->options);
    if (trade->armed)
        assert_status(tl_lock_arm(held->lock, 60000), TL_OK);
    if (strcmp(end, "left") == 0)
        forget_held(held);
    else if (strcmp(end, "held") != 0)
        end_trade(held, &trade->ending, end);
}

/* Asks for each, unless it is held since an earlier step, and ends it so; "held" lets it be, and
 * "left" forgets it. */
static void make_trades(char *text)
{
    struct trade trade = {.options = sync_options("pay"), .ending = TL_ENDING_INIT};
    char *words[WORDS_MAX], *serials;
    const size_t count = split(text, words);

    read_trade(&trade, words, count);
    if (trade.log != NULL)
        assert_status(tl_work_adopt(trade.log), TL_OK);
    serials = words[0];
    for (const char *serial; (serial = strsep(&serials, ",")) != NULL;)
        make_one(&trade, serial, words[1], words[count - 1]);
    if (trade.log != NULL)
        tl_work_end(0);
}

static void run_other(const char *statements)
{
    if (stage.other == NULL)
        stage.other = database_connect(operators.h.db);
    database_run(stage.other, "%s", statements);
}

static void forget_trade(char *text)
{
    char *words[WORDS_MAX];

    if (split(text, words) != 2)
        server_panic("forget> SERIAL CUST");
    forget_held(find_held(words[0], words[1]));
}

int stage_do(const char *verb, char *text)
{
    if (strcmp(verb, "house>") == 0) {
        open_house();
        return 1;
    }
    need_stage();
    if (strcmp(verb, "trade>") == 0)
        make_trades(text);
    else if (strcmp(verb, "other>") == 0)
        run_other(text);
    else if (strcmp(verb, "forget>") == 0)
        forget_trade(text);
    else if (strcmp(verb, "whole>") == 0)
        assert_log_whole(&stage.f);
    else if (strcmp(verb, "rule>") == 0)
        house_rule(&operators.h, text);
    else if (strcmp(verb, "work>") == 0)
        house_work(&operators.h, 1, 30000);
    else
        return 0;
    return 1;
}
