/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast one core decodes chunks, and what each costs beside its bytes. */
/*
 * Usage: bench-codec [--json] [PATTERN]
 *
 * The data is a synthetic 4D-STEM scan: frames of 256 x 256 uint16 counts with
 * a bright disk, a faint ring and about three quarters zeros.  As many chunks
 * as make 32 MiB are encoded once, then decoded in turn through the same
 * pipeline code as the daemon uses, into 32 MiB of output, so neither side
 * lives in the first caches.  Beside it, in turns, the same stored bytes by the
 * library's own function with a context that is kept (for [shuffle, ...] and
 * bitshuffle without the transposition, so there it is an upper bound).
 * Printed are medians of several passes, in 10^9 plain bytes per second of CPU
 * time, and calls of malloc, calloc, realloc, posix_memalign and mmap for each
 * chunk once the thread has what it keeps.
 *
 * PATTERN: only lines whose name contains it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench-codec-libraries.h"

#define TOTAL ((size_t)32 << 20)
#define FRAME ((size_t)128 << 10)
#define CUBE ((size_t)2 << 20)
#define PASSES 9

/* ---- counting allocations ------------------------------------------------ */

static unsigned long allocations;

/* glibc's own, under the names it keeps for those who interpose. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
	allocations++;
	return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
	allocations++;
	return __libc_realloc(p, n);
}
int posix_memalign(void **p, size_t align, size_t n)
{
	allocations++;
	*p = __libc_memalign(align, n);
	return *p ? 0 : 12;
}
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	allocations++;
	return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, off);
}

/* ---- what is measured ---------------------------------------------------- */

static const struct bench benches[] = {
	{"shuffle+deflate, frames", {2, 1}, FRAME, own_deflate, 0, 0},
	{"shuffle+deflate, cubes", {2, 1}, CUBE, own_deflate, 0, 0},
	{"deflate, frames", {1}, FRAME, own_deflate, 0, 0},
	{"lzf, frames", {32000}, FRAME, own_lzf, 0, 0},
	{"lzf, cubes", {32000}, CUBE, own_lzf, 0, 0},
	{"shuffle+lzf, frames", {2, 32000}, FRAME, own_lzf, 0, 0},
	{"zstd, frames", {32015}, FRAME, own_zstd, 0, 0},
	{"shuffle+zstd, frames", {2, 32015}, FRAME, own_zstd, 0, 0},
	{"lz4, frames", {32004}, FRAME, own_lz4, 0, 0},
	{"bitshuffle, frames", {32008}, FRAME, NULL, 0, 0},
	{"bitshuffle+lz4, frames", {32008}, FRAME, own_bits_lz4, 0, 2},
	{"bitshuffle+zstd, frames", {32008}, FRAME, own_bits_zstd, 0, 3},
#ifdef WITH_BLOSC
	{"blosc lz4 shuffle, frames", {32001}, FRAME, own_blosc, 0, 1},
	{"blosc lz4 bitshuffle, fr.", {32001}, FRAME, own_blosc, 0, 2},
#endif
#ifdef WITH_SZIP
	{"szip nn, frames", {4}, FRAME, own_szip, 0, 0},
#endif
	{"bzip2, frames", {307}, FRAME, own_bzip2, 0, 0},
	{"nbit 12 of 16, frames", {5}, FRAME, NULL, 0, 0},
	{"scaleoffset, frames", {6}, FRAME, NULL, 0, 0},
	{"fletcher32, frames", {3}, FRAME, NULL, 0, 0},
	{"unshuffle 2, frames", {2}, FRAME, NULL, 2, 0},
	{"unshuffle 2, cubes", {2}, CUBE, NULL, 2, 0},
	{"unshuffle 3, frames", {2}, FRAME, NULL, 3, 0},
	{"unshuffle 4, frames", {2}, FRAME, NULL, 4, 0},
	{"unshuffle 6, frames", {2}, FRAME, NULL, 6, 0},
	{"unshuffle 8, frames", {2}, FRAME, NULL, 8, 0},
	{"unshuffle 12, frames", {2}, FRAME, NULL, 12, 0},
	{"unshuffle 16, frames", {2}, FRAME, NULL, 16, 0},
	{"unshuffle 24, frames", {2}, FRAME, NULL, 24, 0},
	{"unshuffle 100, frames", {2}, FRAME, NULL, 100, 0},
};

static unsigned char *plain, *out, *spare, *stored;
static size_t stored_len[TOTAL / FRAME];

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

