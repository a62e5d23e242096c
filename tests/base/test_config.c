/* Settings of every good and every bad kind, and the sample.  With --sample it prints the sample
 * instead. */
#include "check.h"

#include "base/config.h"
#include "base/error.h"
#include "sample.h"
#include "settings_file.h"
#include "support/theme.h"

TEST(test_defaults)
{
    static const int64_t schedule[] = {90000,   180000,   600000,   1800000, 3600000,
                                       7200000, 14400000, 28800000, 86400000};
    struct config config;

    assert_loads("", &config);
    assert_string_equal(config.site, "default");
    assert_int_equal(config.pool_size, 12);
    assert_int_equal(config.business_pool_size, 8);
    assert_int_equal(config.pool_wait_ms, 5000);
    assert_int_equal(config.beat_ms, 1000);
    assert_int_equal(config.session_ms, 10000);
    assert_int_equal(config.max_hold_ms, 60000);
    assert_int_equal(config.execute_ms, 30000);
    assert_int_equal(config.commit_ms, 10000);
    assert_int_equal(config.schedule.count, 9);
    assert_memory_equal(config.schedule.step_ms, schedule, sizeof(schedule));
    assert_int_equal(config.attempts, 20);
    assert_int_equal(config.poison, 3);
    assert_int_equal(config.deadline_ms, 72 * 3600000);
    assert_int_equal(config.grace_ms, 600000);
    assert_int_equal(config.clock_margin_ms, 2000);
    assert_int_equal(config.ask_wait_min_ms, 5);
    assert_int_equal(config.ask_wait_max_ms, 200);
    assert_int_equal(config.business_lock_wait_s, 5);
    assert_int_equal(config.idle_transaction_s, 30);
    assert_int_equal(config.connect_timeout_s, 5);
    assert_int_equal(config.read_timeout_s, 30);
    assert_int_equal(config.log_cust, CONFIG_CUST_PLAIN);
    assert_int_equal(config.log_level, TL_INFO);
    assert_int_equal(config.log_format, 0);
    assert_int_equal(config.allow_insecure, 0);
    assert_int_equal(config.janitor, 1);
    assert_true(config.retention_ms == INT64_C(7776000000));
    assert_true(config.payload_keep_ms == 0);
    assert_string_equal(config.fleet, "");
    assert_int_equal(config.shards.count, 0);
}

/* Every default is a value that the list itself allows, and fits its own limits. */
TEST(test_the_list)
{
    struct config config;

    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        assert_int_equal(config_set(&config, &config_settings[i], config_settings[i].initial),
                         TL_OK);
        assert_true(config_settings[i].least <= config_settings[i].most);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(config_settings[i].name, config_settings[j].name);
    }
}

static const char every_setting[] = "; a comment\n"
                                    "# another\n"
                                    "[tradelock]\n"
                                    "site = bank-a\n"
                                    "pool_size=2\n"
                                    "business_pool_size = 256 ; a comment behind\n"
                                    "pool_wait_ms = 1500\r\n"
                                    "   beat_ms = 250ms\n"
                                    "\tsession_ms\t=\t2s\n"
                                    "max_hold_ms = 7d\n"
                                    "execute_ms = '1m'\n"
                                    "commit_ms = \"20s\"\n"
                                    "\n"
                                    "schedule = 1, 20ms ,3s\n"
                                    "attempts = 1\n"
                                    "poison = 5\n"
                                    "deadline_ms = 2h\n"
                                    "grace_ms = 0\n"
                                    "clock_margin_ms = 100\n"
                                    "ask_wait_min_ms = 10\n"
                                    "ask_wait_max_ms = 10\n"
                                    "business_lock_wait_s = 1\n"
                                    "idle_transaction_s = 2m\n"
                                    "connect_timeout_s = 3\n"
                                    "read_timeout_s = 4000ms\n"
                                    "[tradelock-client]\n"
                                    "user = x\n"
                                    "[tradelock]\n"
                                    "log_cust = hashed\n"
                                    "log_cust_key = 0123456789abcdef\n"
                                    "log_level = alarm\n"
                                    "log_format = json\n"
                                    "allow_insecure = 1\n"
                                    "janitor = 0\n"
                                    "metrics_listen = public:192.168.101.110:65535\n"
                                    "retention_ms = 400d\n"
                                    "payload_keep_ms = 30d";

