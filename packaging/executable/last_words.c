/* What a runtime hears of a process that dies where Python cannot answer any more.

   An interpreter that gets no memory while it starts, or in one of the few places where it does not expect that, ends
   itself or reads address 0. A runtime would then see a signal and no answer. So the answer is written from here, by
   system calls alone: one CNI error with code 999 on standard output, the same words on standard error, exit code 1.
   What the call has done until then stays for its DEL, as after any death.

   Invariant: nothing here allocates, and at most one answer is written. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executable.h"

#define STACK (16u << 10) /* of its own: a death may be for want of the usual one */

static const int deaths[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
static const char *program = "";
static volatile sig_atomic_t silent; /* nobody waits for an answer */
static unsigned char stack[STACK];

static void put(int descriptor, const char *text)
{
    if (write(descriptor, text, strlen(text)) < 0)
        return; /* there is nobody left to tell */
}

/* Calico's errors name no version, the bridge plugin's do. */
static int is_of_calico(void)
{
    return strcmp(program, "calico") == 0 || strcmp(program, "calico-ipam") == 0;
}

void last_words(const char *why)
{
    const char *verb = getenv("CNI_COMMAND");
    put(2, program);
    put(2, ": ");
    put(2, why);
    put(2, "\n");
    if (verb != NULL && *verb != 0 && !silent) {
        put(1, is_of_calico() ? "{\n" : "{\n    \"cniVersion\": \"1.1.0\",\n");
        put(1, "    \"code\": 999,\n    \"msg\": \"");
        put(1, why);
        put(1, "\"\n}");
    }
    _exit(1);
}

static void die(int number)
{
    last_words(number == SIGABRT  ? "the plugin gave up, most likely for want of memory"
               : number == SIGBUS ? "the plugin cannot read its own file: cut off, or on a disk that fails; install it again"
                                  : "the plugin crashed, most likely for want of memory");
}

void answered(void)
{
    silent = 1;
}

void prepare_last_words(char **argv)
{
    if (argv[0] != NULL) {
        const char *slash = strrchr(argv[0], '/');
        program = slash != NULL ? slash + 1 : argv[0];
    }
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = die, .sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER};
    sigaltstack(&other, NULL);
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        sigaction(deaths[i], &action, NULL);
}
