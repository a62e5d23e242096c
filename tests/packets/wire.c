#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define HEADER 4
#define LINKS_MAX 256
#define RELEASE_MS 300

/* One direction of a connection: what was read and not passed on yet. */
struct flow {
    char *data;
    size_t size, space;
    int held;     /* nothing passes until wire_release() */
    int released; /* it was held, and its packets have gone on */
};

/* A connection: end 0 is the client's, end 1 the server's; flow i is read from end i. */
struct link {
    int fd[2];
    struct flow flow[2];
    int late; /* keeps the server's end although the client's is gone */
};

struct wire {
    /* Fixed after start. */
    char directory[64], path[80], server[108];
    int listener, wake;
    pthread_t thread;

    /* Under the mutex. */
    pthread_mutex_t mutex;
    struct link links[LINKS_MAX];
    size_t link_count;
    wire_fault fault;
    unsigned count, delay_us;
    int armed, struck, down, stop;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

/* The server may be away; the client then finds its connection closed. */
static int dial(const char *path)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("wire: socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static int send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return 1;
        data += sent;
        size -= (size_t)sent;
    }
    return 0;
}

/* ------------------------------------------------------------ connections -- */

static void close_end(struct link *link, int end)
{
    if (link->fd[end] >= 0)
        close(link->fd[end]);
    link->fd[end] = -1;
}

static void cut(struct link *link)
{
    close_end(link, 0);
    close_end(link, 1);
}

static int is_gone(const struct link *link)
{
    return link->fd[0] < 0 && link->fd[1] < 0;
}

static void forget_gone(wire *self)
{
    size_t kept = 0;

    for (size_t i = 0; i < self->link_count; i++) {
        struct link *link = &self->links[i];

        if (is_gone(link)) {
            free(link->flow[0].data);
            free(link->flow[1].data);
        } else {
            self->links[kept++] = *link;
        }
    }
    self->link_count = kept;
}

static void cut_all(wire *self)
{
    for (size_t i = 0; i < self->link_count; i++)
        if (!self->links[i].late)
            cut(&self->links[i]);
}

static void take_client(wire *self)
{
    int client = accept(self->listener, NULL, NULL);
    struct link link = {.fd = {client, -1}};

    if (client < 0)
        return;
    if (!self->down && self->link_count < LINKS_MAX)
        link.fd[1] = dial(self->server);
    if (link.fd[1] < 0)
        close(client);
    else
        self->links[self->link_count++] = link;
}

/* ---------------------------------------------------------------- packets -- */

/* The first packet of the flow with its header; 0 while it is not complete. */
static size_t packet_size(const struct flow *flow)
{
    const unsigned char *head = (const unsigned char *)flow->data;
    size_t size;

    if (flow->size < HEADER)
        return 0;
    size = HEADER + (head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16);
    return flow->size >= size ? size : 0;
}

static void drop(struct flow *flow, size_t size)
{
    flow->size -= size;
    memmove(flow->data, flow->data + size, flow->size);
}

/* Whether the fault strikes the packet that comes by now. */
static int strikes(wire *self, int end)
{
    if (!self->armed)
        return 0;
    self->count++;
    if (self->struck || self->count != self->fault.packet)
        return 0;
    self->struck = end == 0 ? '>' : '<';
    return 1;
}

static int pass(wire *self, struct link *link, int end, size_t size)
{
    struct timespec delay = {0, (long)self->delay_us * 1000};
    struct flow *flow = &link->flow[end];

    if (self->delay_us > 0)
        nanosleep(&delay, NULL);
    if (send_all(link->fd[!end], flow->data, size) != 0) {
        cut(link);
        return 1;
    }
    drop(flow, size);
    return 0;
}

/* The one packet that something happens to. */
static void strike(wire *self, struct link *link, int end, size_t size)
{
    switch (self->fault.act) {
    case WIRE_LATE:
        if (end == 0) {
            link->late = 1;
            link->flow[0].held = 1;
            close_end(link, 0);
            break;
        }
        cut(link);
        break;
    case WIRE_STALL:
        link->flow[end].held = 1;
        break;
    case WIRE_CUT_AFTER:
        if (pass(self, link, end, size) == 0)
            cut(link);
        break;
    default:
        cut(link);
    }
    if (self->fault.down) {
        self->down = 1;
        cut_all(self);
    }
}

