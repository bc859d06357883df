/* SPDX-License-Identifier: BSD-2-Clause */
/* Values that NumPy has no array for: read in segments, in C order, and sliced by
 * sample. */
/*
 * The size of a text depends on its values, so it cannot be computed, only counted.
 * Values are read in segments of at most 4096 values, about a MiB, whole samples; a
 * segment is a chunk that the cache keeps (lines.h describes it).  Once array.txt was
 * asked for, the size of each segment is kept for good, 8 bytes; it places a segment in
 * that file.  A sample is a "slice" of a segment.
 *
 * Where parts lie one after another along the samples, no segment crosses from one to
 * the next: a sample opens one file, not its neighbours'.  Other mosaics are cut
 * evenly.
 */
#include "tensor/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/number.h"
#include "tensor/text_private.h"

#define SEGMENT_VALUES 4096
#define SEGMENT_UNKNOWN 512 /* values, when their size is unknown */
#define SEGMENT_BYTES (UINT64_C(1) << 20)
/* Sequences in a segment if the library reads them one by one. */
#define SEGMENT_SEQUENCES 64
#define SEGMENTS_MAX (UINT64_C(1) << 22) /* most segments of array.txt */

/* ---- segments ------------------------------------------------------------ */

void text_segment_range(const struct text *x, uint64_t segment, uint64_t *first,
			uint64_t *n)
{
	struct bisect b = bisect_in(1, max_u64(x->pieces.n, 1));
	struct piece p = {0, 0};
	uint64_t end = x->samples;

	while (bisect_next(&b))
		bisect_answer(&b, x->pieces.at[b.mid].segment > segment);
	if (x->pieces.n)
		p = x->pieces.at[b.lo - 1];
	if (b.lo < x->pieces.n)
		end = x->pieces.at[b.lo].sample;
	*first = p.sample + (segment - p.segment) * x->segment_samples;
	*n = min_u64(end - *first, x->segment_samples);
}

/* Set *segment to the segment of a sample, and *slice to the sample's number in it. */
static void text_find_sample(const struct text *x, uint64_t sample,
			     uint64_t *segment, uint32_t *slice)
{
	struct bisect b = bisect_in(1, max_u64(x->pieces.n, 1));
	struct piece p = {0, 0};

	while (bisect_next(&b))
		bisect_answer(&b, x->pieces.at[b.mid].sample > sample);
	if (x->pieces.n)
		p = x->pieces.at[b.lo - 1];
	sample -= p.sample;
	*segment = p.segment + sample / x->segment_samples;
	*slice = (uint32_t)(sample % x->segment_samples);
}

void text_whole_box(const struct tensor *t, struct box *b)
{
	memset(b, 0, sizeof *b);
	for (unsigned i = 0; i < t->rank; i++)
		b->count[i] = t->shape[i];
}

/* ---- the chunk set ------------------------------------------------------- */

static int text_slice(const struct chunk_set *s, const struct buf *b,
		      uint32_t n, size_t *off, size_t *len)
{
	(void)s;
	return lines_slice(b, n, off, len);
}

static uint64_t text_segment_of(const struct chunk_set *s, uint64_t index)
{
	(void)s;
	(void)index;
	return UINT64_MAX;
}

static int text_locate(const struct chunk_set *s, uint64_t index,
		       const struct buf *segment, struct chunk *c,
		       struct error *err)
{
	(void)segment;
	memset(c, 0, sizeof *c);
	if (index >= text_of(s)->segments)
		return error_set(err, -EIO, "%s: there is no text segment %llu",
				 text_of(s)->t->name,
				 (unsigned long long)index);
	c->state = CHUNK_FETCH;
	c->size = s->unit;
	return 0;
}

static void text_set_describe(const struct chunk_set *s, uint64_t index,
			      char *buf, size_t n)
{
	const struct text *x = text_of(s);

	snprintf(buf, n, "%s %s, segment %llu", x->t->name,
		 x->style == LINES_TEXT  ? "strings"
		 : x->style == LINES_NPY ? "sequences"
					 : "values",
		 (unsigned long long)index);
}

