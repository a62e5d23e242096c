/*
 * People who click through a running desk over HTTP: each logs in with an account of the database,
 * looks at Now, Trades, a trade, Audit, and searches, with pauses in between, until SIGTERM.
 *
 * Every answer is checked: it is the page that was asked for, says who is logged in, and has the
 * session's own token, which nobody else has.  The first that is not ends the program with 1 and a
 * sentence.  SIGUSR2 makes all people stop, SIGUSR1 lets them go on.
 */
#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PEOPLE_MOST 128
#define ACCOUNTS_MOST 64
#define CLICKS_MOST 200000
#define MS 1000000L

enum page { NOW, TRADES, TRADE, SEARCH, AUDIT, PAGES };
static const char *const page_names[PAGES] = {"now", "trades", "trade", "search", "audit"};

struct account {
    char user[80], password[80];
};

struct answer {
    char *body, *headers;
    size_t body_size, headers_size;
};

/* Somebody at a browser; touched by their own thread alone. */
struct person {
    unsigned number, seed;
    pthread_t thread;
    const struct account *account;
    CURL *curl;
    struct answer answer;
    char token[64];                /* of the session */
    char trade[160], serial[1024]; /* the last link to a trade, and its text as markup */
};

static const char *url;
static unsigned people = 1;
static long least_ms = 3000, most_ms = 5000;
static struct account accounts[ACCOUNTS_MOST];
static unsigned account_count;
static struct person persons[PEOPLE_MOST];

/* What follows is under the mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static int is_going = 1, is_over;
static unsigned inside;
static char tokens[PEOPLE_MOST][64];
static unsigned counts[PAGES];
static float took_ms[CLICKS_MOST];
static unsigned clicks;

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void fail(const char *format, ...)
{
    va_list arguments;

    flockfile(stderr);
    fputs("tradelock-clicks: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
    _exit(1);
}

/* ----------------------------------------------------------------- one answer -- */

static size_t take(char **to, size_t *have, const char *data, size_t size)
{
    char *larger = realloc(*to, *have + size + 1);

    if (larger == NULL)
        fail("out of memory");
    memcpy(larger + *have, data, size);
    *have += size;
    larger[*have] = '\0';
    *to = larger;
    return size;
}

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct answer *answer = context;

    return take(&answer->body, &answer->body_size, data, one * size);
}

static size_t take_header(char *data, size_t one, size_t size, void *context)
{
    struct answer *answer = context;

    return take(&answer->headers, &answer->headers_size, data, one * size);
}

static void forget(struct answer *answer)
{
    free(answer->body);
    free(answer->headers);
    memset(answer, 0, sizeof *answer);
}

/* form NULL: it is read, else the form is sent. */
static void ask(struct person *person, const char *path, const char *form, long wanted)
{
    char address[1024];
    CURLcode code;
    long status = 0;

    person->answer.body_size = person->answer.headers_size = 0;
    (void)take(&person->answer.body, &person->answer.body_size, "", 0);
    (void)take(&person->answer.headers, &person->answer.headers_size, "", 0);
    snprintf(address, sizeof address, "%s%s", url, path);
    curl_easy_setopt(person->curl, CURLOPT_URL, address);
    if (form != NULL)
        curl_easy_setopt(person->curl, CURLOPT_POSTFIELDS, form);
    else
        curl_easy_setopt(person->curl, CURLOPT_HTTPGET, 1L);
    code = curl_easy_perform(person->curl);
    if (code != CURLE_OK)
        fail("%s: %s", path, curl_easy_strerror(code));
    curl_easy_getinfo(person->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != wanted)
        fail("%s answers %ld, not %ld: %s", path, status, wanted, person->answer.body);
}

/* What stands between two texts; 0: it is not there. */
static int between(const char *text, const char *from, char end, char *to, size_t space)
{
    const char *at = strstr(text, from);
    const char *last = at != NULL ? strchr(at + strlen(from), end) : NULL;

    if (last == NULL)
        return 0;
    at += strlen(from);
    return snprintf(to, space, "%.*s", (int)(last - at), at) < (int)space;
}

static void expect(const struct person *person, const char *words)
{
    if (strstr(person->answer.body, words) == NULL)
        fail("%s misses \"%s\" on: %s", person->account->user, words, person->answer.body);
}

/* The page is this person's, of this session. */
static void expect_own(const struct person *person)
{
    char token[64], user[128];

    snprintf(user, sizeof user, "\">%s</span>", person->account->user);
    expect(person, user);
    if (!between(person->answer.body, "name=\"token\" value=\"", '"', token, sizeof token) ||
        strcmp(token, person->token) != 0)
        fail("%s has somebody else's token", person->account->user);
}

