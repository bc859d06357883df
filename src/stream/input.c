/* SPDX-License-Identifier: BSD-2-Clause */
/* A forward reader over a backing, which adapts how far it reads ahead. */
/*
 * Headers of small members are close together: there it is cheapest to read everything
 * in large pieces.  Large members are jumped over: there everything after a header is
 * read in vain.  Which it will be is not known beforehand, so the piece grows while
 * reading continues where the last piece ended, or a little after it, and is small
 * again after a jump.
 */
#include "stream/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

enum {
	PIECE_MIN = 4096,
	PIECE_MAX = 256 << 10,
	/* A shorter jump costs more than reading the skipped bytes. */
	NEAR = 64 << 10,
};

struct backing_input {
	struct input in;
	struct backing b;
	uint64_t from; /* offset of the buffer's first byte */
	size_t have;
	size_t piece; /* bytes to read next */
	unsigned char buf[PIECE_MAX];
};

/* Return the bytes of the buffer that were not read yet. */
static size_t input_buffered(const struct backing_input *x)
{
	return (size_t)(x->from + x->have -
			min_u64(x->from + x->have, x->in.at));
}

static int input_fill_buffer(struct backing_input *x, struct error *err)
{
	uint64_t gap = x->in.at - (x->from + x->have);
	size_t n;
	int r;

	if (gap >= NEAR)
		x->piece = PIECE_MIN;
	else if (x->piece < PIECE_MAX)
		x->piece *= 2;
	n = (size_t)min_u64(x->piece, x->b.size - x->in.at);
	r = backing_read(&x->b, x->in.at, x->buf, n, err);
	x->from = x->in.at;
	x->have = r < 0 ? 0 : n;
	return r;
}

static ssize_t input_backing_read(struct input *in, void *to, size_t n,
				  struct error *err)
{
	struct backing_input *x = (struct backing_input *)in;
	size_t done = 0;

	while (done < n && in->at < x->b.size) {
		size_t take = input_buffered(x);
		int r = take ? 0 : input_fill_buffer(x, err);

		if (r < 0)
			return r;
		take = (size_t)min_u64(input_buffered(x), n - done);
		memcpy((char *)to + done, x->buf + (in->at - x->from), take);
		in->at += take;
		done += take;
	}
	return (ssize_t)done;
}

static int64_t input_backing_skip(struct input *in, uint64_t n,
				  struct error *err)
{
	struct backing_input *x = (struct backing_input *)in;
	uint64_t there = x->b.size - in->at;

	(void)err;
	n = min_u64(n, there);
	in->at += n;
	return (int64_t)n;
}

static void input_backing_free(struct input *in)
{
	free(in);
}

int input_of_backing(struct input **out, const struct backing *b,
		     struct error *err)
{
	static const struct input_ops ops = {
		.read = input_backing_read,
		.skip = input_backing_skip,
		.free = input_backing_free,
	};
	struct backing_input *x = malloc(sizeof *x);

	*out = NULL;
	if (!x)
		return error_no_memory(err, "reading an archive");
	x->in = (struct input){&ops, 0};
	x->b = *b;
	x->from = x->have = 0;
	x->piece = PIECE_MIN;
	*out = &x->in;
	return 0;
}
