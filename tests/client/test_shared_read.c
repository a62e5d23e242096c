/* Shared reads are never older than the asking, and are really shared. */
#include "client/shared_read.h"
#include "support/theme.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 16, ROUNDS = 200, KEYS = 3 };

static shared_reads *reads;
static atomic_long truth[KEYS], taken[KEYS];
static atomic_long stale, failed, unseen;
static pthread_barrier_t all_here; /* a thread alone has nobody to share with */

struct asked {
    int key;
    char name[16];
};

/* What a server does: looks at the truth while it works, and takes its time. */
static tl_status look(void *context, shared_row *row)
{
    const struct asked *asked = context;
    long seen = atomic_load(&truth[asked->key]);

    if (!shared_read_under_way(reads, asked->name))
        atomic_fetch_add(&unseen, 1);
    usleep(200);
    row->rows.affected = (uint64_t)seen;
    atomic_fetch_add(&taken[asked->key], 1);
    return seen % 7 == 3 ? TL_UNREACHABLE : TL_OK;
}

static void *ask_again_and_again(void *argument)
{
    struct asked asked = {.key = (int)((intptr_t)argument % KEYS)};

    snprintf(asked.name, sizeof asked.name, "key%d", asked.key);
    pthread_barrier_wait(&all_here);
    for (int i = 0; i < ROUNDS; i++) {
        long before = atomic_fetch_add(&truth[asked.key], 1) + 1;
        const shared_row *row = shared_read(reads, asked.name, look, &asked);

        if (row == NULL || (long)row->rows.affected < before)
            atomic_fetch_add(&stale, 1);
        if (row != NULL && row->status == TL_UNREACHABLE)
            atomic_fetch_add(&failed, 1);
        shared_row_release(row);
    }
    return NULL;
}

static void test_fresh_and_shared(void **state)
{
    pthread_t threads[THREADS];
    long all = 0;

    (void)state;
    reads = shared_reads_new();
    assert_non_null(reads);
    assert_int_equal(pthread_barrier_init(&all_here, NULL, THREADS), 0);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_again_and_again, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < KEYS; i++)
        all += atomic_load(&taken[i]);
    assert_int_equal(atomic_load(&stale), 0);
    assert_int_equal(atomic_load(&unseen), 0);
    assert_false(shared_read_under_way(reads, "key0"));
    assert_true(atomic_load(&failed) > 0); /* a problem is shared as well */
    assert_in_range(all, ROUNDS, THREADS * ROUNDS / 2);
    shared_reads_free(reads);
    pthread_barrier_destroy(&all_here);
}

TEST_MAIN(shared_read)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fresh_and_shared)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
