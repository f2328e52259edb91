#include "caller.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#define COBJMACROS
#include <objbase.h>
#include <process.h>
#define process_id _getpid
#else
#include <unistd.h>
#define process_id getpid
#endif

#include "json.h"

#define MOST 4096
#define FIRST_HANDLE 0x7F0000051000 /* more than 32 bits, as on Windows */

/* --- the journal -------------------------------------------------------------------------------------------------- */

const char *setting(const char *name) {
#ifdef _WIN32
    /* getenv would tell what it was when our C library was loaded, which is not Python's. */
    DWORD size = GetEnvironmentVariableA(name, NULL, 0);
    char *text = calloc(size + 1, 1);
    GetEnvironmentVariableA(name, text, size);
    return text;
#else
    const char *text = getenv(name);
    return text != NULL ? text : "";
#endif
}

const char *state_file(void) {
    const char *named = setting("TORTIE_FAKE_HNS");
    return *named != 0 ? named : "fake_hns.json";
}

void journal(const char *what, ...) {
    if (*setting("TORTIE_FAKE_HNS") == 0) return; /* whoever names no state wants no journal beside it */
    FILE *file = fopen(joined(state_file(), ".journal", NULL), "ab");
    if (file == NULL) return;
    va_list arguments;
    va_start(arguments, what);
    fprintf(file, "%d ", (int)process_id());
    vfprintf(file, what, arguments);
    fputc('\n', file);
    va_end(arguments);
    fclose(file);
}

void bad(const char *function, const char *what) { journal("BAD %s: %s", function, what); }

/* --- texts -------------------------------------------------------------------------------------------------------- */

static unsigned point_at(PCWSTR text, size_t *at) {
    unsigned one = text[(*at)++];
    if (one < 0xD800 || one > 0xDFFF) return one;
    unsigned other = text[*at];
    if (one > 0xDBFF || other < 0xDC00 || other > 0xDFFF) return 0xFFFFFFFF;
    (*at)++;
    return 0x10000 + ((one - 0xD800) << 10) + (other - 0xDC00);
}

const char *narrow(const char *function, PCWSTR text) {
    if (text == NULL) {
        bad(function, "a text is missing");
        return NULL;
    }
    size_t length = 0;
    while (text[length] != 0) length++;
    char *narrowed = calloc(length * 4 + 1, 1), *to = narrowed;
    for (size_t at = 0; at < length;) {
        unsigned point = point_at(text, &at);
        if (point == 0xFFFFFFFF) {
            bad(function, "a text is no UTF-16");
            return NULL;
        }
        int more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
        static const unsigned leading[] = {0, 0xC0, 0xE0, 0xF0};
        *to++ = (char)(leading[more] | point >> 6 * more);
        while (more-- > 0) *to++ = (char)(0x80 | (point >> 6 * more & 0x3F));
    }
    return narrowed;
}

static unit *widened(const char *text, unit *to) {
    for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
        unsigned point = *at++;
        int more = point < 0x80 ? 0 : point < 0xE0 ? 1 : point < 0xF0 ? 2 : 3;
        if (more > 0) point &= 0x3Fu >> more;
        while (more-- > 0) point = point << 6 | (*at++ & 0x3F);
        if (point >= 0x10000) {
            *to++ = (unit)(0xD800 + ((point - 0x10000) >> 10));
            point = 0xDC00 + ((point - 0x10000) & 0x3FF);
        }
        *to++ = (unit)point;
    }
    *to = 0;
    return to;
}

const char *guid_text(REFGUID id) {
    char *text = calloc(40, 1);
    const uint8_t *rest = id->Data4;
    sprintf(text, "%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X", (unsigned)id->Data1, id->Data2, id->Data3, rest[0], rest[1],
            rest[2], rest[3], rest[4], rest[5], rest[6], rest[7]);
    return strspn(text, "0-") == strlen(text) ? "" : text;
}

const char *fresh_guid(void) {
    static unsigned serial;
    if (serial == 0) srand((unsigned)time(NULL) ^ (unsigned)process_id() << 12);
    char *text = calloc(40, 1);
    serial++;
    sprintf(text, "%04X%04X-%04X-4%03X-A%03X-%04X%08X", rand() & 0xFFFF, rand() & 0xFFFF, rand() & 0xFFFF, rand() & 0xFFF,
            rand() & 0xFFF, (unsigned)process_id() & 0xFFFF, serial);
    return text;
}

/* --- memory that the caller frees --------------------------------------------------------------------------------- */

static void *given[MOST];
static const char *giver[MOST];

static void remember(void *memory, const char *function) {
    for (int at = 0; at < MOST; at++)
        if (given[at] == NULL) {
            given[at] = memory;
            giver[at] = function;
            return;
        }
    abort();
}

static bool forgotten(const void *memory) {
    for (int at = 0; at < MOST; at++)
        if (given[at] == memory) {
            given[at] = NULL;
            return true;
        }
    return false;
}