TEST(test_every_setting)
{
    struct config config;

    assert_loads(every_setting, &config);
    assert_string_equal(config.site, "bank-a");
    assert_int_equal(config.pool_size, 2);
    assert_int_equal(config.business_pool_size, 256);
    assert_int_equal(config.pool_wait_ms, 1500);
    assert_int_equal(config.beat_ms, 250);
    assert_int_equal(config.session_ms, 2000);
    assert_true(config.max_hold_ms == TL_HOLD_MAX_MS);
    assert_int_equal(config.execute_ms, 60000);
    assert_int_equal(config.commit_ms, 20000);
    assert_int_equal(config.schedule.count, 3);
    assert_int_equal(config.schedule.step_ms[0], 1);
    assert_int_equal(config.schedule.step_ms[1], 20);
    assert_int_equal(config.schedule.step_ms[2], 3000);
    assert_int_equal(config.attempts, 1);
    assert_int_equal(config.poison, 5);
    assert_int_equal(config.deadline_ms, 7200000);
    assert_int_equal(config.grace_ms, 0);
    assert_int_equal(config.clock_margin_ms, 100);
    assert_int_equal(config.ask_wait_min_ms, 10);
    assert_int_equal(config.ask_wait_max_ms, 10);
    assert_int_equal(config.business_lock_wait_s, 1);
    assert_int_equal(config.idle_transaction_s, 120);
    assert_int_equal(config.connect_timeout_s, 3);
    assert_int_equal(config.read_timeout_s, 4);
    assert_int_equal(config.log_cust, CONFIG_CUST_HASHED);
    assert_int_equal(config.log_level, TL_ALARM);
    assert_int_equal(config.log_format, 1);
    assert_int_equal(config.allow_insecure, 1);
    assert_int_equal(config.janitor, 0);
    assert_string_equal(config.metrics_listen, "public:192.168.101.110:65535");
    assert_true(config.retention_ms == 400 * CONFIG_DAY);
    assert_true(config.payload_keep_ms == 30 * CONFIG_DAY);
}

TEST(test_bad_names)
{
    assert_refused("[tradelock]\n\npool-size = 3\n",
                   ":3: unknown setting 'pool-size'; did you mean 'pool_size'?");
    assert_refused("[tradelock]\ncolour = red\n", ":2: unknown setting 'colour'");
    assert_refused("[tradelock]\nPOOL_SIZE = 3\n", ":2: unknown setting 'POOL_SIZE'");
    assert_refused("[tradelock]\n = 3\n", ":2: unknown setting ''");
    assert_refused("[tradelock]\nsite = a\n# more\nsite = a\n",
                   ":4: site: was already set in line 2");
    assert_refused("[tradelock]\npoison = 4\n[tradelock]\npoison = 4\n",
                   ":4: poison: was already set in line 2");
}

