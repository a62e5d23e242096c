/*
 * tradelock.hpp - the library for C++17, header only.
 *
 * It is <tradelock/workflow.h> with destructors and lambdas, and adds no rule of its own: read the
 * contract there and in <tradelock/tradelock.h>.  Link as for C (pkg-config tradelock-workflow).
 *
 *     tradelock::client client{options};            opens; throws tradelock::error
 *     tradelock::workflows workflows{client};
 *     tradelock::workflow withdraw;                 a tl_workflow whose callbacks are lambdas
 *     withdraw.execute = [](const tradelock::attempt &attempt, tradelock::reply &reply) { ... };
 *     workflows.add(withdraw);
 *     tradelock::answer answer = workflows.run(request);
 *     tradelock::worker worker{workflows};          runs until it is destroyed
 *
 * Locks are lock (of a trade), mutex and rw_lock; row_lock() is a function.  An event loop calls
 * workflows.submit() and client.complete(); TRADELOCK_PLUGIN() makes a plug-in; fleet,
 * fleet_workflows and fleet_worker are for several databases.
 *
 * ERRORS
 *
 * What cannot be made or opened throws tradelock::error, or one of its kinds, with the status and
 * the sentence.  What happens to a payment is never thrown: run(), settle(), ask() and finish()
 * return an answer or a status, and so does every call of a lock.  They may throw std::bad_alloc
 * before anything was done.
 *
 * EXCEPTIONS OF CALLBACKS
 *
 * None passes through the library.  Each becomes the safe answer, never a decline:
 *
 *     execute                UNKNOWN, with what() as the remark: the retry lane finds out
 *     query                  UNREACHABLE
 *     cancel                 UNKNOWN
 *     book_..., sql_...
 *                            they cannot: all is rolled back, and what the channel said is filed
 *     tradelock::refused from book_prepare or sql_prepare
 *                            TL_REFUSED, with its text as the remark; elsewhere as any other
 *     log, loss              it is dropped
 *     what registers a plug-in's or a shard's workflows
 *                            the status of a tradelock::error, else TL_CALLBACK_FAILED
 *
 * What the lambdas of list(), batch() and complete() throw reaches who called these.  The end of a
 * thread (pthread_exit) is no exception, and ends the process, as from C.
 *
 * OWNERSHIP
 *
 * Objects can be moved, not copied.  One that was moved from holds nothing: its calls answer
 * TL_INVALID or TL_WRONG_STATE, or throw caller_error, and it may be destroyed or assigned to.
 * Objects keep what they stand on, so the order in which they are destroyed does not matter: the
 * session ends with the last of them.  Requests, keys, options and the like copy the texts that
 * they are given, so these may be temporaries.  The lambdas of a workflow are kept by the registry.
 * What is borrowed (client::borrow(), workflows::borrow()) is not freed here, and must be there.
 */
#ifndef TRADELOCK_TRADELOCK_HPP
#define TRADELOCK_TRADELOCK_HPP

#include <tradelock/callback.h>
#include <tradelock/fleet_workflow.h>
#include <tradelock/plugin.h>
#include <tradelock/record.h>
#include <tradelock/row_lock.h>
#include <tradelock/rw_lock.h>
#include <tradelock/submit.h>

#include <array>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

namespace tradelock
{

/* ------------------------------------------------------------------------ errors -- */

class error : public std::runtime_error
{
  public:
    error(tl_status status, const char *message)
        : std::runtime_error(std::string(tl_status_name(status)) + ": " +
                             (message[0] != '\0' ? message : tl_status_text(status))),
          status_(status)
    {
    }
    tl_status status() const noexcept
    {
        return status_;
    }
    /* what() without the status. */
    const char *sentence() const noexcept
    {
        return what() + std::strlen(tl_status_name(status_)) + 2;
    }

  private:
    tl_status status_;
};

/* By class of the status: what to do next. */
struct retry_error : error {
    using error::error; /* nothing happened; try again later */
};
struct caller_error : error {
    using error::error; /* the call itself is wrong */
};
struct broken_error : error {
    using error::error; /* library, server or machine need a person */
};

/* From book_prepare or sql_prepare: leave no row behind, and tell the caller why. */
class refused : public std::runtime_error
{
  public:
    using std::runtime_error::runtime_error;
};

/* Throws the error of this status, with the thread's sentence; DONE is none. */
inline void check(tl_status status)
{
    const tl_class kind = tl_status_class(status);

    if (kind == TL_CLASS_DONE)
        return;
    const std::string message = tl_error_message();
    if (kind == TL_CLASS_RETRY)
        throw retry_error(status, message.c_str());
    if (kind == TL_CLASS_CALLER)
        throw caller_error(status, message.c_str());
    if (kind == TL_CLASS_BROKEN)
        throw broken_error(status, message.c_str());
    throw error(status, message.c_str());
}

namespace detail
{

/* What fn returns; or what fail makes of the exception's text. */
template <typename Result, typename Fn, typename Fail> Result guarded(Fn &&fn, Fail &&fail)
{
    try {
        return fn();
    }
#if defined(__GLIBCXX__)
    catch (abi::__forced_unwind &) {
        throw;
    }
#endif
    catch (const std::exception &thrown) {
        return fail(thrown.what());
    } catch (...) {
        return fail("an exception without a text");
    }
}

inline tl_status cannot(const char *why)
{
    return tl_error_report(TL_CALLBACK_FAILED, "the callback threw: %s", why);
}

/* A handle of C with what frees it, unless it is borrowed. */
template <auto Free> struct release {
    bool borrowed = false;

    template <typename Handle> void operator()(Handle *handle) const noexcept
    {
        if (!borrowed)
            Free(handle);
    }
};
template <typename Handle, auto Free> using owned = std::unique_ptr<Handle, release<Free>>;

template <typename Owned> void borrow(Owned &into, typename Owned::pointer handle) noexcept
{
    into = Owned(handle, typename Owned::deleter_type{true});
}

/* The handle that New of C makes, or the error why not. */
template <auto New, typename Owned, typename... Given> void make(Owned &into, Given... given)
{
    typename Owned::pointer made = nullptr;

    check(New(&made, given...));
    into.reset(made);
}

/* A lambda that C calls for each row.  What it throws ends that, and then reaches the caller. */
template <typename Row, typename Fn> struct showing {
    Fn &each;
    std::exception_ptr thrown;

    static int call(void *context, const Row *row)
    {
        showing &self = *static_cast<showing *>(context);

        return guarded<int>([&] { return static_cast<void>(self.each(*row)), 0; },
                            [&](const char *) {
                                self.thrown = std::current_exception();
                                return 1;
                            });
    }
    void end(tl_status status) const
    {
        if (thrown)
            std::rethrow_exception(thrown);
        check(status);
    }
};

} // namespace detail

/* ------------------------------------------------------------------------- values -- */

/* A text, or none (nullptr): a copy of what it is made from.  One with a NUL inside throws
 * caller_error, since C would cut it there, and it would name another payment. */
class text
{
  public:
    text() noexcept = default;
    text(const char *of) : of_(of != nullptr ? std::optional<std::string>(of) : std::nullopt)
    {
    }
    text(std::string of) : of_(std::move(of))
    {
        if (of_->find('\0') != std::string::npos)
            throw caller_error(TL_INVALID, "a text has a NUL inside");
    }
    text(std::string_view of) : text(std::string(of))
    {
    }
    const char *get() const noexcept
    {
        return of_ ? of_->c_str() : nullptr;
    }

