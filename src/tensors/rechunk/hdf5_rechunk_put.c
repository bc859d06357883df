/* SPDX-License-Identifier: BSD-2-Clause */
/* One new chunk: filled, encoded, written, and read again if that is wanted. */
#include "tensors/rechunk/hdf5_rechunk_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

void rechunk_fill(unsigned char *to, size_t n, const struct fill *f)
{
	const unsigned char *pattern = f->pattern;
	size_t have = min_u64(f->width, n);

	if (f->width <= 1) {
		memset(to, f->width ? pattern[0] : 0, n);
		return;
	}
	memcpy(to, pattern, have);
	while (have < n) {
		size_t more = min_u64(have, n - have);

		memcpy(to + have, to, more);
		have += more;
	}
}

/* ---- encoding ------------------------------------------------------------ */

/* Where it was before it was encoded, for that counts as its memory. */
static int keep(struct buf **data, const void *stored, size_t len,
		struct error *err)
{
	if (len > (*data)->size) {
		struct buf *more = buf_new(len, NULL);

		if (!more)
			return no_memory(err);
		buf_unref(*data);
		*data = more;
	}
	memcpy((*data)->data, stored, len);
	return 0;
}

static int encode(const struct rechunk *w, struct buf **data, size_t *len,
		  uint32_t *mask, struct error *err)
{
	size_t size = (*data)->size;
	struct buf *room = buf_new(pipeline_bound(&w->pipeline, size), NULL);
	int r;

	if (!room)
		return no_memory(err);
	r = pipeline_encode(&w->pipeline, (*data)->data, size, room->data,
			    room->size, len, mask, err);
	if (r == 0 && *len > BUILD_CHUNK_MAX)
		r = error_set(err, -EINVAL,
			      "a chunk takes %zu bytes; HDF5 has less than 4 "
			      "GiB",
			      *len);
	if (r == 0)
		r = keep(data, room->data, *len, err);
	buf_unref(room);
	return r;
}

int rechunk_encode(const struct rechunk *w, struct buf **data,
		   struct rechunk_encoded *is, struct error *err)
{
	size_t len = (*data)->size;
	int r = 0;

	if (w->o->verify)
		is->hash = XXH3_128bits((*data)->data, len);
	if (w->pipeline.n)
		r = encode(w, data, &len, &is->chunk.mask, err);
	is->chunk.len = (uint32_t)len;
	return r;
}

/* ---- writing ------------------------------------------------------------- */

/* What was written, once more: read, decoded, compared. */
static int check(const struct rechunk *w, const struct rechunk_encoded *is,
		 struct error *err)
{
	const struct build_chunk *c = &is->chunk;
	size_t size = w->grid.chunk_bytes;
	cleanup_free unsigned char *back = malloc(size), *raw = malloc(c->len);
	ssize_t n;
	int r;

	if (!back || !raw)
		return no_memory(err);
	n = file_read(out_fd(w->out), c->pos, raw, c->len);
	if (n < 0)
		return error_errno(err, (int)n, "cannot read '%s' again",
				   w->o->path);
	r = pipeline_decode(&w->pipeline, c->mask, raw, (size_t)n, back, size,
			    err);
	if (r < 0 || !XXH128_isEqual(XXH3_128bits(back, size), is->hash))
		return error_set(err, -EIO,
				 "'%s': chunk %llu is not what was written: "
				 "the disk or the memory of this machine is "
				 "bad",
				 w->o->path, (unsigned long long)c->number);
	return 0;
}

int rechunk_write(struct rechunk *w, const void *stored,
		  const struct rechunk_encoded *is, struct error *err)
{
	int r = build_put_at(w->build, stored, is->chunk.len, is->chunk.pos,
			     err);

	return r == 0 && w->o->verify ? check(w, is, err) : r;
}
