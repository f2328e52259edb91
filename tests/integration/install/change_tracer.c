/* Runs a program and stops at each of its system calls that changes a file below a folder: to count them, to kill the
   program right before one, or to let one and all after it fail. It works on programs that are linked statically too.

   change_tracer FOLDER COUNT AT WHAT PROGRAM ARGUMENT...

   COUNT  the file that gets the number of such calls
   AT     the first call that is meant, from 1; 0: none
   WHAT   kill, or an errno; with ENOSPC calls that need no room are neither counted nor failed

   What the program starts itself is not looked at. Ends as the program does, with 137 if it was killed. */

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;
static int number;
static pid_t child;

/* How a call names what it changes: by a descriptor, or by the path that is its argument of that number. */
enum { DESCRIPTOR = 1, OPEN = 2, FREE = 4 /* needs no room */ };
static const struct { long call; int kind, argument; } calls[] = {
    {SYS_openat, OPEN, 1}, {SYS_mkdirat, 0, 1}, {SYS_unlinkat, FREE, 1}, {SYS_linkat, 0, 1}, {SYS_symlinkat, 0, 2},
    {SYS_renameat2, FREE, 1}, {SYS_fchmodat, FREE, 1}, {SYS_write, DESCRIPTOR, 0}, {SYS_pwrite64, DESCRIPTOR, 0},
    {SYS_fsync, DESCRIPTOR, 0}, {SYS_fdatasync, DESCRIPTOR, 0}, {SYS_fchmod, DESCRIPTOR | FREE, 0},
    {SYS_fchown, DESCRIPTOR | FREE, 0}, {SYS_fsetxattr, DESCRIPTOR, 0}, {SYS_ftruncate, DESCRIPTOR, 0},
#ifdef SYS_renameat
    {SYS_renameat, FREE, 1},
#endif
#ifdef SYS_open
    {SYS_open, OPEN, 0}, {SYS_mkdir, 0, 0}, {SYS_rmdir, FREE, 0}, {SYS_unlink, FREE, 0}, {SYS_link, 0, 0},
    {SYS_symlink, 0, 1}, {SYS_rename, FREE, 0}, {SYS_chmod, FREE, 0},
#endif
};

static int is_below(const char *path)
{
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int names_one(unsigned long address)
{
    char path[PATH_MAX];
    struct iovec here = {path, sizeof path - 1}, there = {(void *)address, sizeof path - 1};
    ssize_t got = process_vm_readv(child, &here, 1, &there, 1, 0);
    if (got < 0) { /* the path may end near the end of what can be read */
        here.iov_len = there.iov_len = 4096 - address % 4096;
        got = process_vm_readv(child, &here, 1, &there, 1, 0);
    }
    path[got < 0 ? 0 : got] = 0;
    return is_below(path);
}

static int holds_one(int descriptor)
{
    char name[64], path[PATH_MAX];
    struct stat found;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", child, descriptor);
    ssize_t length = readlink(name, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    if (number == ENOSPC && stat(name, &found) == 0 && S_ISDIR(found.st_mode))
        return 0;
    return is_below(path);
}

static int changes(const struct __ptrace_syscall_info *info)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].call != (long)info->entry.nr || (number == ENOSPC && calls[i].kind & FREE))
            continue;
        unsigned long argument = info->entry.args[calls[i].argument];
        if (calls[i].kind & DESCRIPTOR)
            return holds_one((int)argument);
        if (calls[i].kind & OPEN && !(info->entry.args[calls[i].argument + 1] & (O_WRONLY | O_RDWR | O_CREAT)))
            return 0;
        return names_one(argument);
    }
    return 0;
}

/* On entry: do nothing instead of the call. On exit: have it fail. */
static void spoil(int entering)
{
#if defined __x86_64__
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    *(entering ? &registers.orig_rax : &registers.rax) = entering ? -1 : -number;
    ptrace(PTRACE_SETREGS, child, 0, &registers);
#elif defined __aarch64__
    struct user_regs_struct registers;
    int call = -1;
    struct iovec all = {&registers, sizeof registers}, one = {&call, sizeof call};
    if (entering) {
        ptrace(PTRACE_SETREGSET, child, NT_ARM_SYSTEM_CALL, &one);
    } else {
        ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &all);
        registers.regs[0] = -number;
        ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &all);
    }
#else
#error "say how a system call's number and result are set here"
#endif
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    folder = argv[1];
    long at = atol(argv[3]), seen = 0, killed = 0;
    number = atoi(argv[4]);
    child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv(argv[5], argv + 5);
        _exit(127);
    }
    int status, spoilt = 0, signal = 0;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (;;) {
        ptrace(PTRACE_SYSCALL, child, 0, signal);
        if (waitpid(child, &status, 0) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
            break;
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        if (signal != (SIGTRAP | 0x80))
            continue;
        signal = 0;
        struct __ptrace_syscall_info info;
        ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        if (info.op == PTRACE_SYSCALL_INFO_EXIT && spoilt) {
            spoil(0);
            spoilt = 0;
        } else if (info.op == PTRACE_SYSCALL_INFO_ENTRY && changes(&info) && ++seen >= at && at > 0) {
            if (number == 0) {
                kill(child, SIGKILL);
                killed = 1;
            } else {
                spoil(1);
                spoilt = 1;
            }
        }
    }
    FILE *report = fopen(argv[2], "w");
    fprintf(report, "%ld", seen);
    fclose(report);
    return killed ? 137 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
