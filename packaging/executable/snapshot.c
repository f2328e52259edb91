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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executable.h"

#define PLACE ((void *)0x200000000)    /* far from the program and from what the kernel places */
#define IMMORTAL ((Py_ssize_t)1 << 32) /* from here on nobody counts (dist_runtime.py) */
#define ALL ((size_t)64 << 20)         /* room for the addresses of all objects */

extern const char *const snapshot_modules[]; /* by freeze.py */
extern char **environ;
extern int tortie_quickens; /* whether code that runs often is changed; patched into CPython (dist_runtime.py) */

/* snapshot.py finds it by its first member. */
static volatile struct {
    char name[16];
    long kind;
} state = {"tortie snapshot", NO_SNAPSHOT};

enum snapshot snapshot(void)
{
    return state.kind;
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
    tortie_quickens = 0;
}

static void write_all(const void *from, size_t left)
{
    for (ssize_t written; left > 0; left -= written, from = (const char *)from + written)
        if ((written = write(1, from, left)) <= 0)
            give_up("cannot be written");
}

/* The interpreter's blocks that are free lie anywhere among those in use, and each would cost a process its own copy of
   the page that it is in. So they are taken, and never given back. */
static void take_what_is_free(void)
{
    refuse_arenas();
    for (size_t size = 16; size <= 512; size += 16)
        while (is_in_arena(PyObject_Malloc(size)))
            ;
}

static void forget_streams(void)
{
    static const char *const names[] = {"stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        PySys_SetObject(names[i], Py_None);
}

/* Objects of a snapshot are never freed, and nobody counts who uses them (dist_runtime.py). To count is to write, so
   each page on which a process looks at something would be copied. What is not found here is counted as always. */

static PyObject **waiting; /* for a look at what they refer to */
static PyObject *any_name;

static int find(PyObject *one, void *unused)
{
    if (one != NULL && Py_REFCNT(one) < IMMORTAL) {
        Py_SET_REFCNT(one, IMMORTAL + IMMORTAL / 2);
        *waiting++ = one;
    }
    return 0;
}

#define FIND(...) find_each((PyObject *[]){__VA_ARGS__}, sizeof(PyObject *[]){__VA_ARGS__} / sizeof(PyObject *))
static void find_each(PyObject **some, size_t count)
{
    for (size_t i = 0; i < count; i++)
        find(some[i], NULL);
}

/* What it refers to, also what the collector of garbage does not ask for: keys, and all that code and types have. What
   an object would work out when it is used, and keep, it does now. */
static void find_in(PyObject *one)
{
    PyTypeObject *type = Py_TYPE(one);
    PyObject *key, *value;
    find((PyObject *)type, NULL);
    if (PyUnicode_CheckExact(one) || PyBytes_CheckExact(one))
        PyObject_Hash(one);
    else if (PyCode_Check(one)) {
        PyCodeObject *code = (PyCodeObject *)one;
        FIND(code->co_consts, code->co_names, code->co_exceptiontable, code->co_localsplusnames,
             code->co_localspluskinds, code->co_filename, code->co_name, code->co_qualname, code->co_linetable);
    } else if (PyType_Check(one)) {
        PyTypeObject *self = (PyTypeObject *)one;
        _PyType_Lookup(self, any_name); /* so it has the mark by which the cache of methods knows it */
        FIND(self->tp_dict, self->tp_cache, self->tp_mro, self->tp_bases, (PyObject *)self->tp_base,
             self->tp_subclasses);
        if (PyType_HasFeature(self, Py_TPFLAGS_HEAPTYPE)) {
            PyHeapTypeObject *heap = (PyHeapTypeObject *)one;
            FIND(heap->ht_name, heap->ht_qualname, heap->ht_slots, heap->ht_module);
        }
    } else if (type->tp_traverse != NULL && PyObject_IS_GC(one))
        type->tp_traverse(one, find, NULL);
    if (PyDict_Check(one))
        for (Py_ssize_t at = 0; PyDict_Next(one, &at, &key, &value);)
            FIND(key, value);
}

static void make_immortal(PyObject *collector)
{
    PyObject **first = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    PyObject *all = PyObject_CallMethod(collector, "get_objects", NULL);
    if (first == MAP_FAILED || all == NULL)
        give_up("immortal");
    waiting = first;
    any_name = PyUnicode_InternFromString("__doc__");
    FIND(Py_None, Py_True, Py_False, Py_Ellipsis, Py_NotImplemented);
    for (int i = -5; i < 257; i++)
        find(PyLong_FromLong(i), NULL);
    for (int i = 0; i < 256; i++) {
        char octet = (char)i;
        FIND(PyUnicode_FromOrdinal(i), PyBytes_FromStringAndSize(&octet, 1));
    }
    FIND(PyUnicode_FromString(""), PyBytes_FromString(""), PyTuple_New(0));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all); i++)
        find(PyList_GET_ITEM(all, i), NULL);
    while (waiting > first)
        find_in(*--waiting);
    munmap(first, ALL);
    Py_DECREF(all);
}

void take_snapshot(char **argv)
{
    for (const char *const *name = snapshot_modules; *name != NULL; name++)
        if (PyImport_ImportModule(*name) == NULL)
            give_up(*name);
    forget_streams();
    PyGC_Collect();
    PyObject *collector = PyImport_ImportModule("gc");
    if (collector == NULL)
        give_up("gc");
    make_immortal(collector);
    if (PyObject_CallMethod(collector, "freeze", NULL) == NULL)
        give_up("gc");
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
    tortie_quickens = getenv("CNI_COMMAND") == NULL; /* a plugin's call is over before that pays */
    return wake_thread() < 0 || fill_arguments(argc, argv) < 0 || fill_environment() < 0 || fill_streams() < 0
               ? -1
               : take_signals();
}
