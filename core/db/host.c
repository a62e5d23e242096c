/*
 * Reads the list of hosts, `host = a, b:3307`, that a settings file may name.  Touches the option
 * file.
 *
 * libmariadb would take such a list itself, and connect to whichever answers first.  Who tells a
 * primary from one that was replaced is the pool's owner, so each connection is given one host.
 */
#include "db/db_internal.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PORT_MAX 65535

/* Needs: only digits, at least one.  0: no port. */
static unsigned read_port(const char *text)
{
    const unsigned long port = strlen(text) <= 5 ? strtoul(text, NULL, 10) : 0;

    return text[strspn(text, "0123456789")] == '\0' && port <= PORT_MAX ? (unsigned)port : 0;
}

static int is_ipv6(const char *text)
{
    struct in6_addr address;

    return inet_pton(AF_INET6, text, &address) == 1;
}

/* Takes the port off: "a:3307", "[::1]:3307", "[::1]".  A path and a bare IPv6 address have
 * none. */
static tl_status split_port(db_host *host, const char *list)
{
    char *colon = NULL, *end;

    if (host->name[0] == '/' || is_ipv6(host->name))
        return TL_OK;
    if (host->name[0] == '[') {
        end = strchr(host->name, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return error_set(TL_BAD_CONFIG, "host = %s: an IPv6 address ends with ]", list);
        colon = end[1] == ':' ? end + 1 : NULL;
        *end = '\0';
        if (!is_ipv6(host->name + 1))
            return error_set(TL_BAD_CONFIG, "host = %s: '%s' is not an IPv6 address", list,
                             host->name + 1);
    } else {
        colon = strchr(host->name, ':');
    }
    if (colon != NULL) {
        *colon = '\0';
        host->port = read_port(colon + 1);
        if (host->port == 0)
            return error_set(TL_BAD_CONFIG, "host = %s: '%s' is not a port", list, colon + 1);
    }
    if (host->name[0] == '[')
        memmove(host->name, host->name + 1, strlen(host->name));
    if (host->name[0] == '\0')
        return error_set(TL_BAD_CONFIG, "host = %s: an item of the list is empty", list);
    return TL_OK;
}

static tl_status read_item(db_hosts *hosts, const char *from, const char *end, const char *list)
{
    db_host *host = &hosts->host[hosts->count];
    tl_status status;

    while (from < end && isspace((unsigned char)*from))
        from++;
    while (end > from && isspace((unsigned char)end[-1]))
        end--;
    if (from == end)
        return error_set(TL_BAD_CONFIG, "host = %s: an item of the list is empty", list);
    if (hosts->count == DB_HOSTS_MAX)
        return error_set(TL_BAD_CONFIG, "host = %s: at most %d hosts can be named", list,
                         DB_HOSTS_MAX);
    if ((size_t)(end - from) >= sizeof host->name)
        return error_set(TL_BAD_CONFIG, "host = %s: the name of a host is too long", list);
    memset(host, 0, sizeof *host);
    memcpy(host->name, from, (size_t)(end - from));
    status = split_port(host, list);
    for (size_t i = 0; i < hosts->count && status == TL_OK; i++)
        if (strcasecmp(hosts->host[i].name, host->name) == 0 && hosts->host[i].port == host->port)
            status =
                error_set(TL_BAD_CONFIG, "host = %s: '%s' stands there twice", list, host->name);
    hosts->count += status == TL_OK;
    return status;
}

static tl_status read_list(db_hosts *hosts, const char *list)
{
    const char *from = list, *end;
    tl_status status;

    do {
        end = from + strcspn(from, ",");
        status = read_item(hosts, from, end, list);
        from = end + 1;
    } while (status == TL_OK && *end != '\0');
    return status;
}

tl_status db_hosts_read(db_hosts *out, const db_options *options)
{
    MYSQL *mysql = NULL;
    tl_status status;

    memset(out, 0, sizeof *out);
    status = db_settings_read(&mysql, options);
    if (status != TL_OK && status != TL_NO_MEMORY)
        status = TL_OK; /* connecting reads the file again, and says what is wrong with it */
    else if (status == TL_OK && mysql->options.host != NULL &&
             strpbrk(mysql->options.host, ",:/[") != NULL)
        status = read_list(out, mysql->options.host); /* else it is libmariadb's alone */
    if (mysql != NULL)
        mysql_close(mysql);
    return status;
}

tl_status db_host_known(const db_host *host)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int answer;

    if (host->name[0] == '/')
        return TL_OK;
    answer = getaddrinfo(host->name, NULL, &wanted, &found);
    if (answer == 0)
        freeaddrinfo(found);
    /* Whoever does not know it now may know it later. */
    if (answer == EAI_NONAME)
        return error_set(TL_BAD_CONFIG, "no host of the name '%s' is known", host->name);
    return TL_OK;
}
