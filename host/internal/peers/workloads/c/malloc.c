// Allocates and frees blocks of many sizes in a random order.
#include <stdlib.h>

#include "workloads.h"

enum { SLOTS = 4096 };

static unsigned char *slots[SLOTS];
static uint32_t sizes[SLOTS];

uint64_t mallocs(void) {
	uint32_t seed = 3;
	uint64_t sum = 0;
	for (int i = 0; i < 2500000; i++) {
		uint32_t k = next(&seed) % SLOTS;
		if (slots[k]) {
			sum = sum * 31 + slots[k][0] + slots[k][sizes[k] - 1];
			free(slots[k]);
			slots[k] = NULL;
			continue;
		}
		uint32_t r = next(&seed);
		sizes[k] = r & 1 ? 8 + (r >> 4) % 120 : 8 + (r >> 4) % 2000;
		if (!(slots[k] = malloc(sizes[k]))) abort();
		slots[k][0] = (unsigned char)i;
		slots[k][sizes[k] - 1] = (unsigned char)r;
	}
	return sum;
}
