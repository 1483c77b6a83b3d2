/* A library to preload: allocations by C++'s `new` are recorded with the function that contains it.
 *
 * LTTng's wrapper of the C library records the caller of malloc, which for `new` is libstdc++'s operator. This operator
 * jumps to malloc, so that its own caller is recorded. Requests that can fail in practice are left to the next operator,
 * which throws.
 *
 * Reference: [new.delete] in the C++ standard; the Itanium C++ ABI's mangled names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#define LARGE ((size_t)1 << 30)
#define EXPORTED __attribute__((visibility("default")))

typedef void *(*allocate_function)(size_t);

EXPORTED void *allocate_one(size_t size) __asm__("_Znwm");
EXPORTED void *allocate_many(size_t size) __asm__("_Znam");

__attribute__((noinline)) static void *allocate_large(size_t size, const char *name) {
  allocate_function next = NULL;
  *(void **)&next = dlsym(RTLD_NEXT, name);
  return next != NULL ? next(size) : malloc(size);
}

void *allocate_one(size_t size) {
  if (size > LARGE) return allocate_large(size, "_Znwm");
  return malloc(size != 0 ? size : 1);
}

void *allocate_many(size_t size) {
  if (size > LARGE) return allocate_large(size, "_Znam");
  return malloc(size != 0 ? size : 1);
}
