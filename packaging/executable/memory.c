/* Memory for a process that lives for some milliseconds, in which most of the price of memory is its first use: every
   new page is a fault, and a visit to the kernel.

   Blocks that are too large for the interpreter's own allocator are kept for reuse when they are freed. musl returns
   them to the kernel at once, so that tables and buffers which are resized again and again get the same pages anew each
   time. They come in classes of size, four to each doubling, and a freed block goes on its class's list. All are in one
   area of untouched pages, so an address tells whether a block is ours, and its page which class it has. What is too
   large, or comes when the area is used up, is the C library's. They stand in for the C library's functions, so any
   thread may call them at any time, and blocks are aligned to 16.

   The interpreter's own arenas are in the area, too. Its first pages are of 2 MiB where the kernel has such pages to
   give, unless it comes from a snapshot, whose pages processes share (docs/decisions/0023).

   A process whose address space, or data, is limited has no area: room that is set aside would be missing elsewhere.

   For a snapshot (snapshot.c) all of that has a fixed address, and is part of the program's file from then on. */

#define _GNU_SOURCE
#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "executable.h"

#define PAGE 4096u
#define REGION (512u << 20) /* of addresses; what is never used costs nothing */
#define LITTLE (32u << 20)
#define LARGEST (256u << 10)
#define LARGEST_OF_ALL (4u << 20) /* for a snapshot, which holds all there is */
#define CLASSES 68                /* 16, 32, ... 128; 160, 192, 224, 256; ... 4 MiB */
#define HUGE (2u << 20)
#define ARENA (1u << 20)
#define PLENTY (1u << 30) /* of address space: who may use that much has no limit worth minding */

struct freed {
    struct freed *next;
};

/* Untouched pages, given out from the start on; `room` is 0 if there are none. */
static struct {
    unsigned char *start;
    uint32_t room, used; /* in bytes; whole pages are used */
    unsigned char class_of[REGION / PAGE];
} area;
static struct freed *lists[CLASSES];
static struct {
    unsigned char *next, *end; /* never used yet, and so zero */
} fresh[CLASSES];
static struct freed *arenas; /* of the interpreter, whole and free */
static size_t largest = LARGEST;
static int spilt;    /* something is not in the area */
static int complete; /* there are no more arenas */
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
    return (uintptr_t)block - (uintptr_t)area.start < area.room;
}

/* The class of a block, or CLASSES if it is not ours. */
static unsigned class_at(const void *block)
{
    return is_ours(block) ? area.class_of[((unsigned char *)block - area.start) / PAGE] : CLASSES;
}

/* Pages that were never used, of a class or of none; NULL if there are not so many left. */
static unsigned char *take_pages(uint32_t size, unsigned class)
{
    if (size > area.room - area.used)
        return NULL;
    unsigned char *pages = area.start + area.used;
    memset(area.class_of + area.used / PAGE, (int)class, size / PAGE);
    area.used += size;
    return pages;
}

/* A block that was never used, from pages of its class; NULL if there are no pages left. */
static void *carve(unsigned class)
{
    size_t size = size_of(class);
    if ((size_t)(fresh[class].end - fresh[class].next) < size) {
        uint32_t run = size > PAGE ? (uint32_t)(size + PAGE - 1) / PAGE * PAGE : size > 512 ? 8 * PAGE : 4 * PAGE;
        unsigned char *pages = take_pages(run, class);
        if (pages == NULL)
            return NULL;
        fresh[class].next = pages;
        fresh[class].end = pages + run;
    }
    void *block = fresh[class].next;
    fresh[class].next += size;
    return block;
}

static int is_for_a_snapshot(void)
{
    return largest != LARGEST;
}

static void *elsewhere(size_t size)
{
    if (is_for_a_snapshot())
        spilt = 1;
    return __real_malloc(size ? size : 1);
}

static void *allocate(size_t size, int *zero)
{
    *zero = 0;
    if (size > largest)
        return elsewhere(size);
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
    return block != NULL ? block : elsewhere(size);
}

void *__wrap_malloc(size_t size)
{
    int zero;
    return allocate(size, &zero);
}

void *__wrap_calloc(size_t count, size_t each)
{
    size_t size;
    int zero;
    if (__builtin_mul_overflow(count, each, &size))
        return NULL;
    if (size > LARGEST && !is_for_a_snapshot())
        return __real_calloc(1, size); /* pages of the kernel's, which are zero without being touched */
    void *block = allocate(size, &zero);
    return block == NULL || zero ? block : memset(block, 0, size);
}

