// wrapper CONFIG FLEET NAME: the C++ wrapper against a real server, and against a fleet of two
// shards, a and b.  NAME keeps two runs apart.
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
#include <poll.h>
#include <pthread.h>
#include <thread>
#include <tuple>

namespace
{

std::string config, fleet_config, name;
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
    return tradelock::client{tradelock::client_options{config.c_str()}};
}

const tradelock::statement insert_ledger{"insert ledger",
                                         "INSERT INTO ledger (serial_no, cust_no, amount_minor,"
                                         " channel_ref)"
                                         " VALUES (:serial_no, :cust_no, 1, :channel_ref)"};

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
    return workflows.run(tradelock::request{{of.c_str(), "C1", op.c_str()}, "1 EUR"});
}

void test_double_tap()
{
    channel bank;
    tradelock::client client = open();
    tradelock::workflows workflows{client};
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
    EXPECT(again.result() == "1 EUR" && again->view.channel_ref == "R-" + of);
    EXPECT(std::string(again.name()) == "TL_ALREADY_DONE" && !again->own);
    EXPECT(booked(of) == 1);
    // Other contents under the same key.
    EXPECT(workflows.run(tradelock::request{{of, "C1", "TAP"}, "2 EUR"}).status() == TL_MISMATCH);
    // A second tap that is wrong, or that nobody serves, says nothing of the first.
    tradelock::request wrong{{of, "C1", "TAP"}, "1 EUR"};
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
static_assert(apart<tradelock::rw_options, tl_rw_options> && apart<tradelock::trade, tl_trade>);
static_assert(apart<tradelock::trades, tl_trades> && apart<tradelock::answer, tl_answer>);

// A text that is gone when the statement is over; too long for a place within the string itself.
std::string gone(const std::string &text)
{
    return text + "-of-a-temporary-that-is-gone";
}

tradelock::client_options options_of_temporaries()
{
    tradelock::client_options options{(config + "").c_str()};

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
    flow.statements.push_back(tradelock::statement{
        gone("insert").c_str(), std::string("INSERT INTO ledger (serial_no, cust_no, amount_minor)"
                                            " VALUES (:serial_no, :cust_no, :some)")
                                    .c_str()});
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
    tradelock::client client{options_of_temporaries()};
    tradelock::workflows workflows{client};

    workflows.add(flow_of_temporaries(paid));
    tradelock::request request{{gone(of).c_str(), gone("C").c_str(), "TEMPORARY_OPERATION"},
                               gone("1250 EUR DE89370400440532013001")};
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

    tradelock::lock_options options{60000};
    options.payload = gone("payload");
    options.channel = std::string("channel-of-a-temporary").c_str();
    options.batch = gone("batch").c_str();
    options.actor = gone("actor").c_str();
    tradelock::ending ending{TL_OUTCOME_SUCCESS};
    ending.channel_ref = gone("ref").c_str();
    ending.result = gone("result");
    ending.remark = gone("remark").c_str();
    others.assign(64, gone("another text that stands there"));
    tradelock::lock lock{client, {serial().c_str(), gone("C").c_str(), "LOCK"}, options};
    EXPECT(lock.ask() == TL_GRANTED && lock.view().batch == gone("batch"));
    EXPECT(lock.view().channel == std::string("channel-of-a-temporary"));
    EXPECT(lock.finish(ending) == TL_SUCCEEDED && lock.view().channel_ref == gone("ref"));
    EXPECT(lock.view().result_size == gone("result").size());

    tradelock::mutex_options held{60000};
    tradelock::rw_options shared{60000};
    held.payload = gone("payload");
    held.remark = shared.remark = gone("remark").c_str();
    others.assign(64, gone("another text that stands there"));
    tradelock::mutex mutex{client, gone("mutex/" + of).c_str(), held};
    tradelock::rw_lock rw{client, gone("rw/" + of).c_str(), shared};
    EXPECT(mutex.lock(0) == TL_GRANTED && rw.write(0) == TL_GRANTED);
    EXPECT(rows_of("resource_lock WHERE resource = '" + gone("mutex/" + of) + "' AND remark = '" +
                   gone("remark") + "' AND payload = '" + gone("payload") + "'") == 1);
    EXPECT(rows_of("resource_holder WHERE resource = '" + gone("rw/" + of) + "' AND remark = '" +
                   gone("remark") + "'") == 1);
    // What C would cut names another trade.
    try {
        tradelock::request cut{{std::string("W1\0 of another", 14), "C1", "TAP"}, "1 EUR"};
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
    tradelock::workflows workflows{client};
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
            throw tradelock::refused{"not here"};
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
    tradelock::worker worker{workflows};
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
    tradelock::workflows workflows{client};
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
    tradelock::worker worker{workflows};
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
        tradelock::workflows workflows{client};
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
    tradelock::workflows workflows{client};
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
    now = tradelock::workflow{};
    tradelock::worker worker{workflows};
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
    tradelock::workflows workflows{client};
    tradelock::workflow flow = paying(bank, "BOOKED");
    const std::string refused = serial(), broken = serial(), late = serial(), lost = serial();
    std::atomic<int> failures{0}, declines{0};

    flow.book_prepare = [&](const tradelock::attempt &attempt, tradelock::reply &,
                            tradelock::book &) {
        if (attempt->key.serial_no == refused)
            throw tradelock::refused{"too little money"};
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
    EXPECT(std::string(answer->view.remark) == "too little money");
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
    tradelock::worker worker{workflows};
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
    tradelock::workflows workflows{client};
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
            throw tradelock::refused{"not today"};
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
    tradelock::worker worker{workflows};
    await_paid(client, late, "ROWS");
    for (int i = 0; i < 2400 && look(client, lost, "ROWS").status != 'F'; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(25));
    EXPECT(look(client, lost, "ROWS").status == 'F' && booked(lost) == 1);
}

// A log that throws is not heard, and changes nothing.
void test_log_throws()
{
    channel bank;
    tradelock::client_options options{config.c_str()};
    std::atomic<int> lines{0};

    options.log = [&](const tl_log_line &) {
        lines++;
        throw std::runtime_error("the disk is full");
    };
    tradelock::client client{options};
    tradelock::workflows workflows{client};
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
        tradelock::workflows workflows{client};
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
    tradelock::workflows workflows{client};
    workflows.add(paying(bank, "ENDED"));
    tradelock::worker worker{workflows};
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
        tradelock::workflows none{first};
        EXPECT(false);
    } catch (const tradelock::caller_error &wrong) {
        EXPECT(wrong.status() == TL_INVALID);
        EXPECT(std::string(wrong.what()).find("TL_INVALID: ") == 0);
    }
    tradelock::workflows early{client};
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

    tradelock::worker begun{workflows};
    tradelock::worker worker = std::move(begun);
    begun.stop();
    EXPECT(begun.wait(0) == TL_INVALID && worker.wait(0) == TL_TIMEOUT);
    tradelock::answer answer = pay(workflows, of, "MOVED");
    tradelock::answer moved = std::move(answer);
    EXPECT(moved.status() == TL_SUCCEEDED && moved.result() == "1 EUR");
    EXPECT(answer.status() == TL_WRONG_STATE && !answer.paid() && !answer.not_paid());
    EXPECT(answer.result().empty() && answer->view.epoch == 0 && answer.message()[0] == '\0');
    EXPECT(workflows.settle(answer) == TL_WRONG_STATE && workflows.settle(moved) == TL_WRONG_STATE);
    /* There was nothing to settle: it is paid as before. */
    EXPECT(moved.paid() && !moved.not_paid() && moved.status() == TL_SUCCEEDED);
    answer = pay(workflows, other, "MOVED");
    EXPECT(answer.status() == TL_SUCCEEDED);

    tradelock::lock asked{client, {held.c_str(), "C1", "HELD"}, tradelock::lock_options{60000}};
    EXPECT(asked.ask() == TL_GRANTED);
    tradelock::lock lock = std::move(asked);
    EXPECT(asked.ask() == TL_INVALID && !asked.may_send(1) && asked.remaining_ms() == 0);
    EXPECT(asked.view().status == ' ' &&
           asked.finish(tradelock::ending{TL_OUTCOME_SUCCESS}) == TL_INVALID);
    EXPECT(lock.may_send(1) && lock.view().status == 'P');
    EXPECT(lock.finish(tradelock::ending{TL_OUTCOME_SUCCESS}) == TL_SUCCEEDED);
}

// A hold that nobody finished is in doubt at once, not when its max_hold is over.
void test_locks()
{
    tradelock::client client = open();
    const std::string left = serial(), rows = serial(), broken = serial();

    try {
        tradelock::lock lock{client, {left.c_str(), "C1", "LEFT"}, tradelock::lock_options{60000}};
        EXPECT(lock.ask() == TL_GRANTED);
        throw std::runtime_error("out of the middle");
    } catch (const std::runtime_error &) {
    }
    EXPECT(look(client, left, "LEFT").state == TL_STATE_IN_DOUBT);

    tradelock::lock lock{client, {broken.c_str(), "C1", "LEFT"}, tradelock::lock_options{60000}};
    EXPECT(lock.ask_with([&](st_mysql *connection) -> tl_status {
        EXPECT(insert(connection, broken) == 0);
        throw std::runtime_error("half-way");
    }) == TL_CALLBACK_FAILED);
    EXPECT(lock.ask_with([&](st_mysql *) -> tl_status { throw tradelock::refused{"no"}; }) ==
           TL_REFUSED);
    EXPECT(booked(broken) == 0 && look(client, broken, "LEFT").status == ' ');
    tradelock::lock other{client, {rows.c_str(), "C1", "LEFT"}, tradelock::lock_options{60000}};
    EXPECT(other.ask() == TL_GRANTED);
    const tradelock::ending success{TL_OUTCOME_SUCCESS};
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
        tradelock::lock wrong{client, {"", "C1", "LEFT"}, tradelock::lock_options{60000}};
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID);
    }
}

