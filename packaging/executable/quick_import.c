/* Importing frozen modules without importlib's Python code, which takes as long as many of the modules themselves.

   importlib stays in charge. What it does for a module that is not loaded yet, `_find_and_load`, is replaced by a
   function that does the same for a module of our table while the process has one thread, and hands all else to
   importlib's own: when there are more threads, other finders, modules of other kinds, or something to be refused in
   words. All around it (relative names, `from` lists, waiting for others, tracebacks) is the interpreter's own.

   A thread that a module starts while it is loaded may ask for that same module. Only then is importlib's lock for it
   needed, and only then is it made, in the name of the thread that loads; from there on importlib finds out who has to
   wait, and who would wait for ever.

   Invariant: a module looks the same as if importlib had loaded it. */

#include <Python.h>
#include <marshal.h>
#include <string.h>

#include "executable.h"

/* A module that is being loaded here, on the stack of the thread that does it; for who has the interpreter's lock. */
struct loading {
    PyObject *name;
    unsigned long thread;
    PyObject *lock; /* importlib's, if it was asked for */
    struct loading *outer;
};

static struct loading *innermost;
static size_t count; /* of PyImport_FrozenModules, which are sorted */
static PyObject *importlib, *finders, *builtin_finder, *frozen_finder;
static PyObject *find_and_load, *lock_and_unlock, *handle_from_list; /* importlib's own */
static PyObject *spec_type, *spec_keywords, *state_type, *state_keywords, *origin;
static PyObject *initializing, *submodules, *locations, *path, *spec_of_module, *loader, *package, *builtins, *nothing;

static const struct _frozen *frozen_named(PyObject *name)
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (text == NULL) {
        PyErr_Clear();
        return NULL;
    }
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(text, PyImport_FrozenModules[middle].name);
        if (order == 0)
            return PyImport_FrozenModules + middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Whether what importlib would do is known: nobody to wait for, and frozen modules looked for as at the start. */
static int undisturbed(void)
{
    return PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Main())) == NULL &&
           PySys_GetObject("meta_path") == finders && PyList_GET_SIZE(finders) >= 2 &&
           PyList_GET_ITEM(finders, 0) == builtin_finder && PyList_GET_ITEM(finders, 1) == frozen_finder;
}

/* --- locks ------------------------------------------------------------------------------------------------------- */

static struct loading *being_loaded(PyObject *name)
{
    struct loading *found = innermost;
    while (found != NULL && PyUnicode_Compare(found->name, name) != 0)
        found = found->outer;
    return found;
}

/* Let importlib know who is loading the module, before it is asked to wait for it. 1 if that is the calling thread. */
static int announce(PyObject *name)
{
    struct loading *found = being_loaded(name);
    if (found == NULL || found->thread == PyThread_get_thread_ident())
        return found != NULL;
    PyObject *lock = PyObject_CallMethod(importlib, "_get_module_lock", "O", name);
    if (lock == NULL)
        return -1;
    int failed = 0;
    found = being_loaded(name); /* in the meantime others have run */
    if (found != NULL && found->lock == NULL) {
        PyObject *owner = PyLong_FromUnsignedLong(found->thread), *had = PyObject_GetAttrString(lock, "count");
        PyObject *times = owner == NULL || had == NULL ? NULL : PyLong_FromLong(PyLong_AsLong(had) + 1);
        failed = times == NULL || PyObject_SetAttrString(lock, "count", times) < 0 ||
                 PyObject_SetAttrString(lock, "owner", owner) < 0;
        if (!failed)
            found->lock = Py_NewRef(lock);
        Py_XDECREF(owner);
        Py_XDECREF(had);
        Py_XDECREF(times);
    }
    Py_DECREF(lock);
    return failed ? -1 : 0;
}

