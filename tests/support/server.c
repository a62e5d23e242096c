#include "support/server.h"

#include "support/theme.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PATH_SPACE 512
#define OPTIONS_MAX 60

extern char **environ;

struct server {
    int own;      /* started by this process */
    int guard_fd; /* our end of the pipe of an own server's guard */
    pid_t guard_pid;
    char dir[PATH_SPACE];
    char option_file[PATH_SPACE + 16];
    char socket[128], user[128];
    server *next;
};

/* Every server that this process uses; tests start them from one thread. */
static server *servers;
static server *shared;
static unsigned started_count;

static const char *environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : otherwise;
}

const char *test_build_dir(void)
{
    return environment("TL_BUILD_DIR", DEFAULT_BUILD_DIR);
}

const char *test_source_dir(void)
{
    return environment("TL_SOURCE_DIR", DEFAULT_SOURCE_DIR);
}

static void print_log(const server *self)
{
    char path[PATH_SPACE + 16], line[1024];
    long size, start;
    FILE *file;

    snprintf(path, sizeof(path), "%s/server.log", self->dir);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    start = size > 6000 ? size - 6000 : 0;
    fseek(file, start, SEEK_SET);
    if (start > 0 && fgets(line, sizeof(line), file) == NULL)
        line[0] = '\0';
    fprintf(stderr, "the end of %s:\n", path);
    while (fgets(line, sizeof(line), file) != NULL)
        fprintf(stderr, "    %s", line);
    fclose(file);
}