/* --------------------------------------------------------------------- clicks -- */

static void log_in(struct person *person)
{
    const struct account *account = person->account;
    char token[64], form[512];
    char *user = curl_easy_escape(person->curl, account->user, 0);
    char *password = curl_easy_escape(person->curl, account->password, 0);

    ask(person, "/login", NULL, 200);
    if (!between(person->answer.body, "name=\"login_token\" value=\"", '"', token, sizeof token))
        fail("the door has no token");
    snprintf(form, sizeof form, "login_token=%s&user=%s&password=%s", token, user, password);
    curl_free(user);
    curl_free(password);
    ask(person, "/login", form, 303);
    ask(person, "/", NULL, 200);
    if (!between(person->answer.body, "name=\"token\" value=\"", '"', person->token,
                 sizeof person->token))
        fail("the page of %s has no token", account->user);
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < people; i++)
        if (strcmp(tokens[i], person->token) == 0)
            fail("two people have one token");
    snprintf(tokens[person->number], sizeof tokens[0], "%s", person->token);
    inside++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Remembers one of the first trades that the page has links to. */
static void choose_trade(struct person *person)
{
    const char *at = person->answer.body;
    unsigned skip = (unsigned)rand_r(&person->seed) % 20;

    for (const char *next = at; next != NULL; next = strstr(next + 1, "href=\"/trade?r=")) {
        at = next;
        if (skip-- == 0)
            break;
    }
    if (!between(at, "href=\"/trade?r=", '"', person->trade, sizeof person->trade) ||
        !between(strstr(at, "href=\"/trade?r="), ">", '<', person->serial, sizeof person->serial))
        person->trade[0] = '\0';
}

/* Searches for the trade by its number, which has no letter that HTML or a form writes
 * otherwise. */
static void search(struct person *person)
{
    char form[1280], path[256];

    snprintf(form, sizeof form, "token=%s&find=%s", person->token, person->serial);
    ask(person, "/search", form, 303);
    if (!between(person->answer.headers, "Location: ", '\r', path, sizeof path))
        fail("a search leads nowhere");
    ask(person, path, NULL, 200);
    expect(person, "<h1>Trades</h1>");
    expect(person, person->serial);
}

static void click(struct person *person, enum page page)
{
    static const char *const lists[] = {"/trades", "/trades?show=paid", "/trades?show=process",
                                        "/trades?show=doubt"};
    char path[200], title[1200];

    switch (page) {
    case NOW:
        ask(person, "/", NULL, 200);
        expect(person, "<title>Now");
        break;
    case TRADES:
        ask(person, lists[(unsigned)rand_r(&person->seed) % 4], NULL, 200);
        expect(person, "<h1>Trades</h1>");
        choose_trade(person);
        break;
    case TRADE:
        snprintf(path, sizeof path, "/trade?r=%s", person->trade);
        ask(person, path, NULL, 200);
        snprintf(title, sizeof title, "<h1 class=\"serial\">%s</h1>", person->serial);
        expect(person, title);
        break;
    case SEARCH:
        search(person);
        break;
    default:
        ask(person, "/audit", NULL, 200);
        expect(person, "<h1>Audit</h1>");
    }
    expect_own(person);
}