  private:
    std::optional<std::string> of_;
};

/* Bytes, or none; likewise a copy. */
using bytes = std::optional<std::string>;
using fingerprint = std::optional<std::array<unsigned char, TL_FINGERPRINT>>;

/*
 * The values below are those of C with texts of their own.  c() is the one of C, which borrows from
 * the value and lives no longer.
 */
struct key {
    text serial_no, cust_no, op_code;

    key() = default;
    key(text serial, text cust, text op)
        : serial_no(std::move(serial)), cust_no(std::move(cust)), op_code(std::move(op))
    {
    }
    key(const tl_key &of) : key(of.serial_no, of.cust_no, of.op_code)
    {
    }
    tl_key c() const & noexcept
    {
        return {serial_no.get(), cust_no.get(), op_code.get()};
    }
    tl_key c() const && = delete;
};

namespace detail
{

/* What one of C says of its payload and of itself, if it has that. */
template <typename To> void lend_payload(To &to, const bytes &from) noexcept
{
    to.payload = from ? from->data() : nullptr;
    to.payload_size = from ? from->size() : 0;
}
template <typename To, typename From> void lend_actor(To &to, const From &from) noexcept
{
    to.remark = from.remark.get();
    to.actor = from.actor.get();
}
template <typename To, typename From> void lend_said(To &to, const From &from) noexcept
{
    lend_payload(to, from.payload);
    lend_actor(to, from);
    to.fingerprint = from.fingerprint ? from.fingerprint->data() : nullptr;
#define TL_LEND(type, member, ...) TL_LEND_##type(member)
#define TL_LEND_MONEY(member)
#define TL_LEND_TEXT(member) to.member = from.member.get();
    TL_SAID_MAP(TL_LEND)
#undef TL_LEND
#undef TL_LEND_MONEY
#undef TL_LEND_TEXT
}

} // namespace detail

/* ------------------------------------------------------------- what callbacks see -- */

/* A tl_attempt, until the callback returns. */
class attempt
{
  public:
    explicit attempt(const tl_attempt &given) noexcept : given_(&given)
    {
    }
    const tl_attempt *operator->() const noexcept
    {
        return given_;
    }
    std::string_view payload() const noexcept
    {
        return {static_cast<const char *>(given_->payload), given_->payload_size};
    }
    int64_t left_ms() const noexcept
    {
        return tl_attempt_left_ms(given_);
    }

  private:
    const tl_attempt *given_;
};

/* A tl_reply, until the callback returns.  What it cannot take throws caller_error. */
class reply
{
  public:
    explicit reply(tl_reply &given) noexcept : given_(&given)
    {
    }
    const tl_reply *operator->() const noexcept
    {
        return given_;
    }
    void ref(const std::string &channel_ref)
    {
        check(tl_reply_ref(given_, channel_ref.c_str()));
    }
    void result(std::string_view is)
    {
        check(tl_reply_result(given_, is.data() != nullptr ? is.data() : "", is.size()));
    }
    void remark(const std::string &why) noexcept
    {
        tl_reply_remark(given_, "%s", why.c_str());
    }
    void retryable(bool yes) noexcept
    {
        given_->retryable = yes ? 1 : 0;
    }
    void retry_after(int64_t after_ms)
    {
        check(tl_reply_retry_after(given_, after_ms));
    }

  private:
    tl_reply *given_;
};

/* The lines of one transaction (<tradelock/books.h>), until the callback returns. */
class book
{
  public:
    explicit book(tl_book *given) noexcept : given_(given)
    {
    }
    book &line(const char *statement) noexcept
    {
        tl_book_line(given_, statement);
        return *this;
    }
    book &number(const char *value, int64_t is) noexcept
    {
        tl_book_int(given_, value, is);
        return *this;
    }
    book &text(const char *value, const std::string &is) noexcept
    {
        /* What has a NUL inside would be cut: it is written as bytes, which a text column
         * refuses. */
        if (is.find('\0') != std::string::npos)
            tl_book_bytes(given_, value, is.data(), is.size());
        else
            tl_book_text(given_, value, is.c_str());
        return *this;
    }
    book &bytes(const char *value, std::string_view is) noexcept
    {
        tl_book_bytes(given_, value, is.data() != nullptr ? is.data() : "", is.size());
        return *this;
    }
    book &null(const char *value) noexcept
    {
        tl_book_null(given_, value);
        return *this;
    }

  private:
    tl_book *given_;
};

/* ------------------------------------------------------------------------- client -- */

struct client_options {
    unsigned flags = 0;
    text config_file, program, operations, group_suffix, database, user, password, shard;
    std::function<void(const tl_log_line &)> log;
    std::function<void()> loss;

    client_options() = default;
    explicit client_options(text file) : config_file(std::move(file))
    {
    }
    tl_client_options c() const & noexcept
    {
        tl_client_options to = TL_CLIENT_OPTIONS_INIT;

        to.flags = flags;
        to.config_file = config_file.get();
        to.program = program.get();
        to.operations = operations.get();
        to.group_suffix = group_suffix.get();
        to.database = database.get();
        to.user = user.get();
        to.password = password.get();
        to.shard = shard.get();
        return to;
    }
    tl_client_options c() const && = delete;
};

namespace detail
{

/* What a client tells its service. */
struct listeners {
    std::function<void(const tl_log_line &)> log;
    std::function<void()> loss;

