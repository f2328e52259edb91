/* The executable begins where another process of it stood: the interpreter is started and all modules are loaded.

   To start and to import takes longer than most calls do. So the build does it once: it starts the executable, which
   loads all of its modules and writes down its memory; snapshot.py makes that a part of the file, which the kernel maps
   when the file is started, and of which a process gets its own copy of the pages that it changes. What such a memory
   knows of its process is put right here: thread and locks, arguments, environment, descriptors, signals.

   The data of the C library and of OpenSSL are not in it: they are as at any start. So nothing that is loaded ahead may
   have initialised OpenSSL, and no pointer into the C library's memory may be kept; memory.c sees to the latter.

   Invariant: nothing that a verb does may depend on which process has loaded the modules. */

#define Py_BUILD_CORE
#include <Python.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executable.h"

#define PLACE ((void *)0x200000000) /* far from the program and from what the kernel places */

extern const char *const snapshot_modules[]; /* by freeze.py */
extern char **environ;

/* snapshot.py finds it by its first member. */
static volatile struct {
    char name[16];
    long kind, offset;
} state = {"tortie snapshot", NO_SNAPSHOT, 0};

enum snapshot snapshot(void)
{
    return state.kind;
}

long snapshot_offset(void)
{
    return state.offset;
}

/* --- at build ---------------------------------------------------------------------------------------------------- */

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "no snapshot: %s\n", what);
    if (PyErr_Occurred())
        PyErr_Print();
    _exit(1);
}

void prepare_snapshot(void)
{
    if (keep_memory_at(PLACE) < 0)
        give_up("the address is taken");
}

static void write_all(const void *from, size_t left)
{
    for (ssize_t written; left > 0; left -= written, from = (const char *)from + written)
        if ((written = write(1, from, left)) <= 0)
            give_up("cannot be written");
}

/* The interpreter's blocks that are free lie anywhere among what is loaded, and each would cost a page of the file when
   it is used. They are taken, and never given back, until new ones come from the room that is set aside. */
static void take_what_is_free(void)
{
    use_room();
    for (size_t size = 16; size <= 512; size += 16)
        for (void *block = NULL; !is_in_room(block);)
            if ((block = PyObject_Malloc(size)) == NULL)
                give_up("memory");
}

