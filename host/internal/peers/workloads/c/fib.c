// Recursion and nothing else.
#include "workloads.h"

// Not inlined into itself, so that there is a call per number.
__attribute__((noinline)) static uint32_t f(uint32_t n) {
	return n < 2 ? n : f(n - 1) + f(n - 2);
}

uint64_t fib(void) { return f(36); }
