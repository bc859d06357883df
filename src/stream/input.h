/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: bytes that come one after the other, for those who scan them. */
#ifndef STREAM_INPUT_H
#define STREAM_INPUT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "stream/backing.h"

/*
 * A reader that only goes forward.  Two implementations: over a backing whose
 * bytes can be had anywhere (skipping costs nothing), and over a stream that is
 * being decoded for the first time (stream.h).  Not thread-safe.
 */
struct input;
struct input_ops {
	/* Up to n bytes; fewer only at the end; 0 at the end; -errno with a
	 * sentence: from here on nothing can be had. */
	ssize_t (*read)(struct input *in, void *to, size_t n,
			struct error *err);
	/* Pass over n bytes; how many there were (fewer only at the end), or
	 * -errno. */
	int64_t (*skip)(struct input *in, uint64_t n, struct error *err);
	void (*free)(struct input *in);
};
struct input {
	const struct input_ops *ops;
	uint64_t at; /* bytes passed so far: the offset of the next one */
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

/* Over a backing; reads ahead a little, more where nothing is skipped. */
int input_of_backing(struct input **out, const struct backing *b,
		     struct error *err);

#endif
