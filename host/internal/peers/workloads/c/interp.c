// An interpreter of a small stack machine, which runs a sieve of primes.
#include <string.h>

#include "workloads.h"

enum op { PUSH, LOAD, STORE, GET, PUT, ADD, MUL, LESS, JUMP, JUMPZ, HALT };

enum { LIMIT = 100000 };

struct instr {
	enum op op;
	int32_t arg;
};

// Variables: 0 is i, 1 is j, 2 is the number of primes.
static const struct instr program[] = {
	{PUSH, 2}, {STORE, 0},                                      // i = 2
	{LOAD, 0}, {PUSH, LIMIT}, {LESS, 0}, {JUMPZ, 32},           // 2: while i < LIMIT
	{LOAD, 0}, {GET, 0}, {JUMPZ, 11},                           //    if sieve[i] == 0 goto 11
	{JUMP, 27}, {HALT, 0},                                      //    else goto 27
	{LOAD, 2}, {PUSH, 1}, {ADD, 0}, {STORE, 2},                 // 11: primes++
	{LOAD, 0}, {PUSH, 2}, {MUL, 0}, {STORE, 1},                 //    j = 2 * i
	{LOAD, 1}, {PUSH, LIMIT}, {LESS, 0}, {JUMPZ, 27},           // 19: while j < LIMIT
	{LOAD, 1}, {PUT, 1}, {JUMP, 33}, {HALT, 0},                 //    sieve[j] = 1, goto 33
	{LOAD, 0}, {PUSH, 1}, {ADD, 0}, {STORE, 0}, {JUMP, 2},      // 27: i++
	{HALT, 0},                                                  // 32
	{LOAD, 1}, {LOAD, 0}, {ADD, 0}, {STORE, 1}, {JUMP, 19},     // 33: j += i
};

static unsigned char sieve[LIMIT];

static uint32_t run(const struct instr *code) {
	int32_t stack[16], vars[4] = {0};
	int sp = 0, pc = 0;
	for (;;) {
		struct instr in = code[pc++];
		switch (in.op) {
		case PUSH: stack[sp++] = in.arg; break;
		case LOAD: stack[sp++] = vars[in.arg]; break;
		case STORE: vars[in.arg] = stack[--sp]; break;
		case GET: stack[sp - 1] = sieve[stack[sp - 1]]; break;
		case PUT: sieve[stack[--sp]] = (unsigned char)in.arg; break;
		case ADD: sp--; stack[sp - 1] += stack[sp]; break;
		case MUL: sp--; stack[sp - 1] *= stack[sp]; break;
		case LESS: sp--; stack[sp - 1] = stack[sp - 1] < stack[sp]; break;
		case JUMP: pc = in.arg; break;
		case JUMPZ: if (!stack[--sp]) pc = in.arg; break;
		case HALT: return (uint32_t)vars[2];
		}
	}
}

uint64_t interp(void) {
	uint64_t sum = 0;
	for (int i = 0; i < 6; i++) {
		memset(sieve, 0, sizeof sieve);
		sum = sum * 31 + run(program);
	}
	return sum;
}
