/* Memory for a process that lives for some milliseconds, in which most of the price of memory is its first use: every
   new page is a fault, and a visit to the kernel.

   Blocks that are too large for the interpreter's own allocator are kept for reuse when they are freed. musl returns
   them to the kernel at once, so that tables and buffers which are resized again and again get the same pages anew each
   time. They come in classes of size, four to each doubling, and a freed block goes on its class's list. All are in one
   area of untouched pages, so an address tells whether a block is ours, and its page which class it has. What is too
   large, or comes when the area is used up, is the C library's. They stand in for the C library's functions, so any
   thread may call them at any time, and blocks are aligned to 16.

   The interpreter's own arenas are in the area, too, whose first pages are of 2 MiB where the kernel has such pages to
   give; where it has not, nothing is different.

   A process whose address space, or data, is limited has no area: room that is set aside would be missing elsewhere.

   For a snapshot (snapshot.c) all of that has a fixed address, and is part of the program's file from then on. What
   most processes use of it is copied into large pages when such a process begins. */

#define _GNU_SOURCE
#include <Python.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "executable.h"

#define PAGE 4096u
#define REGION (512u << 20) /* of addresses; what is never used costs nothing */
#define LITTLE (32u << 20)
#define LARGEST (256u << 10)
#define LARGEST_OF_ALL (4u << 20) /* for a snapshot, which holds all there is */
#define CLASSES 68                /* 16, 32, ... 128; 160, 192, 224, 256; ... 4 MiB */
#define HUGE (2u << 20)
#define ARENA (1u << 20)
#define ALWAYS (2 * HUGE) /* of a snapshot, what each process uses */
#define OFTEN (4 * HUGE)  /* and what most of those use that do something */
#define SELDOM (5 * HUGE) /* and the bridge plugin, whose modules come last */
#define ROOM (5u << 18)
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
static struct {
    uint32_t aside, next, end; /* in the area: pages for a process that goes on with a snapshot, which it takes first */
} room;
static struct freed *lists[CLASSES];
static struct {
    unsigned char *next, *end; /* never used yet, and so zero */
} fresh[CLASSES];
static struct freed *arenas; /* of the interpreter, whole and free */
static size_t largest = LARGEST;
static int spilt; /* something is not in the area */
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
    uint32_t *next = size <= room.end - room.next ? &room.next : &area.used;
    if (size > area.room - *next)
        return NULL;
    unsigned char *pages = area.start + *next;
    memset(area.class_of + *next / PAGE, (int)class, size / PAGE);
    *next += size;
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

void set_room_aside(void)
{
    room.aside = area.used;
    area.used += ROOM;
}

void use_room(void)
{
    room.next = room.aside;
    room.end = room.aside + ROOM;
    arenas = NULL;
    memset(lists, 0, sizeof lists);
    memset(fresh, 0, sizeof fresh);
}

int is_in_room(const void *block)
{
    return (uintptr_t)block - (uintptr_t)area.start - room.aside < ROOM;
}

size_t memory_is_past(void)
{
    largest = LARGEST;
    area.room = area.used;
    return spilt ? 0 : area.used;
}

/* What the file has for the area, from `from` on; 0 if the program cannot read itself. */
static size_t read_again(unsigned char *into, size_t from, size_t size)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : pread(file, into, size, snapshot_offset() + (off_t)from);
    if (file >= 0)
        close(file);
    return got < 0 ? 0 : (size_t)got;
}

/* Pages of 2 MiB in the place of the file's, which would be copied one by one; nothing if there are none. */
static void make_huge(size_t from, size_t to)
{
    size_t size = to - from, kept = (area.used < to ? area.used : to) - from;
    unsigned char resident = 0, *all = map(NULL, size + HUGE, 0);
    if (all == NULL)
        return;
    unsigned char *huge = (unsigned char *)(((uintptr_t)all + HUGE - 1) & -(uintptr_t)HUGE);
    madvise(huge, size, MADV_HUGEPAGE);
    huge[0] = 0;
    if (mincore(huge + PAGE, PAGE, &resident) == 0 && (resident & 1)) {
        if (read_again(huge, from, kept) != kept)
            memcpy(huge, area.start + from, kept);
        if (mremap(huge, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, area.start + from) != MAP_FAILED) {
            if (huge > all)
                munmap(all, (size_t)(huge - all));
            if (huge < all + HUGE)
                munmap(huge + size, (size_t)(all + HUGE - huge));
            return;
        }
    }
    munmap(all, size + HUGE);
}

void go_on_with_memory(enum use use)
{
    if (!is_limited() && map_area(area.start + area.used, area.used, 0) != NULL) {
        make_huge(0, use == ANSWERS_ONLY ? ALWAYS : use == NETWORKS_PODS ? OFTEN : SELDOM);
    }
    pthread_atfork(take, give, give); /* the first that changes the area, which has been read from the file above */
}