TEST(test_bad_numbers)
{
    assert_refused("[tradelock]\npool_size = 0\n", ":2: pool_size: 0 is out of range, 1 to 256");
    assert_refused("[tradelock]\npool_size = 257\n",
                   ":2: pool_size: 257 is out of range, 1 to 256");
    assert_refused("[tradelock]\npool_size = -1\n",
                   ":2: pool_size: '-1' is not a whole number from 1 to 256");
    assert_refused("[tradelock]\npool_size = eight\n",
                   ":2: pool_size: 'eight' is not a whole number from 1 to 256");
    assert_refused("[tradelock]\npool_size = 8x\n",
                   ":2: pool_size: '8x' is not a whole number from 1 to 256");
    assert_refused("[tradelock]\npool_size =\n",
                   ":2: pool_size: '' is not a whole number from 1 to 256");
    assert_refused("[tradelock]\npool_size = 99999999999999999999\n",
                   ":2: pool_size: '99999999999999999999' is not a whole number from 1 to "
                   "256");
    assert_refused("[tradelock]\njanitor = yes\n",
                   ":2: janitor: 'yes' is not a whole number from 0 to 1");
    assert_refused("[tradelock]\nallow_insecure = 2\n",
                   ":2: allow_insecure: 2 is out of range, 0 to 1");
    assert_refused("[tradelock]\nlog_cust = no\n",
                   ":2: log_cust: 'no' is neither plain nor hashed");
    assert_refused("[tradelock]\nlog_cust = hashed\n",
                   ":2: log_cust: hashed wants a log_cust_key of 16 characters or more");
    assert_refused("[tradelock]\nlog_cust = hashed\nlog_cust_key = short\n",
                   ":3: log_cust: hashed wants a log_cust_key of 16 characters or more");
    assert_refused("[tradelock]\nlog_format = xml\n",
                   ":2: log_format: 'xml' is neither text nor json");
    assert_refused("[tradelock]\nlog_level = loud\n",
                   ":2: log_level: 'loud' is not debug, info, warning or alarm");
}

TEST(test_bad_durations)
{
    assert_refused("[tradelock]\nbeat_ms = soon\n",
                   ":2: beat_ms: 'soon' is not a duration such as 250ms, 30s, 10m, 2h or "
                   "7d");
    assert_refused("[tradelock]\nbeat_ms = 1 s\n",
                   ":2: beat_ms: '1 s' is not a duration such as 250ms, 30s, 10m, 2h or 7d");
    assert_refused("[tradelock]\nbeat_ms = 1w\n",
                   ":2: beat_ms: '1w' is not a duration such as 250ms, 30s, 10m, 2h or 7d");
    assert_refused("[tradelock]\nbeat_ms = 1.5s\n",
                   ":2: beat_ms: '1.5s' is not a duration such as 250ms, 30s, 10m, 2h or "
                   "7d");
    assert_refused("[tradelock]\nbeat_ms = \n",
                   ":2: beat_ms: '' is not a duration such as 250ms, 30s, 10m, 2h or 7d");
    assert_refused("[tradelock]\nbeat_ms = 19ms\n",
                   ":2: beat_ms: '19ms' is out of range, 20ms to 1m");
    assert_refused("[tradelock]\nmax_hold_ms = 8d\n",
                   ":2: max_hold_ms: '8d' is out of range, 10ms to 7d");
    assert_refused("[tradelock]\nmax_hold_ms = 9223372036854775807d\n",
                   ":2: max_hold_ms: '9223372036854775807d' is not a duration such as "
                   "250ms, 30s, 10m, 2h or 7d");
    assert_refused("[tradelock]\nread_timeout_s = 1500ms\n",
                   ":2: read_timeout_s: '1500ms' is not a whole number of seconds");
    assert_refused("[tradelock]\nread_timeout_s = 0\n",
                   ":2: read_timeout_s: '0' is out of range, 1s to 1h");
    assert_refused("[tradelock]\nschedule = 1s,,2s\n", ":2: schedule: delay 2 is empty");
    assert_refused("[tradelock]\nschedule = \n", ":2: schedule: delay 1 is empty");
    assert_refused("[tradelock]\nschedule = 1s,\n", ":2: schedule: delay 2 is empty");
    assert_refused("[tradelock]\nschedule = 1s,2x\n",
                   ":2: schedule: '2x' is not a duration such as 250ms, 30s, 10m, 2h or "
                   "7d");
    assert_refused("[tradelock]\nschedule = 1s,0\n",
                   ":2: schedule: '0' is out of range, 1ms to 30d");
    assert_refused("[tradelock]\nschedule = 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n",
                   ":2: schedule: has more than 16 delays");
}