    /* The options of C, which call these. */
    tl_client_options take(const client_options &options)
    {
        tl_client_options given = options.c();

        log = options.log;
        loss = options.loss;
        given.log = log ? on_log : nullptr;
        given.loss = loss ? on_loss : nullptr;
        given.log_context = given.loss_context = this;
        return given;
    }
    static void on_log(void *context, const tl_log_line *line)
    {
        guarded<int>([&] { return static_cast<listeners *>(context)->log(*line), 0; },
                     [](const char *) { return 0; });
    }
    static void on_loss(void *context)
    {
        guarded<int>([&] { return static_cast<listeners *>(context)->loss(), 0; },
                     [](const char *) { return 0; });
    }
};

/* The lambdas first: the handle goes before them. */
struct client_state {
    listeners lambdas;
    owned<tl_client, tl_client_close> handle;
};

} // namespace detail

class client
{
  public:
    explicit client(const client_options &options) : client()
    {
        const tl_client_options given = state_->lambdas.take(options);

        detail::make<tl_client_open>(state_->handle, &given);
    }
    client(client &&) noexcept = default;
    client &operator=(client &&) noexcept = default;
    /* One that somebody else opens and closes. */
    static client borrow(tl_client *handle)
    {
        client borrowed;

        detail::borrow(borrowed.state_->handle, handle);
        return borrowed;
    }

    /* For every call of C; NULL when it was moved from. */
    tl_client *get() const noexcept
    {
        return state_ ? state_->handle.get() : nullptr;
    }
    const std::shared_ptr<detail::client_state> &state() const noexcept
    {
        return state_;
    }

    /* Readable while runs that were submitted wait for complete(). */
    int completed_fd() const noexcept
    {
        return tl_client_completed_fd(get());
    }
    /* Takes the oldest completion, and calls the lambda of workflows::submit() that it is for;
     * false: none waits.  What else is submitted on this client has a done of its own. */
    bool complete() const;

  private:
    client() : state_(std::make_shared<detail::client_state>())
    {
    }
    std::shared_ptr<detail::client_state> state_;
};

/* ---------------------------------------------------------------------- workflows -- */

/* A tl_statement that is named and nothing else is said of; the fields can be set. */
struct statement : private tl_statement {
    using tl_statement::rows, tl_statement::shared, tl_statement::summed;
    text name, sql, values, refused;

    statement(text named, text as) : tl_statement(), name(std::move(named)), sql(std::move(as))
    {
    }
    tl_statement c() const & noexcept
    {
        return {name.get(), sql.get(), values.get(), rows, refused.get(), shared, summed};
    }
    tl_statement c() const && = delete;
};

/* A tl_channel. */
struct channel : private tl_channel {
    using tl_channel::idempotent, tl_channel::window_ms, tl_channel::replays_first_answer,
        tl_channel::can_query, tl_channel::not_found_final, tl_channel::cancel_final,
        tl_channel::key_chars, tl_channel::latency_ms;
    text name;

    channel() : tl_channel()
    {
    }
    tl_channel c() const & noexcept
    {
        tl_channel to = *this;

        to.name = name.get();
        return to;
    }
    tl_channel c() const && = delete;
};

/* A tl_former_channel; its callbacks are these, and its context is the wrapper's. */
struct former_channel {
    tradelock::channel channel;
    std::function<tl_execute_result(const attempt &, reply &)> execute;
    std::function<tl_query_result(const attempt &, reply &)> query;
    std::function<tl_cancel_result(const attempt &, reply &)> cancel;
};

/* A tl_workflow, likewise. */
struct workflow {
    text op_code;
    tradelock::channel channel;
    tl_policy policy = {};
    int exclusive = 0;
    std::function<tl_execute_result(const attempt &, reply &)> execute;
    std::function<tl_query_result(const attempt &, reply &)> query;
    std::function<tl_cancel_result(const attempt &, reply &)> cancel;
    std::vector<former_channel> former;
    /* Lines of declared statements.  They refuse and fail by what they throw. */
    std::vector<statement> statements;
    std::function<void(const attempt &, reply &, book &)> book_prepare;
    std::function<void(const attempt &, const tl_reply &, book &)> book_success;
    std::function<void(const attempt &, const tl_reply &, tl_proof, book &)> book_failure;
    /* Or rows on the library's connection; TL_TRY_AGAIN after 1213, 1205 and 1020. */
    std::function<tl_status(const attempt &, reply &, st_mysql *)> sql_prepare;
    std::function<tl_status(const attempt &, const tl_reply &, st_mysql *)> sql_success;
    std::function<tl_status(const attempt &, const tl_reply &, tl_proof, st_mysql *)> sql_failure;
};

/* A tl_request. */
struct request : private tl_request {
    using tl_request::wait_ms, tl_request::reclaim_epoch, tl_request::amount_minor;
    tradelock::key key;
    bytes payload;
    tradelock::fingerprint fingerprint;
    text remark, actor, currency, batch, traceparent, label;

    request() : tl_request(TL_REQUEST_INIT)
    {
    }
    explicit request(tradelock::key of, std::string_view contents = {}) : request()
    {
        key = std::move(of);
        if (contents.data() != nullptr)
            payload = contents;
    }
    tl_request c() const & noexcept
    {
        tl_request to = *this;

        to.key = key.c();
        detail::lend_said(to, *this);
        return to;
    }
    tl_request c() const && = delete;
};

namespace detail
{

/* The callbacks of C, each around one lambda. */
struct calls {
    static const workflow &of(void *context)
    {
        return *static_cast<const workflow *>(context);
    }
    template <typename Of>
    static tl_execute_result execute(void *context, const tl_attempt *given, tl_reply *out)
    {
        return guarded<tl_execute_result>(
            [&] {
                reply to(*out);
                return static_cast<const Of *>(context)->execute(attempt(*given), to);
            },
            [&](const char *why) {
                tl_reply_remark(out, "execute threw: %s", why);
                return TL_EXECUTE_UNKNOWN;
            });
    }
    template <typename Of>
    static tl_query_result query(void *context, const tl_attempt *given, tl_reply *out)
    {
        return guarded<tl_query_result>(
            [&] {
                reply to(*out);
                return static_cast<const Of *>(context)->query(attempt(*given), to);
            },
            [&](const char *why) {
                tl_reply_remark(out, "query threw: %s", why);
                return TL_QUERY_UNREACHABLE;
            });
    }
    template <typename Of>
    static tl_cancel_result cancel(void *context, const tl_attempt *given, tl_reply *out)
    {
        return guarded<tl_cancel_result>(
            [&] {
                reply to(*out);
                return static_cast<const Of *>(context)->cancel(attempt(*given), to);
            },
            [&](const char *why) {
                tl_reply_remark(out, "cancel threw: %s", why);
                return TL_CANCEL_UNKNOWN;
            });
    }
    /* To a tl_workflow or a tl_former_channel: the channel, and what calls it. */
    template <typename To, typename Of> static void lend_channel(To &to, Of &from)
    {
        to.channel = from.channel.c();
        to.context = &from;
        to.execute = from.execute ? execute<Of> : nullptr;
        to.query = from.query ? query<Of> : nullptr;
        to.cancel = from.cancel ? cancel<Of> : nullptr;
    }
    static tl_status book_prepare(void *context, const tl_attempt *given, tl_reply *out,
                                  tl_book *lines)
    {
        return before(out, [&](reply &to) {
            book writes(lines);
            of(context).book_prepare(attempt(*given), to, writes);
            return TL_OK;
        });
    }
    static tl_status sql_prepare(void *context, const tl_attempt *given, tl_reply *out,
                                 st_mysql *connection)
    {
        return before(out, [&](reply &to) {
            return of(context).sql_prepare(attempt(*given), to, connection);
        });
    }
    /* What comes before the payment may refuse it. */
    template <typename Fn> static tl_status before(tl_reply *out, Fn &&fn)
    {
        return guarded<tl_status>(
            [&] {
                reply to(*out);
                try {
                    return fn(to);
                } catch (const refused &why) {
                    tl_reply_remark(out, "%s", why.what());
                    return TL_REFUSED;
                }
            },
            cannot);
    }
    static tl_status book_success(void *context, const tl_attempt *given, const tl_reply *said,
                                  tl_book *lines)
    {
        return guarded<tl_status>(
            [&] {
                book writes(lines);
                of(context).book_success(attempt(*given), *said, writes);
                return TL_OK;
            },
            cannot);
    }
    static tl_status book_failure(void *context, const tl_attempt *given, const tl_reply *said,
                                  tl_proof proof, tl_book *lines)
    {
        return guarded<tl_status>(
            [&] {
                book writes(lines);
                of(context).book_failure(attempt(*given), *said, proof, writes);
                return TL_OK;
            },
            cannot);
    }
    static tl_status sql_success(void *context, const tl_attempt *given, const tl_reply *said,
                                   st_mysql *connection)
    {
        return guarded<tl_status>(
            [&] { return of(context).sql_success(attempt(*given), *said, connection); }, cannot);
    }
    static tl_status sql_failure(void *context, const tl_attempt *given, const tl_reply *said,
                                   tl_proof proof, st_mysql *connection)
    {
        return guarded<tl_status>(
            [&] { return of(context).sql_failure(attempt(*given), *said, proof, connection); },
            cannot);
    }
};

/* The lambdas first: the registry goes before them. */
struct workflows_state {
    std::shared_ptr<client_state> client;
    std::vector<std::unique_ptr<workflow>> kept;
    owned<tl_workflows, tl_workflows_free> handle;
};

struct answer_state {
    std::shared_ptr<const void> on; /* what it stands on */
    tl_answer answer = TL_ANSWER_INIT;
    tl_status status = TL_WRONG_STATE;
    char message[512] = "";

