/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an archive's bytes are: in a file, in a decoded stream, or in a computed
 * file. */
#include "stream/backing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "stream/stream.h"
#include "tree/files.h"

int backing_file(struct backing *out, struct handles *h, struct pinner *p,
		 uint32_t file, uint64_t offset, struct error *err)
{
	struct handle pin;
	int r = handles_get(h, file, &pin, err);

	if (r < 0)
		return r;
	*out = (struct backing){
		.handles = h, .pinner = p, .file = file, .pos = offset};
	if (offset <= pin.size)
		out->size = pin.size - offset;
	else
		r = error_set(err, -EINVAL,
			      "%s has %llu bytes, offset %llu is past its end",
			      handles_name(h, file),
			      (unsigned long long)pin.size,
			      (unsigned long long)offset);
	handles_put(h, &pin);
	return r;
}

struct backing backing_part(const struct backing *b, uint64_t off, uint64_t len)
{
	struct backing part = *b;

	off = min_u64(off, b->size);
	part.pos += off;
	part.size = min_u64(len, b->size - off);
	return part;
}

/* Map bytes of a stream.  Windows follow each other without gaps, and the backing
 * ends within them. */
static uint64_t backing_map_stream(struct stream *s, uint64_t at, uint64_t len,
				   struct plan *p)
{
	uint64_t n, done = 0;
	const struct stream_point *point = stream_points(s, &n);

	while (done < len && plan_open(p)) {
		uint64_t i = stream_window_at(s, at + done);
		uint64_t skip = at + done - point[i].out;
		uint64_t take = min_u64(len - done, point[i].size - skip);

		take = plan_chunk(p, stream_set(s), i, skip, take);
		if (!take)
			break;
		done += take;
	}
	return done;
}

/* Append an extent in memory.  Bytes in the other plan's scratch area are copied,
 * because they go with that plan. */
static uint64_t backing_append_mem(struct plan *p, const struct plan *from,
				   const struct extent *x)
{
	uintptr_t at = (uintptr_t)x->u.mem.data;
	uintptr_t scratch = (uintptr_t)from->scratch;

	return at >= scratch && at < scratch + sizeof from->scratch
		       ? plan_copy(p, x->u.mem.data, x->len)
		       : plan_mem(p, x->u.mem.data, x->len);
}

/* Append the extents of another plan.  Return the bytes that were taken. */
static uint64_t backing_append_plan(struct plan *p, const struct plan *from)
{
	uint64_t done = 0;

	for (unsigned i = 0; i < from->n; i++) {
		const struct extent *x = &from->ext[i];
		uint64_t took = 0;

		if (x->kind == EXTENT_FILE)
			took = plan_file(p, x->u.file.file, x->u.file.pos,
					 x->len);
		else if (x->kind == EXTENT_CHUNK)
			took = plan_chunk(p, x->u.chunk.set, x->u.chunk.index,
					  x->u.chunk.skip, x->len);
		else if (x->kind == EXTENT_FILL)
			took = plan_fill(p, x->u.fill.of, x->u.fill.phase,
					 x->len);
		else if (x->kind == EXTENT_MEM)
			took = backing_append_mem(p, from, x);
		done += took;
		if (took < x->len)
			break;
	}
	return done;
}

/* Map bytes of a computed file by a plan of its own, which ends where the file ends. */
static uint64_t backing_map_files(const struct backing *b, uint64_t at,
				  uint64_t len, struct plan *p)
{
	struct plan part;

	plan_init(&part, min_u64(len, p->want - p->have));
	if (b->files->ops->map(b->files, b->node, at, &part, NULL) < 0)
		return 0;
	return backing_append_plan(p, &part);
}

/* Return the position to which bytes past the end of the backing are mapped.  It
 * lies past any file: the backing's own file may go on after the end of the backing. */
