// Multiplies matrices of doubles.
#include <string.h>

#include "workloads.h"

enum { N = 256 };

static double a[N][N], b[N][N], c[N][N];

uint64_t mat(void) {
	uint32_t seed = 5;
	uint64_t sum = 0;
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++) {
			a[i][j] = (double)(next(&seed) % 1000) / 997;
			b[i][j] = (double)(next(&seed) % 1000) / 991;
		}
	}
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < N; i++) {
			double row[N] = {0};
			for (int k = 0; k < N; k++) {
				for (int j = 0; j < N; j++) row[j] += a[i][k] * b[k][j];
			}
			memcpy(c[i], row, sizeof row);
		}
		for (int i = 0; i < N; i++) a[i][i] = c[i][N - 1 - i] / (1 + c[i][i]);
		uint64_t bits;
		memcpy(&bits, &c[round][N - 1], sizeof bits);
		sum = sum * 31 + bits;
	}
	return sum;
}