    answer_state() = default;
    answer_state(const answer_state &) = delete;
    answer_state &operator=(const answer_state &) = delete;
    ~answer_state()
    {
        tl_answer_clear(&answer);
    }
    /* No memory is taken for it: money may have moved. */
    void take(tl_status is, const char *sentence) noexcept
    {
        status = is;
        std::strncpy(message, sentence, sizeof message - 1);
    }
};

/* What the status of an answer or of a trade proves. */
template <typename Of> class proven
{
  public:
    /* It is paid, now or before. */
    bool paid() const noexcept
    {
        return tl_paid(of().status()) != 0;
    }
    /* No money moved, so other means may be used.  Of most statuses neither is true. */
    bool not_paid() const noexcept
    {
        return tl_not_paid(of().status()) != 0;
    }
    const char *name() const noexcept
    {
        return tl_status_name(of().status());
    }

  private:
    const Of &of() const noexcept
    {
        return static_cast<const Of &>(*this);
    }
};

} // namespace detail

/* What became of a payment.  After a move it says TL_WRONG_STATE. */
class answer : public detail::proven<answer>
{
  public:
    tl_status status() const noexcept
    {
        return state_ ? state_->status : TL_WRONG_STATE;
    }
    std::string message() const
    {
        return state_ ? state_->message : "";
    }
    std::string result() const
    {
        return {static_cast<const char *>(get()->view.result), get()->view.result_size};
    }
    /* All else, as long as the answer lives; never NULL. */
    const tl_answer *operator->() const & noexcept
    {
        return get();
    }
    const tl_answer *operator->() const && = delete;

    explicit answer(std::unique_ptr<detail::answer_state> state) noexcept : state_(std::move(state))
    {
    }
    detail::answer_state *state() const noexcept
    {
        return state_.get();
    }

  private:
    const tl_answer *get() const noexcept
    {
        static const tl_answer none = TL_ANSWER_INIT;

        return state_ ? &state_->answer : &none;
    }
    std::unique_ptr<detail::answer_state> state_;
};

/* A trade as it was read; or TL_NOT_FOUND, or why it could not be read, and nothing else. */
class trade : public detail::proven<trade>
{
  public:
    trade(const tl_trade &read, std::string message) : read_(read), message_(std::move(message))
    {
    }
    tl_status status() const noexcept
    {
        return read_.status;
    }
    const std::string &message() const noexcept
    {
        return message_;
    }
    std::string result() const
    {
        return {read_.result, read_.result + read_.result_size};
    }
    /* All else, as long as this lives. */
    const tl_trade *operator->() const & noexcept
    {
        return &read_;
    }
    const tl_trade *operator->() const && = delete;

  private:
    tl_trade read_;
    std::string message_;
};

/* A tl_trades. */
struct trades : private tl_trades {
    using tl_trades::limit;
    text cust_no, batch, op_code, after;

    trades() : tl_trades(TL_TRADES_INIT)
    {
    }
    tl_trades c() const & noexcept
    {
        tl_trades to = *this;

        to.cust_no = cust_no.get();
        to.batch = batch.get();
        to.op_code = op_code.get();
        to.after = after.get();
        return to;
    }
    tl_trades c() const && = delete;
};

class granted;

namespace detail
{

/* A run that was submitted: the service's, or the library's. */
struct submission {
    std::unique_ptr<answer_state> answer = std::make_unique<answer_state>();
    std::function<void(granted)> send;
    std::function<void(tradelock::answer)> over;
    tl_workflows *registry = nullptr;
    const tl_attempt *attempt = nullptr; /* both while it is being sent */
    tl_reply *reply = nullptr;
    std::shared_ptr<submission> self; /* while it is the library's */

    /* Makes a call, after which it is the library's if the status says so. */
    template <typename Fn>
    static tl_status lend(std::shared_ptr<submission> &run, tl_status says_so, Fn &&call)
    {
        run->self = run; /* before, since another thread may complete it at once */
        const tl_status status = call(*run);
        if (status == says_so)
            run.reset();
        else
            run->self.reset();
        return status;
    }
};

} // namespace detail

/*
 * A submitted run that was granted: P is committed, and it may be sent (<tradelock/submit.h>).  If
 * it is destroyed before send_end(), it ends as NOT_SENT, or as UNKNOWN once its send was begun.
 */
class granted
{
  public:
    explicit granted(std::shared_ptr<detail::submission> run) noexcept : run_(std::move(run))
    {
    }
    granted(granted &&) noexcept = default;
    granted &operator=(granted &&other) noexcept
    {
        granted taken{std::move(other)};

        run_.swap(taken.run_);
        return *this;
    }
    ~granted()
    {
        const bool begun = run_ && run_->attempt != nullptr;

        if (!begun)
            send_begin();
        send_end(begun ? TL_EXECUTE_UNKNOWN : TL_EXECUTE_NOT_SENT);
    }

