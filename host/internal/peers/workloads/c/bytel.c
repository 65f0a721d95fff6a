// A loop over the bytes of a buffer in which each depends on the one before.
#include "workloads.h"

enum { SIZE = 1 << 20 };

static unsigned char buf[SIZE];

uint64_t bytel(void) {
	uint32_t seed = 7, h = 2166136261u, words = 0;
	for (int i = 0; i < SIZE; i++) buf[i] = (unsigned char)next(&seed);
	for (int round = 0; round < 120; round++) {
		unsigned char prev = 0;
		for (int i = 0; i < SIZE; i++) {
			unsigned char c = buf[i];
			h = (h ^ c) * 16777619u;
			if (c < 'A' && prev >= 'A') words++;
			prev = c;
		}
	}
	return (uint64_t)h << 32 | words;
}
