/* SPDX-License-Identifier: BSD-2-Clause */
/* How long copies of boxes take; contrib/bench/copies asks. */
/*
 * Usage: bench-copies <REQUESTS
 *
 * A request is a line: which way, how often, the bytes of an element, the bytes of both
 * arrays, and for each axis of the box the elements and the steps in bytes, out and in:
 *
 *	ours|runs|memcpy|check TIMES LEN OUT IN  N STEP STEP [N STEP STEP...]
 *
 * Answered is the CPU time of one copy in seconds: by `copy_box`; by one memcpy for
 * each run of the innermost axes; by one memcpy of as many bytes; or for `check` whether
 * the first two agree.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/copies.h"

struct request {
	char way[16];
	unsigned times, rank;
	size_t len, out, in, bytes;
	struct copy_axis axes[COPY_AXES_MAX];
};

static unsigned char *out, *in;
static size_t out_size, in_size;

static void die(const char *what)
{
	fprintf(stderr, "bench-copies: %s\n", what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void room(unsigned char **p, size_t *have, size_t want)
{
	if (want <= *have)
		return;
	free(*p);
	*p = malloc(want);
	if (!*p)
		die("out of memory");
	for (size_t i = 0; i < want; i++)
		(*p)[i] = (unsigned char)(i * 2654435761u >> 13);
	*have = want;
}

/* One call a run: not inlined, of a length that is not known. */
static void *(*volatile move)(void *, const void *, size_t) = memcpy;

static void copy_runs(const struct copy_axis *a, unsigned rank, size_t len,
		      unsigned char *to, const unsigned char *from)
{
	if (!rank)
		move(to, from, len);
	else if (rank == 1 && a->out == len && a->in == len)
		move(to, from, a->n * len);
	else
		for (size_t i = 0; i < a->n; i++)
			copy_runs(a + 1, rank - 1, len, to + i * a->out,
				  from + i * a->in);
}

static void copy(const struct request *r)
{
	if (!strcmp(r->way, "ours"))
		copy_box(out, in, r->axes, r->rank, r->len);
	else if (!strcmp(r->way, "runs"))
		copy_runs(r->axes, r->rank, r->len, out, in);
	else
		move(out, in, r->bytes);
}

static void check(struct request *r)
{
	unsigned char *want = malloc(r->out);

	if (!want)
		die("out of memory");
	strcpy(r->way, "runs");
	memset(out, 0, r->out);
	copy(r);
	memcpy(want, out, r->out);
	strcpy(r->way, "ours");
	memset(out, 0, r->out);
	copy(r);
	puts(memcmp(want, out, r->out) ? "differs" : "same");
	free(want);
}

static void answer(struct request *r)
{
	double start;

	room(&out, &out_size, r->out);
	room(&in, &in_size, r->in);
	if (!strcmp(r->way, "check")) {
		check(r);
		return;
	}
	copy(r);
	start = now();
	for (unsigned i = 0; i < r->times; i++)
		copy(r);
	printf("%.9f\n", (now() - start) / r->times);
}

static bool parse(const char *line, struct request *r)
{
	int used;

	if (sscanf(line, "%15s %u %zu %zu %zu%n", r->way, &r->times, &r->len,
		   &r->out, &r->in, &used) != 5)
		return false;
	r->bytes = r->len;
	for (r->rank = 0; r->rank < COPY_AXES_MAX; r->rank++) {
		struct copy_axis *a = &r->axes[r->rank];

		line += used;
		if (sscanf(line, "%zu %zu %zu%n", &a->n, &a->out, &a->in,
			   &used) != 3)
			break;
		r->bytes *= a->n;
	}
	return r->times && r->bytes <= r->out && r->bytes <= r->in;
}

int main(void)
{
	static struct request r;
	char line[2048];

	while (fgets(line, sizeof line, stdin)) {
		if (!parse(line, &r))
			die("not understood");
		answer(&r);
		fflush(stdout);
	}
	free(out);
	free(in);
	return 0;
}
