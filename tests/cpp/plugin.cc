// The handler of workflows/TUTORIAL.md in C++: a plug-in that pays over HTTP.  The address of the
// channel is in the settings file, in a line that begins with "channel_url = ".
#include <tradelock/tradelock.hpp>

#include <curl/curl.h>
#include <jansson.h>

#include <fstream>

namespace
{

struct answer {
    CURLcode code = CURLE_FAILED_INIT;
    long http = 0; // 0: none came
    std::string text;
};

size_t keep(char *data, size_t size, size_t count, void *context)
{
    std::string &text = static_cast<answer *>(context)->text;

    if (size * count > 4096 - text.size())
        return 0;
    text.append(data, size * count);
    return size * count;
}

// One request, on a connection of its own, so that libcurl repeats nothing.
answer call(const std::string &url, const std::string &body, const tradelock::attempt &attempt)
{
    const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl{curl_easy_init(),
                                                                   curl_easy_cleanup};
    const long left_ms = attempt.left_ms(); // asked for last
    answer heard;

    if (!curl || left_ms <= 0)
        return heard;
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
    curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, left_ms);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &heard);
    if (!body.empty())
        curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
    heard.code = curl_easy_perform(curl.get());
    if (heard.code == CURLE_OK)
        curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &heard.http);
    return heard;
}

class json
{
  public:
    explicit json(std::string_view text)
        : root_(json_loadb(text.data(), text.size(), 0, nullptr), json_decref)
    {
    }
    std::string get(const char *name) const
    {
        const char *said = json_string_value(json_object_get(root_.get(), name));

        return said != nullptr ? said : "";
    }
    void set(const char *name, const char *value)
    {
        if (json_object_set_new(root_.get(), name, json_string(value)) != 0)
            throw std::runtime_error("the payload is no order");
    }
    std::string print() const
    {
        const std::unique_ptr<char, decltype(&free)> text{json_dumps(root_.get(), 0), free};

        return text ? text.get() : throw std::bad_alloc();
    }

  private:
    std::unique_ptr<json_t, decltype(&json_decref)> root_;
};

// The request is made of the payload alone, so that each send of a key says the same.
tl_execute_result pay(const std::string &url, const tradelock::attempt &attempt,
                      tradelock::reply &reply)
{
    json order{attempt.payload()};
    order.set("channel_key", attempt->channel_key);
    order.set("serial_no", attempt->key.serial_no);
    order.set("cust_no", attempt->key.cust_no);
    order.set("op_code", attempt->key.op_code);
    const answer heard = call(url + "/v1/pay", order.print(), attempt);
    const json said{heard.text};
    const std::string outcome = said.get("outcome");

    reply.ref(said.get("channel_ref"));
    if (heard.code == CURLE_FAILED_INIT || heard.code == CURLE_COULDNT_CONNECT)
        return TL_EXECUTE_NOT_SENT; // no byte left
    if (heard.http == 200 && outcome == "succeeded")
        return TL_EXECUTE_SUCCEEDED;
    if (heard.http == 200 && outcome == "declined")
        return TL_EXECUTE_DECLINED;
    if (heard.http == 202 && outcome == "accepted")
        return TL_EXECUTE_ACCEPTED;
    if (heard.http == 429)
        return TL_EXECUTE_RETRY_LATER; // the channel documents that it did nothing
    return TL_EXECUTE_UNKNOWN;
}

tl_query_result find(const std::string &url, const tradelock::attempt &attempt,
                     tradelock::reply &reply)
{
    const answer heard = call(url + "/v1/payments/" + attempt->channel_key, "", attempt);
    const json said{heard.text};
    const std::string status = said.get("status");

    reply.ref(said.get("channel_ref"));
    if (heard.http == 404 && status == "not_found")
        return TL_QUERY_NOT_FOUND;
    if (heard.http == 200 && status == "succeeded")
        return TL_QUERY_SUCCEEDED;
    if (heard.http == 200 && status == "failed")
        return TL_QUERY_FAILED;
    if (heard.http == 200 && status == "pending")
        return TL_QUERY_PENDING;
    return TL_QUERY_UNREACHABLE;
}

std::string channel_of(const char *config_file)
{
    const std::string name = "channel_url = ";
    std::ifstream file{config_file};

    for (std::string line; std::getline(file, line);)
        if (line.compare(0, name.size(), name) == 0)
            return line.substr(name.size());
    throw tradelock::caller_error(TL_BAD_CONFIG, "the settings have no channel_url");
}

void add(const tradelock::client &, tradelock::workflows &workflows, const char *config_file)
{
    const std::string url = channel_of(config_file);
    tradelock::workflow payout;

    payout.op_code = "PAYOUT";
    payout.channel.name = "payout-bank";
    payout.channel.idempotent = 1; // a key pays once, however often it is sent
    payout.channel.replays_first_answer = 1;
    payout.channel.can_query = 1;
    payout.execute = [url](const tradelock::attempt &attempt, tradelock::reply &reply) {
        return pay(url, attempt, reply);
    };
    payout.query = [url](const tradelock::attempt &attempt, tradelock::reply &reply) {
        return find(url, attempt, reply);
    };
    payout.statements = {
        tradelock::statement{"take money",
                             "UPDATE account SET balance_minor = balance_minor - :amount_minor"
                             " WHERE cust_no = :cust_no AND balance_minor >= :amount_minor"},
        tradelock::statement{"give back",
                             "UPDATE account SET balance_minor = balance_minor + :amount_minor"
                             " WHERE cust_no = :cust_no"},
        tradelock::statement{"insert payout",
                             "INSERT INTO payout (serial_no, cust_no, amount_minor, channel_ref)"
                             " VALUES (:serial_no, :cust_no, :amount_minor, :channel_ref)"}};
    payout.statements[0].refused = "too little money";
    payout.book_prepare = [](auto &, auto &, auto &book) { book.line("take money"); };
    payout.book_success = [](auto &attempt, auto &, auto &book) {
        if (attempt->after_failure)
            throw std::runtime_error("not part of this example");
        book.line("insert payout");
    };
    payout.book_failure = [](auto &, auto &, auto, auto &book) { book.line("give back"); };
    workflows.add(payout);
}

} // namespace

TRADELOCK_PLUGIN("payout", add);
