// Arithmetic in the smallest loop.
#include "workloads.h"

uint64_t tight(void) {
	uint64_t x = 88172645463325252u, sum = 0;
	for (int i = 0; i < 100000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		sum += x;
	}
	return sum;
}