void __wrap_free(void *block)
{
    unsigned class = class_at(block);
    if (class == CLASSES) {
        __real_free(block);
        return;
    }
    pthread_mutex_lock(&lock);
    ((struct freed *)block)->next = lists[class];
    lists[class] = block;
    pthread_mutex_unlock(&lock);
}

void *__wrap_realloc(void *block, size_t size)
{
    unsigned class = class_at(block);
    if (block == NULL)
        return __wrap_malloc(size);
    if (class == CLASSES)
        return __real_realloc(block, size ? size : 1);
    size_t had = size_of(class);
    if (size <= had && size > had / 2)
        return block;
    void *moved = __wrap_malloc(size);
    if (moved != NULL) {
        memcpy(moved, block, size < had ? size : had);
        __wrap_free(block);
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

/* Also asked for smaller pieces: the stacks of Python's calls, which come and go. */
static void *new_arena(void *context, size_t size)
{
    if (size != ARENA)
        return __wrap_malloc(size);
    if (complete)
        return NULL;
    pthread_mutex_lock(&lock);
    void *arena = arenas != NULL ? arenas : take_pages(ARENA, CLASSES);
    if (arena == arenas && arena != NULL)
        arenas = arenas->next;
    pthread_mutex_unlock(&lock);
    if (arena != NULL)
        return arena;
    if (is_for_a_snapshot())
        spilt = 1;
    arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return arena == MAP_FAILED ? NULL : arena;
}

static void free_arena(void *context, void *arena, size_t size)
{
    if (size != ARENA)
        __wrap_free(arena);
    else if (!is_ours(arena))
        munmap(arena, size);
    else {
        pthread_mutex_lock(&lock);
        ((struct freed *)arena)->next = arenas;
        arenas = arena;
        pthread_mutex_unlock(&lock);
    }
}

/* --- setting it aside -------------------------------------------------------------------------------------------- */

static void *map(void *place, size_t size, int flags)
{
    void *found = mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags,
                       -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

/* As much as there is to be had, `more` beside the area; at `place` if that is not NULL. */
static unsigned char *map_area(unsigned char *place, size_t less, size_t more)
{
    for (uint32_t room = REGION; room >= LITTLE; room /= 4) {
        unsigned char *found = map(place, room - less + more, place != NULL ? MAP_FIXED_NOREPLACE : 0);
        if (found != NULL && (place == NULL || found == place)) {
            area.room = room;
            return found;
        }
    }
    return NULL;
}

static int is_limited(void)
{
    static const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
    struct rlimit limit;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (getrlimit(kinds[i], &limit) != 0 || limit.rlim_cur < PLENTY)
            return 1;
    return 0;
}

static void be_asked_for_arenas(void)
{
    PyObjectArenaAllocator own = {NULL, new_arena, free_arena};
    PyObject_SetArenaAllocator(&own);
}

void keep_memory(void)
{
    if (!is_limited() && pthread_atfork(take, give, give) == 0) {
        unsigned char *all = map_area(NULL, 0, HUGE);
        if (all != NULL) {
            area.start = (unsigned char *)(((uintptr_t)all + HUGE - 1) & -(uintptr_t)HUGE);
            madvise(area.start, 2 * HUGE, MADV_HUGEPAGE);
        }
    }
    be_asked_for_arenas();
}

/* --- for a snapshot ---------------------------------------------------------------------------------------------- */

int keep_memory_at(void *place)
{
    area.start = map_area(place, 0, 0);
    largest = LARGEST_OF_ALL;
    spilt = 0;
    be_asked_for_arenas();
    return area.start == place ? 0 : -1;
}

void refuse_arenas(void)
{
    complete = 1;
}

int is_in_arena(const void *block)
{
    return is_ours(block) && class_at(block) == CLASSES;
}

size_t memory_is_past(void)
{
    complete = 0;
    arenas = NULL;
    memset(lists, 0, sizeof lists);
    memset(fresh, 0, sizeof fresh);
    largest = LARGEST;
    area.room = area.used;
    return spilt ? 0 : area.used;
}

void go_on_with_memory(void)
{
    if (!is_limited())
        map_area(area.start + area.used, area.used, 0);
    pthread_atfork(take, give, give);
}