TEST(test_bad_sites)
{
    assert_refused("[tradelock]\nsite = bank a\n",
                   ":2: site: byte 5 is a blank (0x20); only printable ASCII without "
                   "blanks is allowed");
    assert_refused("[tradelock]\nsite =\n", ":2: site: is empty");
    assert_refused("[tradelock]\nsite = ''\n", ":2: site: is empty");
    assert_refused("[tradelock]\nsite = 'bank-a\n", ":2: site: a quote has no counterpart");
    assert_refused("[tradelock]\nsite = \"bank-a'\n", ":2: site: a quote has no counterpart");
    assert_refused("[tradelock]\nsite = \"\n", ":2: site: a quote has no counterpart");
    assert_refused("[tradelock]\nsite = 1234567890123456789012345678901234567890"
                   "1234567890123456789012345\n",
                   ":2: site: is longer than 64 bytes");
}

TEST(test_bad_together)
{
    assert_refused("[tradelock]\nbeat_ms = 1s\nsession_ms = 2999\n\n",
                   ":3: session_ms: 2999ms is less than three beats (beat_ms) of 1s");
    assert_refused("[tradelock]\nbeat_ms = 1m\n",
                   ":2: session_ms: 10s is less than three beats (beat_ms) of 1m");
    assert_refused("[tradelock]\nask_wait_min_ms = 300\n",
                   ":2: ask_wait_max_ms: 200ms is less than ask_wait_min_ms, 300ms");
}

#define SECTIONS                                                                                   \
    "[tradelock-client]\nuser=x\n[tradelock-client-a]\nhost=a\n[tradelock-client-b_2]\n"

TEST(test_shards)
{
    struct config config;
    size_t at = 9;

    assert_loads(SECTIONS "[tradelock]\nfleet = payouts\nshards = a ,b_2\n", &config);
    assert_string_equal(config.fleet, "payouts");
    assert_int_equal(config.shards.count, 2);
    assert_string_equal(config.shards.name[0], "a");
    assert_string_equal(config.shards.name[1], "b_2");
    assert_int_equal(config_find_shard(&config, "f", "b_2", &at), TL_OK);
    assert_int_equal(at, 1);
    assert_problem(config_find_shard(&config, "f", "c", &at), TL_BAD_CONFIG,
                   "f: there is no shard 'c': fleet payouts has a, b_2");
    assert_problem(config_find_shard(&config, "f", NULL, &at), TL_BAD_CONFIG,
                   "f: this is the file of fleet payouts: one of its shards has to be named: a, "
                   "b_2");
    assert_int_equal(at, 1);
    /* The order of the sections does not matter. */
    assert_loads("[tradelock]\nshards = a\nfleet = p\n" SECTIONS, &config);
    assert_int_equal(config.shards.count, 1);
    assert_loads("[tradelock]\nsite = x\n", &config);
    assert_problem(config_find_shard(&config, "f", "a", &at), TL_BAD_CONFIG,
                   "f: there is no shard 'a': this file names none");
}

TEST(test_bad_shards)
{
    assert_refused(SECTIONS "[tradelock]\nfleet = p\nshards = a, b_2, a\n",
                   ":8: shards: 'a' stands there twice");
    assert_refused(SECTIONS "[tradelock]\nfleet = p\nshards = a, c\n",
                   ":8: shards: section [tradelock-client-c] is missing");
    /* The end of another name is no section. */
    assert_refused(SECTIONS "[tradelock]\nfleet = p\nshards = 2\n",
                   ":8: shards: section [tradelock-client-2] is missing");
    assert_refused(SECTIONS "[tradelock]\nshards = a\n",
                   ":7: shards: the fleet has no name; set fleet besides");
    assert_refused(SECTIONS "[tradelock]\nfleet = p\n",
                   ":7: fleet: no shards are named; set shards besides");
    assert_refused("[tradelock]\nshards = a,,b\n", ":2: shards: a name is empty");
    assert_refused("[tradelock]\nshards =\n", ":2: shards: a name is empty");
    assert_refused("[tradelock]\nshards = a b\n",
                   ":2: shards: 'a b' is no name of letters, digits, - and _ (nor may it be none, "
                   "all or begin with -)");
    assert_refused("[tradelock]\nshards = a, all\n",
                   ":2: shards: 'all' is no name of letters, digits, - and _ (nor may it be none, "
                   "all or begin with -)");
    assert_refused("[tradelock]\nfleet = 123456789012345678901234567890123\n",
                   ":2: fleet: '12345678901234567890123456789012...' is longer than 32 bytes");
    assert_refused("[tradelock]\nshards = 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,"
                   "23,24,25,26,27,28,29,30,31,32,33\n",
                   ":2: shards: has more than 32 names");
}