static size_t encode_chunk(const struct bench *b, const unsigned char *from,
			   unsigned char *to, size_t room)
{
	size_t n = b->chunk;

	for (unsigned i = 0; i < 3 && b->filters[i]; i++) {
		bool last = i == 2 || !b->filters[i + 1];
		unsigned char *at = last ? to : spare;

		n = b->filters[i] == 3
			    ? add_fletcher32(from, n, at)
			    : encode(b, b->filters[i], from, n, at, room);
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

static double median(double *seconds)
{
	qsort(seconds, PASSES, sizeof *seconds, compare);
	return seconds[PASSES / 2];
}

/* ---- measuring ----------------------------------------------------------- */

struct result {
	double rate, own; /* plain bytes a second; own is 0: no library */
	double ratio;     /* plain bytes for a stored one */
	double allocations;
};

/* The client data that a file would have for this filter. */
static uint32_t params(const struct bench *b, uint32_t id, uint32_t *cd)
{
	uint32_t elem = b->elem ? b->elem : 2, n = (uint32_t)b->chunk / 2;
	const uint32_t nbit[] = {8, 0, n, 1, 2, 0, 12, 0},
		       scale[20] = {2, 0, n, 0, 2},
		       szip[] = {32 | 128, 32, 16, 256},
		       bits[] = {0, 4, 2, 4096, b->mode};
	const struct {
		uint32_t id, n;
		const uint32_t *cd;
	} rows[] = {{2, 1, &elem},
		    {4, 4, szip},
		    {5, 8, nbit},
		    {6, 20, scale},
		    {32008, 5, bits}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].id == id) {
			memcpy(cd, rows[i].cd, rows[i].n * sizeof *cd);
			return rows[i].n;
		}
	return 0;
}

static void make_pipeline(const struct bench *b, struct pipeline *p)
{
	uint32_t cd[CODEC_CD_MAX], n;
	struct error err;

	for (unsigned i = 0; i < 3 && b->filters[i]; i++) {
		n = params(b, b->filters[i], cd);
		if (pipeline_add(p, b->filters[i], NULL, cd, n, 2, &err) < 0)
			die(err.text);
	}
}

static double pass_ours(const struct bench *b, const struct pipeline *p,
			size_t room)
{
	struct error err;
	double start = now();

	for (size_t i = 0; i < TOTAL / b->chunk; i++)
		if (pipeline_decode(p, 0, stored + i * room, stored_len[i],
				    out + i * b->chunk, b->chunk, &err) < 0)
			die(err.text);
	return now() - start;
}

static double pass_own(const struct bench *b, size_t room)
{
	double start = now();

	for (size_t i = 0; i < TOTAL / b->chunk; i++)
		if (!b->own(stored + i * room, stored_len[i],
			    out + i * b->chunk, b->chunk))
			die("the library does not decode it");
	return now() - start;
}

static struct result run(const struct bench *b)
{
	size_t chunks = TOTAL / b->chunk, room = b->chunk * 5 / 4, sum = 0;
	double ours[PASSES], own[PASSES];
	struct result r = {.own = 0};
	struct pipeline p = {0};
	unsigned long before;

	make_pipeline(b, &p);
	for (size_t i = 0; i < chunks; i++) {
		stored_len[i] = encode_chunk(b, plain + i * b->chunk,
					     stored + i * room, room);
		sum += stored_len[i];
	}
	memset(out, 0, TOTAL);
	pass_ours(b, &p, room);
	if (memcmp(out, plain, TOTAL))
		die("decoded bytes differ");
	before = allocations;
	pass_ours(b, &p, room);
	r.allocations = (double)(allocations - before) / (double)chunks;
	for (unsigned pass = 0; pass < PASSES; pass++) {
		ours[pass] = pass_ours(b, &p, room);
		own[pass] = b->own ? pass_own(b, room) : 0;
	}
	r.rate = (double)TOTAL / median(ours);
	if (b->own)
		r.own = (double)TOTAL / median(own);
	r.ratio = (double)TOTAL / (double)sum;
	return r;
}

static void print_json(const struct bench *b, const struct result *r,
		       bool first)
{
	printf("%s{\"codec\": \"%s\", \"chunk\": %zu, "
	       "\"bytes_per_second\": %.0f, \"library\": %.0f, "
	       "\"ratio\": %.3f, \"allocations\": %.3f}",
	       first ? "[" : ",\n ", b->name, b->chunk, r->rate, r->own,
	       r->ratio, r->allocations);
}

static void print_row(const struct bench *b, const struct result *r)
{
	char own[32] = "-", part[32] = "-";

	if (r->own > 0) {
		snprintf(own, sizeof own, "%.2f", r->own / 1e9);
		snprintf(part, sizeof part, "%.2f", r->rate / r->own);
	}
	printf("%-26s %7.2f %8s %6s %7.2f %7.2f\n", b->name, r->rate / 1e9, own,
	       part, r->ratio, r->allocations);
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && !strcmp(argv[1], "--json"), first = true;
	const char *pattern = argc > 1 + json ? argv[1 + json] : "";

	if (argc > 2 + json) {
		fprintf(stderr, "usage: bench-codec [--json] [PATTERN]\n");
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
		printf("%-26s %7s %8s %6s %7s %7s\n", "one core", "GB/s",
		       "library", "of it", "ratio", "allocs");
	for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) {
		const struct bench *b = &benches[i];
		struct result r;

		if (!strstr(b->name, pattern) ||
		    !codec_by_id(b->filters[b->filters[1] ? 1 : 0]))
			continue;
		r = run(b);
		if (json)
			print_json(b, &r, first);
		else
			print_row(b, &r);
		first = false;
		fflush(stdout);
	}
	if (json)
		printf(first ? "[]\n" : "]\n");
	return 0;
}
