/* Histograms and the text for Prometheus: buckets, escapes, fractions, pieces, a writer that
 * stops; and which addresses may be listened on. */
#include "base/metrics.h"
#include "support/theme.h"

#include <tradelock/tradelock.h>

#include <locale.h>
#include <pthread.h>

struct page {
    char text[65536];
    size_t size, pieces, most; /* most: pieces that are taken; 0: all */
};

static int take(void *context, const char *text, size_t size)
{
    struct page *page = context;

    if (page->most > 0 && page->pieces == page->most)
        return 1;
    page->pieces++;
    assert_true(page->size + size < sizeof page->text);
    memcpy(page->text + page->size, text, size);
    page->size += size;
    page->text[page->size] = '\0';
    return 0;
}

static metrics_text text_to(struct page *page)
{
    return (metrics_text){.write = take, .context = page};
}

static void expect(const struct page *page, const char *line)
{
    if (strstr(page->text, line) == NULL)
        fail_msg("\"%s\" is not in:\n%s", line, page->text);
}

TEST(test_buckets)
{
    static const uint64_t times_us[] = {0, 250, 251, 1000, 30000000, 30000001};
    static histogram h;
    struct page page = {.size = 0};
    metrics_text m = text_to(&page);

    for (size_t i = 0; i < sizeof times_us / sizeof times_us[0]; i++)
        histogram_add(&h, &histogram_of_times, times_us[i]);
    metrics_histogram(&m, "x_seconds", &histogram_of_times, &h, "call", "pay", NULL);
    assert_int_equal(metrics_end(&m), TL_OK);
    expect(&page, "x_seconds_bucket{call=\"pay\",le=\"0.00025\"} 2\n");
    expect(&page, "x_seconds_bucket{call=\"pay\",le=\"0.0005\"} 3\n");
    expect(&page, "x_seconds_bucket{call=\"pay\",le=\"0.001\"} 4\n");
    expect(&page, "x_seconds_bucket{call=\"pay\",le=\"30\"} 5\n");
    expect(&page, "x_seconds_bucket{call=\"pay\",le=\"+Inf\"} 6\n");
    expect(&page, "x_seconds_sum{call=\"pay\"} 60.001502\n");
    expect(&page, "x_seconds_count{call=\"pay\"} 6\n");
}

/* Fractions have a point, whatever the program's locale writes; labels are escaped. */
TEST(test_text)
{
    struct page page = {.size = 0};
    metrics_text m = text_to(&page);

    (void)setlocale(LC_ALL, "de_DE.UTF-8");
    metrics_one(&m, "a", "gauge", "Help.", -1500000, 6);
    metrics_one(&m, "b", "gauge", "Help.", INT64_MIN, 0);
    metrics_one(&m, "c", "gauge", "Help.", 1, 6);
    metrics_one(&m, "d", "gauge", "Help.", 0, 3);
    metrics_line(&m, "e", 7, 0, "x", "a\"b\\c\nd", "y", "", NULL);
    assert_int_equal(metrics_end(&m), TL_OK);
    assert_string_equal(page.text, "# HELP a Help.\n# TYPE a gauge\na -1.5\n"
                                   "# HELP b Help.\n# TYPE b gauge\nb -9223372036854775808\n"
                                   "# HELP c Help.\n# TYPE c gauge\nc 0.000001\n"
                                   "# HELP d Help.\n# TYPE d gauge\nd 0\n"
                                   "e{x=\"a\\\"b\\\\c\\nd\",y=\"\"} 7\n");
}

TEST(test_pieces)
{
    char label[3 * METRICS_BUFFER];
    struct page whole = {.size = 0}, stopped = {.most = 2};
    metrics_text m = text_to(&whole);

    memset(label, 'x', sizeof label);
    label[sizeof label - 1] = '\0';
    metrics_line(&m, "long", 1, 0, "label", label, NULL);
    assert_int_equal(metrics_end(&m), TL_OK);
    assert_int_equal(whole.size, strlen("long{label=\"\"} 1\n") + strlen(label));
    assert_true(whole.pieces > 3);
    m = text_to(&stopped);
    metrics_line(&m, "long", 1, 0, "label", label, NULL);
    assert_int_equal(metrics_end(&m), TL_CALLBACK_FAILED);
    assert_int_equal(stopped.pieces, 2);
}

#define THREADS 8
#define ADDS 20000

static void *add_many(void *context)
{
    for (unsigned i = 0; i < ADDS; i++)
        histogram_add(context, &histogram_of_tasks, i % 300);
    return NULL;
}

/* No addition is lost among threads, and a reader finds counts that rise. */
TEST(test_threads)
{
    static histogram h;
    pthread_t threads[THREADS];
    struct page page = {.size = 0};
    metrics_text m = text_to(&page);
    uint64_t sum = 0;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &h), 0);
    metrics_histogram(&m, "early", &histogram_of_tasks, &h, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i <= HISTOGRAM_MOST; i++)
        sum += h.counts[i];
    assert_int_equal(sum, THREADS * ADDS);
    metrics_histogram(&m, "late", &histogram_of_tasks, &h, NULL);
    assert_int_equal(metrics_end(&m), TL_OK);
    expect(&page, "late_count 160000\n");
    expect(&page, "late_bucket{le=\"+Inf\"} 160000\n");
}

TEST(test_listen)
{
    static const char *const good[] = {"127.0.0.1:9464", "127.0.0.1:0", "127.255.255.255:65535",
                                       "public:0.0.0.0:9464", "public:127.0.0.1:0"};
    static const char *const bad[] = {"",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      ":80",
                                      "localhost:9464",
                                      "127.0.0.1:65536",
                                      "127.0.1:80",
                                      "127.0.0.1:80 ",
                                      " 127.0.0.1:80",
                                      "::1",
                                      "127.0.0.256:1",
                                      "127.0.0.1:+80",
                                      "127.0.0.1:",
                                      "127.0.0.1:80:80",
                                      "127.0.0.1:000080",
                                      "public:",
                                      "public:localhost:1",
                                      "public:public:1.2.3.4:1",
                                      "Public:0.0.0.0:1",
                                      "public: 0.0.0.0:1"};
    static const char *const far[] = {"0.0.0.0:9464", "10.0.0.1:9464", "128.0.0.1:80"};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(tl_metrics_check_listen("here", good[i]), TL_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (tl_metrics_check_listen("here", bad[i]) != TL_BAD_CONFIG)
            fail_msg("\"%s\" was taken for an address", bad[i]);
        assert_non_null(strstr(tl_error_message(), "here: "));
    }
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        assert_int_equal(tl_metrics_check_listen("here", far[i]), TL_BAD_CONFIG);
        assert_non_null(strstr(tl_error_message(), "beyond this machine"));
    }
}

TESTS_OF(metrics, NULL, NULL)