/* Nobody has to wait any longer. An exception that is set stays set. */
static void finish(struct loading *self, PyObject *spec)
{
    PyObject *type, *error, *trace, *done = NULL;
    PyErr_Fetch(&type, &error, &trace);
    if (PyObject_SetAttr(spec, initializing, Py_False) < 0)
        PyErr_WriteUnraisable(spec);
    innermost = self->outer;
    if (self->lock != NULL) {
        done = PyObject_CallMethod(self->lock, "release", NULL);
        if (done == NULL)
            PyErr_WriteUnraisable(self->lock);
    }
    Py_XDECREF(done);
    Py_XDECREF(self->lock);
    PyErr_Restore(type, error, trace);
}

/* --- one module -------------------------------------------------------------------------------------------------- */

/* As importlib's finder of frozen modules makes it, for a module that is about to be executed. */
static PyObject *new_spec(PyObject *name, const struct _frozen *frozen)
{
    PyObject *of_state[] = {Py_None, name}, *spec = NULL;
    PyObject *state = PyObject_Vectorcall(state_type, of_state, 0, state_keywords);
    PyObject *of_spec[] = {name, frozen_finder, origin, state, frozen->is_package ? Py_True : Py_False};
    if (state != NULL)
        spec = PyObject_Vectorcall(spec_type, of_spec, 2, spec_keywords);
    Py_XDECREF(state);
    if (spec != NULL && PyObject_SetAttr(spec, initializing, Py_True) < 0)
        Py_CLEAR(spec);
    return spec;
}

static PyObject *new_module(PyObject *name, PyObject *above, PyObject *spec, const struct _frozen *frozen)
{
    PyObject *module = PyModule_NewObject(name);
    if (module == NULL)
        return NULL;
    PyObject *names = PyModule_GetDict(module);
    int failed = PyDict_SetItem(names, loader, frozen_finder) < 0 || PyDict_SetItem(names, spec_of_module, spec) < 0 ||
                 PyDict_SetItem(names, package, frozen->is_package ? name : above) < 0 ||
                 PyDict_SetItem(names, builtins, PyEval_GetBuiltins()) < 0;
    if (!failed && frozen->is_package) {
        PyObject *places = PyObject_GetAttr(spec, locations);
        failed = places == NULL || PyDict_SetItem(names, path, places) < 0;
        Py_XDECREF(places);
    }
    if (failed)
        Py_CLEAR(module);
    return module;
}

/* Run the module's code; what is then in sys.modules under its name, which it may have changed. */
static PyObject *execute(PyObject *name, PyObject *module, const struct _frozen *frozen)
{
    PyObject *modules = PyImport_GetModuleDict(), *found = NULL;
    if (PyDict_SetItem(modules, name, module) < 0)
        return NULL;
    PyObject *code = PyMarshal_ReadObjectFromString((const char *)frozen->code, frozen->size);
    PyObject *names = PyModule_GetDict(module), *done = code == NULL ? NULL : PyEval_EvalCode(code, names, names);
    Py_XDECREF(code);
    if (done != NULL) {
        Py_DECREF(done);
        found = PyDict_GetItemWithError(modules, name);
        if (found == NULL && !PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, name);
        return Py_XNewRef(found);
    }
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    if (PyDict_DelItem(modules, name) < 0)
        PyErr_Clear(); /* it has removed itself */
    PyErr_Restore(type, error, trace);
    return NULL;
}

static PyObject *load(PyObject *name, PyObject *above, const struct _frozen *frozen)
{
    struct loading self = {name, PyThread_get_thread_ident(), NULL, innermost};
    PyObject *found = NULL, *spec = new_spec(name, frozen);
    PyObject *module = spec == NULL ? NULL : new_module(name, above, spec, frozen);
    if (module != NULL) {
        innermost = &self;
        found = execute(name, module, frozen);
        finish(&self, spec);
    }
    Py_XDECREF(module);
    Py_XDECREF(spec);
    return found;
}

/* --- and its packages -------------------------------------------------------------------------------------------- */

