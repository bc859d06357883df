/* SPDX-License-Identifier: BSD-2-Clause */
/* What reads want of a cache: the traces of bench-cache. */
#ifndef BENCH_CACHE_TRACES_H
#define BENCH_CACHE_TRACES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct access {
	uint32_t key;
	bool forward; /* by a reader who goes forward */
};

struct trace {
	const char *name;
	struct access *at;
	size_t n, room;
	uint32_t keys;
	uint32_t *size; /* of each key */
	float *cost;
	uint64_t *
		set; /* which dataset it is of; NULL: those of a pace are one */
	uint64_t capacity;
	double whole; /* what is 100 per cent; 0: the cost of all accesses */
};

static void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "bench-cache: out of memory\n");
		exit(1);
	}
	return p;
}

/* ---- traces -------------------------------------------------------------- */

#define SEED 88172645463325252u
static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint64_t)(((unsigned __int128)(state * 0x2545f4914f6cdd1du) *
			   below) >>
			  64);
}

static void want(struct trace *t, uint32_t key, bool forward)
{
	if (t->n == t->room) {
		t->room = t->room ? t->room * 2 : 4096;
		t->at = need(realloc(t->at, t->room * sizeof *t->at));
	}
	t->at[t->n++] = (struct access){key, forward};
}

static void keys(struct trace *t, uint32_t n, uint64_t capacity)
{
	t->keys = n;
	t->size = need(calloc(n, sizeof *t->size));
	t->cost = need(calloc(n, sizeof *t->cost));
	for (uint32_t i = 0; i < n; i++) {
		t->size[i] = 1;
		t->cost[i] = 1;
	}
	t->capacity = capacity;
}

/* All of an array in order, once, while others read frames of a hot part. */
static void scan_and_random(struct trace *t)
{
	keys(t, 9000, 1000);
	for (uint32_t i = 0; i < 8000; i++) {
		want(t, 1000 + i, true);
		for (int k = 0; k < 2; k++)
			want(t, (uint32_t)draw(800), false);
	}
}

/* The same scan by somebody whom nobody takes for one. */
static void stride_and_random(struct trace *t)
{
	scan_and_random(t);
	for (size_t i = 0; i < t->n; i++)
		t->at[i].forward = false;
}

static void shuffle(uint32_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)draw(i), x = p[i - 1];

		p[i - 1] = p[j];
		p[j] = x;
	}
}

/* Ten epochs in an order of their own, so many samples in a chunk. */
static void epochs_of(struct trace *t, uint32_t chunks, uint32_t samples,
		      uint64_t capacity)
{
	uint32_t n = chunks * samples, *order = need(calloc(n, sizeof *order));

	keys(t, chunks, capacity);
	for (int e = 0; e < 10; e++) {
		shuffle(order, n);
		for (uint32_t i = 0; i < n; i++)
			want(t, order[i] / samples, false);
	}
	free(order);
}

static void epochs_one(struct trace *t)
{
	epochs_of(t, 4000, 1, 2000);
}
static void epochs_many(struct trace *t)
{
	epochs_of(t, 1000, 32, 500);
}
static void epochs_large(struct trace *t)
{
	epochs_of(t, 2000, 8, 400);
}

/* A 4D-STEM scan of 64 x 64 frames in chunks of (32,32,32,32): a frame is 64
 * chunks, shared by a quarter of all frames; room for two and a half quarters. */
static void frame(struct trace *t, uint32_t i, uint32_t j)
{
	for (uint32_t k = 0; k < 64; k++)
		want(t, (i / 32 * 2 + j / 32) * 64 + k, false);
}

static void stem_random(struct trace *t)
{
	keys(t, 256, 160);
	for (int n = 0; n < 4000; n++)
		frame(t, (uint32_t)draw(64), (uint32_t)draw(64));
}

static void stem_rows(struct trace *t)
{
	keys(t, 256, 160);
	for (int n = 0; n < 3; n++)
		for (uint32_t i = 0; i < 64; i++)
			for (uint32_t j = 0; j < 64; j++)
				frame(t, i, j);
}

/* Room for one and a half: each half of a row pushes the other one out. */
static void stem_rows_small(struct trace *t)
{
	stem_rows(t);
	t->capacity = 96;
}

/* A scan that nobody sees, each chunk in eight requests. */
static void pieces(struct trace *t)
{
	keys(t, 9000, 1000);
	for (uint32_t i = 0; i < 4000; i++)
		for (int k = 0; k < 8; k++) {
			want(t, 1000 + i, false);
			if (k % 3 == 0)
				want(t, (uint32_t)draw(800), false);
		}
}