/* -------------------------------------------------------------------- questions -- */

// What the channel asks for stands in the row, in place of the schedule's first second.
void test_retry_after()
{
    channel bank;
    tradelock::client client = open();
    tradelock::workflows workflows{client};
    tradelock::workflow flow = paying(bank, "LATER");
    const std::string of = serial();
    bool refused = false;

    flow.execute = [&](const tradelock::attempt &, tradelock::reply &reply) {
        reply.retry_after(30000);
        try {
            reply.retry_after(-1);
        } catch (const tradelock::caller_error &thrown) {
            refused = thrown.status() == TL_INVALID;
        }
        return TL_EXECUTE_RETRY_LATER;
    };
    workflows.add(flow);
    tradelock::answer answer = pay(workflows, of, "LATER");
    EXPECT(refused && answer.status() == TL_QUEUED && answer->next_look_ms > 10000);
    EXPECT(rows_of("trade_lock WHERE lane = 'R' AND serial_no = '" + of +
                   "' AND next_run_at > updated_at + INTERVAL 20 SECOND") == 1);
}

tradelock::trades of_batch(const std::string &batch)
{
    tradelock::trades which;

    which.batch = batch.c_str();
    which.limit = 2;
    return which;
}

// A front reads what became of its trades: without a session, and with nothing registered.
void test_questions()
{
    channel bank;
    tradelock::client client = open();
    tradelock::client_options options{config.c_str()};
    options.flags = TL_CLIENT_NO_SESSION;
    tradelock::client reader{options};
    tradelock::workflows workflows{client}, front{reader};
    tradelock::workflow flow = paying(bank, "ASKED_FOR");
    const std::string doubtful = serial(), batch = gone(serial());
    std::vector<std::string> all{doubtful, serial(), serial()}, listed;

    flow.execute = [&, execute = flow.execute](const tradelock::attempt &attempt,
                                               tradelock::reply &reply) {
        const tl_execute_result result = execute(attempt, reply);
        return attempt->key.serial_no == doubtful ? TL_EXECUTE_UNKNOWN : result;
    };
    workflows.add(flow);
    for (const std::string &of : all) {
        tradelock::request request{{of, "C1", "ASKED_FOR"}, "2 EUR"};
        request.amount_minor = 200;
        request.currency = "EUR";
        request.batch = batch;
        workflows.run(request);
    }
    tradelock::trade trade = front.look({all[1], "C1", "ASKED_FOR"});
    EXPECT(trade.status() == TL_SUCCEEDED && trade.paid() && trade.message().empty());
    EXPECT(trade.result() == "2 EUR" && trade->channel_ref == "R-" + all[1]);
    trade = front.look({doubtful, "C1", "ASKED_FOR"});
    EXPECT(trade.status() == TL_IN_DOUBT && !trade.paid() && !trade.not_paid());
    EXPECT(front.await({doubtful, "C1", "ASKED_FOR"}, 0).status() == TL_IN_DOUBT);
    trade = front.look({"NOBODY", "C1", "ASKED_FOR"});
    EXPECT(trade.status() == TL_NOT_FOUND && !trade.not_paid() && !trade.message().empty());
    EXPECT(std::string(trade.name()) == "TL_NOT_FOUND");

    const auto note = [&](const tl_trade &each) { listed.push_back(each.serial_no); };
    tradelock::trades which = of_batch(batch);
    which.after = front.list(which, note);
    EXPECT(listed.size() == 2 && which.after.get()[0] != '\0');
    EXPECT(front.list(which, note).empty() && listed.size() == 3);
    int calls = 0;
    try {
        front.list(of_batch(batch), [&](const tl_trade &) { throw ++calls; });
        EXPECT(false);
    } catch (int thrown) {
        EXPECT(thrown == 1 && calls == 1);
    }

    tradelock::worker worker{workflows};
    EXPECT(front.await({doubtful, "C1", "ASKED_FOR"}, 60000).paid() && booked(doubtful) == 1);
    std::string sums;
    const tl_batch_total total = front.batch(batch, [&](const tl_batch_sum &sum) {
        sums += std::string(tl_status_name(sum.status)) + " " + sum.sum_minor + " " + sum.currency;
    });
    EXPECT(total.trades == 3 && total.succeeded == 3 && total.complete);
    EXPECT(sums == "TL_SUCCEEDED 600 EUR");
    try {
        front.batch("none of this name", [](const tl_batch_sum &) {});
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_NOT_FOUND);
    }
    try {
        front.list(tradelock::trades{}, note);
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID && std::string(thrown.sentence()).find("TL_") != 0);
    }
    tradelock::workflows moved = std::move(front);
    EXPECT(front.look({doubtful, "C1", "ASKED_FOR"}).status() == TL_INVALID);

    // It works, and says so to whoever watches it.
    until([&] { return worker.check() == TL_OK; });
    tradelock::worker other = std::move(worker);
    EXPECT(worker.check() == TL_INVALID);
    other.stop();
    EXPECT(other.check() == TL_WRONG_STATE);
}

