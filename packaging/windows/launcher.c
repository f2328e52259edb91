/* The start of calico.exe: finds what the program consists of, and runs it with the interpreter that is part of it.

   Windows loads libraries from files only. So everything stands behind this program in the executable itself, and is
   unpacked once, into `.tortie\<id>` beside it; `<id>` names the build, so an update never changes a folder that a
   running plugin loads from. Whoever may write there may replace the executable as well.

   At the end of the file, numbers with the lowest octet first:
       entries            length of the name (4), name in UTF-8 with "/", length of the content (8), content
       closing            where the entries begin (8), how many there are (4), id (16 hexadecimal digits), "TORTIE01"
       stamp              "\n# build-stamp: " and 64 hexadecimal digits, "\n"

   Invariant: a folder has its name only when all of it has been written; of several that unpack at once one succeeds,
   and the others go on with that one's. */
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>
#include <windows.h>

#define STAMP 81
#define CLOSING 36
#define PATH_SIZE 4096
#define PIECE (1 << 20)

static const wchar_t program[] = L"import sys; __file__ = sys.argv.pop(1); sys.argv[0] = __file__; from entrypoints.main import main; sys.exit(main())";

/* --- what can go wrong, as a runtime reads it --------------------------------------------------------------------- */

static int refuse(const char *what, DWORD number) {
    char text[512];
    int length = snprintf(text, sizeof text, "{\n    \"code\": 100,\n    \"msg\": \"cannot start: %s (Windows error %lu)\"\n}\n", what, number);
    DWORD written;
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), text, (DWORD)length, &written, NULL);
    return 1;
}

/* --- reading what stands behind this program ---------------------------------------------------------------------- */

typedef struct {
    uint64_t start;
    uint32_t count;
    char id[16], magic[8];
} __attribute__((packed)) closing;

static BOOL get(HANDLE file, void *into, DWORD size) {
    DWORD got;
    return ReadFile(file, into, size, &got, NULL) && got == size;
}

static BOOL seek(HANDLE file, int64_t to, DWORD from) {
    LARGE_INTEGER distance = {.QuadPart = to};
    return SetFilePointerEx(file, distance, NULL, from);
}

static BOOL read_closing(HANDLE file, closing *into) {
    return seek(file, -(STAMP + CLOSING), FILE_END) && get(file, into, CLOSING) && memcmp(into->magic, "TORTIE01", 8) == 0;
}

/* --- unpacking ---------------------------------------------------------------------------------------------------- */

static BOOL copy_content(HANDLE from, const wchar_t *path, uint64_t left) {
    static char piece[PIECE];
    HANDLE to = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    if (to == INVALID_HANDLE_VALUE) return FALSE;
    BOOL well = TRUE;
    while (well && left > 0) {
        DWORD size = left > PIECE ? PIECE : (DWORD)left, written;
        well = get(from, piece, size) && WriteFile(to, piece, size, &written, NULL) && written == size;
        left -= size;
    }
    well = well && FlushFileBuffers(to);
    DWORD number = GetLastError();
    CloseHandle(to);
    SetLastError(number);
    return well;
}

static BOOL unpack_entry(HANDLE file, const wchar_t *folder) {
    uint32_t length;
    uint64_t size;
    char name[256];
    wchar_t wide[256], path[PATH_SIZE];
    if (!get(file, &length, sizeof length) || length >= sizeof name || !get(file, name, length)) return FALSE;
    name[length] = 0;
    if (!get(file, &size, sizeof size) || !MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, 256)) return FALSE;
    swprintf(path, PATH_SIZE, L"%ls\\%ls", folder, wide);
    return copy_content(file, path, size);
}

