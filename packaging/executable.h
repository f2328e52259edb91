/* The parts of the self-contained executable's own C. */

#ifndef TORTIE_EXECUTABLE_H
#define TORTIE_EXECUTABLE_H

/* Memory that is kept for reuse, in place of the C library's, for the interpreter's blocks that its own allocator has
   no place for. To be called before the interpreter is initialised. */
void keep_memory(void);

/* Import frozen modules without importlib's Python code. To be called when importlib is there; -1 and an exception if
   that fails. */
int import_quickly(void);

#endif