/* ------------------------------------------------------------------- an event loop -- */

// Waits for one completion, as a loop does, and has its lambda called.
void complete_one(const tradelock::client &client)
{
    pollfd readable = {client.completed_fd(), POLLIN, 0};

    while (!client.complete())
        EXPECT(poll(&readable, 1, 60000) == 1);
}

struct submitting {
    channel bank;
    std::atomic<int> alarms{0};
    tradelock::client client = open_heard();
    tradelock::workflows workflows{client};
    std::map<std::string, tl_status> over;

    explicit submitting(const std::string &op)
    {
        workflows.add(paying(bank, op));
    }
    tradelock::client open_heard()
    {
        tradelock::client_options options{config.c_str()};

        options.log = [this](const tl_log_line &line) { alarms += line.level == TL_ALARM; };
        return tradelock::client{options};
    }
    // Submits it, with a request that is gone afterwards.
    tl_status submit(const std::string &of, const std::string &op,
                     std::function<void(tradelock::granted)> send)
    {
        return workflows.submit(tradelock::request{{of.c_str(), "C1", op.c_str()}, gone("1 EUR")},
                                std::move(send), [this, of](tradelock::answer answer) {
                                    EXPECT(over.emplace(of, answer.status()).second);
                                    if (answer.status() == TL_SUCCEEDED)
                                        EXPECT(answer.result() == gone("1 EUR"));
                                });
    }
    tl_status await(const std::string &of)
    {
        while (over.count(of) == 0)
            complete_one(client);
        return over[of];
    }
    // As a channel of the loop's own would.
    tl_execute_result pay(tradelock::granted &run)
    {
        const tradelock::attempt attempt = run.attempt();

        EXPECT(attempt.left_ms() > 0 && attempt.payload() == gone("1 EUR"));
        bank.pay(attempt->channel_key);
        run.reply().ref("R-" + std::string(attempt->key.serial_no));
        run.reply().result(attempt.payload());
        return TL_EXECUTE_SUCCEEDED;
    }
};

