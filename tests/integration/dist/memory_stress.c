/* Stress for packaging/executable/memory.c, which is compiled into it: threads allocate, resize, pass on and free blocks at once.

   memory_stress THREADS ROUNDS

   Every block is filled with a pattern that depends on its address and size, and is checked before it is resized or
   freed, so a block that two owners have, or that a resize has not copied, is seen. It ends with 1 and a word on what
   is wrong; else it prints its resident memory in KiB after a tenth of the rounds, and at the end. */

#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define __real_malloc malloc
#define __real_calloc calloc
#define __real_realloc realloc
#define __real_free free
#include "memory.c"

static PyObjectArenaAllocator tested_arenas;

void PyObject_SetArenaAllocator(PyObjectArenaAllocator *given)
{
    tested_arenas = *given;
}

#define HELD 64
#define SHARED 256

struct block {
    unsigned char *place;
    size_t size;
};

static struct block shared[SHARED]; /* blocks that go from thread to thread */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;
static int rounds;

static void check(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "wrong: %s\n", what);
        _exit(1);
    }
}

static unsigned char pattern(const struct block *block)
{
    return (unsigned char)(((uintptr_t)block->place >> 4) * 31 + block->size);
}

static void fill(struct block *block)
{
    check(block->place != NULL, "there is memory");
    check((uintptr_t)block->place % 16 == 0, "aligned");
    memset(block->place, pattern(block), block->size);
}

static void verify(const unsigned char *place, size_t size, unsigned char expected)
{
    for (size_t i = 0; i < size; i++)
        check(place[i] == expected, "content");
}

static size_t some_size(unsigned *seed)
{
    size_t limit = (size_t)16 << (rand_r(seed) % 15); /* to 256 KiB, small ones more often */
    return rand_r(seed) % 512 == 0 ? LARGEST + (size_t)rand_r(seed) % LARGEST : (size_t)rand_r(seed) % (limit + 1);
}

static void release(struct block *block)
{
    if (block->place != NULL)
        verify(block->place, block->size, pattern(block));
    __wrap_free(block->place);
    block->place = NULL;
}

static void renew(struct block *block, unsigned *seed)
{
    block->size = some_size(seed);
    if (rand_r(seed) % 2) {
        block->place = __wrap_malloc(block->size);
    } else {
        block->place = __wrap_calloc(1, block->size);
        verify(block->place, block->size, 0);
    }
    fill(block);
}

static void resize(struct block *block, unsigned *seed)
{
    size_t had = block->size, size = some_size(seed);
    unsigned char expected = pattern(block);
    block->place = __wrap_realloc(block->place, size);
    block->size = size;
    verify(block->place, had < size ? had : size, expected);
    fill(block);
}

static void exchange(struct block *block, unsigned *seed)
{
    pthread_mutex_lock(&shared_lock);
    struct block *other = &shared[rand_r(seed) % SHARED], kept = *other;
    *other = *block;
    *block = kept;
    pthread_mutex_unlock(&shared_lock);
}

static void *work(void *given)
{
    unsigned seed = (unsigned)(uintptr_t)given;
    struct block held[HELD] = {{NULL, 0}};
    for (int round = 0; round < rounds; round++) {
        if (round == rounds / 10 || round == 0)
            pthread_barrier_wait(&together);
        struct block *one = &held[rand_r(&seed) % HELD];
        switch (rand_r(&seed) % 4) {
        case 0: exchange(one, &seed); break;
        case 1: if (one->place != NULL) { resize(one, &seed); break; } /* fall through */
        default: release(one); renew(one, &seed);
        }
    }
    for (int i = 0; i < HELD; i++)
        release(&held[i]);
    return NULL;
}

static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    check(file != NULL && fscanf(file, "%*d %ld", &pages) == 1, "memory is known");
    fclose(file);
    return pages * 4;
}

static _Atomic int enough;

static void *hold_the_lock(void *given)
{
    while (!enough)
        __wrap_free(__wrap_malloc(100));
    return NULL;
}

/* Children of a process whose other threads are busy with memory: they must not wait for those. */
static void fork_some(void)
{
    pthread_t busy[2];
    for (int i = 0; i < 2; i++)
        check(pthread_create(&busy[i], NULL, hold_the_lock, NULL) == 0, "there are threads");
    for (int i = 0; i < rounds / 100; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            for (size_t size = 1; size < LARGEST; size += 10000)
                __wrap_free(__wrap_malloc(size));
            _exit(0);
        }
        check(waitpid(child, &status, 0) == child && status == 0, "a child has memory");
    }
    enough = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(busy[i], NULL);
}

static void try_arenas(void)
{
    void *two[3];
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < 3; i++) {
            two[i] = tested_arenas.alloc(tested_arenas.ctx, ARENA);
            check(two[i] != NULL && (i == 0 || two[i] != two[i - 1]), "arenas of their own");
            memset(two[i], i, ARENA);
        }
        for (int i = 0; i < 3; i++) {
            verify(two[i], ARENA, (unsigned char)i);
            tested_arenas.free(tested_arenas.ctx, two[i], ARENA);
        }
    }
    void *stack = tested_arenas.alloc(tested_arenas.ctx, 16384);
    memset(stack, 1, 16384);
    tested_arenas.free(tested_arenas.ctx, stack, 16384);
}

static void try_sizes(void)
{
    for (size_t size = 0; size <= LARGEST_OF_ALL; size += size < LARGEST ? 1 : 4096) {
        check(size_of(class_for(size)) >= size, "large enough");
        check(size <= 16 || size_of(class_for(size) - 1) < size, "no larger than need be");
    }
    check(class_for(LARGEST_OF_ALL) == CLASSES - 1, "all classes are there");
    check(__wrap_calloc(SIZE_MAX / 2, 3) == NULL, "no overflow");
    check(__wrap_malloc(0) != __wrap_malloc(0), "blocks of nothing differ");
    void *freed = __wrap_malloc(5000);
    __wrap_free(freed);
    check(__wrap_malloc(4900) == freed, "what is freed is used again");
    __wrap_free(NULL);
    __wrap_free(__wrap_realloc(malloc(100), 200)); /* one from before */
}

/* A process that holds much does not ask the kernel for each block. */
static void try_many(void)
{
    static void *held[60000];
    for (int i = 0; i < 60000; i++)
        check(is_ours(held[i] = __wrap_malloc(1000)), "there is room");
    for (int i = 0; i < 60000; i++)
        __wrap_free(held[i]);
}

/* What is set aside and never used costs no page; but under a sanitizer, which has a calloc of its own. */
static void try_unused(void)
{
#ifndef __SANITIZE_THREAD__
    long before = resident();
    size_t size = 64u << 20;
    void *unused = __wrap_calloc(1, size);
    check(unused != NULL && resident() - before < (long)(size >> 11), "zero memory is not touched");
    __wrap_free(unused);
#endif
}

int main(int count, char **words)
{
    int threads = atoi(words[1]);
    pthread_t running[64];
    rounds = atoi(words[2]);
    keep_memory();
    try_sizes();
    try_arenas();
    try_unused();
    try_many();
    pthread_barrier_init(&together, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++)
        check(pthread_create(&running[i], NULL, work, (void *)(i + 1)) == 0, "there are threads");
    pthread_barrier_wait(&together);
    fork_some(); /* while all of them work */
    pthread_barrier_wait(&together);
    printf("%ld ", resident());
    for (int i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
    printf("%ld\n", resident());
    return 0;
}
