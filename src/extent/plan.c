/* SPDX-License-Identifier: BSD-2-Clause */
/* The extents of a file window: append, merge neighbours, print. */
#include "extent/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "extent/handles.h"

/*
 * A plan is a list without gaps: extent i begins where i - 1 ended.  So after an append
 * that did not fit, no other one may succeed.  `full` ensures that, whether or not the
 * caller looks at the returned number.
 */

void plan_init(struct plan *p, uint64_t want)
{
	p->want = want;
	p->have = 0;
	p->n = 0;
	p->scratch_used = 0;
	p->full = false;
	p->takes_strips = false;
	p->has_strips = false;
}

static struct extent *plan_last(struct plan *p, enum extent_kind kind)
{
	if (p->n == 0 || p->ext[p->n - 1].kind != kind)
		return NULL;
	return &p->ext[p->n - 1];
}

/* Return how many of `len` bytes the window still wants; 0 when nothing may follow. */
static uint64_t plan_room(const struct plan *p, uint64_t len)
{
	return p->full ? 0 : min_u64(len, p->want - p->have);
}

static uint64_t plan_grow(struct plan *p, struct extent *x, uint64_t len)
{
	x->len += len;
	p->have += len;
	return len;
}

/* Append an extent of `len` > 0 bytes and return it, or return NULL if there is no
 * room. */
static struct extent *plan_append(struct plan *p, enum extent_kind kind,
				  uint64_t len)
{
	struct extent *x;

	if (p->n == PLAN_MAX) {
		p->full = true;
		return NULL;
	}
	x = &p->ext[p->n++];
	memset(x, 0, sizeof *x);
	x->kind = kind;
	plan_grow(p, x, len);
	return x;
}

uint64_t plan_file(struct plan *p, uint32_t file, uint64_t pos, uint64_t len)
{
	struct extent *x = plan_last(p, EXTENT_FILE);

	len = plan_room(p, len);
	if (len == 0)
		return 0;
	if (x && x->u.file.file == file && x->u.file.pos + x->len == pos)
		return plan_grow(p, x, len);
	x = plan_append(p, EXTENT_FILE, len);
	if (!x)
		return 0;
	x->u.file.file = file;
	x->u.file.pos = pos;
	return len;
}

int plan_say_past(const char *path, uint64_t size, uint64_t pos, uint64_t len,
		  struct error *err)
{
	uint64_t end = UINT64_MAX;
	bool unknown = pos == PLAN_PAST;

	if (pos >= PLAN_PAST)
		pos -= PLAN_PAST;
	if (unknown || add_overflows(pos, len, &end) || end <= size ||
	    end >= PLAN_PAST)
		return error_set(err, -EIO,
				 "%s: the data lies beyond the end of the "
				 "object that should have it: truncated?",
				 path);
	return error_set(err, -EIO,
			 "%s is %llu bytes long, but its data extends to byte "
			 "%llu: truncated?",
			 path, (unsigned long long)size,
			 (unsigned long long)end);
}

uint64_t plan_slice(struct plan *p, struct chunk_set *set, uint64_t index,
		    uint32_t slice, uint64_t skip, uint64_t len)
{
	struct extent *x = plan_last(p, EXTENT_CHUNK);

	len = plan_room(p, len);
	if (len == 0)
		return 0;
	if (x && x->u.chunk.set == set && x->u.chunk.index == index &&
	    !x->u.chunk.rows && x->u.chunk.slice == slice &&
	    x->u.chunk.skip + x->len == skip)
		return plan_grow(p, x, len);
	x = plan_append(p, EXTENT_CHUNK, len);
	if (!x)
		return 0;
	x->u.chunk.set = set;
	x->u.chunk.index = index;
	x->u.chunk.skip = skip;
	x->u.chunk.slice = slice;
	return len;
}

uint64_t plan_chunk(struct plan *p, struct chunk_set *set, uint64_t index,
		    uint64_t skip, uint64_t len)
{
	return plan_slice(p, set, index, EXTENT_WHOLE, skip, len);
}

uint64_t plan_strips(struct plan *p, struct chunk_set *set,
		     const struct strip *strips, unsigned n, uint32_t rows,
		     uint64_t step)
{
	uint64_t pitch = 0;

	for (unsigned i = 0; i < n; i++)
		pitch += strips[i].len;
	if (p->full || !pitch || n > PLAN_MAX - p->n ||
	    rows > (p->want - p->have) / pitch) {
		p->full = true;
		return 0;
	}
	for (unsigned i = 0; i < n; i++) {
		struct extent *x = &p->ext[p->n++];

		memset(x, 0, sizeof *x);
		x->kind = EXTENT_CHUNK;
		x->len = strips[i].len;
		x->u.chunk.set = set;
		x->u.chunk.index = strips[i].index;
		x->u.chunk.skip = strips[i].skip;
		x->u.chunk.slice = EXTENT_WHOLE;
		x->u.chunk.rows = rows;
		x->u.chunk.step = step;
		x->u.chunk.pitch = pitch;
	}
	p->have += pitch * rows;
	p->has_strips = true;
	return pitch * rows;
}

