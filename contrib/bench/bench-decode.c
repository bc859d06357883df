/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast cores decode gzip+shuffle chunks, with nothing else in the way. */

/*
 * The limit that reading `array.npy` is measured against: the same stored
 * chunks, held in memory, through the same pipeline code, into a buffer that
 * stays in place.  No file is read, nothing is cached, nobody waits.
 *
 * With --fresh each chunk gets memory of its own, which nobody had before, and which is
 * kept until all are decoded, as in a cache that fills (base/buf.c).
 *
 * FLAT holds the stored chunks one after the other, INDEX has a line
 * "OFFSET LENGTH MASK" for each (contrib/bench/run writes both).
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "codec/pipeline.h"

struct stored {
	unsigned long long pos, len;
	unsigned mask;
};
struct work {
	struct pipeline pipeline;
	unsigned char *flat;
	size_t flat_len;
	struct stored *chunk;
	size_t n, room, chunk_bytes;
	unsigned char *fresh; /* or NULL */
	_Atomic size_t next;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench-decode: %s: %s\n", what, why);
	exit(1);
}

static void load_flat(struct work *w, const char *path)
{
	FILE *f = fopen(path, "rb");
	long n = 0;

	if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) <= 0)
		die(path, strerror(errno));
	rewind(f);
	w->flat_len = (size_t)n;
	w->flat = malloc(w->flat_len);
	if (!w->flat || fread(w->flat, 1, w->flat_len, f) != w->flat_len)
		die(path, "cannot be read into memory");
	fclose(f);
}

static void load_index(struct work *w, const char *path)
{
	FILE *f = fopen(path, "r");
	struct stored c;

	if (!f)
		die(path, strerror(errno));
	while (fscanf(f, "%llu %llu %u", &c.pos, &c.len, &c.mask) == 3) {
		if (c.pos > w->flat_len || c.len > w->flat_len - c.pos)
			die(path, "a chunk lies outside the flat file");
		if (w->n == w->room) {
			w->room = w->room ? w->room * 2 : 1024;
			w->chunk = realloc(w->chunk, w->room * sizeof c);
			if (!w->chunk)
				die(path, "out of memory");
		}
		w->chunk[w->n++] = c;
	}
	fclose(f);
	if (!w->n)
		die(path, "no chunks");
}

static void *decode(void *arg)
{
	struct work *w = arg;
	unsigned char *out = malloc(w->chunk_bytes);
	struct error err = {0};
	size_t i;

	if (!out)
		die("buffer", "out of memory");
	memset(out, 0, w->chunk_bytes);
	while ((i = atomic_fetch_add(&w->next, 1)) < w->n) {
		const struct stored *c = &w->chunk[i];
		unsigned char *to =
			w->fresh ? w->fresh + i * w->chunk_bytes : out;

		if (pipeline_decode(&w->pipeline, c->mask, w->flat + c->pos,
				    c->len, to, w->chunk_bytes, &err) < 0)
			die("chunk", err.text);
	}
	free(out);
	return NULL;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void take_fresh(struct work *w)
{
	void *p = mmap(NULL, w->n * w->chunk_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("buffers", strerror(errno));
	if (w->chunk_bytes >= (size_t)2 << 20)
		madvise(p, w->n * w->chunk_bytes, MADV_HUGEPAGE);
	w->fresh = p;
}

/* Decoded MB (10^6 bytes) a second. */
static double decode_all(struct work *w, unsigned threads)
{
	pthread_t *t = calloc(threads, sizeof *t);
	double start = now();

	w->next = 0;
	for (unsigned i = 0; i < threads; i++)
		if (!t || pthread_create(&t[i], NULL, decode, w))
			die("thread", "cannot be started");
	for (unsigned i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	free(t);
	return (double)w->n * (double)w->chunk_bytes / (now() - start) / 1e6;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"threads", required_argument, NULL, 't'},
		{"rounds", required_argument, NULL, 'r'},
		{"chunk-bytes", required_argument, NULL, 'c'},
		{"elem", required_argument, NULL, 'e'},
		{"fresh", no_argument, NULL, 'f'},
		{NULL, 0, NULL, 0},
	};
	unsigned long threads = 1, rounds = 5, elem = 2;
	struct work w = {.chunk_bytes = 131072};
	struct error err = {0};
	uint32_t level = 4, width;
	bool fresh = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't')
			threads = strtoul(optarg, NULL, 10);
		else if (c == 'r')
			rounds = strtoul(optarg, NULL, 10);
		else if (c == 'c')
			w.chunk_bytes = strtoul(optarg, NULL, 10);
		else if (c == 'e')
			elem = strtoul(optarg, NULL, 10);
		else if (c == 'f')
			fresh = true;
		else
			break;
	}
	if (c != -1 || argc - optind != 2 || threads < 1 || threads > 1024) {
		fputs("Usage: bench-decode [--threads=N] [--rounds=N] "
		      "[--chunk-bytes=N] [--elem=N] [--fresh] FLAT INDEX\n",
		      stderr);
		return 2;
	}
	width = (uint32_t)elem;
	if (pipeline_add(&w.pipeline, 2, "shuffle", &width, 1, width, &err) ||
	    pipeline_add(&w.pipeline, 1, "deflate", &level, 1, width, &err))
		die("pipeline", err.text);
	load_flat(&w, argv[optind]);
	load_index(&w, argv[optind + 1]);
	for (unsigned long r = 0; r < rounds; r++) {
		if (fresh)
			take_fresh(&w);
		printf("%.1f\n", decode_all(&w, (unsigned)threads));
		if (fresh)
			munmap(w.fresh, w.n * w.chunk_bytes);
	}
	free(w.chunk);
	free(w.flat);
	return 0;
}
