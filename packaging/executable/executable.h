/* The parts of the self-contained executable's own C. */

#ifndef TORTIE_EXECUTABLE_H
#define TORTIE_EXECUTABLE_H

/* Memory that is kept for reuse, in place of the C library's, for the interpreter's blocks that its own allocator has
   no place for. To be called before the interpreter is initialised. */
void keep_memory(void);

/* What a runtime hears of a process that dies where Python cannot answer any more: for lack of memory, or in a fault of
   the program. To be called first; `argv` stays in use. */
void prepare_last_words(char **argv);

/* Answer with an error that says why, and end. */
_Noreturn void last_words(const char *why);

/* The call has been answered, or was none: a death from here on is only reported on standard error. */
void answered(void);

/* Import frozen modules without importlib's Python code. To be called when importlib is there; -1 and an exception if
   that fails. */
int import_quickly(void);

#endif