static uint64_t backing_past_end(const struct backing *b, uint64_t off)
{
	uint64_t at = 0;

	if (b->stream || b->files || add_overflows(b->pos, off, &at) ||
	    at >= PLAN_PAST)
		return PLAN_PAST;
	return PLAN_PAST + at;
}

uint64_t backing_map(const struct backing *b, uint64_t off, uint64_t len,
		     struct plan *p)
{
	uint64_t there = off < b->size ? min_u64(len, b->size - off) : 0;
	uint64_t done = 0;

	if (there && b->stream)
		done = backing_map_stream(b->stream, b->pos + off, there, p);
	else if (there && b->files)
		done = backing_map_files(b, b->pos + off, there, p);
	else if (there)
		done = plan_file(p, b->file, b->pos + off, there);
	if (done == there && len > there)
		done += plan_file(p, b->file, backing_past_end(b, off + there),
				  len - there);
	return done;
}

/* ---- reading ------------------------------------------------------------- */

static int backing_copy_span(const struct backing *b, const struct span *s,
			     unsigned char *to, struct error *err)
{
	switch (s->kind) {
	case SPAN_MEM:
		memcpy(to, s->mem, s->len);
		return 0;
	case SPAN_FD:
		return handles_read(b->handles, s->handle.file, s->pos, to,
				    s->len, err);
	case SPAN_FILL:
		for (size_t i = 0; i < s->len; i++)
			to[i] = ((const unsigned char *)
					 s->fill.pattern)[(s->phase + i) %
							  s->fill.width];
		return 0;
	}
	return error_set(err, -EIO, "%s: bytes of an unknown kind",
			 backing_name(b));
}

static int backing_copy_extent(const struct backing *b, const struct extent *x,
			       unsigned char *to, struct error *err)
{
	struct span span;
	int r = b->pinner->pin(b->pinner, x, &span, err);

	if (r < 0)
		return r;
	r = backing_copy_span(b, &span, to, err);
	b->pinner->unpin(b->pinner, &span);
	return r;
}

static int backing_read_mapped(const struct backing *b, uint64_t off,
			       unsigned char *to, size_t len, struct error *err)
{
	struct plan p;
	int r = 0;

	while (len > 0 && r == 0) {
		plan_init(&p, len);
		if (!backing_map(b, off, len, &p))
			return error_set(err, -EIO,
					 "%s: a read cannot be mapped",
					 backing_name(b));
		for (unsigned i = 0; i < p.n && r == 0; i++) {
			r = backing_copy_extent(b, &p.ext[i], to, err);
			to += p.ext[i].len;
		}
		off += p.have;
		len -= p.have;
	}
	return r;
}

int backing_read(const struct backing *b, uint64_t off, void *to, size_t len,
		 struct error *err)
{
	if (len > b->size || off > b->size - len)
		return error_set(err, -EIO,
				 "%zu bytes at %llu lie beyond the end of %s "
				 "(%llu bytes): truncated?",
				 len, (unsigned long long)off, backing_name(b),
				 (unsigned long long)b->size);
	if (backing_is_plain(b))
		return handles_read(b->handles, b->file, b->pos + off, to, len,
				    err);
	return backing_read_mapped(b, off, to, len, err);
}

bool backing_origin(const struct backing *b, char *text, size_t n)
{
	const struct stream *s = b->stream;
	int len;

	if (b->files)
		return false;
	len = snprintf(text, n, "bytes %llu+%llu%s%s",
		       (unsigned long long)b->pos, (unsigned long long)b->size,
		       s ? " of what is decoded as " : "",
		       s ? stream_format_name(stream_format_of(s)) : "");
	if (len < 0 || (size_t)len + 1 >= n)
		return false;
	if (!s)
		return true;
	text[len] = ' ';
	return backing_origin(stream_from(s), text + len + 1,
			      n - (size_t)len - 1);
}

const char *backing_name(const struct backing *b)
{
	return handles_name(b->handles, b->file);
}
