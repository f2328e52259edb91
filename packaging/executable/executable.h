/* The parts of the self-contained executable's own C. */

#ifndef TORTIE_EXECUTABLE_H
#define TORTIE_EXECUTABLE_H

#include <stddef.h>

/* Memory that is kept for reuse, in place of the C library's, and the interpreter's arenas. To be called first. */
void keep_memory(void);

/* The same in one area at `place`, for a snapshot. -1 if there is something else. */
int keep_memory_at(void *place);

/* From here on the interpreter gets no new arenas. */
void refuse_arenas(void);

/* Whether it has that block from one of those that it got. */
int is_in_arena(const void *block);

/* That is complete, and what is free in it is given to nobody; its size, or 0 if something has found no room in it.
   Nothing may be allocated any more. */
size_t memory_is_past(void);

/* The same in a process that begins with it. To be called first. */
void go_on_with_memory(void);

/* The linker puts the first four in the place of the C library's, which have the other names (-Wl,--wrap). */
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t each);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t each);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);

/* What this executable's file is for. */
enum snapshot { NO_SNAPSHOT, TAKE_SNAPSHOT, IS_SNAPSHOT };
enum snapshot snapshot(void);

/* Set memory aside, load all modules and write what the process is to standard output. `argv` has the first and the
   last address of the program's data. */
void prepare_snapshot(void);
_Noreturn void take_snapshot(char **argv);

/* Be the process that the snapshot was taken of, with this one's arguments, environment, descriptors and signals. */
int wake(int argc, char **argv);

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