static void pass_packets(wire *self, struct link *link, int end)
{
    struct flow *flow = &link->flow[end];

    for (;;) {
        size_t size = packet_size(flow);

        if (size == 0 || flow->held || link->fd[!end] < 0)
            return;
        if (strikes(self, end)) {
            strike(self, link, end, size);
            return;
        }
        if (pass(self, link, end, size) != 0)
            return;
    }
}

static void read_end(wire *self, struct link *link, int end)
{
    struct flow *flow = &link->flow[end];
    ssize_t got;

    if (flow->space - flow->size < 65536) {
        const size_t space = flow->size + 65536 * 2;
        void *larger = realloc(flow->data, space);

        if (larger == NULL)
            die("wire: memory");
        flow->data = larger;
        flow->space = space;
    }
    got = recv(link->fd[end], flow->data + flow->size, flow->space - flow->size, MSG_DONTWAIT);
    if (got > 0) {
        flow->size += (size_t)got;
        pass_packets(self, link, end);
    } else if (!(got < 0 && (errno == EINTR || errno == EAGAIN))) {
        /* A client that gave up on a packet that is held back leaves it behind. */
        if (end == 0 && flow->held) {
            link->late = 1;
            close_end(link, 0);
        } else {
            cut(link);
        }
    }
}

/* ------------------------------------------------------------- the thread -- */

static size_t watch(wire *self, struct pollfd *watched)
{
    size_t count = 2;

    watched[0] = (struct pollfd){self->listener, POLLIN, 0};
    watched[1] = (struct pollfd){self->wake, POLLIN, 0};
    for (size_t i = 0; i < self->link_count; i++)
        for (int end = 0; end < 2; end++)
            watched[count++] = (struct pollfd){self->links[i].fd[end], POLLIN, 0};
    return count;
}