/* Rows, and now and then somebody looks at a frame anywhere. */
static void stem_mixed(struct trace *t)
{
	keys(t, 256, 160);
	for (uint32_t i = 0; i < 64; i++)
		for (uint32_t j = 0; j < 64; j++) {
			frame(t, i, j);
			if (j % 8 == 0)
				frame(t, (uint32_t)draw(64),
				      (uint32_t)draw(64));
		}
}

static void loop(struct trace *t, uint32_t n, bool forward)
{
	keys(t, n, 1000);
	for (int round = 0; round < 30; round++)
		for (uint32_t i = 0; i < n; i++)
			want(t, i, forward);
}
static void loop_105(struct trace *t)
{
	loop(t, 1050, false);
}
static void loop_125(struct trace *t)
{
	loop(t, 1250, false);
}
static void loop_200(struct trace *t)
{
	loop(t, 2000, false);
}
static void loop_forward(struct trace *t)
{
	loop(t, 1250, true);
}

/* Key k is wanted in proportion to (k + 1)^-s; keys are numbered at random. */
static void zipf_of(struct trace *t, double s)
{
	uint32_t n = 10000, *name = need(calloc(n, sizeof *name));
	double *sum = need(calloc(n, sizeof *sum)), all = 0;

	keys(t, n, 1000);
	shuffle(name, n);
	for (uint32_t i = 0; i < n; i++)
		sum[i] = all += pow(i + 1, -s);
	for (int i = 0; i < 300000; i++) {
		double x = (double)draw((uint64_t)1 << 40) /
			   (double)((uint64_t)1 << 40) * all;
		uint32_t lo = 0, hi = n - 1;

		while (lo < hi) {
			uint32_t mid = (lo + hi) / 2;

			if (sum[mid] < x)
				lo = mid + 1;
			else
				hi = mid;
		}
		want(t, name[lo], false);
	}
	free(sum);
	free(name);
}
static void zipf_07(struct trace *t)
{
	zipf_of(t, 0.7);
}
static void zipf_10(struct trace *t)
{
	zipf_of(t, 1.0);
}

/* Chunks of two files: bzip2 that costs ten times the LZ4 of the other. */
static void zipf_costs(struct trace *t)
{
	zipf_of(t, 0.8);
	for (uint32_t i = 0; i < t->keys; i++)
		t->cost[i] = i % 2 ? 10 : 1;
}
/* The same in epochs. */
static void epochs_costs(struct trace *t)
{
	epochs_of(t, 2000, 8, 800);
	for (uint32_t i = 0; i < t->keys; i++)
		t->cost[i] = i % 2 ? 10 : 1;
}
/* Sizes of 1 to 64, cost in proportion: images beside arrays. */
static void zipf_sizes(struct trace *t)
{
	zipf_of(t, 0.8);
	t->capacity *= 16;
	for (uint32_t i = 0; i < t->keys; i++) {
		t->size[i] = 1u << draw(7);
		t->cost[i] = (float)t->size[i];
	}
}
/* What was worked on changes: 20 hot parts, one after the other. */
static void phases(struct trace *t)
{
	keys(t, 20000, 1000);
	for (uint32_t p = 0; p < 20; p++)
		for (int i = 0; i < 10000; i++)
			want(t,
			     draw(10) ? p * 1000 + (uint32_t)draw(900)
				      : (uint32_t)draw(20000),
			     false);
}

static const struct {
	const char *name;
	void (*make)(struct trace *);
} traces[] = {
	{"scan+random", scan_and_random},
	{"scan unseen+random", stride_and_random},
	{"epochs, 1 sample/chunk", epochs_one},
	{"epochs, 8 samples/chunk", epochs_large},
	{"epochs, 32 samples/chunk", epochs_many},
	{"4D-STEM random frames", stem_random},
	{"4D-STEM row scan", stem_rows},
	{"4D-STEM row scan, small", stem_rows_small},
	{"4D-STEM rows+random", stem_mixed},
	{"scan in pieces+random", pieces},
	{"loop of 1.05 caches", loop_105},
	{"loop of 1.25 caches", loop_125},
	{"loop of 2 caches", loop_200},
	{"loop of 1.25, forward", loop_forward},
	{"zipf 0.7", zipf_07},
	{"zipf 1.0", zipf_10},
	{"zipf 0.8, costs 1 and 10", zipf_costs},
	{"epochs, costs 1 and 10", epochs_costs},
	{"zipf 0.8, sizes 1 to 64", zipf_sizes},
	{"phases", phases},
};

#endif
