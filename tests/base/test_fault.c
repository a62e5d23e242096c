/* Passages, kills, stops, mutations, and memory that runs out. */
#include "check.h"

#include "base/fault.h"
#include "base/memory.h"
#include "base/text.h"
#include "support/theme.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

static const char *const variables[] = {"TL_FAULT_LOG", "TL_FAULT_KILL", "TL_FAULT_STOP",
                                        "TL_FAULT_ALLOC", "TL_MUTATION"};

FIXTURE(clear)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    fault_reload();
}

/* Three passages in a child of its own; returns how it ended, as waitpid() says. */
static int run_child(const char *variable, const char *value)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (variable != NULL)
            setenv(variable, value, 1);
        fault_point(FAULT_STATEMENT, "ask", "before");
        fault_point(FAULT_STATEMENT, "ask", "after");
        fault_point(FAULT_COMMIT, "commit", "before");
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    if (WIFSTOPPED(status)) {
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    return status;
}

/* Counts the lines of the file and checks that they are these, in this order. */
static int count_lines(const char *path)
{
    static const char *const wanted[] = {
        "1\tstatement\task\tbefore\n", "2\tstatement\task\tafter\n", "3\tcommit\tcommit\tbefore\n"};
    FILE *file = fopen(path, "r");
    char line[200];
    int count = 0;

    assert_non_null(file);
    for (; fgets(line, sizeof(line), file) != NULL; count++) {
        char *end;

        assert_true(strtol(line, &end, 10) > 0);
        assert_int_equal(*end, '\t');
        assert_true(count < 3);
        assert_string_equal(end + 1, wanted[count]);
    }
    fclose(file);
    return count;
}

TEST_IN(test_passages, clear, NULL)
{
    char path[] = "/tmp/tradelock-fault-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(run_child("TL_FAULT_LOG", path), 0);
    assert_int_equal(count_lines(path), 3);

    assert_int_equal(truncate(path, 0), 0);
    setenv("TL_FAULT_LOG", path, 1);
    int status = run_child("TL_FAULT_KILL", "2");
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(count_lines(path), 2);

    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(run_child("TL_FAULT_KILL", "4"), 0);
    assert_int_equal(count_lines(path), 3);

    assert_int_equal(truncate(path, 0), 0);
    status = run_child("TL_FAULT_STOP", "1");
    assert_true(WIFSTOPPED(status));
    assert_int_equal(count_lines(path), 3); /* it went on after SIGCONT */
    unlink(path);
}

/* Threads that pass elsewhere do not move the number of a named passage. */
TEST_IN(test_count_one_name, clear, NULL)
{
    setenv("TL_FAULT_ONLY", "ask/after", 1);
    assert_true(WIFSIGNALED(run_child("TL_FAULT_KILL", "1")));
    assert_int_equal(run_child("TL_FAULT_KILL", "2"), 0);
    setenv("TL_FAULT_ONLY", "as/after", 1);
    assert_int_equal(run_child("TL_FAULT_KILL", "1"), 0);
    unsetenv("TL_FAULT_ONLY");
}

/* A child counts from its own start, whatever its parent has passed. */
TEST_IN(test_count_in_each_process, clear, NULL)
{
    for (int i = 0; i < 10; i++)
        fault_point(FAULT_CALLBACK, "prepare", "before");
    int status = run_child("TL_FAULT_KILL", "3");
    assert_true(WIFSIGNALED(status));
    assert_int_equal(run_child("TL_FAULT_KILL", "11"), 0);
}

TEST_IN(test_mutation, clear, NULL)
{
    assert_false(fault_mutated("fence"));
    setenv("TL_MUTATION", "fence", 1);
    assert_false(fault_mutated("fence")); /* read once */
    fault_reload();
    assert_true(fault_mutated("fence"));
    assert_false(fault_mutated("fenc"));
    assert_false(fault_mutated("fences"));
    assert_false(fault_mutated(""));
    setenv("TL_MUTATION", "token,fence,order", 1);
    fault_reload();
    assert_true(fault_mutated("token"));
    assert_true(fault_mutated("fence"));
    assert_true(fault_mutated("order"));
    assert_false(fault_mutated("token,fence"));
}

TEST_IN(test_nth_allocation, clear, NULL)
{
    void *blocks[4];

    setenv("TL_FAULT_ALLOC", "2", 1);
    fault_reload();
    for (int i = 0; i < 4; i++)
        blocks[i] = memory_new(10);
    assert_non_null(blocks[0]);
    assert_null(blocks[1]);
    assert_non_null(blocks[2]);
    assert_non_null(blocks[3]);
    assert_int_equal(fault_allocations(), 4);
    for (int i = 0; i < 4; i++)
        memory_free(blocks[i]);
}

TEST_IN(test_each_kind_can_fail, clear, NULL)
{
    char *kept = memory_dup_text("kept");

    setenv("TL_FAULT_ALLOC", "1", 1);
    fault_reload();
    assert_null(memory_new_array(3, 3));
    fault_reload();
    assert_null(memory_dup("x", 1));
    fault_reload();
    assert_null(memory_dup_text("x"));
    fault_reload();
    assert_null(memory_resize(kept, 100));
    assert_string_equal(kept, "kept"); /* the old block stays */
    memory_free(kept);
}

TEST_IN(test_memory, clear, NULL)
{
    static const char zeros[100];

    char *block = memory_new(sizeof(zeros));
    assert_memory_equal(block, zeros, sizeof(zeros));
    block = memory_resize(block, 200);
    assert_memory_equal(block, zeros, sizeof(zeros));
    memory_free(block);
    block = memory_dup("a\0b", 3);
    assert_memory_equal(block, "a\0b", 3);
    memory_free(block);
    assert_null(memory_dup_text(NULL));
    assert_null(memory_new_array(SIZE_MAX / 2, 3));
    /* NULL means that there is no memory, and nothing else. */
    block = memory_new(0);
    assert_non_null(block);
    memory_free(block);
    block = memory_dup(NULL, 0);
    assert_non_null(block);
    memory_free(block);
    memory_free(NULL);
}

/* An array keeps what it has while it grows, and when it cannot. */
TEST_IN(test_array_grows, clear, NULL)
{
    unsigned *array = NULL;
    size_t count = 0;

    while (count < 1000) {
        assert_true(memory_room(&array, count, sizeof *array));
        array[count] = (unsigned)count;
        count++;
    }
    count = 512; /* at which it would grow */
    setenv("TL_FAULT_ALLOC", "1", 1);
    fault_reload();
    assert_false(memory_room(&array, count, sizeof *array));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(array[i], i);
    memory_free(array);
}

/* Whichever allocation fails, the buffer says so at the end and holds no half of it. */
TEST_IN(test_buffer_without_memory, clear, NULL)
{
    char number[8];
    int failures = 0;

    for (int n = 1; n < 20; n++) {
        struct text_buffer buffer;

        snprintf(number, sizeof(number), "%d", n);
        setenv("TL_FAULT_ALLOC", number, 1);
        fault_reload();
        text_buffer_init(&buffer);
        for (int i = 0; i < 300; i++)
            text_buffer_append_format(&buffer, "%04d", i);
        failures += buffer.failed;
        if (!buffer.failed)
            assert_int_equal(buffer.size, 1200);
        assert_int_equal(buffer.failed, fault_allocations() >= (uint64_t)n);
        assert_int_equal(strlen(text_buffer_text(&buffer)), buffer.size);
        assert_int_equal(buffer.size % 4, 0);
        text_buffer_free(&buffer);
    }
    assert_in_range(failures, 2, 18);
}

TESTS_OF(fault, NULL, NULL)