    /* Directly before the request leaves.  After anything but TL_OK send nothing; after TL_TIMEOUT
     * the trade is put back, and this holds nothing any more. */
    tl_status send_begin()
    {
        if (!run_)
            return TL_WRONG_STATE;
        return detail::submission::lend(run_, TL_TIMEOUT, [](detail::submission &run) {
            return tl_workflow_send_begin(run.registry, &run.answer->answer, &run.attempt,
                                          &run.reply);
        });
    }
    /* Between send_begin() and send_end(); else they throw caller_error. */
    tradelock::attempt attempt() const
    {
        return tradelock::attempt(*sending().attempt);
    }
    tradelock::reply reply() const
    {
        return tradelock::reply(*sending().reply);
    }
    /* TL_OK: this holds nothing any more, and the answer comes with a completion. */
    tl_status send_end(tl_execute_result executed)
    {
        if (!run_)
            return TL_WRONG_STATE;
        return detail::submission::lend(run_, TL_OK, [executed](detail::submission &run) {
            return tl_workflow_send_end(run.registry, &run.answer->answer, executed);
        });
    }

  private:
    const detail::submission &sending() const
    {
        if (!run_ || run_->attempt == nullptr)
            throw caller_error(TL_WRONG_STATE, "nothing is being sent");
        return *run_;
    }
    std::shared_ptr<detail::submission> run_;
};

inline bool client::complete() const
{
    tl_completion done = {};

    if (tl_client_completed(get(), &done, 1) == 0)
        return false;
    const auto run = std::move(static_cast<detail::submission *>(done.context)->self);
    if (done.status == TL_GRANTED) {
        run->send(granted(run));
        return true;
    }
    run->answer->take(done.status, tl_answer_sentence(&run->answer->answer));
    run->over(answer(std::move(run->answer)));
    return true;
}

namespace detail
{

/* The calls that the workflows of one database and those of a fleet have alike. */
template <typename State, auto Run, auto Settle, auto Look, auto Await> class paying
{
  public:
    /* For every call of C; NULL when it was moved from. */
    auto get() const noexcept
    {
        return state_ ? state_->handle.get() : nullptr;
    }
    const std::shared_ptr<State> &state() const noexcept
    {
        return state_;
    }

    /* tl_workflow_run(). */
    answer run(const request &wanted) const
    {
        const tl_request given = wanted.c();
        auto made = std::make_unique<answer_state>();

        made->on = state_;
        const tl_status status = Run(get(), &given, &made->answer);
        made->take(status, tl_error_message());
        return answer(std::move(made));
    }
    /* tl_workflow_settle(): goes on where TL_UNKNOWN stopped. */
    tl_status settle(answer &lost) const
    {
        answer_state *of = lost.state();

        if (of == nullptr)
            return TL_WRONG_STATE;
        const tl_status status = Settle(get(), &of->answer);
        /* What is known of the payment stays where there was nothing to settle. */
        of->take(of->answer.status, tl_error_message());
        return status;
    }
    /* tl_workflow_look(). */
    trade look(const key &of) const
    {
        const tl_key named = of.c();
        tl_trade read = TL_TRADE_INIT;

        read.status = Look(get(), &named, &read);
        return {read, tl_error_message()};
    }
    /* tl_workflow_await(). */
    trade await(const key &of, int64_t wait_ms) const
    {
        const tl_key named = of.c();
        tl_trade read = TL_TRADE_INIT;

        read.status = Await(get(), &named, wait_ms, &read);
        return {read, tl_error_message()};
    }

  protected:
    paying() = default;
    paying(paying &&) noexcept = default;
    paying &operator=(paying &&) noexcept = default;
    ~paying() = default;
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

} // namespace detail

class workflows
    : public detail::paying<detail::workflows_state, tl_workflow_run, tl_workflow_settle,
                            tl_workflow_look, tl_workflow_await>
{
  public:
    explicit workflows(const client &on)
    {
        state_->client = on.state();
        detail::make<tl_workflows_new>(state_->handle, on.get());
    }
    /* One that somebody else makes and frees.  The lambdas that are added are kept here, so the
     * registry goes before them. */
    static workflows borrow(tl_workflows *handle)
    {
        workflows borrowed;

        detail::borrow(borrowed.state_->handle, handle);
        return borrowed;
    }

    /* Registers one operation.  By one thread, and before the first run of it. */
    void add(workflow given)
    {
        using detail::calls;
        if (!state_)
            throw caller_error(TL_WRONG_STATE, "the registry was moved from");
        auto kept = std::make_unique<workflow>(std::move(given));
        std::vector<tl_statement> statements;
        std::vector<tl_former_channel> former(kept->former.size());
        tl_workflow flow = TL_WORKFLOW_INIT;

        state_->kept.reserve(state_->kept.size() + 1);
        for (const statement &each : kept->statements)
            statements.push_back(each.c());
        for (size_t i = 0; i < former.size(); i++)
            calls::lend_channel(former[i], kept->former[i]);
        calls::lend_channel(flow, *kept);
        flow.op_code = kept->op_code.get();
        flow.policy = kept->policy;
        flow.exclusive = kept->exclusive;
        flow.former = former.data();
        flow.former_count = former.size();
        flow.statements = statements.empty() ? nullptr : statements.data();
        flow.statement_count = statements.size();
        flow.book_prepare = kept->book_prepare ? calls::book_prepare : nullptr;
        flow.book_success = kept->book_success ? calls::book_success : nullptr;
        flow.book_failure = kept->book_failure ? calls::book_failure : nullptr;
        flow.sql_prepare = kept->sql_prepare ? calls::sql_prepare : nullptr;
        flow.sql_success = kept->sql_success ? calls::sql_success : nullptr;
        flow.sql_failure = kept->sql_failure ? calls::sql_failure : nullptr;
        check(tl_workflow_register(get(), &flow));
        state_->kept.push_back(std::move(kept));
    }

    /*
     * tl_workflow_submit().  After TL_OK client.complete() calls send() if it was granted, and
     * over() at the end; until then the run keeps registry and client, so take its last
     * completion.  After anything else neither is called.
     */
    tl_status submit(const request &wanted, std::function<void(granted)> send,
                     std::function<void(answer)> over) const
    {
        const tl_request given = wanted.c();
        auto made = std::make_shared<detail::submission>();

        made->answer->on = state_;
        made->registry = get();
        made->send = std::move(send);
        made->over = std::move(over);
        return detail::submission::lend(made, TL_OK, [&given](detail::submission &run) {
            return tl_workflow_submit(run.registry, &given, &run.answer->answer, &run);
        });
    }

    /* tl_workflow_list(): calls each(const tl_trade &) for the trades of a page.  Returns what
     * `after` of the next one is; "": this was the last. */
    template <typename Fn> std::string list(const trades &which, Fn &&each) const
    {
        const tl_trades given = which.c();
        detail::showing<tl_trade, Fn> rows{each, nullptr};
        char next[TL_TRADES_NEXT] = "";

        rows.end(tl_workflow_list(get(), &given, rows.call, &rows, next));
        return next;
    }
    /* tl_workflow_batch(): calls each(const tl_batch_sum &) for each sum. */
    template <typename Fn> tl_batch_total batch(const text &of, Fn &&each) const
    {
        detail::showing<tl_batch_sum, Fn> sums{each, nullptr};
        tl_batch_total total = TL_BATCH_TOTAL_INIT;

        sums.end(tl_workflow_batch(get(), of.get(), &total, sums.call, &sums));
        return total;
    }

  private:
    workflows() = default;
};

namespace detail
{

/* The workers of one database and those of a fleet.  Each compensates, from its making until it is
 * destroyed, which waits for what it holds. */
template <typename On, typename Handle, auto Start, auto Stop, auto Wait, auto Check, auto Count,
          auto Free>
class working
{
  public:
    explicit working(const On &on, const tl_worker_options &options = TL_WORKER_OPTIONS_INIT)
        : on_(on.state())
    {
        make<Start>(handle_, on.get(), &options);
    }
    working(working &&) noexcept = default;
    working &operator=(working &&other) noexcept
    {
        /* The one that stood here stops before the registry that it stands on goes. */
        handle_ = std::move(other.handle_);
        on_ = std::move(other.on_);
        return *this;
    }

