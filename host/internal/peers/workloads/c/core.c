// A mix like CoreMark's: linked lists, small matrices, a state machine and a checksum.
#include <stddef.h>

#include "workloads.h"

enum { NODES = 512, N = 24 };

struct node {
	struct node *next;
	int16_t key, value;
};

static struct node nodes[NODES];
static int16_t ma[N][N], mb[N][N];
static int32_t mc[N][N];

static uint16_t crc(uint32_t v, uint16_t c) {
	for (int i = 0; i < 16; i++) {
		uint16_t bit = (v ^ c) & 1;
		v >>= 1;
		c >>= 1;
		if (bit) c ^= 0xa001;
	}
	return c;
}

static struct node *merge(struct node *a, struct node *b) {
	struct node head, *tail = &head;
	while (a && b) {
		if (a->key <= b->key) {
			tail->next = a;
			a = a->next;
		} else {
			tail->next = b;
			b = b->next;
		}
		tail = tail->next;
	}
	tail->next = a ? a : b;
	return head.next;
}

static struct node *sort(struct node *l) {
	if (!l || !l->next) return l;
	struct node *slow = l, *fast = l->next;
	while (fast && fast->next) {
		slow = slow->next;
		fast = fast->next->next;
	}
	struct node *right = slow->next;
	slow->next = NULL;
	return merge(sort(l), sort(right));
}

static uint16_t list(uint32_t seed, uint16_t c) {
	for (int i = 0; i < NODES; i++) {
		nodes[i].next = i + 1 < NODES ? &nodes[i + 1] : NULL;
		nodes[i].key = (int16_t)next(&seed);
		nodes[i].value = (int16_t)i;
	}
	struct node *l = sort(nodes), *reversed = NULL;
	while (l) {
		struct node *rest = l->next;
		l->next = reversed;
		reversed = l;
		l = rest;
	}
	for (l = reversed; l; l = l->next) {
		if (l->value & 1) c = crc((uint32_t)(l->key + l->value), c);
	}
	return c;
}

static uint16_t matrix(uint32_t seed, uint16_t c) {
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++) {
			ma[i][j] = (int16_t)(next(&seed) & 255);
			mb[i][j] = (int16_t)(next(&seed) & 255);
		}
	}
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++) {
			int32_t sum = 0;
			for (int k = 0; k < N; k++) sum += ma[i][k] * mb[k][j];
			mc[i][j] = sum;
		}
	}
	for (int i = 0; i < N; i++) c = crc((uint32_t)mc[i][(i * 7) % N], c);
	return c;
}

enum state { START, INT, FRACTION, EXPONENT, BAD, STATES };

// numbers reads text as numbers with a state machine, and counts its transitions.
static uint16_t numbers(uint32_t seed, uint16_t c) {
	static const char alphabet[] = "0123456789.e+,0123,5.";
	uint32_t left[STATES] = {0};
	enum state s = START;
	for (int i = 0; i < 2048; i++) {
		char ch = alphabet[next(&seed) % (sizeof alphabet - 1)];
		enum state to = s;
		if (ch == ',') {
			to = START;
		} else {
			switch (s) {
			case START:
				to = ch >= '0' && ch <= '9' ? INT : ch == '.' ? FRACTION : ch == '+' ? START : BAD;
				break;
			case INT:
				if (ch == '.') to = FRACTION;
				else if (ch == 'e') to = EXPONENT;
				else if (ch < '0' || ch > '9') to = BAD;
				break;
			case FRACTION:
				if (ch == 'e') to = EXPONENT;
				else if (ch < '0' || ch > '9') to = BAD;
				break;
			case EXPONENT:
				if ((ch < '0' || ch > '9') && ch != '+') to = BAD;
				break;
			default:
				break;
			}
		}
		if (to != s) left[s]++;
		s = to;
	}
	for (int i = 0; i < STATES; i++) c = crc(left[i], c);
	return c;
}

uint64_t core(void) {
	uint16_t c = 0;
	for (uint32_t i = 0; i < 1500; i++) {
		c = list(i + c, c);
		c = matrix(i + c, c);
		c = numbers(i + c, c);
	}
	return c;
}
