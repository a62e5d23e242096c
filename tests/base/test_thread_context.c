/* Who works here: identities of threads, of work, and after fork. */
#include "check.h"

#include "base/process.h"
#include "base/thread_context.h"
#include "support/theme.h"

#include <pthread.h>
#include <sys/wait.h>
#include <ucontext.h>

static int is_uuid(const char *text)
{
    return strlen(text) == 36 && strspn(text, "0123456789abcdef-") == 36;
}

FIXTURE(clear)
{
    tl_work_end(1);
}

TEST_IN(test_thread_uuid, clear, NULL)
{
    char first[TL_UUID_TEXT];

    strcpy(first, tl_thread_uuid());
    assert_true(is_uuid(first));
    assert_string_equal(tl_thread_uuid(), first);
    tl_work_end(0);
    assert_string_equal(tl_thread_uuid(), first);
    tl_work_end(1);
    assert_true(is_uuid(tl_thread_uuid()));
    assert_string_not_equal(tl_thread_uuid(), first);
}

TEST_IN(test_work, clear, NULL)
{
    char log[TL_UUID_TEXT], thread[TL_UUID_TEXT], prefix[64];

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

TEST_IN(test_adopt, clear, NULL)
{
    const char *upper = "0A1B2C3D-0000-4000-8000-ABCDEFABCDEF";
    const char *lower = "0a1b2c3d-0000-4000-8000-abcdefabcdef";

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

static int call_out_to(int (*fn)(void *context), void *context)
{
    return thread_context_call_out(fn, context, 1);
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
    child->generation = process_generation();
    tl_work_adopt(child->parent_log);
    strcpy(child->after, tl_log_uuid());
    tl_work_end(1);
    return NULL;
}

static int start_threads(void *unused)
{
    struct child children[8];
    pthread_t threads[8];

    (void)unused;
    for (int i = 0; i < 8; i++) {
        strcpy(children[i].parent_log, tl_log_uuid());
        assert_int_equal(pthread_create(&threads[i], NULL, child_thread, &children[i]), 0);
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
        assert_int_equal(children[i].generation, process_generation());
    }
    return 0;
}

TEST_IN(test_threads, clear, NULL)
{
    assert_int_equal(tl_work_begin(), 1);
    assert_int_equal(call_out_to(start_threads, NULL), 0);
}

/* -------------------------------------------------------------- calls out -- */

static int say_depth(void *context)
{
    int *depth = context;

    assert_true(thread_context_in_callback());
    if (--*depth > 0)
        assert_int_equal(call_out_to(say_depth, context), 7);
    assert_true(thread_context_in_callback());
    return 7;
}

TEST_IN(test_callback_depth, clear, NULL)
{
    assert_false(thread_context_in_callback());
    for (int depth = 1; depth < 40; depth++) {
        int count = depth;

        assert_int_equal(call_out_to(say_depth, &count), 7);
        assert_false(thread_context_in_callback());
    }
}

/* What is under way is not taken for what was left, however deep the thread comes in. */
static __attribute__((noinline)) int far_below(int bytes)
{
    volatile char room[100];

    room[0] = 1;
    if (bytes > 0)
        return far_below(bytes - (int)sizeof room) + (room[0] - 1);
    thread_context_come_in();
    return thread_context_in_callback() + (room[0] - 1);
}

static int look_from_below(void *unused)
{
    (void)unused;
    for (int bytes = 0; bytes < 20000; bytes = bytes * 2 + 100)
        assert_int_equal(far_below(bytes), 1);
    return 0;
}

TEST_IN(test_not_left, clear, NULL)
{
    assert_int_equal(call_out_to(look_from_below, NULL), 0);
    thread_context_come_in();
}

static ucontext_t here, elsewhere;

static void on_another_stack(void)
{
    assert_int_equal(far_below(0), 1);
    assert_int_equal(far_below(5000), 1);
}

static int switch_stacks(void *stack)
{
    getcontext(&elsewhere);
    elsewhere.uc_stack.ss_sp = stack;
    elsewhere.uc_stack.ss_size = 65536;
    elsewhere.uc_link = &here;
    makecontext(&elsewhere, on_another_stack, 0);
    return swapcontext(&here, &elsewhere);
}

/* A callback that goes on on a stack of its own, above or below. */
TEST_IN(test_another_stack, clear, NULL)
{
    static char above[65536] __attribute__((aligned(16)));
    char *heap = malloc(65536);

    assert_int_equal(call_out_to(switch_stacks, above), 0);
    assert_int_equal(call_out_to(switch_stacks, heap), 0);
    free(heap);
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
    child.generation = process_generation();
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

static int fork_children(void *context)
{
    const int *ends = context;
    int status;

    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            report_twice(ends[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    return 0;
}

TEST_IN(test_fork, clear, NULL)
{
    struct child own, children[6];
    int ends[2], count = 0;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(tl_work_begin(), 1);
    strcpy(own.thread, tl_thread_uuid());
    strcpy(own.before, tl_log_uuid());
    own.generation = process_generation();
    assert_int_equal(call_out_to(fork_children, ends), 0);
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
    assert_int_equal(process_generation(), own.generation);
}

TESTS_OF(thread_context, NULL, NULL)
