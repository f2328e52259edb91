/* Memory for a process that lives for some milliseconds, in which most of the price of memory is its first use: every
   new page is a fault, and a visit to the kernel.

   Blocks that are too large for the interpreter's own allocator are kept for reuse when they are freed. musl returns
   them to the kernel at once, so that tables and buffers which are resized again and again get the same pages anew each
   time. They come in classes of size, four to each doubling, and a freed block goes on its class's list. All are in one
   fixed region of untouched pages, so an address tells whether a block is ours, and its page which class it has. What
   is too large, or comes when the region is used up, is the C library's: a process that lives on grows by the region at
   the most. They may be called by any thread at any time (PYMEM_DOMAIN_RAW), and blocks are aligned to 16.

   The first of the interpreter's own arenas, which every process fills, are in one page of 2 MiB where the kernel has
   such pages to give; where it has not, nothing is different.

   A process whose address space, or data, is limited has neither: room that is set aside would be missing elsewhere. */

#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "executable.h"

#define PAGE 4096u
#define REGION (16u << 20)
#define LARGEST (256u << 10)
#define CLASSES 52 /* 16, 32, ... 128; 160, 192, 224, 256; ... 256 KiB */
#define HUGE (2u << 20)
#define ARENA (1u << 20)
#define PLENTY (256u << 20) /* of address space: who may use that much has no limit worth minding */

struct freed {
    struct freed *next;
};

static unsigned char *region; /* of `room` bytes, 0 if there is none */
static uint32_t room;
static unsigned char class_of[REGION / PAGE];
static uint32_t used; /* of the region, in bytes; whole pages */
static struct freed *lists[CLASSES];
static struct {
    unsigned char *next, *end; /* never used yet, and so zero */
} fresh[CLASSES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned class_for(size_t size)
{
    if (size <= 128)
        return size == 0 ? 0 : (unsigned)(size - 1) / 16;
    unsigned doubling = 31 - (unsigned)__builtin_clz((unsigned)size - 1); /* at least 7 */
    return 8 + (doubling - 7) * 4 + (((unsigned)size - 1) >> (doubling - 2)) % 4;
}

static size_t size_of(unsigned class)
{
    return class < 8 ? (class + 1) * 16 : (size_t)(5 + (class - 8) % 4) << ((class - 8) / 4 + 5);
}

static int is_ours(const void *block)
{
    return (uintptr_t)block - (uintptr_t)region < room;
}

/* A block that was never used, from pages of its class; NULL if there are no pages left. */
static void *carve(unsigned class)
{
    size_t size = size_of(class);
    if ((size_t)(fresh[class].end - fresh[class].next) < size) {
        uint32_t run = size > PAGE ? (uint32_t)(size + PAGE - 1) / PAGE * PAGE : size > 512 ? 8 * PAGE : 4 * PAGE;
        if (run > room - used)
            return NULL;
        memset(class_of + used / PAGE, (int)class, run / PAGE);
        fresh[class].next = region + used;
        fresh[class].end = region + used + run;
        used += run;
    }
    void *block = fresh[class].next;
    fresh[class].next += size;
    return block;
}

static void *allocate(size_t size, int *zero)
{
    *zero = 0;
    if (size > LARGEST)
        return malloc(size);
    unsigned class = class_for(size);
    pthread_mutex_lock(&lock);
    void *block = lists[class];
    if (block != NULL)
        lists[class] = lists[class]->next;
    else {
        block = carve(class);
        *zero = block != NULL;
    }
    pthread_mutex_unlock(&lock);
    return block != NULL ? block : malloc(size ? size : 1);
}

static void *kept_malloc(void *context, size_t size)
{
    int zero;
    return allocate(size, &zero);
}

static void *kept_calloc(void *context, size_t count, size_t each)
{
    size_t size;
    int zero;
    if (__builtin_mul_overflow(count, each, &size))
        return NULL;
    if (size > LARGEST)
        return calloc(1, size); /* pages of the kernel's, which are zero without being touched */
    void *block = allocate(size, &zero);
    return block == NULL || zero ? block : memset(block, 0, size);
}

static void kept_free(void *context, void *block)
{
    if (!is_ours(block)) {
        free(block);
        return;
    }
    unsigned class = class_of[((unsigned char *)block - region) / PAGE];
    pthread_mutex_lock(&lock);
    ((struct freed *)block)->next = lists[class];
    lists[class] = block;
    pthread_mutex_unlock(&lock);
}

static void *kept_realloc(void *context, void *block, size_t size)
{
    if (block == NULL)
        return kept_malloc(context, size);
    if (!is_ours(block))
        return realloc(block, size ? size : 1);
    size_t had = size_of(class_of[((unsigned char *)block - region) / PAGE]);
    if (size <= had && size > had / 2)
        return block;
    void *moved = kept_malloc(context, size);
    if (moved != NULL) {
        memcpy(moved, block, size < had ? size : had);
        kept_free(context, block);
    }
    return moved;
}

/* A child has no other thread that could give the lock back. */
static void take(void)
{
    pthread_mutex_lock(&lock);
}

static void give(void)
{
    pthread_mutex_unlock(&lock);
}

/* --- arenas ------------------------------------------------------------------------------------------------------ */

static unsigned char *huge; /* one page, if there is room */
static int taken[2];        /* its halves */

/* Also asked for smaller pieces: the stacks of Python's calls, which come and go. */
static void *new_arena(void *context, size_t size)
{
    if (size < ARENA)
        return kept_malloc(context, size);
    for (size_t half = 0; half < 2 && size == ARENA && huge != NULL; half++)
        if (!taken[half]) {
            taken[half] = 1;
            return huge + half * ARENA;
        }
    void *arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return arena == MAP_FAILED ? NULL : arena;
}

static void free_arena(void *context, void *arena, size_t size)
{
    size_t offset = (uintptr_t)arena - (uintptr_t)huge;
    if (size < ARENA)
        kept_free(context, arena);
    else if (huge != NULL && offset < HUGE)
        taken[offset / ARENA] = 0;
    else
        munmap(arena, size);
}

/* The region, and room for the large page behind it. */
static void set_aside(void)
{
    static const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
    struct rlimit limit;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (getrlimit(kinds[i], &limit) != 0 || limit.rlim_cur < PLENTY)
            return;
    unsigned char *all = mmap(NULL, REGION + 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return;
    region = all;
    room = REGION;
    huge = (unsigned char *)(((uintptr_t)all + REGION + HUGE - 1) & -(uintptr_t)HUGE);
    madvise(huge, HUGE, MADV_HUGEPAGE);
}

void keep_memory(void)
{
    PyMemAllocatorEx kept = {NULL, kept_malloc, kept_calloc, kept_realloc, kept_free};
    PyObjectArenaAllocator own = {NULL, new_arena, free_arena};
    if (pthread_atfork(take, give, give) == 0)
        PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &kept);
    set_aside();
    PyObject_SetArenaAllocator(&own);
}
