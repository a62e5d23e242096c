/* Starts HAProxy, and tells it by its socket where the writer is. */
#include "support/haproxy.h"

#include "support/server.h"
#include "support/theme.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

struct haproxy {
    char dir[64], config[96], socket[96];
    unsigned port;
    pid_t pid;
};

static void write_config(const haproxy *self, unsigned first, unsigned second, int ends)
{
    const char *how = ends ? "on-marked-down shutdown-sessions" : "";
    FILE *file = fopen(self->config, "we");

    if (file == NULL)
        server_panic("%s cannot be written", self->config);
    fprintf(file,
            "global\n stats socket %s level admin\n"
            "defaults\n mode tcp\n timeout connect 1s\n timeout client 1h\n timeout server 1h\n"
            "listen db\n bind 127.0.0.1:%u\n"
            " server first 127.0.0.1:%u %s\n"
            " server second 127.0.0.1:%u disabled %s\n",
            self->socket, self->port, first, how, second, how);
    fclose(file);
}

static void await_socket(const haproxy *self)
{
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        if (access(self->socket, F_OK) == 0)
            return;
        usleep(10000);
    }
    server_panic("HAProxy does not start");
}

haproxy *haproxy_start(unsigned port_first, unsigned port_second, int ends)
{
    haproxy *self = calloc(1, sizeof *self);
    char program[512];

    if (self == NULL)
        server_panic("out of memory");
    snprintf(self->dir, sizeof self->dir, "/tmp/tradelock.XXXXXX");
    if (mkdtemp(self->dir) == NULL)
        server_panic("no directory can be made in /tmp");
    snprintf(self->config, sizeof self->config, "%s/haproxy.cfg", self->dir);
    snprintf(self->socket, sizeof self->socket, "%s/haproxy.sock", self->dir);
    self->port = server_free_port();
    write_config(self, port_first, port_second, ends);
    snprintf(program, sizeof program, "%s/tools/dev/uninstalled", test_source_dir());
    self->pid = fork();
    if (self->pid < 0)
        server_panic("fork failed");
    if (self->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(program, program, "haproxy", "-f", self->config, (char *)NULL);
        _exit(127);
    }
    await_socket(self);
    return self;
}

void haproxy_free(haproxy *self)
{
    if (self == NULL)
        return;
    kill(self->pid, SIGKILL);
    waitpid(self->pid, NULL, 0);
    unlink(self->socket);
    unlink(self->config);
    rmdir(self->dir);
    free(self);
}

unsigned haproxy_port(const haproxy *self)
{
    return self->port;
}

void haproxy_turn(haproxy *self)
{
    static const char command[] = "disable server db/first; enable server db/second\n";
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char answer[256];

    snprintf(at.sun_path, sizeof at.sun_path, "%s", self->socket);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        write(fd, command, sizeof command - 1) != (ssize_t)(sizeof command - 1))
        server_panic("HAProxy cannot be told anything");
    while (read(fd, answer, sizeof answer) > 0)
        ;
    close(fd);
}
