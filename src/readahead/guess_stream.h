/* SPDX-License-Identifier: BSD-2-Clause */
/* Notice who reads file after file, and say which ones come next. */
#ifndef READAHEAD_GUESS_STREAM_H
#define READAHEAD_GUESS_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct streams;
struct streams *streams_new(void);
void streams_free(struct streams *s);

/* Files first, first + step, ...: `n` of them, but for the one numbered `mark`, which is
 * left for the reader to ask for. */
struct stream_range {
	uint64_t first;
	int64_t step;
	unsigned n, mark;
};
/* A file was read from its beginning.  True: it goes on a stream, and *out is probably next,
 * or nothing yet (n is 0).  Never blocks. */
bool streams_note(struct streams *s, uint64_t ino, struct stream_range *out);
/* Return true if a stream has probably just passed this file, or will read it soon.  Takes
 * no lock. */
bool streams_has(const struct streams *s, uint64_t ino);
/* Return true if a stream has probably passed this file already.  Takes no lock. */
bool streams_passed(const struct streams *s, uint64_t ino);

#endif
