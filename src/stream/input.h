/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: bytes that are read strictly forward, for code that scans an archive. */
#ifndef STREAM_INPUT_H
#define STREAM_INPUT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "stream/backing.h"

/*
 * A reader that only goes forward.  There are two implementations: over a backing,
 * which can be read at any offset (skipping costs nothing), and over a stream that is
 * being decoded for the first time (stream.h).  Not thread-safe.
 */
struct input;
struct input_ops {
	/* Read up to n bytes.  Return their number, which is less than n only at the
	 * end, 0 at the end, or -errno: from there on nothing can be read. */
	ssize_t (*read)(struct input *in, void *to, size_t n,
			struct error *err);
	/* Pass over n bytes.  Return how many there were (less than n only at the
	 * end), or -errno. */
	int64_t (*skip)(struct input *in, uint64_t n, struct error *err);
	void (*free)(struct input *in);
};
struct input {
	const struct input_ops *ops;
	/* Bytes read or passed so far: the offset of the next byte. */
	uint64_t at;
};
static inline ssize_t input_read(struct input *in, void *to, size_t n,
				 struct error *err)
{
	return in->ops->read(in, to, n, err);
}
static inline int64_t input_skip(struct input *in, uint64_t n,
				 struct error *err)
{
	return in->ops->skip(in, n, err);
}
/* `in` may be NULL. */
static inline void input_free(struct input *in)
{
	if (in)
		in->ops->free(in);
}

/* Make an input over a backing, of which a copy is made.  It reads ahead a little,
 * and more where nothing is skipped.  Return 0 or -ENOMEM. */
int input_of_backing(struct input **out, const struct backing *b,
		     struct error *err);

#endif