TEST(test_policy)
{
    tl_policy policy, before;

    static const char text[] = "[tradelock]\nschedule = 5s,1m\nattempts = 7\n"
                               "grace_ms = 2s\ndeadline_ms=1h\npoison=2\n"
                               "max_hold_ms=9s\nexecute_ms=4s\ncommit_ms=3s\n";

    settings_write(text, strlen(text), 0600);
    assert_int_equal(config_load_policy(&policy, settings_path), TL_OK);
    assert_int_equal(policy.schedule_count, 2);
    assert_int_equal(policy.schedule_ms[0], 5000);
    assert_int_equal(policy.schedule_ms[1], 60000);
    assert_int_equal(policy.schedule_ms[2], 0);
    assert_int_equal(policy.attempts, 7);
    assert_int_equal(policy.grace_ms, 2000);
    assert_int_equal(policy.deadline_ms, 3600000);
    assert_int_equal(policy.poison, 2);
    assert_int_equal(policy.clock_margin_ms, 2000);
    assert_int_equal(policy.max_hold_ms, 9000);
    assert_int_equal(policy.execute_ms, 4000);
    assert_int_equal(policy.commit_ms, 3000);
    before = policy;
    assert_int_equal(config_load_policy(&policy, "/nowhere"), TL_BAD_CONFIG);
    assert_memory_equal(&policy, &before, sizeof(policy));
}

TEST(test_durations)
{
    char text[CONFIG_DURATION_TEXT];

    assert_string_equal(config_duration(text, 0), "0ms");
    assert_string_equal(config_duration(text, 1), "1ms");
    assert_string_equal(config_duration(text, 1500), "1500ms");
    assert_string_equal(config_duration(text, 90000), "90s");
    assert_string_equal(config_duration(text, 600000), "10m");
    assert_string_equal(config_duration(text, 7200000), "2h");
    assert_string_equal(config_duration(text, 3 * CONFIG_DAY), "3d");
}

static char *read_sample(size_t *size)
{
    static char text[20000];
    char name[500];

    assert_non_null(getenv("TL_SOURCE_DIR"));
    snprintf(name, sizeof(name), "%s/config/tradelock.cnf", getenv("TL_SOURCE_DIR"));
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    *size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[*size] = '\0';
    return text;
}

TEST(test_sample_is_the_list)
{
    struct text_buffer made;
    size_t size;

    text_buffer_init(&made);
    sample_write(&made);
    assert_false(made.failed);
    assert_string_equal(text_buffer_text(&made), read_sample(&size));
    text_buffer_free(&made);
}

/* As it stands, and with every '#' before a name taken away. */
TEST(test_sample_loads)
{
    struct config config, defaults;
    size_t size;
    char *text = read_sample(&size);
    unsigned set = 0;

    config_defaults(&defaults);
    assert_loads(text, &config);
    assert_memory_equal(&config, &defaults, sizeof(config));
    for (char *line = text; (line = strchr(line, '\n')) != NULL; line++)
        if (line[1] == '#' && line[2] >= 'a' && line[2] <= 'z') {
            line[1] = ' ';
            set++;
        }
    assert_true(set > CONFIG_SETTINGS);
    assert_loads(text, &config);
    assert_memory_equal(&config, &defaults, sizeof(config));
}

TEST_MAIN(config)
{
    if (argc == 2 && strcmp(argv[1], "--sample") == 0) {
        struct text_buffer sample;

        text_buffer_init(&sample);
        sample_write(&sample);
        int failed = sample.failed || fputs(text_buffer_text(&sample), stdout) < 0;
        text_buffer_free(&sample);
        return failed;
    }
    return tests_run(settings_make_folder, settings_remove_folder);
}