/* The list in which the package's spec has the modules that are being loaded; NULL without an exception if all that is
   not as usual. */
static PyObject *loaded_below(PyObject *parent)
{
    PyObject *places, *spec, *list = NULL;
    if (_PyObject_LookupAttr(parent, path, &places) <= 0)
        goto unusual;
    Py_DECREF(places);
    if (_PyObject_LookupAttr(parent, spec_of_module, &spec) <= 0)
        goto unusual;
    _PyObject_LookupAttr(spec, submodules, &list);
    Py_DECREF(spec);
    if (list != NULL && !PyList_CheckExact(list))
        Py_CLEAR(list);
unusual:
    PyErr_Clear();
    return list;
}

static int bind(PyObject *above, PyObject *child, PyObject *module)
{
    PyObject *parent = PyDict_GetItemWithError(PyImport_GetModuleDict(), above);
    if (parent == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, above);
        return -1;
    }
    if (PyObject_SetAttr(parent, child, module) == 0)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return PyErr_WarnFormat(PyExc_ImportWarning, 1, "Cannot set an attribute on %R for child module %R", above, child);
}

static PyObject *load_into(PyObject *list, PyObject *name, PyObject *above, const struct _frozen *frozen)
{
    PyObject *child = PyUnicode_Substring(name, PyUnicode_GET_LENGTH(above) + 1, PyUnicode_GET_LENGTH(name));
    if (child == NULL || PyList_Append(list, child) < 0) {
        Py_XDECREF(child);
        return NULL;
    }
    PyObject *found = load(name, above, frozen), *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    Py_ssize_t length = PyList_GET_SIZE(list);
    PyList_SetSlice(list, length - 1, length, NULL);
    PyErr_Restore(type, error, trace);
    if (found != NULL && bind(above, child, found) < 0)
        Py_CLEAR(found);
    Py_DECREF(child);
    return found;
}

/* A module in a package, which is loaded before. NULL without an exception if it is for importlib. */
static PyObject *load_submodule(PyObject *name, PyObject *above, const struct _frozen *frozen)
{
    PyObject *modules = PyImport_GetModuleDict(), *parent = PyDict_GetItemWithError(modules, above);
    if (parent == NULL && !PyErr_Occurred()) {
        PyObject *top = PyImport_ImportModuleLevelObject(above, NULL, NULL, NULL, 0);
        Py_XDECREF(top);
        if (top == NULL)
            return NULL;
        if (!undisturbed() || PyDict_Contains(modules, name) != 0)
            return NULL; /* it has been busy */
        parent = PyDict_GetItemWithError(modules, above);
    }
    PyObject *list = parent == NULL ? NULL : loaded_below(parent);
    if (list == NULL)
        return NULL;
    PyObject *found = load_into(list, name, above, frozen);
    Py_DECREF(list);
    return found;
}

static PyObject *load_quickly(PyObject *name, const struct _frozen *frozen)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(name), dot = PyUnicode_FindChar(name, '.', 0, length, -1);
    if (dot < 0)
        return load(name, nothing, frozen);
    PyObject *above = PyUnicode_Substring(name, 0, dot), *found = NULL;
    if (above != NULL)
        found = load_submodule(name, above, frozen);
    Py_XDECREF(above);
    return found;
}

/* --- in importlib's place ---------------------------------------------------------------------------------------- */

