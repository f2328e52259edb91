/* The parts of the self-contained executable's own C. */

#ifndef TORTIE_EXECUTABLE_H
#define TORTIE_EXECUTABLE_H

#include <stddef.h>

/* Memory that is kept for reuse, in place of the C library's, and the interpreter's arenas. To be called first. */
void keep_memory(void);

/* The same in one area at `place`, for a snapshot. -1 if there is something else. */
int keep_memory_at(void *place);

/* What is allocated from `use_room` on comes from where `set_room_aside` was called, as long as there is some left. */
void set_room_aside(void);
void use_room(void);
int is_in_room(const void *block);

/* That is complete; its size, or 0 if something has found no room in it. Nothing may be allocated any more. */
size_t memory_is_past(void);

/* The same in a process that begins with it, and of which this is known. To be called first. */
enum use { ANSWERS_ONLY, NETWORKS_PODS, BRIDGES };
void go_on_with_memory(enum use use);

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
long snapshot_offset(void); /* of its memory in the file */

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