    Handle *get() const noexcept
    {
        return handle_.get();
    }
    void stop() noexcept
    {
        Stop(get());
    }
    tl_status wait(int64_t wait_ms)
    {
        return Wait(get(), wait_ms);
    }
    /* tl_worker_check(): whether it works. */
    tl_status check() const
    {
        return Check(get());
    }
    tl_worker_counts counts() const
    {
        tl_worker_counts counts = TL_WORKER_COUNTS_INIT;

        tradelock::check(Count(get(), &counts));
        return counts;
    }

  private:
    std::shared_ptr<const void> on_;
    owned<Handle, Free> handle_;
};

} // namespace detail

using worker = detail::working<workflows, tl_worker, tl_worker_start, tl_worker_stop,
                               tl_worker_wait, tl_worker_check, tl_worker_count, tl_worker_free>;

/* ------------------------------------------------- registries that somebody else has -- */

/* Adds the workflows of a plug-in or of a shard; the text is the settings file or the shard's name.
 * Client and registry are borrowed; the lambdas may refer to the client. */
using registration = std::function<void(const client &, workflows &, const char *)>;

namespace detail
{

/* What an open() of C leaves in *state, for its close(). */
struct borrowing {
    tradelock::client client;
    tradelock::workflows workflows;
    /* The lambdas, also where the registration moved the registry away. */
    std::shared_ptr<workflows_state> kept = workflows.state();

    borrowing(tl_client *on, tl_workflows *registry)
        : client(tradelock::client::borrow(on)), workflows(tradelock::workflows::borrow(registry))
    {
    }
    template <typename Fn>
    static tl_status open(Fn &add, tl_client *on, tl_workflows *registry, const char *named,
                          void **state)
    {
        return guarded<tl_status>(
            [&] {
                auto made = std::make_unique<borrowing>(on, registry);

                try {
                    add(made->client, made->workflows, named);
                } catch (const error &why) {
                    const bool is_done = tl_status_class(why.status()) == TL_CLASS_DONE;
                    return tl_error_report(is_done ? TL_CALLBACK_FAILED : why.status(), "%s",
                                           why.sentence());
                }
                *state = made.release();
                return TL_OK;
            },
            cannot);
    }
    static void close(void *state)
    {
        delete static_cast<borrowing *>(state);
    }
};

template <auto Add> struct plugin {
    static tl_status open(tl_client *on, tl_workflows *registry, const char *config_file,
                          void **state)
    {
        return borrowing::open(*Add, on, registry, config_file, state);
    }
};

} // namespace detail

/*
 * Makes a plug-in (<tradelock/plugin.h>) of a function, outside of any namespace:
 *
 *     static void add(const tradelock::client &, tradelock::workflows &workflows,
 *                     const char *config_file)
 *     {
 *         ... workflows.add(withdraw);
 *     }
 *     TRADELOCK_PLUGIN("withdraw", add);
 */
#define TRADELOCK_PLUGIN(named, add)                                                               \
    const tl_plugin tradelock_plugin = {TL_PLUGIN_VERSION, sizeof(tl_plugin), named,               \
                                        ::tradelock::detail::plugin<&add>::open,                   \
                                        ::tradelock::detail::borrowing::close}

/* -------------------------------------------------------------------------- fleets -- */

namespace detail
{

struct fleet_state {
    listeners lambdas;
    owned<tl_fleet, tl_fleet_close> handle;
};

struct fleet_workflows_state {
    std::shared_ptr<fleet_state> fleet;
    registration add;
    owned<tl_fleet_workflows, tl_fleet_workflows_free> handle;

    static tl_status open(void *context, const char *shard, tl_client *on, tl_workflows *registry,
                          void **state)
    {
        return borrowing::open(static_cast<fleet_workflows_state *>(context)->add, on, registry,
                               shard, state);
    }
    static void close(void *, void *state)
    {
        borrowing::close(state);
    }
};

} // namespace detail

/* A tl_fleet; the options are those of each shard's client. */
class fleet
{
  public:
    explicit fleet(const client_options &options, tl_slot_rule slot = nullptr,
                   void *slot_context = nullptr)
        : state_(std::make_shared<detail::fleet_state>())
    {
        const tl_client_options each = state_->lambdas.take(options);
        tl_fleet_options given = TL_FLEET_OPTIONS_INIT;

        given.client = &each;
        given.slot = slot;
        given.slot_context = slot_context;
        detail::make<tl_fleet_open>(state_->handle, &given);
    }
    fleet(fleet &&) noexcept = default;
    fleet &operator=(fleet &&) noexcept = default;

    tl_fleet *get() const noexcept
    {
        return state_ ? state_->handle.get() : nullptr;
    }
    const std::shared_ptr<detail::fleet_state> &state() const noexcept
    {
        return state_;
    }

