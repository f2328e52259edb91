/* A disk that fails, and a machine on which every call is interrupted, for one process: to be preloaded.

   FAULTY_ROOT      calls that change files below it are counted (open for writing or making, write, truncate, sync,
                    rename, link, unlink, mkdir, chmod); their number is written to the file FAULTY_COUNT at the end
   FAULTY_AT        the first of them that fails; 0: none
   FAULTY_ERRNO     with what
   FAULTY_LASTS     set: all after it fail as well
   FAULTY_STORM     set: every call that a signal can interrupt fails with EINTR each other time */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *root, *report;
static int seen, at, number, lasts, storm, turn;

__attribute__((constructor)) static void begin(void)
{
    root = getenv("FAULTY_ROOT");
    report = getenv("FAULTY_COUNT");
    at = atoi(getenv("FAULTY_AT") ? getenv("FAULTY_AT") : "0");
    number = atoi(getenv("FAULTY_ERRNO") ? getenv("FAULTY_ERRNO") : "0");
    lasts = getenv("FAULTY_LASTS") != NULL;
    storm = getenv("FAULTY_STORM") != NULL;
    unsetenv("LD_PRELOAD"); /* programs that are started from here are not meant */
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((destructor)) static void end(void)
{
    char text[20];
    int file = report ? REAL(open)(report, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file >= 0 && REAL(write)(file, text, snprintf(text, sizeof text, "%d", seen)) > 0)
        close(file);
}

static int fails(void)
{
    seen++;
    if (at == 0 || seen < at || (seen > at && !lasts))
        return 0;
    errno = number;
    return 1;
}

static int is_below(const char *path)
{
    return root != NULL && path != NULL && strncmp(path, root, strlen(root)) == 0;
}

static int is_of(int descriptor)
{
    char name[40], path[PATH_MAX];
    int before = errno;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t length = root == NULL ? -1 : readlink(name, path, sizeof path - 1);
    errno = before;
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_below(path);
}

static int interrupted(void)
{
    if (!storm || (turn = !turn) == 0)
        return 0;
    errno = EINTR;
    return 1;
}

#define OPEN(name, parameters, arguments)                                                                              \
    int name parameters                                                                                                \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                      \
        va_end(rest);                                                                                                  \
        if (flags & (O_WRONLY | O_RDWR | O_CREAT) && is_below(path) && fails())                                        \
            return -1;                                                                                                 \
        return REAL(name) arguments;                                                                                   \
    }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

#define ON_FILE(type, name, parameters, arguments)                                                                     \
    type name parameters                                                                                               \
    {                                                                                                                  \
        return is_of(descriptor) && fails() ? -1 : REAL(name) arguments;                                               \
    }
ON_FILE(ssize_t, pwrite, (int descriptor, const void *data, size_t size, off_t place), (descriptor, data, size, place))
ON_FILE(ssize_t, pwrite64, (int descriptor, const void *data, size_t size, off64_t place), (descriptor, data, size, place))
ON_FILE(int, ftruncate, (int descriptor, off_t size), (descriptor, size))
ON_FILE(int, ftruncate64, (int descriptor, off64_t size), (descriptor, size))
ON_FILE(int, fsync, (int descriptor), (descriptor))
ON_FILE(int, fdatasync, (int descriptor), (descriptor))
ON_FILE(int, fchmod, (int descriptor, mode_t mode), (descriptor, mode))

ssize_t write(int descriptor, const void *data, size_t size)
{
    if (interrupted() || (is_of(descriptor) && fails()))
        return -1;
    return REAL(write)(descriptor, data, size);
}

#define ON_PATH(name, parameters, arguments)                                                                           \
    int name parameters                                                                                                \
    {                                                                                                                  \
        return is_below(path) && fails() ? -1 : REAL(name) arguments;                                                  \
    }
ON_PATH(rename, (const char *path, const char *other), (path, other))
ON_PATH(link, (const char *path, const char *other), (path, other))
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode))
ON_PATH(chmod, (const char *path, mode_t mode), (path, mode))

/* A full disk lets files go. */
int unlink(const char *path)
{
    return is_below(path) && number != ENOSPC && fails() ? -1 : REAL(unlink)(path);
}

#define INTERRUPTED(type, name, parameters, arguments)                                                                 \
    type name parameters                                                                                               \
    {                                                                                                                  \
        return interrupted() ? -1 : REAL(name) arguments;                                                              \
    }
INTERRUPTED(ssize_t, read, (int descriptor, void *data, size_t size), (descriptor, data, size))
INTERRUPTED(ssize_t, recv, (int descriptor, void *data, size_t size, int flags), (descriptor, data, size, flags))
INTERRUPTED(ssize_t, send, (int descriptor, const void *data, size_t size, int flags), (descriptor, data, size, flags))
INTERRUPTED(ssize_t, recvmsg, (int descriptor, struct msghdr *message, int flags), (descriptor, message, flags))
INTERRUPTED(ssize_t, sendmsg, (int descriptor, const struct msghdr *message, int flags), (descriptor, message, flags))
INTERRUPTED(int, poll, (struct pollfd *files, nfds_t count, int limit), (files, count, limit))
INTERRUPTED(int, flock, (int descriptor, int kind), (descriptor, kind))