static const struct chunk_set_ops text_chunk_ops = {
	.index_page_of = text_segment_of,
	.locate = text_locate,
	.fetch = text_fill,
	.slice = text_slice,
	.describe = text_set_describe,
};

/* ---- making one ---------------------------------------------------------- */

/*
 * If parts lie one after another along the samples, perhaps with gaps between them,
 * they are the pieces.  Any other mosaic would have more pieces than parts, so it gets
 * none.
 */
static int text_find_pieces(struct text *x, struct error *err)
{
	const struct mosaic *m = x->t->mosaic;
	uint64_t values = x->samples * x->sample_values, at = 0;
	int64_t before = INT64_MIN;
	struct mosaic_hit hit;
	struct box whole;

	if (!m)
		return 0;
	text_whole_box(x->t, &whole);
	for (uint64_t left = 4 * (uint64_t)mosaic_count(m) + 4; at < values;) {
		struct piece p = {at / x->sample_values, 0};

		mosaic_find(m, &whole, at, &hit);
		if (!left-- || at % x->sample_values) {
			vec_free(&x->pieces);
			return 0;
		}
		if (hit.tile != before && !vec_push(&x->pieces, p))
			return error_no_memory(err, "the parts of a dataset");
		before = hit.tile;
		at += hit.run;
	}
	return 0;
}

/* Number the segments of the pieces. */
static void text_number_segments(struct text *x)
{
	uint64_t end = x->samples;

	for (size_t i = x->pieces.n; i-- > 0;) {
		struct piece *p = &x->pieces.at[i];

		p->segment = div_up(end - p->sample, x->segment_samples);
		end = p->sample;
	}
	x->segments = x->pieces.n ? 0 : div_up(end, x->segment_samples);
	for (size_t i = 0; i < x->pieces.n; i++) {
		uint64_t n = x->pieces.at[i].segment;

		x->pieces.at[i].segment = x->segments;
		x->segments += n;
	}
}

/* Return how many values a segment should have. */
static uint64_t text_segment_values(const struct text *x)
{
	uint64_t bytes = x->t->text_bytes, most = SEGMENT_VALUES;

	if (x->style == LINES_NPY) {
		most = x->t->ops->length ? most : SEGMENT_SEQUENCES;
		bytes = bytes ? bytes + 128 : 0;
	}
	if (!bytes)
		return min_u64(most, SEGMENT_UNKNOWN);
	return min_u64(most, SEGMENT_BYTES / bytes);
}

/* Set the number of samples, of values in each, and of samples in a segment.  A segment
 * has whole rows of the axes that samples fix, as far as it can. */
static void text_set_shape(struct text *x, unsigned axes)
{
	const struct tensor *t = x->t;
	uint64_t rows = 1, most, unit;

	if (t->rank && !axes)
		axes = 1;
	x->samples = x->sample_values = x->row_samples = 1;
	for (unsigned i = 0; i < t->rank && t->elements; i++)
		*(i < axes ? &x->samples : &x->sample_values) *= t->shape[i];
	if (t->rank && t->elements)
		x->row_samples = x->samples / t->shape[0];
	if (!t->elements)
		x->samples = 0;
	most = max_u64(text_segment_values(x) / x->sample_values, 1);
	for (unsigned i = t->rank < axes ? t->rank : axes; i-- > 0;) {
		if (!t->elements || t->shape[i] > most / rows)
			break;
		rows *= t->shape[i];
	}
	x->segment_samples = most / rows * rows;
	unit = max_u64(t->text_bytes, 16);
	most = min_u64(x->segment_samples, x->samples) * x->sample_values;
	if (mul_overflows(unit, most, &unit))
		unit = INT64_MAX;
	x->set.unit = max_u64(64 << 10, unit);
}

int text_new(struct text **out, struct tensor *t, unsigned axes,
	     struct error *err)
{
	struct text *x = calloc(1, sizeof *x);
	int r = 0;