void test_submit()
{
    submitting loop{"LOOP"};
    std::vector<std::string> all;
    std::vector<tradelock::granted> sent;
    const std::string declined = serial();

    EXPECT(loop.client.completed_fd() >= 0 && !loop.client.complete());
    for (int i = 0; i < 20; i++) {
        all.push_back(serial());
        EXPECT(loop.submit(all.back(), "LOOP", [&](tradelock::granted run) {
            EXPECT(run.send_begin() == TL_OK && run.send_begin() == TL_WRONG_STATE);
            sent.push_back(std::move(run));
            EXPECT(run.send_begin() == TL_WRONG_STATE);
        }) == TL_OK);
    }
    while (sent.size() < all.size())
        complete_one(loop.client);
    // The channel answers in another order, and in another thread.
    std::thread other([&] {
        for (; !sent.empty(); sent.pop_back())
            EXPECT(sent.back().send_end(loop.pay(sent.back())) == TL_OK);
    });
    other.join();
    for (const std::string &of : all)
        EXPECT(loop.await(of) == TL_SUCCEEDED && booked(of) == 1);
    EXPECT(loop.bank.count() == all.size());

    // A second tap is over without a grant; a decline is no payment.
    loop.over.clear();
    EXPECT(loop.submit(all[0], "LOOP", [](tradelock::granted) { EXPECT(false); }) == TL_OK);
    EXPECT(loop.await(all[0]) == TL_ALREADY_DONE);
    EXPECT(loop.submit(declined, "LOOP", [](tradelock::granted run) {
        EXPECT(run.send_begin() == TL_OK);
        EXPECT(run.send_end(TL_EXECUTE_DECLINED) == TL_OK);
        EXPECT(run.send_end(TL_EXECUTE_DECLINED) == TL_WRONG_STATE);
        try {
            run.attempt();
            EXPECT(false);
        } catch (const tradelock::caller_error &thrown) {
            EXPECT(thrown.status() == TL_WRONG_STATE);
        }
    }) == TL_OK);
    EXPECT(loop.await(declined) == TL_FAILED && loop.bank.count() == all.size());

    // What is not submitted is not completed.
    tradelock::workflow rows = paying(loop.bank, "LOOP_ROWS");
    rows.statements.clear();
    rows.book_success = nullptr;
    rows.sql_success = [](const tradelock::attempt &, const tl_reply &, st_mysql *) {
        return TL_OK;
    };
    loop.workflows.add(rows);
    EXPECT(loop.submit(serial(), "LOOP_ROWS", nullptr) == TL_INVALID);
    EXPECT(loop.submit(serial(), "NOWHERE", nullptr) == TL_UNKNOWN_OPERATION);
    EXPECT(!loop.client.complete());
}

