/* Who works here: identities of threads, of work, and after fork. */
#include "check.h"

#include "base/thread_context.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_uuid(const char *text)
{
    return strlen(text) == 36 && strspn(text, "0123456789abcdef-") == 36;
}

static int clear(void **state)
{
    (void)state;
    tl_work_end(1);
    return 0;
}

static void test_thread_uuid(void **state)
{
    char first[TL_UUID_TEXT];

    (void)state;
    strcpy(first, tl_thread_uuid());
    assert_true(is_uuid(first));
    assert_string_equal(tl_thread_uuid(), first);
    tl_work_end(0);
    assert_string_equal(tl_thread_uuid(), first);
    tl_work_end(1);
    assert_true(is_uuid(tl_thread_uuid()));
    assert_string_not_equal(tl_thread_uuid(), first);
}

static void test_work(void **state)
{
    char log[TL_UUID_TEXT], thread[TL_UUID_TEXT], prefix[64];

    (void)state;
    assert_string_equal(tl_log_uuid(), "");
    assert_string_equal(tl_log_prefix(), "");
    strcpy(thread, tl_thread_uuid());
    assert_int_equal(tl_work_begin(), 1);
    strcpy(log, tl_log_uuid());
    assert_true(is_uuid(log));
    assert_string_not_equal(log, thread);
    snprintf(prefix, sizeof(prefix), "<uuid=%s>", log);
    assert_string_equal(tl_log_prefix(), prefix);
    /* A nested entry point does not cut the work in two. */
    assert_int_equal(tl_work_begin(), 0);
    assert_string_equal(tl_log_uuid(), log);
    assert_string_equal(tl_thread_uuid(), thread);
    tl_work_end(0);
    assert_string_equal(tl_log_uuid(), "");
    assert_string_equal(tl_log_prefix(), "");
    assert_int_equal(tl_work_begin(), 1);
    assert_string_not_equal(tl_log_uuid(), log);
}

static void test_adopt(void **state)
{
    const char *upper = "0A1B2C3D-0000-4000-8000-ABCDEFABCDEF";
    const char *lower = "0a1b2c3d-0000-4000-8000-abcdefabcdef";

    (void)state;
    assert_int_equal(tl_work_adopt(upper), TL_OK);
    assert_string_equal(tl_log_uuid(), lower);
    assert_int_equal(tl_work_begin(), 0);
    assert_problem(tl_work_adopt(NULL), TL_INVALID, "a log UUID to take over is missing");
    assert_problem(tl_work_adopt(""), TL_INVALID, "a log UUID to take over is missing");
    assert_problem(tl_work_adopt("0a1b2c3d"), TL_INVALID,
                   "the log UUID to take over is not a UUID");
    assert_problem(tl_work_adopt("0a1b2c3d-0000-4000-8000-abcdefabcdefg"), TL_INVALID,
                   "the log UUID to take over is not a UUID");
    assert_string_equal(tl_log_uuid(), lower); /* untouched by the failures */
    /* Taking over one's own is not a problem either. */
    assert_int_equal(tl_work_adopt(tl_log_uuid()), TL_OK);
    assert_string_equal(tl_log_uuid(), lower);
}

struct child {
    char parent_log[TL_UUID_TEXT];
    char thread[TL_UUID_TEXT], before[TL_UUID_TEXT], after[TL_UUID_TEXT];
    unsigned generation;
    int in_callback;
};

static void *child_thread(void *context)
{
    struct child *child = context;

    strcpy(child->thread, tl_thread_uuid());
    strcpy(child->before, tl_log_uuid());
    child->in_callback = thread_context_in_callback();
    child->generation = thread_context_generation();
    tl_work_adopt(child->parent_log);
    strcpy(child->after, tl_log_uuid());
    tl_work_end(1);
    return NULL;
}

static void test_threads(void **state)
{
    struct child children[8];
    pthread_t threads[8];

    (void)state;
    assert_int_equal(tl_work_begin(), 1);
    thread_context_enter_callback();
    for (int i = 0; i < 8; i++) {
        strcpy(children[i].parent_log, tl_log_uuid());
        assert_int_equal(pthread_create(&threads[i], NULL, child_thread, &children[i]),
                         0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_true(is_uuid(children[i].thread));
        assert_string_not_equal(children[i].thread, tl_thread_uuid());
        for (int j = 0; j < i; j++)
            assert_string_not_equal(children[i].thread, children[j].thread);
        assert_string_equal(children[i].before, "");
        assert_string_equal(children[i].after, tl_log_uuid());
        assert_int_equal(children[i].in_callback, 0);
        assert_int_equal(children[i].generation, thread_context_generation());
    }
    thread_context_leave_callback();
}

static void test_callback_depth(void **state)
{
    (void)state;
    assert_false(thread_context_in_callback());
    thread_context_enter_callback();
    thread_context_enter_callback();
    assert_true(thread_context_in_callback());
    thread_context_leave_callback();
    assert_true(thread_context_in_callback());
    thread_context_leave_callback();
    assert_false(thread_context_in_callback());
    thread_context_leave_callback(); /* one too many does no harm */
    assert_false(thread_context_in_callback());
    thread_context_enter_callback();
    assert_true(thread_context_in_callback());
    thread_context_leave_callback();
}

static void write_all(int fd, const void *data, size_t size)
{
    if (write(fd, data, size) != (ssize_t)size)
        _exit(9);
}

/* Says who this process is. */
static void report(int fd)
{
    struct child child = {.in_callback = thread_context_in_callback()};

    strcpy(child.before, tl_log_uuid());
    strcpy(child.thread, tl_thread_uuid());
    child.generation = thread_context_generation();
    write_all(fd, &child, sizeof(child));
}

/* A child that says who it is, and has a child that does. */
static void report_twice(int fd)
{
    int status;

    report(fd);
    pid_t pid = fork();
    if (pid == 0) {
        report(fd);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        _exit(8);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 7);
}

static void test_fork(void **state)
{
    struct child own, children[6];
    int ends[2], status, count = 0;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(tl_work_begin(), 1);
    strcpy(own.thread, tl_thread_uuid());
    strcpy(own.before, tl_log_uuid());
    own.generation = thread_context_generation();
    thread_context_enter_callback();
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            report_twice(ends[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    thread_context_leave_callback();
    close(ends[1]);
    while (count < 6 && read(ends[0], &children[count], sizeof(own)) == sizeof(own))
        count++;
    close(ends[0]);
    assert_int_equal(count, 6);
    for (int i = 0; i < 6; i++) {
        assert_true(is_uuid(children[i].thread));
        assert_string_not_equal(children[i].thread, own.thread);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(children[i].thread, children[j].thread);
        assert_string_equal(children[i].before, "");
        assert_int_equal(children[i].in_callback, 0);
        assert_int_not_equal(children[i].generation, own.generation);
    }
    assert_int_not_equal(children[0].generation, children[1].generation);
    /* The parent is who it was. */
    assert_string_equal(tl_thread_uuid(), own.thread);
    assert_string_equal(tl_log_uuid(), own.before);
    assert_int_equal(thread_context_generation(), own.generation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_thread_uuid, clear),
        cmocka_unit_test_setup(test_work, clear),
        cmocka_unit_test_setup(test_adopt, clear),
        cmocka_unit_test_setup(test_threads, clear),
        cmocka_unit_test_setup(test_callback_depth, clear),
        cmocka_unit_test_setup(test_fork, clear),
    };

    return cmocka_run_group_tests_name("base: thread context", tests, NULL, NULL);
}