static PyObject *quick_find_and_load(PyObject *self, PyObject *const *given, Py_ssize_t size)
{
    if (size != 2)
        return PyObject_Vectorcall(find_and_load, given, size, NULL);
    PyObject *modules = PyImport_GetModuleDict(), *name = given[0];
    const struct _frozen *frozen = frozen_named(name);
    if (frozen != NULL && PyDict_CheckExact(modules) && undisturbed() && PyDict_Contains(modules, name) == 0) {
        PyObject *found = load_quickly(name, frozen);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    return PyErr_Occurred() || announce(name) < 0 ? NULL : PyObject_Vectorcall(find_and_load, given, size, NULL);
}

static PyObject *quick_lock_and_unlock(PyObject *self, PyObject *name)
{
    int by_caller = announce(name);
    if (by_caller)
        return by_caller < 0 ? NULL : Py_NewRef(Py_None);
    return PyObject_CallOneArg(lock_and_unlock, name);
}

/* `from` a package: there is nothing to do if it has all of the names. */
static PyObject *quick_handle_from_list(PyObject *self, PyObject *const *given, Py_ssize_t size)
{
    int known = size == 3 && PyTuple_CheckExact(given[1]);
    for (Py_ssize_t i = 0; known && i < PyTuple_GET_SIZE(given[1]); i++) {
        PyObject *name = PyTuple_GET_ITEM(given[1], i), *value = NULL;
        known = PyUnicode_CheckExact(name) && PyUnicode_CompareWithASCIIString(name, "*") != 0;
        if (known && (known = _PyObject_LookupAttr(given[0], name, &value)) < 0)
            return NULL;
        Py_XDECREF(value);
    }
    return known ? Py_NewRef(given[0]) : PyObject_Vectorcall(handle_from_list, given, size, NULL);
}

static PyMethodDef quick[] = {
    {"_find_and_load", (PyCFunction)(void (*)(void))quick_find_and_load, METH_FASTCALL, NULL},
    {"_lock_unlock_module", quick_lock_and_unlock, METH_O, NULL},
    {"_handle_fromlist", (PyCFunction)(void (*)(void))quick_handle_from_list, METH_FASTCALL, NULL},
};

static int replace(PyMethodDef *with, PyObject **own)
{
    *own = PyObject_GetAttrString(importlib, with->ml_name);
    PyObject *function = *own == NULL ? NULL : PyCFunction_New(with, NULL);
    int done = function == NULL ? -1 : PyObject_SetAttrString(importlib, with->ml_name, function);
    Py_XDECREF(function);
    return done;
}

static int intern(PyObject **name, const char *text)
{
    *name = PyUnicode_InternFromString(text);
    return *name == NULL ? -1 : 0;
}

int import_quickly(void)
{
    while (PyImport_FrozenModules[count].name != NULL)
        count++;
    struct {
        PyObject **name;
        const char *text;
    } names[] = {{&initializing, "_initializing"}, {&submodules, "_uninitialized_submodules"},
                 {&locations, "submodule_search_locations"}, {&path, "__path__"}, {&spec_of_module, "__spec__"},
                 {&loader, "__loader__"}, {&package, "__package__"}, {&builtins, "__builtins__"},
                 {&origin, "frozen"}, {&nothing, ""}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (intern(names[i].name, names[i].text) < 0)
            return -1;
    spec_keywords = Py_BuildValue("(sss)", "origin", "loader_state", "is_package");
    state_keywords = Py_BuildValue("(ss)", "filename", "origname");
    state_type = (PyObject *)Py_TYPE(PySys_GetObject("implementation"));
    finders = PySys_GetObject("meta_path");
    importlib = PyImport_ImportModule("_frozen_importlib");
    if (spec_keywords == NULL || state_keywords == NULL || finders == NULL || importlib == NULL)
        return -1;
    builtin_finder = PyObject_GetAttrString(importlib, "BuiltinImporter");
    frozen_finder = PyObject_GetAttrString(importlib, "FrozenImporter");
    spec_type = PyObject_GetAttrString(importlib, "ModuleSpec");
    if (builtin_finder == NULL || frozen_finder == NULL || spec_type == NULL)
        return -1;
    Py_INCREF(finders);
    Py_INCREF(state_type);
    return replace(&quick[0], &find_and_load) < 0 || replace(&quick[1], &lock_and_unlock) < 0 ? -1
                                                   : replace(&quick[2], &handle_from_list);
}
