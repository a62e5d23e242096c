#include "sample.h"

#include "base/config.h"

#include <string.h>

#define COLUMNS 78

static const char head[] =
    "# Settings of tradelock: who connects how, and the numbers everything keeps to.\n"
    "#\n"
    "# Copy this file, give it to the account that the service runs under, and\n"
    "# chmod 600 it once it holds a password.  Every setting stands with its default;\n"
    "# remove the '#' before a name to change it.  Unknown names and values out of\n"
    "# range are refused with the line.  Durations are written as 250ms, 30s, 10m, 2h\n"
    "# or 7d; a plain number counts the unit at the end of the name.  A variable such\n"
    "# as TRADELOCK_BEAT_MS counts above the setting beat_ms.\n"
    "# A section [service-NAME] is a service's own, and passed over here.  A section\n"
    "# [statement-NAME] says how a bank writes its files, with the options of\n"
    "# `tradelock audit --profile NAME` as names: map, delimiter, decimal and so on.\n"
    "#\n"
    "# This text is made from CONFIG_MAP in core/base/config.h; a test\n"
    "# compares the two, and prints it anew with --sample.\n"
    "\n"
    "# The connection, read by libmariadb as in every MariaDB option file.  Over TCP\n"
    "# beyond this machine, verified TLS is required (ssl-verify-server-cert).  Up to\n"
    "# eight hosts may be named, as `host = a, b:3307`, with one port, account and TLS\n"
    "# for all of them: a primary and its replicas.  The one that was accepted and\n"
    "# takes writes is used, in whatever order they stand.\n"
    "# Variables TRADELOCK_HOST, _USER, _DATABASE, _SSL_CA, _SSL_CERT and _SSL_KEY\n"
    "# count above this section; a host may be a socket's path there, and has its port\n"
    "# behind a colon.  TRADELOCK_PASSWORD_FILE names a file that holds the password\n"
    "# alone, as private as this one.  With TRADELOCK_HOST no file like this is needed.\n"
    "[tradelock-client]\n"
    "#socket = /run/mysqld/mysqld.sock\n"
    "#host = db.example\n"
    "#port = 3306\n"
    "#ssl-ca = /etc/ssl/certs/db-ca.pem\n"
    "#ssl-verify-server-cert = 1\n"
    "#database = tradelock\n"
    "#user = tradelock_app\n"
    "#password =\n"
    "\n"
    "[tradelock]\n";

/* The text as comment lines of a bounded length. */
static void write_comment(struct text_buffer *to, const char *text)
{
    size_t column = 0;

    while (*text != '\0') {
        size_t size = strcspn(text, " ");

        if (column > 0 && column + 1 + size > COLUMNS) {
            text_buffer_append_text(to, "\n");
            column = 0;
        }
        if (column == 0) {
            text_buffer_append_text(to, "#");
            column = 1;
        }
        text_buffer_append_text(to, " ");
        text_buffer_append(to, text, size);
        column += 1 + size;
        text += size;
        text += strspn(text, " ");
    }
    text_buffer_append_text(to, "\n");
}

static void write_range(struct text_buffer *to, const struct config_setting *setting)
{
    char least[CONFIG_DURATION_TEXT], most[CONFIG_DURATION_TEXT];
    int64_t unit_ms = setting->type == CONFIG_SECONDS ? CONFIG_SECOND : 1;

    switch (setting->type) {
    case CONFIG_NAME:
        text_buffer_append_format(to, "# At most %lld bytes of printable ASCII without blanks.\n",
                                  (long long)setting->most);
        break;
    case CONFIG_COUNT:
        text_buffer_append_format(to, "# From %lld to %lld.\n", (long long)setting->least,
                                  (long long)setting->most);
        break;
    case CONFIG_MS:
    case CONFIG_SECONDS:
    case CONFIG_SCHEDULE:
        text_buffer_append_format(to, "# %s %s to %s.\n",
                                  setting->type == CONFIG_SCHEDULE ? "Each from" : "From",
                                  config_duration(least, setting->least * unit_ms),
                                  config_duration(most, setting->most * unit_ms));
        break;
    case CONFIG_CUST:
    case CONFIG_LEVEL:
    case CONFIG_FORMAT:
    case CONFIG_SWITCH:
    case CONFIG_LISTEN:
        break;
    case CONFIG_FLEET:
        text_buffer_append_format(to, "# At most %lld letters, digits, - and _.\n",
                                  (long long)setting->most);
        break;
    case CONFIG_SHARDS:
        text_buffer_append_format(to, "# At most %lld.\n", (long long)setting->most);
        break;
    }
}

void sample_write(struct text_buffer *to)
{
    text_buffer_append_text(to, head);
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_settings[i];

        text_buffer_append_text(to, "\n");
        write_comment(to, setting->meaning);
        write_range(to, setting);
        text_buffer_append_format(to, "#%s = %s\n", setting->name, setting->initial);
    }
}