// What is granted is always ended, whatever becomes of it.
void test_submit_and_leave()
{
    std::optional<submitting> loop;
    const std::string dropped = serial(), begun = serial(), thrown = serial(), last = serial();

    loop.emplace("LEFT_LOOP");
    EXPECT(loop->submit(dropped, "LEFT_LOOP", [](tradelock::granted) {}) == TL_OK);
    EXPECT(loop->await(dropped) == TL_QUEUED);
    EXPECT(loop->submit(begun, "LEFT_LOOP", [](tradelock::granted run) {
        EXPECT(run.send_begin() == TL_OK);
        tradelock::granted other = std::move(run);
        run = std::move(other);
    }) == TL_OK);
    EXPECT(loop->await(begun) == TL_IN_DOUBT);
    EXPECT(loop->submit(thrown, "LEFT_LOOP", [&](tradelock::granted run) {
        EXPECT(run.send_begin() == TL_OK);
        loop->pay(run);
        throw std::runtime_error("out of the middle");
    }) == TL_OK);
    try {
        loop->await(thrown);
        EXPECT(false);
    } catch (const std::runtime_error &) {
    }
    EXPECT(loop->await(thrown) == TL_IN_DOUBT && loop->bank.count() == 1);
    {
        tradelock::worker worker{loop->workflows};
        for (const std::string &of : {dropped, begun, thrown})
            await_paid(loop->client, of, "LEFT_LOOP");
    }
    EXPECT(loop->bank.count() == 3);

    // A run keeps its registry until it is over.
    EXPECT(loop->submit(last, "LEFT_LOOP", [&](tradelock::granted run) {
        EXPECT(run.send_begin() == TL_OK);
        run.send_end(loop->pay(run));
    }) == TL_OK);
    loop->workflows = tradelock::workflows{loop->client};
    EXPECT(loop->await(last) == TL_SUCCEEDED && booked(last) == 1 && loop->alarms == 0);
}

