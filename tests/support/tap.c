#include "support/tap.h"

#include "support/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_MS 10
#define CHUNK (1 << 17)

struct serving {
    tap *owner;
    int client, cuts; /* before it came */
    pthread_t thread;
    struct serving *next;
};

struct rule {
    char word[80];
    unsigned skip;
    int armed, then_down;
    tap_act act;
};

struct tap {
    char directory[64], path[80];
    int listener;
    pthread_t thread;
    atomic_int stop, down, cuts, armed, released;
    /* Under the mutex. */
    pthread_mutex_t mutex;
    char server[108];
    struct rule rules[TAP_RULES];
    struct serving *servings; /* of the listening thread */
};

static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int dial_server(tap *self)
{
    char path[sizeof self->server];

    pthread_mutex_lock(&self->mutex);
    memcpy(path, self->server, sizeof path);
    pthread_mutex_unlock(&self->mutex);
    return dial(path);
}

static int send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return 0;
        data += sent;
        size -= (size_t)sent;
    }
    return 1;
}

/* Whether a rule meets this request; uses it up. */
static int meets(tap *self, const char *data, size_t size, tap_act *act)
{
    int met = 0;

    pthread_mutex_lock(&self->mutex);
    for (int i = 0; i < TAP_RULES && !met; i++) {
        struct rule *rule = &self->rules[i];

        if (!rule->armed || memmem(data, size, rule->word, strlen(rule->word)) == NULL)
            continue;
        met = rule->skip == 0;
        if (!met) {
            rule->skip--;
            continue;
        }
        rule->armed = rule->act == TAP_STALL_ALL;
        *act = rule->act;
        if (rule->then_down)
            atomic_store(&self->down, 1);
    }
    pthread_mutex_unlock(&self->mutex);
    return met;
}

/* What the server answers to the request it was just sent, in room; its size. */
static size_t take_answer(int far, char *room)
{
    struct pollfd watched = {far, POLLIN, 0};
    ssize_t got = poll(&watched, 1, 5000) == 1 ? recv(far, room, CHUNK, 0) : 0;

    return got > 0 ? (size_t)got : 0;
}

static void wait_for(tap *self, const atomic_int *flag)
{
    while (!atomic_load(flag) && !atomic_load(&self->stop))
        usleep(LOOK_MS * 1000);
}

static int is_cut(const struct serving *one)
{
    return atomic_load(&one->owner->cuts) != one->cuts || atomic_load(&one->owner->stop);
}

static void stall(const struct serving *one)
{
    while (!is_cut(one))
        usleep(LOOK_MS * 1000);
}

/* Closes what it must; 1 when the connection is over. */
static int apply(struct serving *one, tap_act act, int *client, int far, char *data, size_t size)
{
    tap *self = one->owner;

    switch (act) {
    case TAP_LOSE_REQUEST:
        break;
    case TAP_LOSE_ANSWER:
        (void)send_all(far, data, size);
        (void)take_answer(far, data);
        break;
    case TAP_HOLD_REQUEST:
        /* Who is cut off may ask at once whether the rule was used up. */
        atomic_fetch_sub(&self->armed, 1);
        close(*client);
        *client = -1;
        wait_for(self, &self->released);
        (void)send_all(far, data, size);
        (void)take_answer(far, data);
        return 1;
    case TAP_DELAY_REQUEST:
        atomic_fetch_sub(&self->armed, 1);
        wait_for(self, &self->released);
        return !send_all(far, data, size);
    case TAP_DELAY_ANSWER:
        if (!send_all(far, data, size))
            break;
        size = take_answer(far, data);
        atomic_fetch_sub(&self->armed, 1);
        wait_for(self, &self->released);
        return size == 0 || !send_all(*client, data, size);
    case TAP_STALL:
        atomic_fetch_sub(&self->armed, 1);
        stall(one);
        return 1;
    case TAP_STALL_ALL:
        stall(one);
        return 1;
    }
    atomic_fetch_sub(&self->armed, 1);
    return 1;
}

static int pass(struct serving *one, struct pollfd both[2], char *data)
{
    ssize_t got;
    tap_act act = TAP_STALL;

    if (both[0].revents != 0) {
        got = recv(both[0].fd, data, CHUNK, 0);
        if (got <= 0)
            return 1;
        if (meets(one->owner, data, (size_t)got, &act))
            return apply(one, act, &both[0].fd, both[1].fd, data, (size_t)got);
        if (!send_all(both[1].fd, data, (size_t)got))
            return 1;
    }
    if (both[1].revents != 0) {
        got = recv(both[1].fd, data, CHUNK, 0);
        if (got <= 0 || !send_all(both[0].fd, data, (size_t)got))
            return 1;
    }
    return 0;
}