	if (!x)
		return error_no_memory(err, "the values of a dataset");
	x->set.ops = &text_chunk_ops;
	x->set.id = chunk_set_new_id();
	x->t = t;
	x->style = t->dtype.kind == DTYPE_RAGGED ? LINES_NPY
		   : t->dtype.kind == DTYPE_BLOB ? LINES_BLOB
		   : t->dtype.kind == DTYPE_TEXT ? LINES_JSON
						 : LINES_TEXT;
	if (x->style == LINES_NPY)
		r = sequence_init(&x->sequence, &t->dtype, err);
	if (r == 0) {
		text_set_shape(x, x->style >= LINES_NPY ? t->rank : axes);
		r = text_find_pieces(x, err);
	}
	if (r < 0) {
		text_free(x);
		return r;
	}
	text_number_segments(x);
	*out = x;
	return 0;
}

void text_free(struct text *x)
{
	if (!x)
		return;
	vec_free(&x->pieces);
	sequence_free(&x->sequence);
	free(atomic_load(&x->bytes));
	free(atomic_load(&x->start));
	free(x);
}

/* ---- array.txt ----------------------------------------------------------- */

int text_pin(struct text *x, uint64_t segment, struct pinner *p,
	     struct span *span, struct error *err)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};

	e.u.chunk.set = &x->set;
	e.u.chunk.index = segment;
	e.u.chunk.slice = EXTENT_WHOLE;
	return p->pin(p, &e, span, err);
}

/* Return in *out the table of the segments' sizes, made when it is first wanted. */
static int text_bytes_table(struct text *x, _Atomic uint64_t **out,
			    struct error *err)
{
	_Atomic uint64_t *none = NULL, *made;

	*out = atomic_load(&x->bytes);
	if (*out)
		return 0;
	if (x->segments > SEGMENTS_MAX)
		return error_set(err, -EFBIG,
				 "%s: too many values to count the bytes of "
				 "array.txt: read the files in samples/",
				 x->t->name);
	made = malloc((x->segments + 1) * sizeof *made);
	if (!made)
		return error_no_memory(err, "the sizes of values");
	for (uint64_t i = 0; i < x->segments; i++)
		atomic_init(&made[i], UINT64_MAX);
	if (!atomic_compare_exchange_strong(&x->bytes, &none, made)) {
		free(made);
		made = none;
	}
	*out = made;
	return 0;
}

/* Set *size to the bytes of one segment.  Fails if one of its samples failed. */
static int text_segment_size(struct text *x, uint64_t segment, struct pinner *p,
			     uint64_t *size, struct error *err)
{
	struct span span;
	uint64_t first, n;
	int r = text_pin(x, segment, p, &span, err);

	if (r < 0)
		return r;
	text_segment_range(x, segment, &first, &n);
	*size = span.buf->size - lines_head(n);
	r = lines_first_error(span.buf, err);
	p->unpin(p, &span);
	return r;
}

int text_size(struct text *x, struct pinner *p, uint64_t *size,
	      struct error *err)
{
	uint64_t *start = atomic_load(&x->start), *none = NULL, n = 0;
	_Atomic uint64_t *bytes;
	int r;

	if (start) {
		*size = start[x->segments];
		return 0;
	}
	r = text_bytes_table(x, &bytes, err);
	for (uint64_t i = 0; i < x->segments && r == 0; i++) {
		if (atomic_load(&bytes[i]) != UINT64_MAX)
			continue;
		r = text_segment_size(x, i, p, &n, err);
		if (r == 0)
			atomic_store(&bytes[i], n);
	}
	if (r < 0)
		return r;
	start = malloc((x->segments + 1) * sizeof *start);
	if (!start)
		return error_no_memory(err, "the sizes of values");
	start[0] = 0;
	for (uint64_t i = 0; i < x->segments; i++)
		start[i + 1] = start[i] + atomic_load(&bytes[i]);
	*size = start[x->segments];
	if (!atomic_compare_exchange_strong(&x->start, &none, start))
		free(start);
	return 0;
}

