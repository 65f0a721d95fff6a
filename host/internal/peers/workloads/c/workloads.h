// The workloads. Each takes no input and returns a checksum of what it did.
#include <stdint.h>

uint64_t bulk(void);
uint64_t bytel(void);
uint64_t core(void);
uint64_t fib(void);
uint64_t interp(void);
uint64_t mallocs(void);
uint64_t mat(void);
uint64_t qs(void);
uint64_t qsorts(void);
uint64_t sha256(void);
uint64_t tight(void);

// next is a linear congruential generator, the only source of "input".
static inline uint32_t next(uint32_t *seed) {
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}
