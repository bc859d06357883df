/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes how many bytes members take in a tar before they are written. */

/*
 * The headers that the tar writer makes are counted, so the rule for an extended header
 * is in one place only.  Nearly all members need none: while owners stay the same, and
 * name, size and time are such that a ustar header surely holds them, the header is one
 * block.
 */
#include "shards/sizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shards/tar_entry.h"
#include "shards/ustar.h"

#define BLOCK ((uint64_t)USTAR_BLOCK)
/* A file of this many bytes or more may need an extended header. */
#define LARGE (UINT64_C(1) << 33)
#define NAME_SURE 100

struct shards_sizer {
	bool numeric_owner;
	struct tar_writer *writer;
	uint64_t count;
	/* Attributes for which the header is one block; mode 0: not known yet. */
	struct feed_attr plain;
};

static int sizer_count_bytes(void *ctx, const void *bytes, size_t n, bool data,
			     struct error *err)
{
	struct shards_sizer *s = ctx;

	(void)bytes, (void)data, (void)err;
	s->count += n;
	return 0;
}

int shards_sizer_new(struct shards_sizer **out, bool numeric_owner,
		     struct error *err)
{
	struct shards_sizer *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the sizes of a tar's members");
	s->numeric_owner = numeric_owner;
	r = tar_writer_new(&s->writer, numeric_owner, sizer_count_bytes, s,
			   err);
	if (r < 0) {
		free(s);
		return r;
	}
	*out = s;
	return 0;
}

void shards_sizer_free(struct shards_sizer *s)
{
	if (!s)
		return;
	tar_writer_free(s->writer);
	free(s);
}

/* Measure a large member with a writer of its own, because the writer is told a size
 * whose data never follows. */
static int sizer_measure_large(struct shards_sizer *s,
			       const struct feed_unit *u, struct error *err)
{
	struct tar_writer *w;
	int r = tar_writer_new(&w, s->numeric_owner, sizer_count_bytes, s, err);
	uint64_t header;

	if (r < 0)
		return r;
	s->count = 0;
	r = tar_writer_begin(w, u, err);
	header = s->count;
	tar_writer_free(w);
	s->count = header;
	return r;
}

/* Set s->count to the bytes of the headers.  The size of a member that is not large is
 * in the same field whatever it is, so the writer is given size 0 and no data has to follow. */
static int sizer_measure(struct shards_sizer *s, const char *path,
			 const struct feed_attr *a, struct error *err)
{
	struct feed_unit u = {
		.path = path, .attr = *a, .first = true, .last = true};
	int r;

	if (a->size >= LARGE)
		return sizer_measure_large(s, &u, err);
	u.attr.size = 0;
	s->count = 0;
	r = tar_writer_begin(s->writer, &u, err);
	return r < 0 ? r : tar_writer_end(s->writer, err);
}

static bool sizer_is_plain(const struct shards_sizer *s, const char *path,
			   const struct feed_attr *a)
{
	return s->plain.mode == a->mode && s->plain.uid == a->uid &&
	       s->plain.gid == a->gid && a->mtime >= 0 &&
	       a->mtime < INT32_MAX && !a->mtime_ns && a->size < LARGE &&
	       strnlen(path, NAME_SURE + 1) <= NAME_SURE;
}

int shards_sizer_member(struct shards_sizer *s, const char *path,
			const struct feed_attr *a, uint64_t *size,
			struct error *err)
{
	uint64_t data = ustar_padded(a->size);
	int r;

	if (sizer_is_plain(s, path, a)) {
		*size = BLOCK + data;
		return 0;
	}
	r = sizer_measure(s, path, a, err);
	if (r < 0)
		return r;
	if (s->count == BLOCK)
		s->plain = *a;
	*size = s->count + data;
	return 0;
}
