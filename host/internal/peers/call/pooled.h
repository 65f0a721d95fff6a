// A tool in wasmtime: with the pooling allocator, everything prepared that can be
// before a call, and fuel.

#include <stddef.h>
#include <stdint.h>

typedef struct pooled pooled;

// A text whose first byte is 0 means success.
typedef struct { char text[512]; } failure;

typedef struct { const char *data; size_t size; } string;

// A result is in the memory of the call, and valid until pooled_end.
typedef struct {
  void *store;
  const uint8_t *memory;
  size_t size;
  uint32_t result;
} pooled_call;

pooled *pooled_new(const uint8_t *code, size_t size, uint64_t max_memory, failure *f);

// pooled_import defines an import that traps. Types are those of the binary format.
void pooled_import(pooled *, string module, string name, string params, string results, failure *f);

// pooled_ready must be called after all imports.
void pooled_ready(pooled *, failure *f);

// pooled_begin calls the tool in an instance of its own, which sees dir as /.
void pooled_begin(pooled *, const char *dir, uint64_t fuel, uint64_t millis, string name, string args, pooled_call *c, failure *f);
void pooled_end(pooled_call *c);
void pooled_delete(pooled *);
