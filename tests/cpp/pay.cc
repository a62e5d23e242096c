// pay CONFIG SERIAL...: the service of that plug-in: pays 1.00 EUR each, and prints the answers.
#include "plugin.cc"

#include <cstdio>

int main(int argc, char **argv)
try {
    tradelock::client client{tradelock::client_options{argv[1]}};
    tradelock::workflows workflows{client};

    add(client, workflows, argv[1]);
    for (int i = 2; i < argc; i++) {
        tradelock::request request{{argv[i], "C1", "PAYOUT"},
                                   R"({"amount_minor":100,"currency":"EUR","payee":"Anna"})"};
        request.amount_minor = 100;
        request.currency = "EUR";
        std::puts(workflows.run(request).name());
    }
    return 0;
} catch (const std::exception &thrown) {
    std::puts(thrown.what());
    return 1;
}
