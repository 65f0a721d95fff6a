// Runs the workload that the first argument names and prints its checksum.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "workloads.h"

static const struct {
	const char *name;
	uint64_t (*run)(void);
} workloads[] = {
	{"bulk", bulk}, {"bytel", bytel}, {"core", core},     {"fib", fib},       {"interp", interp}, {"malloc", mallocs},
	{"mat", mat},   {"qs", qs},       {"qsort", qsorts}, {"sha256", sha256}, {"tight", tight},
};

int main(int argc, char **argv) {
	for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++) {
		if (strcmp(argv[1], workloads[i].name) == 0) {
			printf("%s %016" PRIx64 "\n", argv[1], workloads[i].run());
			return 0;
		}
	}
	fprintf(stderr, "no such workload\n");
	return 1;
}