/* tools/dev/mariadb COMMAND DIR [OPTION...]; gives its exit code. */
static int run_tool(const char *command, const char *dir, const char *const options[])
{
    char tool[PATH_SPACE];
    char *arguments[OPTIONS_MAX + 4];
    size_t count = 0;
    pid_t pid;
    int state, error;

    snprintf(tool, sizeof(tool), "%s/tools/dev/mariadb", test_source_dir());
    arguments[count++] = tool;
    arguments[count++] = (char *)(uintptr_t)command;
    arguments[count++] = (char *)(uintptr_t)dir;
    for (size_t i = 0; options != NULL && options[i] != NULL && i < OPTIONS_MAX; i++)
        arguments[count++] = (char *)(uintptr_t)options[i];
    arguments[count] = NULL;
    error = posix_spawn(&pid, tool, NULL, NULL, arguments, environ);
    if (error != 0)
        server_panic("%s cannot be run: %s", tool, strerror(error));
    while (waitpid(pid, &state, 0) < 0)
        if (errno != EINTR)
            server_panic("waiting for %s: %s", tool, strerror(errno));
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

void server_print_work(const server *self)
{
    static const char *const options[] = {
        "--connect-timeout=5", /* it may be stopped */
        "-te",
        "SHOW FULL PROCESSLIST; SELECT trx_mysql_thread_id, trx_state, trx_started, "
        "trx_wait_started, trx_rows_locked, trx_query FROM "
        "information_schema.innodb_trx; "
        "SELECT UTC_TIMESTAMP(6)",
        NULL};

    fprintf(stderr, "what the server in %s is doing:\n", self->dir);
    fflush(stderr);
    (void)run_tool("sql", self->dir, options);
}

static void must_run_tool(const char *command, const server *self, const char *const options[])
{
    int code = run_tool(command, self->dir, options);

    if (code != 0)
        server_panic("tools/dev/mariadb %s %s gave exit code %d", command, self->dir, code);
}

/*
 * An own server must not outlive a test that crashed, was killed or ran into its time
 * limit.  The guard is a shell that reads from a pipe that only this process can write
 * to: the read ends when this process does or closes it, and the shell then removes the server.  It
 * has a session of its own, so that a limit that kills the test's processes spares it.
 */
static void start_guard(server *self)
{
    char shell[] = "sh", option[] = "-c", tool[PATH_SPACE];
    char script[] = "read -r line; exec \"$0\" remove \"$1\"";
    char *arguments[] = {shell, option, script, tool, self->dir, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int ends[2], error;

    snprintf(tool, sizeof(tool), "%s/tools/dev/mariadb", test_source_dir());
    if (pipe2(ends, O_CLOEXEC) != 0)
        server_panic("no pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    /* ctest waits until its pipe has no writer left. */
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    error = posix_spawnp(&self->guard_pid, shell, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        server_panic("no guard for the server: %s", strerror(error));
    close(ends[0]);
    self->guard_fd = ends[1];
}

static server *add_server(const char *dir, int own)
{
    server *self = calloc(1, sizeof(*self));

    if (self == NULL || strlen(dir) >= sizeof(self->dir))
        server_panic("no room for the server in %s", dir);
    self->own = own;
    snprintf(self->dir, sizeof(self->dir), "%s", dir);
    snprintf(self->option_file, sizeof(self->option_file), "%s/admin.cnf", dir);
    self->next = servers;
    servers = self;
    return self;
}

server *server_start(const char *const options[])
{
    char dir[PATH_SPACE];
    server *self;

    /* On a disk: in /dev/shm the server writes its log as into memory that outlives it, and a thread
     * that has not copied its part yet holds up nobody.  Who is killed or copied then loses commits
     * that were answered and are in the binary log. */
    snprintf(dir, sizeof(dir), "%s/test-servers/%ld-%u", test_build_dir(), (long)getpid(),
             ++started_count);
    self = add_server(dir, 1);
    start_guard(self);
    must_run_tool("start", self, options);
    return self;
}

server *server_shared(void)
{
    const char *dir = environment("TL_TEST_SERVER_DIR", NULL);

    if (shared == NULL)
        shared = dir != NULL ? add_server(dir, 0) : server_start(NULL);
    return shared;
}

void server_free(server *self)
{
    server **link = &servers;
    int state = 0;

    if (self == NULL)
        return;
    if (self->own) {
        close(self->guard_fd);
        while (waitpid(self->guard_pid, &state, 0) < 0 && errno == EINTR)
            ;
        if (state != 0)
            server_panic("the server in %s was not removed", self->dir);
    }
    while (*link != self)
        link = &(*link)->next;
    *link = self->next;
    if (shared == self)
        shared = NULL;
    free(self);
}

static void must_be_own(const server *self)
{
    if (!self->own)
        server_panic("the shared server serves other tests too: use server_start()");
}

void server_stop(server *self)
{
    must_be_own(self);
    must_run_tool("stop", self, NULL);
    self->socket[0] = '\0';
}

void server_kill9(server *self)
{
    must_be_own(self);
    must_run_tool("kill9", self, NULL);
}

void server_restart(server *self)
{
    server_restart_with(self, NULL);
}

void server_restart_with(server *self, const char *const options[])
{
    must_be_own(self);
    must_run_tool("restart", self, options);
}

/* The rest of the first line of the file that begins so; 0 when there is none. */
static int read_line(const char *path, const char *begin, char *to, size_t space)
{
    FILE *file = fopen(path, "re");
    char line[PATH_SPACE];
    int found = 0;

    if (file == NULL)
        return 0;
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, begin, strlen(begin)) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        found = snprintf(to, space, "%s", line + strlen(begin)) < (int)space;
    }
    fclose(file);
    return found;
}

long server_pid(const server *self)
{
    char path[PATH_SPACE + 16], text[32];

    snprintf(path, sizeof(path), "%s/pid", self->dir);
    if (!read_line(path, "", text, sizeof(text)))
        server_panic("no server runs in %s", self->dir);
    return strtol(text, NULL, 10);
}

static int is_stopped(const char *thread)
{
    char path[PATH_SPACE], text[512] = "";
    const char *name_end;
    FILE *file;

    snprintf(path, sizeof(path), "%s/stat", thread);
    file = fopen(path, "re");
    if (file == NULL) /* the thread has ended */
        return 1;
    (void)!fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' && name_end[2] == 'T';
}

static int all_stopped(long pid)
{
    char pattern[64];
    glob_t threads;
    int stopped = 1;

    snprintf(pattern, sizeof(pattern), "/proc/%ld/task/*", pid);
    if (glob(pattern, 0, NULL, &threads) != 0)
        server_panic("server process %ld is gone", pid);
    for (size_t i = 0; i < threads.gl_pathc; i++)
        stopped = stopped && is_stopped(threads.gl_pathv[i]);
    globfree(&threads);
    return stopped;
}

static void send_signal(const server *self, int number)
{
    const long pid = server_pid(self);

    if (kill((pid_t)pid, number) != 0)
        server_panic("server process %ld: %s", pid, strerror(errno));
}

void server_freeze(const server *self)
{
    const long pid = server_pid(self);

    send_signal(self, SIGSTOP);
    while (!all_stopped(pid))
        usleep(1000);
}

void server_thaw(const server *self)
{
    send_signal(self, SIGCONT);
}

const char *server_dir(const server *self)
{
    return self->dir;
}

const char *server_socket(server *self)
{
    if (self->socket[0] == '\0' &&
        !read_line(self->option_file, "socket=", self->socket, sizeof(self->socket)))
        server_panic("%s names no socket", self->option_file);
    return self->socket;
}

const char *server_user(server *self)
{
    if (self->user[0] == '\0' &&
        !read_line(self->option_file, "user=", self->user, sizeof(self->user)))
        server_panic("%s names no user", self->option_file);
    return self->user;
}

const char *server_option_file(const server *self)
{
    return self->option_file;
}

MYSQL *server_connect(server *self)
{
    MYSQL *connection = mysql_init(NULL);

    if (connection == NULL)
        server_panic("out of memory");
    mysql_options(connection, MYSQL_READ_DEFAULT_FILE, self->option_file);
    mysql_options(connection, MYSQL_READ_DEFAULT_GROUP, "client");
    if (mysql_real_connect(connection, NULL, NULL, NULL, NULL, 0, NULL, CLIENT_MULTI_STATEMENTS) ==
        NULL)
        server_panic("no connection to the server in %s: %s", self->dir, mysql_error(connection));
    return connection;
}

int server_report(int failures)
{
    if (failures != 0)
        for (const server *one = servers; one != NULL; one = one->next)
            print_log(one);
    while (servers != NULL)
        server_free(servers);
    return failures;
}

static int (*last_fixture)(void **state);
static int stands = 1;

static int tear_down_and_tell(void **state)
{
    stands = 0;
    stands = last_fixture(state) == 0;
    return !stands;
}

int server_run_group(const char *name, const struct CMUnitTest *tests, size_t count,
                     int (*set_up)(void **state), int (*tear_down)(void **state))
{
    int failures;

    last_fixture = tear_down;
    failures = _cmocka_run_group_tests(name, tests, count, set_up,
                                       tear_down != NULL ? tear_down_and_tell : NULL);
    if (!stands)
        fprintf(stderr, "the last fixture failed\n");
    return server_report(failures + !stands);
}

#define LOOK_MS 20

void server_await(int looks, const char *file, int line, const char *condition)
{
    if (looks > PATIENCE_MS / LOOK_MS)
        server_panic("%s:%d: it does not end that %s", file, line, condition);
    usleep(LOOK_MS * 1000);
}

void server_panic(const char *format, ...)
{
    static atomic_int panics;
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "test server: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    /* The tool that says it may be what cannot be run. */
    for (const server *one = atomic_fetch_add(&panics, 1) == 0 ? servers : NULL; one != NULL;
         one = one->next) {
        print_log(one);
        server_print_work(one);
    }
    /* Not exit(): other threads of the test may be running.  The guards clean up. */
    _exit(99);
}

unsigned server_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        server_panic("no port is free");
    close(fd);
    return ntohs(address.sin_port);
}