/* ------------------------------------------------------------ what others have -- */

channel plugin_bank;

// As a plug-in does.  The text is what it is to do.
void add_plugin(const tradelock::client &client, tradelock::workflows &workflows, const char *what)
{
    const std::string todo = what;
    tradelock::workflow flow = paying(plugin_bank, "PLUGIN");

    flow.execute = [&client, execute = flow.execute, text = gone(todo)](
                       const tradelock::attempt &attempt, tradelock::reply &reply) {
        EXPECT(tl_client_alive_ms(client.get()) > 0 && text == gone("add"));
        return execute(attempt, reply);
    };
    if (todo == "throw")
        throw std::runtime_error("no settings");
    if (todo == "refuse")
        throw tradelock::error(TL_BAD_CONFIG, "no channel_url");
    if (todo == "unsafe") {
        flow.channel.idempotent = flow.channel.can_query = 0;
        flow.query = nullptr;
    }
    workflows.add(flow);
    if (todo == "late")
        throw tradelock::error(TL_OK, "this is no error");
    // It need not stay where it was.
    tradelock::workflows moved = std::move(workflows);
}

void test_borrowed()
{
    tradelock::client client = open();
    const std::string of = serial(), again = serial();
    tl_workflows *registry = nullptr;
    void *state = nullptr;

    EXPECT(tradelock_plugin.name == std::string("of-the-wrapper"));
    for (const auto &[todo, status, sentence] :
         {std::tuple("throw", TL_CALLBACK_FAILED, "the callback threw: no settings"),
          std::tuple("refuse", TL_BAD_CONFIG, "no channel_url"),
          std::tuple("unsafe", TL_UNSAFE, "idempotent"),
          std::tuple("late", TL_CALLBACK_FAILED, "this is no error")}) {
        EXPECT(tl_workflows_new(&registry, client.get()) == TL_OK);
        EXPECT(tradelock_plugin.open(client.get(), registry, todo, &state) == status);
        EXPECT(state == nullptr &&
               std::string(tl_error_message()).find(sentence) != std::string::npos);
        EXPECT(std::string(tl_error_message()).find("TL_") == std::string::npos);
        tl_workflows_free(registry);
    }
    EXPECT(tl_workflows_new(&registry, client.get()) == TL_OK);
    EXPECT(tradelock_plugin.open(client.get(), registry, "add", &state) == TL_OK && state);
    EXPECT(pay(tradelock::workflows::borrow(registry), of, "PLUGIN").status() == TL_SUCCEEDED);
    // Nothing of it was freed.
    EXPECT(pay(tradelock::workflows::borrow(registry), again, "PLUGIN").status() == TL_SUCCEEDED);
    tl_workflows_free(registry);
    EXPECT(tl_error_message()[0] == '\0');
    tradelock_plugin.close(state);
    EXPECT(booked(of) == 1 && plugin_bank.count() == 2);
    EXPECT(tradelock::client::borrow(client.get()).get() == client.get());
    EXPECT(look(client, of, "PLUGIN").status == 'Y');
}

