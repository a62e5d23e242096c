// wrapper CONFIG NAME: the C++ wrapper against a real server.  NAME keeps two runs apart.
#include <tradelock/tradelock.hpp>

#include <mysql.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <thread>

namespace
{

std::string config, name;
int number;

#define EXPECT(condition) expect(condition, #condition, __LINE__)

void expect(bool fine, const char *what, int line)
{
    if (fine)
        return;
    std::printf("wrapper.cc:%d: not so: %s (%s)\n", line, what, tl_error_message());
    std::exit(1);
}

// A channel that pays a key once, and can be asked.
struct channel {
    std::mutex mutex;
    std::map<std::string, int> sends, payments;

    void pay(const std::string &key)
    {
        std::lock_guard<std::mutex> guard(mutex);
        sends[key]++;
        payments[key] = 1;
    }
    bool paid(const std::string &key)
    {
        std::lock_guard<std::mutex> guard(mutex);
        return payments.count(key) > 0;
    }
    size_t count()
    {
        std::lock_guard<std::mutex> guard(mutex);
        return payments.size();
    }
};

std::string serial()
{
    return name + "-" + std::to_string(++number);
}

tradelock::client open()
{
    return tradelock::client(tradelock::client_options(config.c_str()));
}

const tradelock::statement insert_ledger("insert ledger",
                                         "INSERT INTO ledger (serial_no, cust_no, amount_minor,"
                                         " channel_ref)"
                                         " VALUES (:serial_no, :cust_no, 1, :channel_ref)");

// Pays at `bank`, and books one row.
tradelock::workflow paying(channel &bank, const std::string &op)
{
    tradelock::workflow flow;

    flow.op_code = op;
    flow.channel.name = "my-bank";
    flow.channel.idempotent = 1;
    flow.channel.can_query = 1;
    flow.execute = [&bank](const tradelock::attempt &attempt, tradelock::reply &reply) {
        bank.pay(attempt->channel_key);
        reply.ref("R-" + std::string(attempt->key.serial_no));
        reply.result(attempt.payload());
        return TL_EXECUTE_SUCCEEDED;
    };
    flow.query = [&bank](const tradelock::attempt &attempt, tradelock::reply &reply) {
        if (!bank.paid(attempt->channel_key))
            return TL_QUERY_NOT_FOUND;
        reply.ref("Q-" + std::string(attempt->key.serial_no));
        return TL_QUERY_SUCCEEDED;
    };
    flow.statements = {insert_ledger};
    flow.book_success = [](const tradelock::attempt &, const tl_reply &, tradelock::book &book) {
        book.line("insert ledger");
    };
    return flow;
}

struct row {
    char status = ' ';
    tl_state state = TL_STATE_ABSENT;
    std::string remark;
};

row look(const tradelock::client &client, const std::string &of, const std::string &op)
{
    const tl_key key = {of.c_str(), "C1", op.c_str()};
    row found;

    tl_show(
        client.get(), &key, TL_LANE_SYNC,
        [](void *context, const tl_view *view) {
            row *into = static_cast<row *>(context);
            into->status = view->status;
            into->state = view->state;
            into->remark = view->remark;
            return 0;
        },
        &found);
    return found;
}

// How many rows there are, by a connection of our own.
int rows_of(const std::string &from)
{
    MYSQL *connection = mysql_init(nullptr);
    const std::string sql = "SELECT 1 FROM " + from;
    int rows = -1;

    mysql_optionsv(connection, MYSQL_READ_DEFAULT_FILE, config.c_str());
    EXPECT(mysql_real_connect(connection, nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0));
    EXPECT(mysql_query(connection, sql.c_str()) == 0);
    MYSQL_RES *result = mysql_store_result(connection);
    rows = static_cast<int>(mysql_num_rows(result));
    mysql_free_result(result);
    mysql_close(connection);
    return rows;
}

int booked(const std::string &of)
{
    return rows_of("ledger WHERE serial_no = '" + of + "'");
}

template <typename Fn> void until(Fn &&fine)
{
    for (int i = 0; !fine(); i++) {
        EXPECT(i < 3000);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

// Waits until a worker has brought it to Y.
void await_paid(const tradelock::client &client, const std::string &of, const std::string &op)
{
    until([&] { return look(client, of, op).status == 'Y'; });
    EXPECT(booked(of) == 1);
}

tradelock::answer pay(const tradelock::workflows &workflows, const std::string &of,
                      const std::string &op)
{
    return workflows.run(tradelock::request({of.c_str(), "C1", op.c_str()}, "1 EUR"));
}

void test_double_tap()
{
    channel bank;
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    const std::string of = serial();
    std::vector<std::thread> threads;
    std::atomic<int> paid{0};

    workflows.add(paying(bank, "TAP"));
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&] {
            tradelock::answer answer = pay(workflows, of, "TAP");
            if (answer.status() == TL_SUCCEEDED)
                paid++;
            else
                EXPECT(answer.status() == TL_BUSY || answer.status() == TL_ALREADY_DONE);
            EXPECT(!answer.not_paid());
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT(paid == 1 && bank.sends.size() == 1 && bank.sends.begin()->second == 1);
    tradelock::answer again = pay(workflows, of, "TAP");
    EXPECT(again.status() == TL_ALREADY_DONE && again.paid());
    EXPECT(again.result() == "1 EUR" && again->channel_ref == "R-" + of);
    EXPECT(std::string(again.name()) == "TL_ALREADY_DONE" && !again->own);
    EXPECT(booked(of) == 1);
    // Other contents under the same key.
    EXPECT(workflows.run(tradelock::request({of, "C1", "TAP"}, "2 EUR")).status() == TL_MISMATCH);
    // A second tap that is wrong, or that nobody serves, says nothing of the first.
    tradelock::request wrong({of, "C1", "TAP"}, "1 EUR");
    wrong.currency = "eur";
    again = workflows.run(wrong);
    EXPECT(again.status() == TL_INVALID && !again.paid() && !again.not_paid());
    again = pay(workflows, of, "NOWHERE");
    EXPECT(again.status() == TL_UNKNOWN_OPERATION && !again.paid() && !again.not_paid());
}

/* ----------------------------------------------------------------------- values -- */

// No value of C++ is taken for one of C, whose texts would be those of nobody.
template <typename Value, typename C>
constexpr bool apart = !std::is_convertible_v<Value *, C *> && !std::is_convertible_v<Value, C>;
static_assert(apart<tradelock::client_options, tl_client_options>);
static_assert(apart<tradelock::workflow, tl_workflow> && apart<tradelock::channel, tl_channel>);
static_assert(apart<tradelock::former_channel, tl_former_channel>);
static_assert(apart<tradelock::statement, tl_statement> && apart<tradelock::key, tl_key>);
static_assert(apart<tradelock::request, tl_request> && apart<tradelock::ending, tl_ending>);
static_assert(apart<tradelock::lock_options, tl_lock_options>);
static_assert(apart<tradelock::mutex_options, tl_mutex_options>);
static_assert(apart<tradelock::rw_options, tl_rw_options>);

// A text that is gone when the statement is over; too long for a place within the string itself.
std::string gone(const std::string &text)
{
    return text + "-of-a-temporary-that-is-gone";
}

tradelock::client_options options_of_temporaries()
{
    tradelock::client_options options((config + "").c_str());

    options.program = gone("program").c_str();
    options.operations = gone("operations").c_str();
    options.database = std::string("tradelock").c_str();
    return options;
}

tradelock::workflow flow_of_temporaries(std::string &paid)
{
    tradelock::workflow flow;

    flow.op_code = std::string("TEMPORARY_OPERATION").c_str();
    flow.channel.name = std::string("channel-of-a-temporary").c_str();
    flow.channel.idempotent = 1;
    flow.statements.push_back(tradelock::statement(
        gone("insert").c_str(), std::string("INSERT INTO ledger (serial_no, cust_no, amount_minor)"
                                            " VALUES (:serial_no, :cust_no, :some)")
                                    .c_str()));
    flow.statements.back().values = std::string("some int").c_str();
    flow.book_success = [](const tradelock::attempt &, const tl_reply &, tradelock::book &book) {
        book.line(gone("insert").c_str()).number("some", 1);
    };
    flow.execute = [&paid](const tradelock::attempt &attempt, tradelock::reply &reply) {
        paid = std::string(attempt->key.serial_no) + " " + std::string(attempt.payload()) + " " +
               attempt->currency + " " + attempt->batch + " " + attempt->traceparent + " " +
               attempt->label;
        reply.ref(gone("ref"));
        reply.result(gone("result"));
        return TL_EXECUTE_SUCCEEDED;
    };
    return flow;
}

// What it is made from is gone, and other texts stand there: another payee's.
void test_temporaries()
{
    const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const std::string of = serial();
    std::string paid;
    tradelock::client client(options_of_temporaries());
    tradelock::workflows workflows(client);

    workflows.add(flow_of_temporaries(paid));
    tradelock::request request({gone(of).c_str(), gone("C").c_str(), "TEMPORARY_OPERATION"},
                               gone("1250 EUR DE89370400440532013001"));
    request.currency = std::string("EUR").c_str();
    request.amount_minor = 125000;
    request.batch = gone("batch").c_str();
    request.traceparent = (trace + "").c_str();
    request.label = gone("label").c_str();
    request.remark = gone("remark").c_str();
    request.actor = gone("actor").c_str();
    std::vector<std::string> others;
    for (int i = 0; i < 64; i++)
        others.push_back(gone("1250 EUR DE89370400440532013002") + std::string(size_t(i) % 8, 'x'));
    const std::string result = workflows.run(request).result();
    const std::string message = workflows.run(request).message();
    EXPECT(paid == gone(of) + " " + gone("1250 EUR DE89370400440532013001") + " EUR " +
                       gone("batch") + " " + trace + " " + gone("label"));
    EXPECT(result == gone("result") && message.empty() && booked(gone(of)) == 1);

    tradelock::lock_options options(60000);
    options.payload = gone("payload");
    options.channel = std::string("channel-of-a-temporary").c_str();
    options.batch = gone("batch").c_str();
    options.actor = gone("actor").c_str();
    tradelock::ending ending(TL_OUTCOME_SUCCESS);
    ending.channel_ref = gone("ref").c_str();
    ending.result = gone("result");
    ending.remark = gone("remark").c_str();
    others.assign(64, gone("another text that stands there"));
    tradelock::lock lock(client, {serial().c_str(), gone("C").c_str(), "LOCK"}, options);
    EXPECT(lock.ask() == TL_GRANTED && lock.view().batch == gone("batch"));
    EXPECT(lock.view().channel == std::string("channel-of-a-temporary"));
    EXPECT(lock.finish(ending) == TL_SUCCEEDED && lock.view().channel_ref == gone("ref"));
    EXPECT(lock.view().result_size == gone("result").size());

    tradelock::mutex_options held(60000);
    tradelock::rw_options shared(60000);
    held.payload = gone("payload");
    held.remark = shared.remark = gone("remark").c_str();
    others.assign(64, gone("another text that stands there"));
    tradelock::mutex mutex(client, gone("mutex/" + of).c_str(), held);
    tradelock::rw_lock rw(client, gone("rw/" + of).c_str(), shared);
    EXPECT(mutex.lock(0) == TL_GRANTED && rw.write(0) == TL_GRANTED);
    EXPECT(rows_of("resource_lock WHERE resource = '" + gone("mutex/" + of) + "' AND remark = '" +
                   gone("remark") + "' AND payload = '" + gone("payload") + "'") == 1);
    EXPECT(rows_of("resource_holder WHERE resource = '" + gone("rw/" + of) + "' AND remark = '" +
                   gone("remark") + "'") == 1);
    // What C would cut names another trade.
    try {
        tradelock::request cut({std::string("W1\0 of another", 14), "C1", "TAP"}, "1 EUR");
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID);
    }
}

// Whatever execute throws, the trade is in doubt, and a worker's query ends it.
void test_execute_throws()
{
    channel bank;
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    tradelock::workflow flow = paying(bank, "THROWN");
    std::atomic<int> round{0};

    flow.execute = [&](const tradelock::attempt &attempt, tradelock::reply &) -> tl_execute_result {
        bank.pay(attempt->channel_key);
        switch (round++) {
        case 0:
            throw std::runtime_error("the socket broke");
        case 1:
            throw 7;
        default:
            throw tradelock::refused("not here");
        }
    };
    workflows.add(flow);
    std::vector<std::string> all;
    for (const char *remark :
         {"execute threw: the socket broke", "execute threw: an exception without a text",
          "execute threw: not here"}) {
        all.push_back(serial());
        tradelock::answer answer = pay(workflows, all.back(), "THROWN");
        EXPECT(answer.status() == TL_IN_DOUBT && answer->own && !answer.not_paid());
        EXPECT(look(client, all.back(), "THROWN").remark == remark);
        EXPECT(booked(all.back()) == 0);
    }
    tradelock::worker worker(workflows);
    for (const std::string &of : all)
        await_paid(client, of, "THROWN");
    // A row is Y a moment before its worker has counted it.
    worker.stop();
    EXPECT(worker.wait(60000) == TL_OK);
    EXPECT(bank.sends.size() == 3 && worker.counts().succeeded == 3);
}

// A query that throws has not said anything, nor has a cancel.
void test_query_throws()
{
    channel bank;
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    tradelock::workflow flow = paying(bank, "ASKED");
    const std::string of = serial();
    std::atomic<int> asked{0}, cancelled{0};

    flow.channel.idempotent = 0;
    flow.channel.cancel_final = 1;
    flow.execute = [&](const tradelock::attempt &, tradelock::reply &) -> tl_execute_result {
        return TL_EXECUTE_UNKNOWN;
    };
    flow.query = [&](const tradelock::attempt &, tradelock::reply &) -> tl_query_result {
        if (asked++ < 2)
            throw std::logic_error("who knows");
        return cancelled < 2 ? TL_QUERY_NOT_FOUND : TL_QUERY_SUCCEEDED;
    };
    flow.cancel = [&](const tradelock::attempt &, tradelock::reply &) -> tl_cancel_result {
        cancelled++;
        throw std::logic_error("nor of this");
    };
    workflows.add(flow);
    EXPECT(pay(workflows, of, "ASKED").status() == TL_IN_DOUBT);
    tradelock::worker worker(workflows);
    for (int i = 0; i < 2400 && cancelled < 1; i++) {
        EXPECT(look(client, of, "ASKED").status != 'F');
        std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    EXPECT(cancelled >= 1 && asked > 2);
    cancelled = 2;
    await_paid(client, of, "ASKED");
}

// A former channel: what went there in an earlier release is asked there, sent there and cancelled
// there; and what it throws is no answer either.
void test_former_channels()
{
    channel before, bank;
    const std::string paid = serial(), sent = serial(), cancelled = serial();
    std::atomic<int> asked{0}, cancels{0};
    tradelock::workflow flow = paying(before, "MOVED");
    {
        tradelock::client client = open();
        tradelock::workflows workflows(client);
        tradelock::workflow earlier = flow;

        earlier.channel.name = std::string("channel-before-of-a-temporary").c_str();
        earlier.channel.cancel_final = 1;
        earlier.channel.idempotent = 0;
        earlier.cancel = [](const tradelock::attempt &, tradelock::reply &) {
            return TL_CANCEL_UNKNOWN;
        };
        earlier.execute = [&](const tradelock::attempt &attempt, tradelock::reply &) {
            if (attempt->key.serial_no == paid)
                before.pay(attempt->channel_key);
            return attempt->key.serial_no == sent ? TL_EXECUTE_RETRY_LATER : TL_EXECUTE_UNKNOWN;
        };
        workflows.add(earlier);
        EXPECT(pay(workflows, paid, "MOVED").status() == TL_IN_DOUBT);
        EXPECT(pay(workflows, sent, "MOVED").status() == TL_QUEUED);
        EXPECT(pay(workflows, cancelled, "MOVED").status() == TL_IN_DOUBT);
    }
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    tradelock::workflow now = paying(bank, "MOVED");
    now.former.emplace_back();
    now.former[0].channel = flow.channel;
    now.former[0].channel.name = std::string("channel-before-of-a-temporary").c_str();
    now.former[0].channel.cancel_final = 1;
    now.former[0].channel.idempotent = 0;
    now.former[0].execute = flow.execute;
    now.former[0].query = [&, query = flow.query](const tradelock::attempt &attempt,
                                                  tradelock::reply &reply) {
        if (asked++ == 0)
            throw std::logic_error("who knows");
        return query(attempt, reply);
    };
    now.former[0].cancel = [&](const tradelock::attempt &attempt, tradelock::reply &) {
        EXPECT(attempt->key.serial_no == cancelled);
        cancels++;
        return TL_CANCEL_CANCELLED;
    };
    workflows.add(now);
    now = tradelock::workflow();
    tradelock::worker worker(workflows);
    await_paid(client, paid, "MOVED");
    await_paid(client, sent, "MOVED");
    until([&] { return look(client, cancelled, "MOVED").status == 'F'; });
    EXPECT(before.count() == 2 && bank.count() == 0 && asked > 2 && cancels >= 1);
    EXPECT(pay(workflows, serial(), "MOVED").paid() && bank.count() == 1);
}

// Books that throw are rolled back; what the channel said is not lost.
void test_books_throw()
{
    channel bank;
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    tradelock::workflow flow = paying(bank, "BOOKED");
    const std::string refused = serial(), broken = serial(), late = serial(), lost = serial();
    std::atomic<int> failures{0}, declines{0};

    flow.book_prepare = [&](const tradelock::attempt &attempt, tradelock::reply &,
                            tradelock::book &) {
        if (attempt->key.serial_no == refused)
            throw tradelock::refused("too little money");
        if (attempt->key.serial_no == broken)
            throw std::runtime_error("no idea");
    };
    flow.book_success = [&](const tradelock::attempt &attempt, const tl_reply &,
                            tradelock::book &book) {
        book.line("insert ledger");
        if (attempt->key.serial_no == late && failures++ < 2)
            throw std::runtime_error("half-way");
    };
    flow.book_failure = [&](const tradelock::attempt &, const tl_reply &, tl_proof,
                            tradelock::book &) {
        if (declines++ < 2)
            throw std::runtime_error("cannot give it back");
    };
    const auto execute = flow.execute;
    flow.execute = [&, execute](const tradelock::attempt &attempt, tradelock::reply &reply) {
        if (attempt->key.serial_no != lost)
            return execute(attempt, reply);
        reply.remark("closed");
        return TL_EXECUTE_DECLINED;
    };
    flow.query = [&](const tradelock::attempt &attempt, tradelock::reply &) {
        return attempt->key.serial_no == lost    ? TL_QUERY_FAILED
               : bank.paid(attempt->channel_key) ? TL_QUERY_SUCCEEDED
                                                 : TL_QUERY_NOT_FOUND;
    };
    workflows.add(flow);
    tradelock::answer answer = pay(workflows, refused, "BOOKED");
    EXPECT(answer.status() == TL_REFUSED && answer.not_paid());
    EXPECT(std::string(answer->remark) == "too little money");
    answer = pay(workflows, broken, "BOOKED");
    EXPECT(answer.status() == TL_CALLBACK_FAILED);
    EXPECT(std::string(answer.message()).find("the callback threw: no idea") != std::string::npos);
    EXPECT(look(client, refused, "BOOKED").status == ' ');
    EXPECT(look(client, broken, "BOOKED").status == ' ');
    EXPECT(bank.count() == 0);

    answer = pay(workflows, late, "BOOKED");
    EXPECT(!answer.paid() && !answer.not_paid());
    EXPECT(look(client, late, "BOOKED").status == 'P' && booked(late) == 0);
    // Nor is a failure booked that cannot be booked whole.
    answer = pay(workflows, lost, "BOOKED");
    EXPECT(!answer.paid() && !answer.not_paid() && look(client, lost, "BOOKED").status == 'P');
    tradelock::worker worker(workflows);
    await_paid(client, late, "BOOKED");
    for (int i = 0; i < 2400 && look(client, lost, "BOOKED").status != 'F'; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(25));
    EXPECT(look(client, lost, "BOOKED").status == 'F' && declines == 3 && booked(lost) == 0);
    EXPECT(bank.sends.size() == 1);
}

int insert(st_mysql *connection, const std::string &of)
{
    const std::string sql =
        "INSERT INTO ledger (serial_no, cust_no, amount_minor) VALUES ('" + of + "', 'C1', 1)";

    return mysql_query(connection, sql.c_str());
}

// The same with rows on the library's connection.
void test_rows_throw()
{
    channel bank;
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    tradelock::workflow flow = paying(bank, "ROWS");
    const std::string refused = serial(), broken = serial(), late = serial(), lost = serial();
    std::atomic<int> failures{0}, declines{0};

    flow.statements.clear();
    flow.book_success = nullptr;
    flow.sql_prepare = [&](const tradelock::attempt &attempt, tradelock::reply &,
                       st_mysql *connection) -> tl_status {
        const std::string of = attempt->key.serial_no;

        if (of != refused && of != broken)
            return TL_OK;
        EXPECT(insert(connection, of) == 0);
        if (of == refused)
            throw tradelock::refused("not today");
        throw 1;
    };
    flow.sql_success = [&](const tradelock::attempt &attempt, const tl_reply &,
                             st_mysql *connection) {
        EXPECT(insert(connection, attempt->key.serial_no) == 0);
        if (attempt->key.serial_no == late && failures++ < 2)
            throw std::runtime_error("half-way");
        return TL_OK;
    };
    flow.sql_failure = [&](const tradelock::attempt &attempt, const tl_reply &, tl_proof,
                             st_mysql *connection) {
        EXPECT(insert(connection, attempt->key.serial_no) == 0);
        if (declines++ < 1)
            throw std::runtime_error("half-way back");
        return TL_OK;
    };
    const auto execute = flow.execute;
    flow.execute = [&, execute](const tradelock::attempt &attempt, tradelock::reply &reply) {
        return attempt->key.serial_no == lost ? TL_EXECUTE_DECLINED : execute(attempt, reply);
    };
    flow.query = [&](const tradelock::attempt &attempt, tradelock::reply &) {
        return attempt->key.serial_no == lost ? TL_QUERY_FAILED : TL_QUERY_SUCCEEDED;
    };
    workflows.add(flow);
    EXPECT(pay(workflows, refused, "ROWS").status() == TL_REFUSED && booked(refused) == 0);
    EXPECT(pay(workflows, broken, "ROWS").status() == TL_CALLBACK_FAILED && booked(broken) == 0);
    EXPECT(look(client, broken, "ROWS").status == ' ' && bank.count() == 0);
    tradelock::answer answer = pay(workflows, late, "ROWS");
    EXPECT(!answer.paid() && !answer.not_paid() && booked(late) == 0);
    answer = pay(workflows, lost, "ROWS");
    EXPECT(!answer.paid() && !answer.not_paid() && booked(lost) == 0);
    tradelock::worker worker(workflows);
    await_paid(client, late, "ROWS");
    for (int i = 0; i < 2400 && look(client, lost, "ROWS").status != 'F'; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(25));
    EXPECT(look(client, lost, "ROWS").status == 'F' && booked(lost) == 1);
}

// A log that throws is not heard, and changes nothing.
void test_log_throws()
{
    channel bank;
    tradelock::client_options options(config.c_str());
    std::atomic<int> lines{0};

    options.log = [&](const tl_log_line &) {
        lines++;
        throw std::runtime_error("the disk is full");
    };
    tradelock::client client(options);
    tradelock::workflows workflows(client);
    const std::string of = serial();

    workflows.add(paying(bank, "LOGGED"));
    EXPECT(pay(workflows, of, "LOGGED").status() == TL_SUCCEEDED);
    EXPECT(lines > 0 && booked(of) == 1);
}

// A thread that ends inside a callback is no exception, and ends its process.
void test_thread_ends()
{
    const std::string of = serial();
    const pid_t child = fork();

    if (child == 0) {
        tradelock::client client = open();
        tradelock::workflows workflows(client);
        channel bank;
        tradelock::workflow flow = paying(bank, "ENDED");

        flow.execute = [](const tradelock::attempt &, tradelock::reply &) -> tl_execute_result {
            pthread_exit(nullptr);
        };
        workflows.add(flow);
        pay(workflows, of, "ENDED");
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    EXPECT(WTERMSIG(status) == SIGABRT);

    channel bank;
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    workflows.add(paying(bank, "ENDED"));
    tradelock::worker worker(workflows);
    await_paid(client, of, "ENDED");
}

// A moved-from object holds nothing, and no call of it does anything.
void test_moved()
{
    channel bank;
    tradelock::client first = open();
    tradelock::client client = std::move(first);
    EXPECT(first.get() == nullptr && client.get() != nullptr);
    try {
        tradelock::workflows none(first);
        EXPECT(false);
    } catch (const tradelock::caller_error &wrong) {
        EXPECT(wrong.status() == TL_INVALID);
        EXPECT(std::string(wrong.what()).find("TL_INVALID: ") == 0);
    }
    tradelock::workflows early(client);
    early.add(paying(bank, "MOVED"));
    tradelock::workflows workflows = std::move(early);
    const std::string of = serial(), other = serial(), held = serial();
    EXPECT(pay(early, of, "MOVED").status() == TL_INVALID);
    try {
        early.add(paying(bank, "MOVED"));
        EXPECT(false);
    } catch (const tradelock::caller_error &wrong) {
        EXPECT(wrong.status() == TL_WRONG_STATE);
    }
    EXPECT(bank.count() == 0 && look(client, of, "MOVED").status == ' ');

    tradelock::worker begun(workflows);
    tradelock::worker worker = std::move(begun);
    begun.stop();
    EXPECT(begun.wait(0) == TL_INVALID && worker.wait(0) == TL_TIMEOUT);
    tradelock::answer answer = pay(workflows, of, "MOVED");
    tradelock::answer moved = std::move(answer);
    EXPECT(moved.status() == TL_SUCCEEDED && moved.result() == "1 EUR");
    EXPECT(answer.status() == TL_WRONG_STATE && !answer.paid() && !answer.not_paid());
    EXPECT(answer.result().empty() && answer->view == nullptr && answer.message()[0] == '\0');
    EXPECT(workflows.settle(answer) == TL_WRONG_STATE && workflows.settle(moved) == TL_WRONG_STATE);
    /* There was nothing to settle: it is paid as before. */
    EXPECT(moved.paid() && !moved.not_paid() && moved.status() == TL_SUCCEEDED);
    answer = pay(workflows, other, "MOVED");
    EXPECT(answer.status() == TL_SUCCEEDED);

    tradelock::lock asked(client, {held.c_str(), "C1", "HELD"}, tradelock::lock_options(60000));
    EXPECT(asked.ask() == TL_GRANTED);
    tradelock::lock lock = std::move(asked);
    EXPECT(asked.ask() == TL_INVALID && !asked.may_send(1) && asked.remaining_ms() == 0);
    EXPECT(asked.view().status == ' ' &&
           asked.finish(tradelock::ending(TL_OUTCOME_SUCCESS)) == TL_INVALID);
    EXPECT(lock.may_send(1) && lock.view().status == 'P');
    EXPECT(lock.finish(tradelock::ending(TL_OUTCOME_SUCCESS)) == TL_SUCCEEDED);
}

// A hold that nobody finished is in doubt at once, not when its max_hold is over.
void test_locks()
{
    tradelock::client client = open();
    const std::string left = serial(), rows = serial(), broken = serial();

    try {
        tradelock::lock lock(client, {left.c_str(), "C1", "LEFT"}, tradelock::lock_options(60000));
        EXPECT(lock.ask() == TL_GRANTED);
        throw std::runtime_error("out of the middle");
    } catch (const std::runtime_error &) {
    }
    EXPECT(look(client, left, "LEFT").state == TL_STATE_IN_DOUBT);

    tradelock::lock lock(client, {broken.c_str(), "C1", "LEFT"}, tradelock::lock_options(60000));
    EXPECT(lock.ask_with([&](st_mysql *connection) -> tl_status {
        EXPECT(insert(connection, broken) == 0);
        throw std::runtime_error("half-way");
    }) == TL_CALLBACK_FAILED);
    EXPECT(lock.ask_with([&](st_mysql *) -> tl_status { throw tradelock::refused("no"); }) ==
           TL_REFUSED);
    EXPECT(booked(broken) == 0 && look(client, broken, "LEFT").status == ' ');
    tradelock::lock other(client, {rows.c_str(), "C1", "LEFT"}, tradelock::lock_options(60000));
    EXPECT(other.ask() == TL_GRANTED);
    const tradelock::ending success(TL_OUTCOME_SUCCESS);
    int calls = 0;
    EXPECT(other.finish_with(
               success, [&](st_mysql *) -> tl_status { throw calls++; }, 1000) ==
           TL_CALLBACK_FAILED);
    EXPECT(other.finish_with(
               success,
               [&](st_mysql *connection) {
                   calls++;
                   return insert(connection, rows) == 0 ? TL_OK : TL_ROLL_BACK;
               },
               1000) == TL_SUCCEEDED);
    EXPECT(calls == 2 && booked(rows) == 1 && look(client, rows, "LEFT").status == 'Y');
    try {
        tradelock::lock wrong(client, {"", "C1", "LEFT"}, tradelock::lock_options(60000));
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID);
    }
}

/* ------------------------------------------------------------------ other locks -- */

// A connection of the test's own, in an open transaction; rolled back with it.
struct transaction {
    MYSQL *connection = mysql_init(nullptr);

    transaction()
    {
        mysql_optionsv(connection, MYSQL_READ_DEFAULT_FILE, config.c_str());
        EXPECT(mysql_real_connect(connection, nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0));
        run("BEGIN");
    }
    transaction(const transaction &) = delete;
    transaction &operator=(const transaction &) = delete;
    ~transaction()
    {
        mysql_close(connection);
    }
    void run(const char *sql)
    {
        EXPECT(mysql_query(connection, sql) == 0);
    }
};

void test_mutex()
{
    tradelock::client client = open();
    const std::string of = "mutex/" + serial(), also = "mutex/" + serial();
    const tradelock::mutex_options options(60000);

    // What is thrown out of the middle leaves nothing locked.
    tradelock::mutex other(client, of.c_str(), options);
    try {
        tradelock::mutex mutex(client, of.c_str(), options);
        EXPECT(mutex.lock(0) == TL_GRANTED && mutex.depth() == 1 && mutex.fence() > 0);
        EXPECT(mutex.lock(0) == TL_GRANTED && mutex.depth() == 2);
        EXPECT(mutex.unlock() == TL_OK && mutex.remaining_ms() > 0);
        EXPECT(other.lock(0) == TL_BUSY && of == other.view().resource);
        throw std::runtime_error("out of the middle");
    } catch (const std::runtime_error &) {
    }
    EXPECT(other.lock(0) == TL_GRANTED);

    // Moved: the hold goes with it, and what it replaces is unlocked.
    tradelock::mutex moved = std::move(other);
    EXPECT(other.get() == nullptr && other.lock(0) == TL_INVALID && other.unlock() == TL_INVALID);
    EXPECT(other.renew(1000) == TL_INVALID && other.guard(nullptr) == TL_INVALID);
    EXPECT(other.remaining_ms() == 0 && other.depth() == 0 && other.fence() == 0);
    EXPECT(other.view().resource[0] == '\0' && moved.depth() == 1);
    tradelock::mutex set(client, std::vector<std::string>{of, also}, options);
    EXPECT(set.lock(0) == TL_BUSY && set.fence(also.c_str()) == 0);
    moved = tradelock::mutex(client, also.c_str(), options);
    EXPECT(moved.lock(0) == TL_GRANTED && set.lock(0) == TL_BUSY);
    EXPECT(moved.unlock() == TL_OK && moved.unlock() == TL_RELEASED);
    EXPECT(set.lock(0) == TL_GRANTED && set.fence(also.c_str()) > 0 && set.fence(of.c_str()) > 0);
    other = std::move(set);
    EXPECT(set.unlock() == TL_INVALID && other.unlock() == TL_OK);

    for (const char *wrong : {"", "with a blank"}) {
        try {
            tradelock::mutex none(client, wrong, options);
            EXPECT(false);
        } catch (const tradelock::caller_error &thrown) {
            EXPECT(thrown.status() == TL_INVALID);
        }
    }
    try {
        tradelock::mutex none(client, std::vector<std::string>(), options);
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID);
    }
    const tradelock::client gone = std::move(client);
    try {
        tradelock::mutex none(client, of.c_str(), options);
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID);
    }
}

// A lease that is over is told to a lambda, whose exception goes nowhere; and no late holder gets
// past the guard.
void test_a_lease_is_over()
{
    tradelock::client client = open();
    const std::string of = "mutex/" + serial();
    std::atomic<int> told{0}, why{0};
    tradelock::mutex_options options(60000);

    options.loss = [&](const char *resource, tl_status status) {
        why = of == resource ? status : TL_INTERNAL;
        told++;
        throw std::runtime_error("nobody hears this");
    };
    auto kept = std::make_unique<tradelock::mutex>(client, of.c_str(), options);
    options.loss = nullptr;
    EXPECT(kept->lock(0) == TL_GRANTED);
    {
        transaction business;
        EXPECT(kept->guard(business.connection, TL_GUARD_ANY_IDLE) == TL_OK);
        business.run("COMMIT");
        EXPECT(kept->guard(business.connection, TL_GUARD_ANY_IDLE) == TL_NO_TRANSACTION);
    }
    EXPECT(kept->renew(300) == TL_OK && told == 0);
    // In another place, the lambda is still the same.
    tradelock::mutex mutex = std::move(*kept);
    kept.reset();
    until([&] { return told > 0; });
    EXPECT(told == 1 && why == TL_TIMEOUT && mutex.remaining_ms() == 0);
    tradelock::mutex next(client, of.c_str(), options);
    EXPECT(next.lock(10000) == TL_GRANTED);
    {
        transaction business;
        EXPECT(mutex.guard(business.connection, TL_GUARD_ANY_IDLE) == TL_ROLL_BACK);
    }
    EXPECT(mutex.unlock() == TL_LOST && next.unlock() == TL_OK && told == 1);
}

// Threads that each have their own; the client goes before the last of them.
void test_many_threads()
{
    const std::string of = "mutex/" + serial();
    std::vector<std::thread> threads;
    std::vector<tradelock::mutex> mutexes;
    int count = 0;
    {
        tradelock::client client = open();
        for (int i = 0; i < 4; i++)
            mutexes.emplace_back(client, of.c_str(), tradelock::mutex_options(60000));
    }
    for (tradelock::mutex &mutex : mutexes)
        threads.emplace_back([&] {
            for (int i = 0; i < 5; i++) {
                EXPECT(mutex.lock(60000) == TL_GRANTED);
                count++;
                EXPECT(mutex.unlock() == TL_OK);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT(count == 20);
}

void test_rw_lock()
{
    tradelock::client client = open();
    const std::string of = "loan/" + serial();
    const tradelock::rw_options options(60000);
    tradelock::rw_lock writer(client, of.c_str(), options);

    try {
        tradelock::rw_lock one(client, of.c_str(), options), two(client, of.c_str(), options);
        EXPECT(one.read(0) == TL_GRANTED && two.read(0) == TL_GRANTED && one.fence() > 0);
        EXPECT(one.held() == TL_RW_READ && one.write(0) == TL_WOULD_UPGRADE);
        EXPECT(writer.write(0) == TL_BUSY && of == writer.view().resource);
        {
            transaction business;
            EXPECT(one.done(business.connection, TL_GUARD_ANY_IDLE) == TL_OK);
            business.run("COMMIT");
        }
        EXPECT(one.unlock() == TL_OK && one.unlock() == TL_RELEASED);
        throw std::runtime_error("out of the middle");
    } catch (const std::runtime_error &) {
    }
    EXPECT(writer.write(0) == TL_GRANTED && writer.held() == TL_RW_WRITE);

    tradelock::rw_lock moved = std::move(writer);
    EXPECT(writer.get() == nullptr && writer.read(0) == TL_INVALID);
    EXPECT(writer.write(0) == TL_INVALID && writer.unlock() == TL_INVALID);
    EXPECT(writer.downgrade() == TL_INVALID && writer.renew(1000) == TL_INVALID);
    EXPECT(writer.done(nullptr) == TL_INVALID && writer.guard(nullptr) == TL_INVALID);
    EXPECT(writer.remaining_ms() == 0 && writer.fence() == 0 && writer.held() == TL_RW_NONE);
    EXPECT(writer.view().resource[0] == '\0' && moved.remaining_ms() > 0);
    {
        transaction business;
        EXPECT(moved.guard(business.connection, TL_GUARD_ANY_IDLE) == TL_OK);
    }
    tradelock::rw_lock reader(client, of.c_str(), options);
    EXPECT(reader.read(0) == TL_BUSY && moved.downgrade() == TL_OK);
    EXPECT(reader.read(0) == TL_GRANTED && moved.renew(30000) == TL_OK);
    // What it replaces is unlocked.
    moved = tradelock::rw_lock(client, ("other/" + of).c_str(), options);
    EXPECT(reader.unlock() == TL_OK);
    writer = std::move(reader);
    EXPECT(writer.write(0) == TL_GRANTED);
    try {
        tradelock::rw_lock none(client, "", options);
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID);
    }
    // Their client goes before them.
    tradelock::client(std::move(client));
}

void test_row_lock()
{
    tradelock::client client = open();
    const std::string of = "row/" + serial();
    transaction one, two;

    EXPECT(tradelock::row_lock(client, of.c_str(), one.connection, TL_ROW_LOCK_NOWAIT,
                               TL_GUARD_ANY_IDLE) == TL_GRANTED);
    EXPECT(tradelock::row_lock(client, of.c_str(), two.connection, TL_ROW_LOCK_NOWAIT,
                               TL_GUARD_ANY_IDLE) == TL_ROLL_BACK);
    two.run("ROLLBACK");
    EXPECT(tradelock::row_lock(client, of.c_str(), two.connection, TL_ROW_LOCK_NOWAIT,
                               TL_GUARD_ANY_IDLE) == TL_NO_TRANSACTION);
    one.run("COMMIT");
    two.run("BEGIN");
    EXPECT(tradelock::row_lock(client, of.c_str(), two.connection, TL_ROW_LOCK_BLOCK,
                               TL_GUARD_ANY_IDLE) == TL_GRANTED);
    const tradelock::client gone = std::move(client);
    EXPECT(tradelock::row_lock(client, of.c_str(), two.connection) == TL_INVALID);
}

// Whatever order they are destroyed in, nothing is left and nothing is used that is gone.
void test_order()
{
    channel bank;
    std::optional<tradelock::answer> answer;
    std::optional<tradelock::worker> worker;
    const std::string of = serial(), again = serial();
    {
        tradelock::client client = open();
        tradelock::workflows workflows(client);

        workflows.add(paying(bank, "ORDER"));
        answer = pay(workflows, of, "ORDER");
        worker.emplace(workflows);
    }
    EXPECT(answer->paid() && worker->wait(0) == TL_TIMEOUT);
    worker.reset();
    EXPECT(answer->result() == "1 EUR");
    answer.reset();

    // A worker that takes another's place.
    {
        tradelock::client one = open(), two = open();
        tradelock::workflows first(one), second(two);

        first.add(paying(bank, "ORDER"));
        second.add(paying(bank, "ORDER"));
        worker.emplace(first);
        *worker = tradelock::worker(second);
    }
    EXPECT(worker->wait(0) == TL_TIMEOUT && worker->counts().lost == 0);
    worker.reset();

    // And one after the other.
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    workflows.add(paying(bank, "ORDER"));
    client = open();
    EXPECT(pay(workflows, again, "ORDER").paid());
    workflows = tradelock::workflows(client);
    EXPECT(pay(workflows, serial(), "ORDER").status() == TL_UNKNOWN_OPERATION);
}

void test_errors()
{
    channel bank;

    try {
        tradelock::client(tradelock::client_options("/nonexistent/tradelock.cnf"));
        EXPECT(false);
    } catch (const tradelock::error &wrong) {
        EXPECT(wrong.status() == TL_BAD_CONFIG);
    }
    tradelock::client client = open();
    tradelock::workflows workflows(client);
    try {
        tradelock::worker worker(workflows);
        EXPECT(false);
    } catch (const tradelock::caller_error &wrong) {
        EXPECT(wrong.status() == TL_UNKNOWN_OPERATION);
    }
    tradelock::workflow unsafe = paying(bank, "UNSAFE");
    unsafe.channel.idempotent = 0;
    unsafe.query = nullptr;
    unsafe.channel.can_query = 0;
    try {
        workflows.add(unsafe);
        EXPECT(false);
    } catch (const tradelock::caller_error &wrong) {
        EXPECT(wrong.status() == TL_UNSAFE);
    }
    tradelock::workflow nothing;
    nothing.op_code = "NOTHING";
    try {
        workflows.add(nothing);
        EXPECT(false);
    } catch (const tradelock::caller_error &wrong) {
        EXPECT(wrong.status() == TL_INVALID);
    }
    EXPECT(!pay(workflows, serial(), "UNSAFE").not_paid());
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    config = argv[1];
    name = argv[2];
    for (char &each : name)
        each = each == '+' ? 'p' : each;
    test_errors();
    test_double_tap();
    test_temporaries();
    test_execute_throws();
    test_query_throws();
    test_former_channels();
    test_books_throw();
    test_rows_throw();
    test_log_throws();
    test_thread_ends();
    test_moved();
    test_locks();
    test_mutex();
    test_a_lease_is_over();
    test_many_threads();
    test_rw_lock();
    test_row_lock();
    test_order();
    std::printf("%s: %d trades, as they should be\n", name.c_str(), number);
    return 0;
}