static void *run(void *context)
{
    wire *self = context;
    static _Thread_local struct pollfd watched[2 + 2 * LINKS_MAX];
    unsigned long long ticks;

    pthread_mutex_lock(&self->mutex);
    while (!self->stop) {
        size_t links = self->link_count, count = watch(self, watched);

        pthread_mutex_unlock(&self->mutex);
        (void)poll(watched, count, 50);
        pthread_mutex_lock(&self->mutex);
        if (watched[1].revents && read(self->wake, &ticks, sizeof ticks) < 0)
            die("wire: wake");
        /* What the test closed meanwhile is not looked at; nothing was removed. */
        for (size_t i = 0; i < links; i++)
            for (int end = 0; end < 2; end++)
                if (watched[2 + 2 * i + (size_t)end].revents &&
                    self->links[i].fd[end] == watched[2 + 2 * i + (size_t)end].fd)
                    read_end(self, &self->links[i], end);
        if (watched[0].revents)
            take_client(self);
        forget_gone(self);
    }
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

static void wake_up(wire *self)
{
    unsigned long long one = 1;

    if (write(self->wake, &one, sizeof one) != (ssize_t)sizeof one)
        die("wire: wake");
}

wire *wire_start(const char *server_socket)
{
    wire *self = calloc(1, sizeof *self);
    struct sockaddr_un address;

    if (self == NULL)
        die("wire: memory");
    strcpy(self->directory, "/tmp/tradelock.wire.XXXXXX");
    if (mkdtemp(self->directory) == NULL)
        die("wire: directory");
    snprintf(self->path, sizeof self->path, "%s/s", self->directory);
    snprintf(self->server, sizeof self->server, "%s", server_socket);
    address = address_of(self->path);
    pthread_mutex_init(&self->mutex, NULL);
    self->wake = eventfd(0, EFD_CLOEXEC);
    self->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (self->wake < 0 || self->listener < 0 ||
        bind(self->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(self->listener, 64) != 0 || pthread_create(&self->thread, NULL, run, self) != 0)
        die("wire: listen");
    return self;
}

void wire_free(wire *self)
{
    pthread_mutex_lock(&self->mutex);
    self->stop = 1;
    pthread_mutex_unlock(&self->mutex);
    wake_up(self);
    pthread_join(self->thread, NULL);
    for (size_t i = 0; i < self->link_count; i++)
        cut(&self->links[i]);
    forget_gone(self);
    close(self->listener);
    close(self->wake);
    unlink(self->path);
    rmdir(self->directory);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

const char *wire_socket(const wire *self)
{
    return self->path;
}

/* --------------------------------------------------------------- the test -- */

void wire_arm(wire *self, const wire_fault *fault)
{
    pthread_mutex_lock(&self->mutex);
    self->fault = fault != NULL ? *fault : (wire_fault){0, WIRE_CUT_BEFORE, 0};
    self->count = 0;
    self->struck = 0;
    self->armed = 1;
    pthread_mutex_unlock(&self->mutex);
}

unsigned wire_count(wire *self)
{
    unsigned count;

    pthread_mutex_lock(&self->mutex);
    count = self->count;
    pthread_mutex_unlock(&self->mutex);
    return count;
}

int wire_struck(wire *self)
{
    int struck;

    pthread_mutex_lock(&self->mutex);
    struck = self->struck;
    pthread_mutex_unlock(&self->mutex);
    return struck;
}

void wire_down(wire *self, int down)
{
    pthread_mutex_lock(&self->mutex);
    self->down = down;
    if (down)
        cut_all(self);
    pthread_mutex_unlock(&self->mutex);
    wake_up(self);
}

void wire_delay_us(wire *self, unsigned delay_us)
{
    pthread_mutex_lock(&self->mutex);
    self->delay_us = delay_us;
    pthread_mutex_unlock(&self->mutex);
}

/* Sends on what is held; gives the server's end of the last such connection, or -1. Needs:
 * self->mutex held. */
static int release_held(wire *self)
{
    int server = -1;

    for (size_t i = 0; i < self->link_count; i++) {
        struct link *link = &self->links[i];

        for (int end = 0; end < 2; end++) {
            if (!link->flow[end].held)
                continue;
            link->flow[end].held = 0;
            if (link->fd[!end] < 0 ||
                send_all(link->fd[!end], link->flow[end].data, link->flow[end].size) != 0)
                continue;
            link->flow[end].size = 0;
            if (end == 0)
                server = link->fd[1];
        }
    }
    return server;
}

/* Whether a connection is still there and says something. */
static int server_spoke(wire *self, int server, size_t before)
{
    for (size_t i = 0; i < self->link_count; i++)
        if (self->links[i].fd[1] == server)
            return self->links[i].flow[1].size > before ? 1 : 0;
    return -1;
}

int wire_release(wire *self)
{
    struct timespec pause = {0, 1000000};
    int server, spoke = 0;

    pthread_mutex_lock(&self->mutex);
    server = release_held(self);
    pthread_mutex_unlock(&self->mutex);
    for (int tries = 0; server >= 0 && spoke == 0 && tries < RELEASE_MS; tries++) {
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&self->mutex);
        spoke = server_spoke(self, server, 0);
        pthread_mutex_unlock(&self->mutex);
    }
    return spoke == 1;
}

void wire_hang_up(wire *self)
{
    pthread_mutex_lock(&self->mutex);
    for (size_t i = 0; i < self->link_count; i++)
        if (self->links[i].late)
            cut(&self->links[i]);
    pthread_mutex_unlock(&self->mutex);
    wake_up(self);
}

void wire_reset(wire *self)
{
    pthread_mutex_lock(&self->mutex);
    self->down = 0;
    self->armed = 0;
    self->delay_us = 0;
    for (size_t i = 0; i < self->link_count; i++)
        cut(&self->links[i]);
    pthread_mutex_unlock(&self->mutex);
    wake_up(self);
}
