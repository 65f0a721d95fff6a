// The C library's qsort, which calls back to compare.
#include <stdlib.h>

#include "workloads.h"

enum { COUNT = 150000 };

struct item {
	int32_t key;
	uint32_t value;
};

static struct item v[COUNT];

static int compare(const void *a, const void *b) {
	int32_t x = ((const struct item *)a)->key, y = ((const struct item *)b)->key;
	return (x > y) - (x < y);
}

uint64_t qsorts(void) {
	uint32_t seed = 13;
	uint64_t sum = 0;
	for (int i = 0; i < COUNT; i++) v[i] = (struct item){(int32_t)(next(&seed) << 8), (uint32_t)i};
	qsort(v, COUNT, sizeof *v, compare);
	for (int i = 0; i < COUNT; i += 97) sum = sum * 31 + (uint32_t)v[i].key;
	return sum;
}