static void *serve(void *argument)
{
    struct serving *one = argument;
    tap *self = one->owner;
    char *data = malloc(CHUNK);
    struct pollfd both[2] = {{one->client, POLLIN, 0}, {dial_server(self), POLLIN, 0}};
    int over = data == NULL || both[1].fd < 0;

    while (!over && !is_cut(one) && !atomic_load(&self->down))
        if (poll(both, 2, LOOK_MS) > 0)
            over = pass(one, both, data);
    if (both[0].fd >= 0)
        close(both[0].fd);
    if (both[1].fd >= 0)
        close(both[1].fd);
    free(data);
    return NULL;
}

static void begin(tap *self, int client)
{
    struct serving *one;

    if (client < 0)
        return;
    one = calloc(1, sizeof *one);
    if (atomic_load(&self->down) || one == NULL) {
        close(client);
        free(one);
        return;
    }
    one->owner = self;
    one->client = client;
    one->cuts = atomic_load(&self->cuts);
    one->next = self->servings;
    self->servings = one;
    if (pthread_create(&one->thread, NULL, serve, one) != 0)
        server_panic("no thread for a connection");
}

static void *listen_on(void *argument)
{
    tap *self = argument;
    struct pollfd watched = {self->listener, POLLIN, 0};

    while (!atomic_load(&self->stop))
        if (poll(&watched, 1, LOOK_MS) == 1)
            begin(self, accept4(self->listener, NULL, NULL, SOCK_CLOEXEC));
    return NULL;
}

tap *tap_start(const char *server_socket)
{
    tap *self = calloc(1, sizeof *self);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (self == NULL)
        server_panic("out of memory");
    strcpy(self->directory, "/tmp/tradelock.tap.XXXXXX");
    if (mkdtemp(self->directory) == NULL)
        server_panic("no directory for a tap: %s", strerror(errno));
    snprintf(self->path, sizeof self->path, "%s/s", self->directory);
    snprintf(self->server, sizeof self->server, "%s", server_socket);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", self->path);
    pthread_mutex_init(&self->mutex, NULL);
    self->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (self->listener < 0 ||
        bind(self->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(self->listener, 64) != 0 ||
        pthread_create(&self->thread, NULL, listen_on, self) != 0)
        server_panic("no tap: %s", strerror(errno));
    return self;
}

void tap_free(tap *self)
{
    atomic_store(&self->stop, 1);
    pthread_join(self->thread, NULL);
    while (self->servings != NULL) {
        struct serving *one = self->servings;

        self->servings = one->next;
        pthread_join(one->thread, NULL);
        free(one);
    }
    close(self->listener);
    unlink(self->path);
    rmdir(self->directory);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

const char *tap_socket(const tap *self)
{
    return self->path;
}

void tap_rule(tap *self, const char *word, unsigned skip, tap_act act, int down)
{
    int i = 0;

    pthread_mutex_lock(&self->mutex);
    while (i < TAP_RULES && self->rules[i].armed)
        i++;
    if (i == TAP_RULES)
        server_panic("more than %d rules", TAP_RULES);
    self->rules[i] = (struct rule){.skip = skip, .armed = 1, .then_down = down, .act = act};
    snprintf(self->rules[i].word, sizeof self->rules[i].word, "%s", word);
    atomic_fetch_add(&self->armed, 1);
    atomic_store(&self->released, 0);
    pthread_mutex_unlock(&self->mutex);
}

int tap_left(const tap *self)
{
    return atomic_load(&self->armed);
}

int tap_done(const tap *self)
{
    return tap_left(self) == 0;
}

void tap_clear(tap *self)
{
    pthread_mutex_lock(&self->mutex);
    for (int i = 0; i < TAP_RULES; i++)
        if (self->rules[i].armed) {
            self->rules[i].armed = 0;
            atomic_fetch_sub(&self->armed, 1);
        }
    pthread_mutex_unlock(&self->mutex);
}

void tap_release(tap *self)
{
    atomic_store(&self->released, 1);
}

void tap_lead(tap *self, const char *server_socket)
{
    pthread_mutex_lock(&self->mutex);
    snprintf(self->server, sizeof self->server, "%s", server_socket);
    pthread_mutex_unlock(&self->mutex);
}

void tap_down(tap *self, int down)
{
    atomic_store(&self->down, down);
}

void tap_cut(tap *self)
{
    atomic_fetch_add(&self->cuts, 1);
}
