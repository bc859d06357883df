/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices readers that read file after file, and tells which come next. */
#ifndef READAHEAD_GUESS_STREAM_H
#define READAHEAD_GUESS_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct streams;
struct streams *streams_new(void);
void streams_free(struct streams *s);

/* The files first, first + step, ...: `n` of them without the one numbered `mark`, which
 * is left for the reader to ask for. */
struct stream_range {
	uint64_t first;
	int64_t step;
	unsigned n, mark;
};
/* Note that a file was read from its beginning.  Returns true if it continues a stream;
 * then *out has the files that are probably next, if any (n may be 0).  Never blocks. */
bool streams_note(struct streams *s, uint64_t ino, struct stream_range *out);
/* Return true if a stream has probably just passed this file, or will read it soon.
 * Takes no lock. */
bool streams_has(const struct streams *s, uint64_t ino);
/* Return true if a stream has probably passed this file already.  Takes no lock. */
bool streams_passed(const struct streams *s, uint64_t ino);

#endif
