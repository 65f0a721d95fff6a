// A quicksort of our own.
#include "workloads.h"

enum { COUNT = 1000000 };

static int32_t v[COUNT];

static void sort(int32_t *lo, int32_t *hi) {
	while (hi - lo > 12) {
		int32_t pivot = lo[(hi - lo) / 2], *i = lo, *j = hi;
		while (i <= j) {
			while (*i < pivot) i++;
			while (*j > pivot) j--;
			if (i <= j) {
				int32_t t = *i;
				*i++ = *j;
				*j-- = t;
			}
		}
		// The smaller part by recursion, so that the stack stays small.
		if (j - lo < hi - i) {
			sort(lo, j);
			lo = i;
		} else {
			sort(i, hi);
			hi = j;
		}
	}
	for (int32_t *i = lo + 1; i <= hi; i++) {
		int32_t x = *i, *j = i;
		for (; j > lo && j[-1] > x; j--) *j = j[-1];
		*j = x;
	}
}

uint64_t qs(void) {
	uint32_t seed = 11;
	uint64_t sum = 0;
	for (int i = 0; i < COUNT; i++) v[i] = (int32_t)(next(&seed) << 8 | (uint32_t)i % 256);
	sort(v, v + COUNT - 1);
	for (int i = 0; i < COUNT; i += 97) sum = sum * 31 + (uint32_t)v[i];
	return sum;
}
