/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast one core decodes chunks: the rate that whole reads are held to. */
/*
 * Usage: bench-codec [--json]
 *
 * The data is a synthetic 4D-STEM scan: frames of 256 x 256 uint16 counts with
 * a bright disk, a faint ring and about three quarters zeros.  As many chunks
 * as make 32 MiB are encoded once, then decoded in turn through the same
 * pipeline code as the daemon uses, into 32 MiB of output, so neither side
 * lives in the first caches.  Printed is the median of several passes, in
 * 10^9 plain bytes per second.
 */
#include <libdeflate.h>
#include <liblzf/lzf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "codec/pipeline.h"

#define TOTAL ((size_t)32 << 20)
#define PASSES 9

struct bench {
	const char *name;
	uint32_t filters[3]; /* HDF5 ids in writing order, 0 ends */
	size_t chunk;        /* plain bytes */
};
static const struct bench benches[] = {
	{"shuffle+deflate, frames", {2, 1}, 128 << 10},
	{"shuffle+deflate, cubes", {2, 1}, 2 << 20},
	{"deflate, frames", {1}, 128 << 10},
	{"lzf, frames", {32000}, 128 << 10},
	{"lzf, cubes", {32000}, 2 << 20},
	{"shuffle+lzf, frames", {2, 32000}, 128 << 10},
	{"shuffle+zstd, frames", {2, 32015}, 128 << 10},
	{"unshuffle, frames", {2}, 128 << 10},
	{"unshuffle, cubes", {2}, 2 << 20},
	{"fletcher32, frames", {3}, 128 << 10},
};

static unsigned char *plain, *out, *spare, *stored;
static size_t stored_len[TOTAL / (128 << 10)];

static void die(const char *what)
{
	fprintf(stderr, "bench-codec: %s\n", what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double uniform(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

/* A Poisson count, by multiplying until the product is below `limit`, which is
 * exp(-mean). */
static uint16_t count(double limit)
{
	double product = uniform();
	uint16_t n = 0;

	for (; product > limit; n++)
		product *= uniform();
	return n;
}

static void make_frame(uint16_t *at)
{
	for (int y = -128; y < 128; y++)
		for (int x = -128; x < 128; x++) {
			int r = x * x + y * y;
			double limit = 0.9048; /* mean 0.1 */

			if (r < 24 * 24)
				limit = 6.14e-6; /* 12 */
			else if (r > 80 * 80 && r < 96 * 96)
				limit = 0.2231; /* 1.5 */
			*at++ = count(limit);
		}
}

static size_t shuffle(const unsigned char *from, size_t n, unsigned char *to)
{
	for (size_t i = 0; i < n; i++)
		to[i % 2 * (n / 2) + i / 2] = from[i];
	return n;
}

/* One filter's encoder: bytes written to `to`, which has room enough. */
static size_t encode(uint32_t id, const unsigned char *from, size_t n,
		     unsigned char *to, size_t room)
{
	static struct libdeflate_compressor *c;

	switch (id) {
	case 1:
		if (!c)
			c = libdeflate_alloc_compressor(4);
		return c ? libdeflate_zlib_compress(c, from, n, to, room) : 0;
	case 2:
		return shuffle(from, n, to);
	case 32000:
		return lzf_compress(from, (unsigned)n, to, (unsigned)room);
	case 32015:
		n = ZSTD_compress(to, room, from, n, 3);
		return ZSTD_isError(n) ? 0 : n;
	default:
		return 0;
	}
}

/* The checksum as fletcher32.c describes it, without haste. */
static size_t add_fletcher32(const unsigned char *from, size_t n,
			     unsigned char *to)
{
	uint64_t a = 0, b = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		a = (a + (uint64_t)(from[i] << 8 | from[i + 1])) % 65535;
		b = (b + a) % 65535;
	}
	memcpy(to, from, n);
	to[n] = a & 255;
	to[n + 1] = (unsigned char)(a >> 8);
	to[n + 2] = b & 255;
	to[n + 3] = (unsigned char)(b >> 8);
	return n + 4;
}

static size_t encode_chunk(const struct bench *b, const unsigned char *from,
			   unsigned char *to, size_t room)
{
	size_t n = b->chunk;

	for (unsigned i = 0; i < 3 && b->filters[i]; i++) {
		bool last = i == 2 || !b->filters[i + 1];
		unsigned char *at = last ? to : spare;

		n = b->filters[i] == 3
			    ? add_fletcher32(from, n, at)
			    : encode(b->filters[i], from, n, at, room);
		if (!n)
			die("encoding failed");
		from = at;
	}
	return n;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Plain bytes per second, and how many plain bytes a stored one stands for. */
static double run(const struct bench *b, double *ratio)
{
	size_t chunks = TOTAL / b->chunk, room = b->chunk * 5 / 4, sum = 0;
	struct pipeline p = {0};
	double seconds[PASSES];
	struct error err;
	uint32_t cd = 2;

	for (unsigned i = 0; i < 3 && b->filters[i]; i++)
		if (pipeline_add(&p, b->filters[i], NULL, &cd, 1, 2, &err) < 0)
			die(err.text);
	for (size_t i = 0; i < chunks; i++) {
		stored_len[i] = encode_chunk(b, plain + i * b->chunk,
					     stored + i * room, room);
		sum += stored_len[i];
	}
	for (unsigned pass = 0; pass < PASSES; pass++) {
		double start = now();

		for (size_t i = 0; i < chunks; i++)
			if (pipeline_decode(&p, 0, stored + i * room,
					    stored_len[i], out + i * b->chunk,
					    b->chunk, &err) < 0)
				die(err.text);
		seconds[pass] = now() - start;
	}
	if (memcmp(out, plain, TOTAL))
		die("decoded bytes differ");
	qsort(seconds, PASSES, sizeof *seconds, compare);
	*ratio = (double)TOTAL / (double)sum;
	return (double)TOTAL / seconds[PASSES / 2];
}

int main(int argc, char **argv)
{
	bool json = argc == 2 && !strcmp(argv[1], "--json");
	size_t n = sizeof benches / sizeof *benches;

	if (argc > 2 || (argc == 2 && !json)) {
		fprintf(stderr, "usage: bench-codec [--json]\n");
		return 2;
	}
	plain = malloc(TOTAL);
	out = malloc(TOTAL);
	stored = malloc(TOTAL / 4 * 5);
	spare = malloc((size_t)4 << 20);
	if (!plain || !out || !stored || !spare)
		die("out of memory");
	for (size_t i = 0; i < TOTAL; i += 2 * 65536)
		make_frame((uint16_t *)(void *)(plain + i));
	if (!json)
		printf("%-26s %8s %8s\n", "one core", "GB/s", "ratio");
	for (size_t i = 0; i < n; i++) {
		double ratio, rate = run(&benches[i], &ratio);

		if (json)
			printf("%s{\"codec\": \"%s\", \"chunk\": %zu, "
			       "\"bytes_per_second\": %.0f, \"ratio\": %.3f}%s",
			       i ? " " : "[", benches[i].name, benches[i].chunk,
			       rate, ratio, i + 1 < n ? ",\n" : "]\n");
		else
			printf("%-26s %8.2f %8.2f\n", benches[i].name,
			       rate / 1e9, ratio);
	}
	return 0;
}