/* What this process has written so far; all entries are files of one folder. */
static void forget(const wchar_t *folder) {
    wchar_t path[PATH_SIZE];
    WIN32_FIND_DATAW found;
    swprintf(path, PATH_SIZE, L"%ls\\*", folder);
    HANDLE each = FindFirstFileW(path, &found);
    if (each != INVALID_HANDLE_VALUE) {
        do {
            swprintf(path, PATH_SIZE, L"%ls\\%ls", folder, found.cFileName);
            DeleteFileW(path);
        } while (FindNextFileW(each, &found));
        FindClose(each);
    }
    RemoveDirectoryW(folder);
}

static BOOL is_folder(const wchar_t *path) {
    DWORD kind = GetFileAttributesW(path);
    return kind != INVALID_FILE_ATTRIBUTES && kind & FILE_ATTRIBUTE_DIRECTORY;
}

static BOOL unpack(HANDLE file, const closing *end, const wchar_t *home) {
    wchar_t fresh[PATH_SIZE];
    swprintf(fresh, PATH_SIZE, L"%ls.new-%lu", home, GetCurrentProcessId());
    forget(fresh); /* of a process with our number that was killed */
    BOOL well = CreateDirectoryW(fresh, NULL) && seek(file, (int64_t)end->start, FILE_BEGIN);
    for (uint32_t at = 0; well && at < end->count; at++) well = unpack_entry(file, fresh);
    DWORD number = GetLastError();
    if (well && MoveFileExW(fresh, home, MOVEFILE_WRITE_THROUGH)) return TRUE;
    if (well) number = GetLastError();
    forget(fresh);
    BOOL there = is_folder(home); /* another process was faster */
    SetLastError(number);
    return there;
}

/* --- the interpreter ---------------------------------------------------------------------------------------------- */

typedef int (*main_of_python)(int, wchar_t **);

static int run(const wchar_t *home, int argc, wchar_t **argv, wchar_t *self) {
    wchar_t path[PATH_SIZE];
    swprintf(path, PATH_SIZE, L"%ls\\python313.dll", home);
    HMODULE python = LoadLibraryExW(path, NULL, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32);
    if (python == NULL) return refuse("python313.dll in the folder .tortie beside this program cannot be loaded", GetLastError());
    main_of_python start = (main_of_python)(void *)GetProcAddress(python, "Py_Main");
    if (start == NULL) return refuse("python313.dll in the folder .tortie beside this program is another one", GetLastError());
    /* Isolated from variables and the working directory, no site packages, nothing written, texts in UTF-8. */
    const wchar_t *before[] = {self, L"-I", L"-S", L"-B", L"-Xutf8", L"-c", program, self};
    int count = (int)(sizeof before / sizeof *before);
    wchar_t **all = calloc((size_t)(count + argc), sizeof *all);
    if (all == NULL) return refuse("out of memory", ERROR_NOT_ENOUGH_MEMORY);
    for (int at = 0; at < count; at++) all[at] = (wchar_t *)before[at];
    for (int at = 1; at < argc; at++) all[count + at - 1] = argv[at];
    return start(count + argc - 1, all);
}

int wmain(int argc, wchar_t **argv) {
    static wchar_t self[PATH_SIZE], home[PATH_SIZE];
    DWORD length = GetModuleFileNameW(NULL, self, PATH_SIZE - 64);
    if (length == 0 || length >= PATH_SIZE - 64) return refuse("the path of this program is too long", GetLastError());
    HANDLE file = CreateFileW(self, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
    closing end;
    if (file == INVALID_HANDLE_VALUE || !read_closing(file, &end)) return refuse("this program is incomplete, install it again", GetLastError());
    const wchar_t *name = wcsrchr(self, L'\\');
    int before = name == NULL ? 0 : (int)(name - self) + 1;
    swprintf(home, PATH_SIZE, L"%.*ls.tortie", before, self);
    CreateDirectoryW(home, NULL);
    swprintf(home, PATH_SIZE, L"%.*ls.tortie\\%.16hs", before, self, end.id);
    if (!is_folder(home) && !unpack(file, &end, home))
        return refuse("what belongs to this program cannot be unpacked into the folder .tortie beside it", GetLastError());
    CloseHandle(file);
    return run(home, argc, argv, self);
}