int text_map(const struct text *x, uint64_t off, struct plan *plan,
	     struct error *err)
{
	const uint64_t *start = atomic_load(&x->start);
	struct bisect b = bisect_in(1, max_u64(x->segments, 1));
	uint64_t first, n;

	if (!start)
		return error_set(err, -EIO, "%s: text was not prepared",
				 x->t->name);
	while (bisect_next(&b))
		bisect_answer(&b, start[b.mid] > off);
	for (uint64_t i = b.lo - 1; i < x->segments && plan_open(plan); i++) {
		uint64_t len = start[i + 1] - off, took;

		if (!len)
			continue;
		text_segment_range(x, i, &first, &n);
		took = plan_chunk(plan, (struct chunk_set *)&x->set, i,
				  lines_head(n) + off - start[i], len);
		off += took;
		if (took < len)
			break;
	}
	return 0;
}

/* ---- samples ------------------------------------------------------------- */

int text_sample_size(struct text *x, uint64_t sample, struct pinner *p,
		     uint64_t *size, struct error *err)
{
	struct span span;
	uint64_t segment;
	uint32_t slice;
	size_t off, len;
	int r;

	if (sample >= x->samples)
		return error_set(err, -ENOENT, "%s: there is no sample %llu",
				 x->t->name, (unsigned long long)sample);
	r = text_known_size(x, sample, size, err);
	if (r)
		return r < 0 ? r : 0;
	if (x->style == LINES_NPY && !x->t->ops->length)
		return text_sequence_size(x, sample, p, size, err);
	text_find_sample(x, sample, &segment, &slice);
	r = text_pin(x, segment, p, &span, err);
	if (r < 0)
		return r;
	r = lines_slice(span.buf, slice, &off, &len);
	if (r < 0)
		lines_slice_error(span.buf, r, off, len, err);
	else
		*size = len;
	p->unpin(p, &span);
	return r;
}

int text_map_sample(const struct text *x, uint64_t sample, uint64_t off,
		    struct plan *plan)
{
	uint64_t segment;
	uint32_t slice;

	text_find_sample(x, sample, &segment, &slice);
	plan_slice(plan, (struct chunk_set *)&x->set, segment, slice, off,
		   plan->want - plan->have);
	return 0;
}

/* Compare the text of one sample with that of the samples before it.  Return 1 if it is
 * the same, 0 if not, -errno if the sample failed. */
static int text_compare_sample(const struct buf *b, uint32_t slice, bool first,
			       char *buf, size_t n, struct error *err)
{
	size_t off, len;
	int r = lines_slice(b, slice, &off, &len);

	if (r < 0)
		return lines_slice_error(b, r, off, len, err);
	len = min_u64(len ? len - 1 : 0, n - 1); /* leave out the newline */
	if (first) {
		memcpy(buf, b->data + off, len);
		buf[len] = 0;
		return 1;
	}
	return strlen(buf) == len && !memcmp(buf, b->data + off, len);
}

int text_common(struct text *x, uint64_t first, uint64_t last, struct pinner *p,
		char *buf, size_t n, struct error *err)
{
	uint64_t at = first * x->row_samples, end, segment, from, count;
	bool begun = false;
	uint32_t slice;

	buf[0] = 0;
	end = min_u64(last * x->row_samples, x->samples);
	while (at < end) {
		struct span span;
		int r;

		text_find_sample(x, at, &segment, &slice);
		text_segment_range(x, segment, &from, &count);
		r = text_pin(x, segment, p, &span, err);
		if (r < 0)
			return r;
		for (r = 1; r == 1 && at < end && slice < count; at++) {
			r = text_compare_sample(span.buf, slice++, !begun, buf,
						n, err);
			begun = true;
		}
		p->unpin(p, &span);
		if (r == 0)
			snprintf(buf, n, "mixed");
		if (r < 1)
			return r;
	}
	return 0;
}