static void forget_streams(void)
{
    static const char *const names[] = {"stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        PySys_SetObject(names[i], Py_None);
}

void take_snapshot(char **argv)
{
    for (const char *const *name = snapshot_modules; *name != NULL; name++)
        if (**name == '\0')
            set_room_aside();
        else if (PyImport_ImportModule(*name) == NULL)
            give_up(*name);
    forget_streams();
    PyGC_Collect();
    PyObject *collector = PyImport_ImportModule("gc");
    if (collector == NULL || PyObject_CallMethod(collector, "freeze", NULL) == NULL)
        give_up("gc");
    PyType_ClearCache(); /* it counts references to names: to replace one is to change a page, wherever that name is */
    take_what_is_free();
    char *first = (char *)strtoul(argv[1], NULL, 16), *last = (char *)strtoul(argv[2], NULL, 16);
    PyThreadState_Get()->native_thread_id = 0; /* until it wakes; it would make each snapshot another */
    size_t used = memory_is_past();
    if (used == 0)
        give_up("it takes too much memory");
    write_all(first, (size_t)(last - first));
    write_all(PLACE, used);
    _exit(0);
}

/* --- at start ---------------------------------------------------------------------------------------------------- */

/* As a child does after fork(), which has another thread, too; but this one has no key for its state yet. */
static int wake_thread(void)
{
    PyThreadState *self = _PyRuntime.interpreters.main->threads.head;
    Py_tss_t *key = &_PyRuntime.gilstate.autoTSSkey;
    self->thread_id = PyThread_get_thread_ident();
    key->_is_initialized = 0;
    if (PyThread_tss_create(key) != 0 || PyThread_tss_set(key, self) != 0)
        return -1;
    PyOS_AfterFork_Child();
    return 0;
}

static int fill_arguments(int argc, char **argv)
{
    PyObject *list = PyList_New(argc), *copy;
    for (int i = 0; list != NULL && i < argc; i++) {
        PyObject *text = PyUnicode_DecodeFSDefault(argv[i]);
        if (text == NULL)
            return -1;
        PyList_SET_ITEM(list, i, text);
    }
    copy = list == NULL ? NULL : PyList_GetSlice(list, 0, argc);
    return copy == NULL || PySys_SetObject("argv", list) < 0 ? -1 : PySys_SetObject("orig_argv", copy);
}

/* `os.environ` is a view of this dictionary. */
static int fill_environment(void)
{
    PyObject *module = PyImport_ImportModule("posix");
    PyObject *names = module == NULL ? NULL : PyObject_GetAttrString(module, "environ");
    if (names == NULL)
        return -1;
    PyDict_Clear(names);
    for (char **one = environ; one != NULL && *one != NULL; one++) {
        const char *equals = strchr(*one, '=');
        if (equals == NULL)
            continue;
        PyObject *name = PyBytes_FromStringAndSize(*one, equals - *one), *value = PyBytes_FromString(equals + 1);
        if (name == NULL || value == NULL || PyDict_SetDefault(names, name, value) == NULL)
            return -1;
        Py_DECREF(name);
        Py_DECREF(value);
    }
    return 0;
}

/* As the interpreter does when it starts, but for names in the text of a stream. */
static int open_stream(PyObject *io, int descriptor, const char *name, const char *kept, const char *errors)
{
    const char *mode = descriptor == 0 ? "r" : "w";
    int buffering = descriptor == 2 ? 1 : -1; /* by lines, or as is usual */
    struct stat found;
    PyObject *stream = Py_None;
    if (fstat(descriptor, &found) == 0)
        stream = PyObject_CallMethod(io, "open", "isisssO", descriptor, mode, buffering, "utf-8", errors, "\n",
                                     Py_False);
    if (stream == NULL && PyErr_ExceptionMatches(PyExc_OSError)) { /* a directory, say: who reads it will be told */
        PyErr_Clear();
        stream = Py_None;
    }
    return stream == NULL || PySys_SetObject(name, stream) < 0 ? -1 : PySys_SetObject(kept, stream);
}

static int fill_streams(void)
{
    PyObject *io = PyImport_ImportModule("io");
    return io == NULL || open_stream(io, 0, "stdin", "__stdin__", "surrogateescape") < 0 ||
                   open_stream(io, 1, "stdout", "__stdout__", "surrogateescape") < 0
               ? -1
               : open_stream(io, 2, "stderr", "__stderr__", "backslashreplace");
}

/* What the parent ignores is ignored; the interpreter's own are as always. */
static int take_signals(void)
{
    PyObject *module = PyImport_ImportModule("_signal");
    PyObject *interrupt = module == NULL ? NULL : PyObject_GetAttrString(module, "default_int_handler");
    struct sigaction had;
    if (interrupt == NULL)
        return -1;
    PyOS_setsig(SIGPIPE, SIG_IGN);
    PyOS_setsig(SIGXFSZ, SIG_IGN);
    for (int number = 1; number < NSIG; number++) {
        int ignored = sigaction(number, NULL, &had) == 0 && had.sa_handler == SIG_IGN;
        PyObject *done = Py_None;
        if (ignored && number != SIGPIPE && number != SIGXFSZ)
            done = PyObject_CallMethod(module, "signal", "ii", number, 1);
        else if (number == SIGINT)
            done = PyObject_CallMethod(module, "signal", "iO", number, interrupt);
        if (done == NULL)
            return -1;
    }
    return 0;
}

int wake(int argc, char **argv)
{
    return wake_thread() < 0 || fill_arguments(argc, argv) < 0 || fill_environment() < 0 || fill_streams() < 0
               ? -1
               : take_signals();
}