  private:
    std::shared_ptr<detail::fleet_state> state_;
};

/* The same workflows at each shard, added there when it can be used, maybe at two at once.  For all
 * other calls a shard's registry can be borrowed (tl_fleet_workflows_of()). */
class fleet_workflows
    : public detail::paying<detail::fleet_workflows_state, tl_fleet_workflow_run,
                            tl_fleet_workflow_settle, tl_fleet_workflow_look,
                            tl_fleet_workflow_await>
{
  public:
    explicit fleet_workflows(const fleet &on, registration add, unsigned calls = 0)
    {
        tl_fleet_workflows_options given = TL_FLEET_WORKFLOWS_OPTIONS_INIT;

        state_->fleet = on.state();
        state_->add = std::move(add);
        given.fleet = on.get();
        given.open = detail::fleet_workflows_state::open;
        given.close = detail::fleet_workflows_state::close;
        given.context = state_.get();
        given.calls = calls;
        detail::make<tl_fleet_workflows_new>(state_->handle, &given);
    }
};

using fleet_worker =
    detail::working<fleet_workflows, tl_fleet_worker, tl_fleet_worker_start, tl_fleet_worker_stop,
                    tl_fleet_worker_wait, tl_fleet_worker_check, tl_fleet_worker_count,
                    tl_fleet_worker_free>;

/* --------------------------------------------------------------------- trade locks -- */

/* A tl_lock_options. */
struct lock_options : private tl_lock_options {
    using tl_lock_options::flags, tl_lock_options::lane, tl_lock_options::max_hold_ms,
        tl_lock_options::deadline_ms, tl_lock_options::reclaim_epoch,
        tl_lock_options::override_fence, tl_lock_options::channel_key_chars,
        tl_lock_options::not_sent, tl_lock_options::reclaim_fence, tl_lock_options::amount_minor;
    bytes payload;
    tradelock::fingerprint fingerprint;
    text channel, remark, actor, currency, batch, traceparent, label;

    explicit lock_options(int64_t hold_ms) : tl_lock_options(TL_LOCK_OPTIONS_INIT)
    {
        max_hold_ms = hold_ms;
    }
    tl_lock_options c() const & noexcept
    {
        tl_lock_options to = *this;

        to.channel = channel.get();
        detail::lend_said(to, *this);
        return to;
    }
    tl_lock_options c() const && = delete;
};

/* A tl_ending. */
struct ending : private tl_ending {
    using tl_ending::outcome, tl_ending::proof, tl_ending::retryable, tl_ending::next_run_ms;
    text park_reason, channel_ref, remark, actor;
    bytes result;

    explicit ending(tl_outcome is, tl_proof by = TL_PROOF_NONE) : tl_ending(TL_ENDING_INIT)
    {
        outcome = is;
        proof = by;
    }
    tl_ending c() const & noexcept
    {
        tl_ending to = *this;

        to.park_reason = park_reason.get();
        to.channel_ref = channel_ref.get();
        to.result = result ? result->data() : nullptr;
        to.result_size = result ? result->size() : 0;
        detail::lend_actor(to, *this);
        return to;
    }
    tl_ending c() const && = delete;
};

namespace detail
{

struct lock_release {
    bool asked = false;

    void operator()(tl_lock *handle) const noexcept
    {
        const tl_ending unknown = TL_ENDING_INIT;

        /* On what is not held this changes nothing. */
        if (asked)
            tl_lock_finish(handle, &unknown);
        tl_lock_free(handle);
    }
};

} // namespace detail

/* A trade lock.  A hold that is not finished ends with it as TL_OUTCOME_UNKNOWN: nobody is paid
 * twice for an exception, and the retry lane finds out. */
class lock
{
  public:
    lock(const client &on, const key &of, const lock_options &options) : client_(on.state())
    {
        const tl_key named = of.c();
        const tl_lock_options given = options.c();

        detail::make<tl_lock_new>(handle_, on.get(), &named, &given);
    }
    lock(lock &&) noexcept = default;
    lock &operator=(lock &&other) noexcept
    {
        handle_ = std::move(other.handle_);
        client_ = std::move(other.client_);
        return *this;
    }

    tl_lock *get() const noexcept
    {
        return handle_.get();
    }
    tl_status ask(int64_t wait_ms = 0)
    {
        is_asked();
        return tl_lock_ask(get(), wait_ms);
    }
    /* With rows in the transaction that makes P, and in the one that ends it (callback.h). */
    template <typename Fn> tl_status ask_with(Fn &&rows, int64_t wait_ms = 0)
    {
        using function = std::remove_reference_t<Fn>;
        is_asked();
        return tl_lock_ask_with(get(), call<function>, address(rows), wait_ms);
    }
    tl_status finish(const ending &how)
    {
        const tl_ending given = how.c();

        return tl_lock_finish(get(), &given);
    }
    template <typename Fn> tl_status finish_with(const ending &how, Fn &&rows, int64_t commit_ms)
    {
        using function = std::remove_reference_t<Fn>;
        const tl_ending given = how.c();

        return tl_lock_finish_with(get(), &given, call<function>, address(rows), commit_ms);
    }
    tl_status settle()
    {
        return tl_lock_settle(get());
    }
    bool may_send(int64_t send_ms) const noexcept
    {
        return tl_may_send(get(), send_ms) != 0;
    }
    int64_t remaining_ms() const noexcept
    {
        return tl_lock_remaining_ms(get());
    }
    const tl_view &view() const noexcept
    {
        return *tl_lock_view(get());
    }

  private:
    /* Before it is asked for, since a thread may end within. */
    void is_asked() noexcept
    {
        if (handle_)
            handle_.get_deleter().asked = true;
    }
    template <typename Fn> static void *address(Fn &rows) noexcept
    {
        return const_cast<void *>(static_cast<const void *>(std::addressof(rows)));
    }
    template <typename Fn> static tl_status call(void *context, st_mysql *connection)
    {
        return detail::guarded<tl_status>(
            [&]() -> tl_status {
                try {
                    return (*static_cast<Fn *>(context))(connection);
                } catch (const refused &why) {
                    return tl_error_report(TL_REFUSED, "%s", why.what());
                }
            },
            detail::cannot);
    }
    std::shared_ptr<detail::client_state> client_;
    std::unique_ptr<tl_lock, detail::lock_release> handle_;
};

/* --------------------------------------------------------------------- other locks -- */

/* A tl_mutex_options; its loss is this, and its loss_context is the wrapper's. */
struct mutex_options : private tl_mutex_options {
    using tl_mutex_options::flags, tl_mutex_options::lease_ms, tl_mutex_options::max_hold_ms,
        tl_mutex_options::min_hold_ms;
    bytes payload;
    text remark, actor;
    std::function<void(const char *resource, tl_status why)> loss;

