/*
 * Checks names against the list of those that libmariadb 3.3 reads from an option file.  libmariadb
 * takes an underscore for a dash, and ignores every other name in silence: a mistyped ssl-ca would
 * leave a connection without verified TLS, and nobody would know.  Touches no state.
 */
#include "base/config_client.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

const char *const config_client_names[] = {
    "bind-address",
    "character-sets-dir",
    "compress",
    "database",
    "debug",
    "default-auth",
    "host",
    "interactive-timeout",
    "local-infile",
    "max-allowed-packet",
    "multi-results",
    "net-buffer-length",
    "password",
    "pipe",
    "port",
    "protocol",
    "restricted-auth",
    "secure-auth",
    "server-public-key",
    "socket",
    "ssl-ca",
    "ssl-capath",
    "ssl-cert",
    "ssl-cipher",
    "ssl-crl",
    "ssl-crlpath",
    "ssl-enforce",
    "ssl-fp",
    "ssl-fp-list",
    "ssl-fplist",
    "ssl-key",
    "ssl-passphrase",
    "ssl-verify-server-cert",
    "tls-version",
    "user",
    "disable-local-infile",
    NULL,
};

/* Options that libmariadb knows, but that would change what the library relies on.  `harmless` is
 * the value that changes nothing, if there is one. */
static const struct {
    const char *name, *harmless, *why;
} refused[] = {
    {"reconnect", "0", "a silent reconnect would lose transactions and locks"},
    {"report-data-truncation", "1", "a cut value must never pass unseen"},
    {"return-found-rows", NULL, "it changes what an UPDATE reports"},
    {"multi-statements", NULL, "one call must be one statement"},
    {"multi-queries", NULL, "one call must be one statement"},
    {"init-command", NULL, "tradelock fixes the state of its connections itself"},
    {"default-character-set", NULL, "tradelock fixes the character set itself"},
    {"connect-timeout", NULL, "use connect_timeout_s in [tradelock]"},
    {"timeout", NULL, "use connect_timeout_s in [tradelock]"},
    {"plugin-dir", NULL, "it names a folder whose files are loaded and run"},
    {"connection", NULL, "give host, user and password each on a line of its own"},
    {"shared-memory-base-name", NULL, "there is no such thing on this system"},
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define KNOWN (COUNT(config_client_names) - 1)

/* libmariadb's comparison: case matters, an underscore is a dash. */
static int same_name(const char *name, const char *with_dashes)
{
    for (; *name != '\0' && *with_dashes != '\0'; name++, with_dashes++)
        if ((*name == '_' ? '-' : *name) != *with_dashes)
            return 0;
    return *name == *with_dashes;
}

tl_status config_client_check(const char *name, const char *value)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (same_name(name, config_client_names[i]))
            return TL_OK;
    for (size_t i = 0; i < COUNT(refused); i++) {
        if (!same_name(name, refused[i].name))
            continue;
        if (value != NULL && refused[i].harmless != NULL && strcmp(value, refused[i].harmless) == 0)
            return TL_OK;
        return error_set(TL_BAD_CONFIG, "%s is not allowed here: %s", refused[i].name,
                         refused[i].why);
    }
    /* Without a value the sentence would quote the whole line, which may hold a password. */
    if (value == NULL)
        return error_set(TL_BAD_CONFIG, "a line without '=' that is no connection option");
    const char *near = text_nearest(name, config_client_names, KNOWN);
    if (near != NULL)
        return error_set(TL_BAD_CONFIG, "unknown connection option '%s'; did you mean '%s'?", name,
                         near);
    return error_set(TL_BAD_CONFIG, "unknown connection option '%s'", name);
}

int config_client_secret(const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return 0;
    return strstr(name, "pass") != NULL || strstr(name, "pwd") != NULL ||
           strcmp(name, "connection") == 0;
}