static int can_be_searched(const char *serial)
{
    return serial[0] != '\0' &&
           strspn(serial, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
               strlen(serial);
}

static enum page choose(struct person *person)
{
    const enum page page = (enum page)((unsigned)rand_r(&person->seed) % PAGES);

    if ((page == TRADE && person->trade[0] == '\0') ||
        (page == SEARCH && !can_be_searched(person->serial)))
        return TRADES;
    return page;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Only the time counts in which people go.  0: it is over. */
static int pause_for(double ms)
{
    int goes_on;

    pthread_mutex_lock(&mutex);
    while (!is_over && (!is_going || ms > 0)) {
        const double began = now_ms();
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)(ms / 1e3);
        until.tv_nsec += (long)(ms * MS) % (1000 * MS);
        until.tv_sec += until.tv_nsec / (1000 * MS);
        until.tv_nsec %= 1000 * MS;
        if (is_going) {
            (void)pthread_cond_timedwait(&changed, &mutex, &until);
            ms -= now_ms() - began;
        } else {
            pthread_cond_wait(&changed, &mutex);
        }
    }
    goes_on = !is_over;
    pthread_mutex_unlock(&mutex);
    return goes_on;
}

static double think_ms(struct person *person)
{
    return (double)(least_ms + rand_r(&person->seed) % (most_ms - least_ms + 1));
}

static void *visit(void *context)
{
    struct person *person = context;

    log_in(person);
    /* Nobody begins at the same moment. */
    for (double wait_ms = think_ms(person) * (rand_r(&person->seed) % 100) / 100;
         pause_for(wait_ms); wait_ms = think_ms(person)) {
        const enum page page = choose(person);
        const double began = now_ms();

        click(person, page);
        pthread_mutex_lock(&mutex);
        counts[page]++;
        if (clicks < CLICKS_MOST)
            took_ms[clicks++] = (float)(now_ms() - began);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

/* ----------------------------------------------------------------------- all -- */

static void open_person(unsigned number)
{
    struct person *person = &persons[number];

    person->number = number;
    person->seed = number + 1;
    person->account = &accounts[number % account_count];
    person->curl = curl_easy_init();
    if (person->curl == NULL)
        fail("no curl");
    curl_easy_setopt(person->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(person->curl, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(person->curl, CURLOPT_COOKIEFILE, "");
    curl_easy_setopt(person->curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(person->curl, CURLOPT_WRITEDATA, &person->answer);
    curl_easy_setopt(person->curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(person->curl, CURLOPT_HEADERDATA, &person->answer);
    if (pthread_create(&person->thread, NULL, visit, person) != 0)
        fail("no thread");
}

static void read_accounts(void)
{
    while (account_count < ACCOUNTS_MOST &&
           scanf("%79s %79s", accounts[account_count].user, accounts[account_count].password) == 2)
        account_count++;
    if (account_count == 0)
        fail("stdin names no account: a user and a password in each line");
}

static int by_size(const void *one, const void *other)
{
    const float a = *(const float *)one, b = *(const float *)other;

    return (a > b) - (a < b);
}

static void print_result(void)
{
    qsort(took_ms, clicks, sizeof took_ms[0], by_size);
    printf("{\"people\":%u,\"clicks\":%u", people, clicks);
    for (int i = 0; i < PAGES; i++)
        printf(",\"%s\":%u", page_names[i], counts[i]);
    if (clicks > 0)
        printf(",\"p50_ms\":%.1f,\"p99_ms\":%.1f,\"max_ms\":%.1f", (double)took_ms[clicks / 2],
               (double)took_ms[clicks * 99 / 100], (double)took_ms[clicks - 1]);
    puts("}");
}

/* Until SIGTERM. */
static void rule(const sigset_t *signals)
{
    int number;

    while (sigwait(signals, &number) == 0) {
        pthread_mutex_lock(&mutex);
        is_going = number == SIGUSR1;
        is_over = number == SIGTERM;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        if (number == SIGTERM)
            break;
    }
}

static long number_of(const char *text)
{
    char *end;
    const long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < 0 || number > 1000000)
        fail("'%s' is not a number", text);
    return number;
}

static void read_options(int argc, char **argv)
{
    static const struct option known[] = {{"url", 1, NULL, 'u'},      {"people", 1, NULL, 'p'},
                                          {"least-ms", 1, NULL, 'l'}, {"most-ms", 1, NULL, 'm'},
                                          {"help", 0, NULL, 'h'},     {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        switch (option) {
        case 'u':
            url = optarg;
            break;
        case 'p':
            people = (unsigned)number_of(optarg);
            break;
        case 'l':
            least_ms = number_of(optarg);
            break;
        case 'm':
            most_ms = number_of(optarg);
            break;
        default:
            fputs("usage: tradelock-clicks --url URL [--people N] [--least-ms N --most-ms N]\n\n"
                  "People click through the desk at URL until SIGTERM, with pauses of so many\n"
                  "milliseconds (3000 to 5000).  stdin has a user and a password in each line.\n"
                  "Prints \"inside\" when all are logged in, and at the end a line of JSON.\n"
                  "SIGUSR2 makes all stop, SIGUSR1 lets them go on.\n",
                  option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : 2);
        }
    if (url == NULL || people < 1 || people > PEOPLE_MOST || least_ms > most_ms)
        fail("it needs --url, 1 to %d people, and --least-ms up to --most-ms", PEOPLE_MOST);
}

int main(int argc, char **argv)
{
    pthread_condattr_t steady;
    sigset_t signals;

    read_options(argc, argv);
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &steady);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    read_accounts();
    for (unsigned i = 0; i < people; i++)
        open_person(i);
    pthread_mutex_lock(&mutex);
    while (inside < people)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    puts("inside");
    fflush(stdout);
    rule(&signals);
    for (unsigned i = 0; i < people; i++)
        pthread_join(persons[i].thread, NULL);
    print_result();
    for (unsigned i = 0; i < people; i++) {
        curl_easy_cleanup(persons[i].curl);
        forget(&persons[i].answer);
    }
    return 0;
}
