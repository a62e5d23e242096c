#include "proxy.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct proxy {
    char directory[64], path[80];
    char server[108];
    int listener;
    pthread_t thread;
    atomic_int cut, stop;
    atomic_uint turns;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
        die("proxy: connect");
    return fd;
}

static int send_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return 1;
        data += sent;
        size -= (size_t)sent;
    }
    return 0;
}

/* Everything that comes within a moment, since an answer may come in pieces. */
static size_t read_burst(int fd, char *data, size_t space)
{
    struct pollfd watched = {fd, POLLIN, 0};
    size_t size = 0;
    ssize_t got;

    do {
        got = recv(fd, data + size, space - size, 0);
        if (got > 0)
            size += (size_t)got;
    } while (got > 0 && size < space && poll(&watched, 1, 20) == 1);
    return size;
}

/* One answer is to be lost: 1 when the connection is done with. */
static int lose_answer(int cut, int client, int server, char *data, size_t space)
{
    size_t size = read_burst(client, data, space);

    if (!size || cut == PROXY_CUT_REQUEST || send_all(server, data, size))
        return 1;
    size = read_burst(server, data, space);
    if (cut == PROXY_CUT_TAIL && size > 5)
        send_all(client, data, size - 5);
    return 1;
}

static void serve(proxy *self, int client)
{
    static _Thread_local char data[1 << 18];
    int server = dial(self->server);
    struct pollfd both[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    int listened = 1, done = 0;

    while (!done && !atomic_load(&self->stop)) {
        ssize_t got;
        int cut;

        if (poll(both, 2, 20) <= 0)
            continue;
        if (both[0].revents) {
            if (listened)
                atomic_fetch_add(&self->turns, 1);
            listened = 0;
            cut = atomic_exchange(&self->cut, PROXY_PASS);
            if (cut != PROXY_PASS) {
                done = lose_answer(cut, client, server, data, sizeof(data));
                continue;
            }
            got = recv(client, data, sizeof(data), 0);
            done = got <= 0 || send_all(server, data, (size_t)got);
        }
        if (!done && both[1].revents) {
            listened = 1;
            got = recv(server, data, sizeof(data), 0);
            done = got <= 0 || send_all(client, data, (size_t)got);
        }
    }
    close(client);
    close(server);
}

static void *run(void *context)
{
    proxy *self = context;
    struct pollfd watched = {self->listener, POLLIN, 0};

    while (!atomic_load(&self->stop))
        if (poll(&watched, 1, 20) == 1)
            serve(self, accept(self->listener, NULL, NULL));
    return NULL;
}

proxy *proxy_start(const char *server_socket)
{
    proxy *self = calloc(1, sizeof(*self));
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (!self)
        die("proxy: memory");
    strcpy(self->directory, "/tmp/tradelock.proxy.XXXXXX");
    if (!mkdtemp(self->directory))
        die("proxy: directory");
    snprintf(self->path, sizeof(self->path), "%s/s", self->directory);
    snprintf(self->server, sizeof(self->server), "%s", server_socket);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", self->path);
    self->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (self->listener < 0 || bind(self->listener, (struct sockaddr *)&address, sizeof(address)) ||
        listen(self->listener, 8) || pthread_create(&self->thread, NULL, run, self))
        die("proxy: listen");
    return self;
}

void proxy_free(proxy *self)
{
    atomic_store(&self->stop, 1);
    pthread_join(self->thread, NULL);
    close(self->listener);
    unlink(self->path);
    rmdir(self->directory);
    free(self);
}

const char *proxy_socket(const proxy *self)
{
    return self->path;
}

void proxy_set(proxy *self, proxy_cut cut)
{
    atomic_store(&self->cut, cut);
}

unsigned proxy_turns(const proxy *self)
{
    return atomic_load(&self->turns);
}