#ifdef _WIN32
/* Windows tells a "malloc spy" of all that is freed with CoTaskMemFree, whoever calls it. */
static HRESULT WINAPI spy_query(IMallocSpy *spy, REFIID id, void **into) {
    (void)id;
    *into = spy;
    return S_OK;
}
static ULONG WINAPI spy_count(IMallocSpy *spy) { return spy != NULL; }
static SIZE_T WINAPI spy_before_alloc(IMallocSpy *spy, SIZE_T size) { return spy != NULL ? size : 0; }
static void *WINAPI spy_after_alloc(IMallocSpy *spy, void *memory) { return spy != NULL ? memory : NULL; }
static void *WINAPI spy_before_free(IMallocSpy *spy, void *memory, WINBOOL spied) {
    (void)spy, (void)spied;
    if (memory != NULL) forgotten(memory);
    return memory;
}
static void WINAPI spy_after_free(IMallocSpy *spy, WINBOOL spied) { (void)spy, (void)spied; }
static SIZE_T WINAPI spy_before_realloc(IMallocSpy *spy, void *memory, SIZE_T size, void **fresh, WINBOOL spied) {
    (void)spy, (void)spied;
    *fresh = memory;
    return size;
}
static void *WINAPI spy_same(IMallocSpy *spy, void *memory, WINBOOL spied) {
    (void)spy, (void)spied;
    return memory;
}
static SIZE_T WINAPI spy_after_size(IMallocSpy *spy, SIZE_T size, WINBOOL spied) {
    (void)spy, (void)spied;
    return size;
}
static int WINAPI spy_after_own(IMallocSpy *spy, void *memory, WINBOOL spied, int own) {
    (void)spy, (void)memory, (void)spied;
    return own;
}
static void WINAPI spy_nothing(IMallocSpy *spy) { (void)spy; }

static IMallocSpyVtbl spying = {spy_query,      spy_count,          spy_count, spy_before_alloc, spy_after_alloc,
                                spy_before_free, spy_after_free,     spy_before_realloc, spy_same, spy_same,
                                spy_after_size, spy_same,           spy_after_own, spy_nothing, spy_nothing};
static IMallocSpy the_spy = {&spying};

static void *memory_for_caller(size_t size) {
    static bool watched;
    if (!watched && FAILED(CoRegisterMallocSpy(&the_spy))) bad("CoRegisterMallocSpy", "what is freed cannot be seen");
    watched = true;
    return CoTaskMemAlloc(size);
}
#else
static void *memory_for_caller(size_t size) { return malloc(size); }

EXPORTED void CoTaskMemFree(void *memory) {
    if (memory == NULL) return;
    if (forgotten(memory)) free(memory);
    else bad("CoTaskMemFree", "memory that nobody has given out, or that was freed before");
}
#endif

void hand_out(const char *function, PWSTR *into, const char *text) {
    if (into == NULL || text == NULL) return;
    *into = memory_for_caller((strlen(text) + 1) * sizeof(unit));
    widened(text, *into);
    remember(*into, function);
}

/* --- handles ------------------------------------------------------------------------------------------------------ */

static struct {
    char kind; /* 0: closed */
    const char *identity;
} handles[MOST];
static int last_handle;

static int index_of(const void *handle, char kind) {
    intptr_t number = ((intptr_t)handle - FIRST_HANDLE) / 16;
    bool ours = (intptr_t)handle % 16 == 0 && number > 0 && number <= last_handle;
    return ours && handles[number].kind == kind ? (int)number : 0;
}

void *open_handle(char kind, const char *identity) {
    if (++last_handle == MOST) abort();
    handles[last_handle].kind = kind;
    handles[last_handle].identity = identity;
    return (void *)(intptr_t)(FIRST_HANDLE + last_handle * 16);
}

const char *of_handle(const char *function, char kind, const void *handle) {
    int at = index_of(handle, kind);
    if (at == 0) bad(function, "the handle is not open, or of another kind");
    return at == 0 ? NULL : handles[at].identity;
}

HRESULT close_handle(const char *function, char kind, const void *handle) {
    int at = index_of(handle, kind);
    if (at == 0) {
        bad(function, "the handle is not open, or of another kind");
        return BAD_HANDLE;
    }
    handles[at].kind = 0;
    return DONE;
}

/* What the caller has not given back so far. */
EXPORTED int FakeHnsOutstanding(void) {
    int count = 0;
    for (int at = 0; at < MOST; at++) count += (given[at] != NULL) + (handles[at].kind != 0);
    return count;
}

static void settle(void) {
    for (int at = 0; at < MOST; at++) {
        if (given[at] != NULL) journal("LEAK memory of %s was never freed", giver[at]);
        if (handles[at].kind != 0) journal("LEAK a handle (%c) to %s was never closed", handles[at].kind, handles[at].identity);
    }
}

#ifdef _WIN32
BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, void *reserved) {
    (void)library, (void)reserved;
    if (reason == DLL_PROCESS_DETACH) settle();
    return TRUE;
}
#else
__attribute__((destructor)) static void at_end(void) { settle(); }
#endif
