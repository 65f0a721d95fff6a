// Copies and fills blocks of many sizes: memory.copy and memory.fill.
#include <string.h>

#include "workloads.h"

enum { SIZE = 8 << 20 };

static unsigned char a[SIZE], b[SIZE];

uint64_t bulk(void) {
	uint32_t seed = 1;
	uint64_t sum = 0;
	for (int i = 0; i < SIZE; i++) a[i] = (unsigned char)next(&seed);
	// Large blocks, then many small ones.
	for (int i = 0; i < 10; i++) {
		memcpy(b, a + i, SIZE - 64);
		memset(a + next(&seed) % (SIZE / 2), i, SIZE / 4);
		memmove(a + 1, b, SIZE - 64);
		sum += a[next(&seed) % SIZE];
	}
	for (int i = 0; i < 500000; i++) {
		uint32_t from = next(&seed) % (SIZE - 4096), to = next(&seed) % (SIZE - 4096), n = 16 + (next(&seed) & 511);
		memcpy(b + to, a + from, n);
		memset(a + to, (int)n, n / 2);
		sum = sum * 31 + b[from];
	}
	return sum;
}