uint64_t plan_fill(struct plan *p, struct fill fill, uint64_t phase,
		   uint64_t len)
{
	struct extent *x = plan_last(p, EXTENT_FILL);

	if (fill.width == 0)
		fill.width = 1;
	phase %= fill.width;
	len = plan_room(p, len);
	if (len == 0)
		return 0;
	if (x && x->u.fill.of.pattern == fill.pattern &&
	    x->u.fill.of.width == fill.width &&
	    (x->u.fill.phase + x->len) % fill.width == phase)
		return plan_grow(p, x, len);
	x = plan_append(p, EXTENT_FILL, len);
	if (!x)
		return 0;
	x->u.fill.of = fill;
	x->u.fill.phase = (uint32_t)phase;
	return len;
}

uint64_t plan_copy(struct plan *p, const void *data, uint64_t len)
{
	struct extent *x = plan_last(p, EXTENT_MEM);
	unsigned char *to = p->scratch + p->scratch_used;
	uint64_t take;

	len = plan_room(p, len);
	take = min_u64(len, PLAN_SCRATCH - p->scratch_used);
	if (take > 0) {
		if (x && (const unsigned char *)x->u.mem.data + x->len == to) {
			plan_grow(p, x, take);
		} else {
			x = plan_append(p, EXTENT_MEM, take);
			if (!x)
				return 0;
			x->u.mem.data = to;
		}
		memcpy(to, data, take);
		p->scratch_used += (unsigned)take;
	}
	if (take < len)
		p->full = true;
	return take;
}

uint64_t plan_mem(struct plan *p, const void *data, uint64_t len)
{
	struct extent *x = plan_last(p, EXTENT_MEM);

	len = plan_room(p, len);
	if (len == 0)
		return 0;
	if (x && (const unsigned char *)x->u.mem.data + x->len == data)
		return plan_grow(p, x, len);
	x = plan_append(p, EXTENT_MEM, len);
	if (!x)
		return 0;
	x->u.mem.data = data;
	return len;
}

static void chunk_print(const struct chunk_set *s, uint64_t index, FILE *out)
{
	char name[1024];

	if (s->ops && s->ops->describe) {
		s->ops->describe(s, index, name, sizeof name);
		fputs(name, out);
	} else {
		fprintf(out, "chunk %llu of set %llu",
			(unsigned long long)index, (unsigned long long)s->id);
	}
}

static void extent_print(const struct extent *x, const struct handles *h,
			 FILE *out)
{
	switch (x->kind) {
	case EXTENT_FILE:
		if (h)
			fputs(handles_path(h, x->u.file.file), out);
		else
			fprintf(out, "file %u", x->u.file.file);
		fprintf(out, " at %llu", (unsigned long long)x->u.file.pos);
		break;
	case EXTENT_CHUNK:
		chunk_print(x->u.chunk.set, x->u.chunk.index, out);
		if (x->u.chunk.slice != EXTENT_WHOLE)
			fprintf(out, " slice %u", x->u.chunk.slice);
		fprintf(out, " from %llu", (unsigned long long)x->u.chunk.skip);
		if (x->u.chunk.rows)
			fprintf(out, ", %u rows %llu apart", x->u.chunk.rows,
				(unsigned long long)x->u.chunk.step);
		break;
	case EXTENT_MEM:
		fputs("memory", out);
		break;
	case EXTENT_FILL:
		fprintf(out, "fill of %u bytes from %u", x->u.fill.of.width,
			x->u.fill.phase);
		break;
	}
}

void plan_print(const struct plan *p, const struct handles *h, FILE *out)
{
	uint64_t at = 0;
	unsigned i;

	for (i = 0; i < p->n; i++) {
		fprintf(out, "%llu +%llu ", (unsigned long long)at,
			(unsigned long long)p->ext[i].len);
		extent_print(&p->ext[i], h, out);
		putc('\n', out);
		at += extent_bytes(&p->ext[i]);
	}
}

static void extent_print_json(const struct extent *x, const struct handles *h,
			      uint64_t at, FILE *out)
{
	static const char *const kinds[] = {[EXTENT_FILE] = "file",
					    [EXTENT_CHUNK] = "chunk",
					    [EXTENT_MEM] = "memory",
					    [EXTENT_FILL] = "fill"};
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		extent_print(x, h, f);
		fclose(f);
	}
	fprintf(out, "{\"offset\": %llu, \"length\": %llu, \"kind\": \"%s\"",
		(unsigned long long)at, (unsigned long long)extent_bytes(x),
		kinds[x->kind]);
	if (x->kind == EXTENT_FILE) {
		fputs(", \"file\": ", out);
		json_put_text(out, h ? handles_path(h, x->u.file.file) : "?");
		fprintf(out, ", \"at\": %llu",
			(unsigned long long)x->u.file.pos);
	}
	fputs(", \"where\": ", out);
	json_put_text(out, text ? text : "?");
	putc('}', out);
}

void plan_print_json(const struct plan *p, const struct handles *h, uint64_t at,
		     bool first, FILE *out)
{
	for (unsigned i = 0; i < p->n; i++) {
		fputs(first && i == 0 ? "\n " : ",\n ", out);
		extent_print_json(&p->ext[i], h, at, out);
		at += extent_bytes(&p->ext[i]);
	}
}