// Two shards: each customer is paid at his own, and a worker ends there what is in doubt.
void test_fleet()
{
    channel bank;
    std::atomic<int> added{0};
    std::atomic<bool> is_lost{true};
    std::optional<tradelock::fleet_workflows> workflows;
    std::string customers[2];
    {
        tradelock::fleet fleet{tradelock::client_options{(fleet_config + "").c_str()}};
        workflows.emplace(fleet, [&](const tradelock::client &, tradelock::workflows &at,
                                     const char *shard) {
            tradelock::workflow flow = paying(bank, "SHARDED");

            flow.execute = [&, execute = flow.execute, ref = gone(shard)](
                               const tradelock::attempt &attempt, tradelock::reply &reply) {
                execute(attempt, reply);
                reply.ref(ref);
                return is_lost ? TL_EXECUTE_UNKNOWN : TL_EXECUTE_SUCCEEDED;
            };
            at.add(flow);
            added++;
        });
        for (int i = 0; customers[0].empty() || customers[1].empty(); i++) {
            const std::string cust = "C" + std::to_string(i);
            customers[tl_fleet_slot(fleet.get(), cust.c_str()) / (TL_FLEET_SLOTS / 2)] = cust;
        }
    }
    EXPECT(added == 2);
    for (int i = 0; i < 2; i++) {
        const std::string of = serial(), doubtful = serial(), cust = customers[i];
        const std::string ledger = std::string("shard_") + "ab"[i] + ".ledger WHERE serial_no = '";

        is_lost = true;
        tradelock::request request{{doubtful, cust, "SHARDED"}, "1 EUR"};
        EXPECT(workflows->run(request).status() == TL_IN_DOUBT);
        is_lost = false;
        request.key.serial_no = of;
        tradelock::answer answer = workflows->run(request);
        EXPECT(answer.paid() && answer->view.channel_ref == gone(i == 0 ? "a" : "b"));
        EXPECT(workflows->settle(answer) == TL_WRONG_STATE && answer.paid());
        EXPECT(workflows->look({of, cust, "SHARDED"}).paid() && rows_of(ledger + of + "'") == 1);
        EXPECT(workflows->look({doubtful, cust, "SHARDED"}).status() == TL_IN_DOUBT);

        tradelock::fleet_worker worker{*workflows};
        EXPECT(workflows->await({doubtful, cust, "SHARDED"}, 60000).paid());
        EXPECT(rows_of(ledger + doubtful + "'") == 1);
        until([&] { return worker.check() == TL_OK; });
        worker.stop();
        EXPECT(worker.wait(60000) == TL_OK && worker.counts().succeeded == 1);
    }
    tradelock::fleet_workflows moved = std::move(*workflows);
    EXPECT(workflows->look({"NOBODY", customers[0], "SHARDED"}).status() == TL_INVALID);
    EXPECT(moved.look({"NOBODY", customers[0], "SHARDED"}).status() == TL_NOT_FOUND);
    try {
        tradelock::fleet none{tradelock::client_options{config.c_str()}};
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_BAD_CONFIG);
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
    const tradelock::mutex_options options{60000};

    // What is thrown out of the middle leaves nothing locked.
    tradelock::mutex other{client, of.c_str(), options};
    try {
        tradelock::mutex mutex{client, of.c_str(), options};
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
    tradelock::mutex set{client, std::vector<std::string>{of, also}, options};
    EXPECT(set.lock(0) == TL_BUSY && set.fence(also.c_str()) == 0);
    moved = tradelock::mutex{client, also.c_str(), options};
    EXPECT(moved.lock(0) == TL_GRANTED && set.lock(0) == TL_BUSY);
    EXPECT(moved.unlock() == TL_OK && moved.unlock() == TL_RELEASED);
    EXPECT(set.lock(0) == TL_GRANTED && set.fence(also.c_str()) > 0 && set.fence(of.c_str()) > 0);
    other = std::move(set);
    EXPECT(set.unlock() == TL_INVALID && other.unlock() == TL_OK);

    for (const char *wrong : {"", "with a blank"}) {
        try {
            tradelock::mutex none{client, wrong, options};
            EXPECT(false);
        } catch (const tradelock::caller_error &thrown) {
            EXPECT(thrown.status() == TL_INVALID);
        }
    }
    try {
        tradelock::mutex none{client, std::vector<std::string>{}, options};
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID);
    }
    const tradelock::client gone = std::move(client);
    try {
        tradelock::mutex none{client, of.c_str(), options};
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
    tradelock::mutex_options options{60000};

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
    tradelock::mutex next{client, of.c_str(), options};
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
            mutexes.emplace_back(client, of.c_str(), tradelock::mutex_options{60000});
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
    const tradelock::rw_options options{60000};
    tradelock::rw_lock writer{client, of.c_str(), options};

    try {
        tradelock::rw_lock one{client, of.c_str(), options}, two{client, of.c_str(), options};
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
    tradelock::rw_lock reader{client, of.c_str(), options};
    EXPECT(reader.read(0) == TL_BUSY && moved.downgrade() == TL_OK);
    EXPECT(reader.read(0) == TL_GRANTED && moved.renew(30000) == TL_OK);
    // What it replaces is unlocked.
    moved = tradelock::rw_lock{client, ("other/" + of).c_str(), options};
    EXPECT(reader.unlock() == TL_OK);
    writer = std::move(reader);
    EXPECT(writer.write(0) == TL_GRANTED);
    try {
        tradelock::rw_lock none{client, "", options};
        EXPECT(false);
    } catch (const tradelock::caller_error &thrown) {
        EXPECT(thrown.status() == TL_INVALID);
    }
    // Their client goes before them.
    tradelock::client{std::move(client)};
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
        tradelock::workflows workflows{client};

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
        tradelock::workflows first{one}, second{two};

        first.add(paying(bank, "ORDER"));
        second.add(paying(bank, "ORDER"));
        worker.emplace(first);
        *worker = tradelock::worker{second};
    }
    EXPECT(worker->wait(0) == TL_TIMEOUT && worker->counts().lost == 0);
    worker.reset();

    // And one after the other.
    tradelock::client client = open();
    tradelock::workflows workflows{client};
    workflows.add(paying(bank, "ORDER"));
    client = open();
    EXPECT(pay(workflows, again, "ORDER").paid());
    workflows = tradelock::workflows{client};
    EXPECT(pay(workflows, serial(), "ORDER").status() == TL_UNKNOWN_OPERATION);
}

void test_errors()
{
    channel bank;

    try {
        tradelock::client{tradelock::client_options{"/nonexistent/tradelock.cnf"}};
        EXPECT(false);
    } catch (const tradelock::error &wrong) {
        EXPECT(wrong.status() == TL_BAD_CONFIG);
    }
    tradelock::client client = open();
    tradelock::workflows workflows{client};
    try {
        tradelock::worker worker{workflows};
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

TRADELOCK_PLUGIN("of-the-wrapper", add_plugin);

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    config = argv[1];
    fleet_config = argv[2];
    name = argv[3];
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
    test_retry_after();
    test_questions();
    test_submit();
    test_submit_and_leave();
    test_borrowed();
    test_fleet();
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
