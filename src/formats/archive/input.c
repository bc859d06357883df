/* SPDX-License-Identifier: BSD-2-Clause */
/* An input whose first bytes were read before. */
#include "formats/archive/archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

struct again {
	struct input input;
	struct input *in; /* borrowed */
	size_t n;
	unsigned char head[];
};

static ssize_t again_read(struct input *input, void *to, size_t n,
			  struct error *err)
{
	struct again *a = (struct again *)input;
	size_t done = 0;
	ssize_t r;

	if (input->at < a->n) {
		done = min_u64(n, a->n - input->at);
		memcpy(to, a->head + input->at, done);
		input->at += done;
	}
	if (done == n)
		return (ssize_t)n;
	r = input_read(a->in, (unsigned char *)to + done, n - done, err);
	if (r < 0) /* return the bytes now, the error with the next call */
		return done ? (ssize_t)done : r;
	input->at += (uint64_t)r;
	return (ssize_t)done + r;
}

static int64_t again_skip(struct input *input, uint64_t n, struct error *err)
{
	struct again *a = (struct again *)input;
	uint64_t done = 0;
	int64_t r = 0;

	if (input->at < a->n) {
		done = min_u64(n, a->n - input->at);
		input->at += done;
	}
	if (done < n)
		r = input_skip(a->in, n - done, err);
	if (r < 0)
		return done ? (int64_t)done : r;
	input->at += (uint64_t)r;
	return (int64_t)done + r;
}

static void again_free(struct input *input)
{
	free(input);
}

static const struct input_ops again_ops = {
	.read = again_read, .skip = again_skip, .free = again_free};

int archive_input_again(struct input **out, const void *head, size_t n,
			struct input *in, struct error *err)
{
	struct again *a = malloc(sizeof *a + n);

	*out = NULL;
	if (!a)
		return error_no_memory(err, "the first bytes of the stream");
	a->input = (struct input){&again_ops, 0};
	a->in = in;
	a->n = n;
	memcpy(a->head, head, n);
	*out = &a->input;
	return 0;
}