    explicit mutex_options(int64_t hold_ms) : tl_mutex_options(TL_MUTEX_OPTIONS_INIT)
    {
        max_hold_ms = hold_ms;
    }
    tl_mutex_options c() const & noexcept
    {
        tl_mutex_options to = *this;

        detail::lend_payload(to, payload);
        detail::lend_actor(to, *this);
        return to;
    }
    tl_mutex_options c() const && = delete;
};

/* A tl_rw_options. */
struct rw_options : private tl_rw_options {
    using tl_rw_options::lease_ms, tl_rw_options::max_hold_ms;
    text remark, actor;

    explicit rw_options(int64_t hold_ms) : tl_rw_options(TL_RW_OPTIONS_INIT)
    {
        max_hold_ms = hold_ms;
    }
    tl_rw_options c() const & noexcept
    {
        tl_rw_options to = *this;

        detail::lend_actor(to, *this);
        return to;
    }
    tl_rw_options c() const && = delete;
};

namespace detail
{

/* The handle goes first: no loss is told after that. */
struct mutex_state {
    std::shared_ptr<client_state> client;
    std::function<void(const char *, tl_status)> loss;
    owned<tl_mutex, tl_mutex_free> handle;

    static void on_loss(void *context, const char *resource, tl_status why)
    {
        guarded<int>(
            [&] { return static_cast<mutex_state *>(context)->loss(resource, why), 0; },
            [](const char *) { return 0; });
    }
};

} // namespace detail

/*
 * A lease mutex of one resource or of several (<tradelock/resource.h>).  What is still held when it
 * is destroyed is unlocked by one try, as tl_mutex_free() has it: end the transaction with its
 * guard before.  lock() takes a time, so that no std::lock_guard takes "busy" for "locked".
 */
class mutex
{
  public:
    mutex(const client &on, const char *resource, const mutex_options &options)
        : state_(std::make_unique<detail::mutex_state>())
    {
        const tl_mutex_options given = take(on, options);

        detail::make<tl_mutex_new>(state_->handle, on.get(), resource, &given);
    }
    mutex(const client &on, const std::vector<std::string> &resources,
          const mutex_options &options)
        : state_(std::make_unique<detail::mutex_state>())
    {
        const tl_mutex_options given = take(on, options);
        std::vector<const char *> names;

        names.reserve(resources.size());
        for (const std::string &resource : resources)
            names.push_back(resource.c_str());
        detail::make<tl_mutex_new_set>(state_->handle, on.get(), names.data(), names.size(),
                                       &given);
    }
    mutex(mutex &&) noexcept = default;
    mutex &operator=(mutex &&) noexcept = default;

    tl_mutex *get() const noexcept
    {
        return state_ ? state_->handle.get() : nullptr;
    }
    [[nodiscard]] tl_status lock(int64_t wait_ms)
    {
        return tl_mutex_lock(get(), wait_ms);
    }
    tl_status unlock()
    {
        return tl_mutex_unlock(get());
    }
    tl_status renew(int64_t lease_ms)
    {
        return tl_mutex_renew(get(), lease_ms);
    }
    /* In the caller's own transaction. */
    [[nodiscard]] tl_status guard(st_mysql *connection, unsigned flags = 0)
    {
        return tl_mutex_guard(get(), connection, flags);
    }
    int64_t remaining_ms() const noexcept
    {
        return tl_mutex_remaining_ms(get());
    }
    unsigned depth() const noexcept
    {
        return tl_mutex_depth(get());
    }
    uint64_t fence(const char *resource = nullptr) const noexcept
    {
        return tl_mutex_fence(get(), resource);
    }
    const tl_resource_view &view() const noexcept
    {
        return *tl_mutex_view(get());
    }

  private:
    tl_mutex_options take(const client &on, const mutex_options &options)
    {
        tl_mutex_options given = options.c();

        state_->client = on.state();
        state_->loss = options.loss;
        given.loss = state_->loss ? detail::mutex_state::on_loss : nullptr;
        given.loss_context = state_.get();
        return given;
    }
    std::unique_ptr<detail::mutex_state> state_;
};

/* A read-write lock (<tradelock/rw_lock.h>).  What is still held when it is destroyed is unlocked
 * by one try, as tl_rw_free() has it: end the transaction with its done() before. */
class rw_lock
{
  public:
    rw_lock(const client &on, const char *resource, const rw_options &options) : client_(on.state())
    {
        const tl_rw_options given = options.c();

        detail::make<tl_rw_new>(handle_, on.get(), resource, &given);
    }
    rw_lock(rw_lock &&) noexcept = default;
    rw_lock &operator=(rw_lock &&other) noexcept
    {
        handle_ = std::move(other.handle_);
        client_ = std::move(other.client_);
        return *this;
    }

    tl_rw *get() const noexcept
    {
        return handle_.get();
    }
    [[nodiscard]] tl_status read(int64_t wait_ms)
    {
        return tl_rw_read(get(), wait_ms);
    }
    [[nodiscard]] tl_status write(int64_t wait_ms)
    {
        return tl_rw_write(get(), wait_ms);
    }
    tl_status downgrade()
    {
        return tl_rw_downgrade(get());
    }
    tl_status unlock()
    {
        return tl_rw_unlock(get());
    }
    tl_status renew(int64_t lease_ms)
    {
        return tl_rw_renew(get(), lease_ms);
    }
    /* In the caller's own transaction. */
    [[nodiscard]] tl_status done(st_mysql *connection, unsigned flags = 0)
    {
        return tl_rw_done(get(), connection, flags);
    }
    [[nodiscard]] tl_status guard(st_mysql *connection, unsigned flags = 0)
    {
        return tl_rw_guard(get(), connection, flags);
    }
    int64_t remaining_ms() const noexcept
    {
        return tl_rw_remaining_ms(get());
    }
    tl_rw_mode held() const noexcept
    {
        return tl_rw_held(get());
    }
    uint64_t fence() const noexcept
    {
        return tl_rw_fence(get());
    }
    const tl_holder_view &view() const noexcept
    {
        return *tl_rw_view(get());
    }

  private:
    std::shared_ptr<detail::client_state> client_;
    detail::owned<tl_rw, tl_rw_free> handle_;
};

/* tl_row_lock(): in the caller's own transaction, with which it ends. */
[[nodiscard]] inline tl_status row_lock(const client &on, const char *resource,
                                        st_mysql *connection,
                                        int64_t wait_s = TL_ROW_LOCK_BLOCK,
                                        unsigned flags = 0)
{
    return tl_row_lock(on.get(), resource, connection, wait_s, flags);
}

} // namespace tradelock

#endif
