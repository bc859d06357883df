/* SPDX-License-Identifier: BSD-2-Clause */
/* slice/10:20,:,3.npy: NumPy's basic slicing by name. */

/*
 * There are more slices than node numbers, so the directory lists none.  A name that is
 * looked up gets a number (lookups), and is parsed again for each request: only the
 * name is stored for a node, and it is dropped when it was not used for long and the
 * kernel does not hold the node.  If all steps are 1, a slice is a box, else a box for
 * each index of the axes up to the last one with another step.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/lookups.h"
#include "base/number.h"
#include "tensor/slice.h"
#include "views/name.h"
#include "views/state.h"
#include "views/table.h"

#define SUFFIX ".npy"

static bool slice_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return view_is_numeric(t) && t->rank && t->bytes <= INT64_MAX;
}

static uint64_t slice_count(const struct view *v, unsigned level)
{
	(void)v;
	(void)level;
	return LOOKUPS_NUMBERS;
}

static int slice_parse_name(const struct tensor *t, const char *name,
			    struct slice *out)
{
	size_t len = strlen(name), suffix = strlen(SUFFIX);

	if (len <= suffix || strcmp(name + len - suffix, SUFFIX))
		return -ENOENT;
	return slice_parse(name, len - suffix, t->rank, t->shape, out);
}

/* Set *out to the slice of an entry.  Return false if its name was never looked up, or
 * dropped. */
static bool slice_of(const struct view *v, const uint64_t *at,
		     struct slice *out)
{
	char name[LOOKUPS_NAME_MAX];

	return lookups_name(atomic_load(&v->tensor->views->slices), at[0],
			    name) &&
	       slice_parse_name(v->tensor, name, out) == 0;
}

static void slice_name(const struct view *v, unsigned level, const uint64_t *at,
		       char *buf, size_t n)
{
	char name[LOOKUPS_NAME_MAX];

	(void)level;
	if (!lookups_name(atomic_load(&v->tensor->views->slices), at[0], name))
		*name = '\0';
	snprintf(buf, n, "%s", name);
}

static int slice_find(const struct view *v, unsigned level, const uint64_t *at,
		      const char *name, uint64_t *index)
{
	struct slice s;
	uint32_t number;
	int r = slice_parse_name(v->tensor, name, &s);

	(void)level;
	(void)at;
	if (r == 0)
		r = lookups_number(&v->tensor->views->slices, name, false,
				   &number);
	*index = r == 0 ? number : 0;
	return r;
}

static bool slice_lacks_suffix(const char *name)
{
	size_t len = strlen(name), suffix = strlen(SUFFIX);

	return len <= suffix || strcmp(name + len - suffix, SUFFIX) != 0;
}

/* Only names that were meant as slices get an explanation; file managers ask for
 * others, too. */
static bool slice_why_not(const struct view *v, const char *name,
			  struct error *err)
{
	const struct tensor *t = v->tensor;
	char shape[400];
	struct slice s;
	int r = slice_parse_name(t, name, &s);

	dtype_shape_text(t->shape, t->rank, shape, sizeof shape);
	if (r == -EINVAL)
		error_set(err, r,
			  "'%.200s' is not a slice: a slice is indices, "
			  "START:STOP:STEP and at most one '...', with commas "
			  "between them, and ends with " SUFFIX,
			  name);
	else if (r == 0)
		error_set(err, -ENOSPC,
			  "too many slices of this tensor are in use at once");
	else if (!slice_lacks_suffix(name))
		error_set(err, r,
			  "'%.200s' has an index beyond the end of an axis, or "
			  "more indices than there are axes: the shape is %s",
			  name, shape);
	else if (*name && strspn(name, "0123456789:,-") == strlen(name))
		error_set(err, r, "'%.200s' lacks " SUFFIX " at its end", name);
	else
		return false;
	return true;
}

/* A box around the slice, for callers that ask which part a file is in. */
static void slice_box(const struct view *v, const uint64_t *at, struct box *out)
{
	struct slice s;

	if (slice_of(v, at, &s) && slice_elements(&s))
		slice_around(&s, 0, slice_elements(&s), out);
	else
		view_whole_box(v, at, out);
}

static unsigned slice_shape_of(const struct view *v, const uint64_t *at,
			       uint64_t *shape)
{
	struct slice s;

	return slice_of(v, at, &s) ? slice_shape(&s, shape) : 0;
}

static int slice_open(const struct view *v, const uint64_t *at, struct slice *s,
		      struct npy_header *header, struct error *err)
{
	uint64_t shape[RANK_MAX];
	unsigned rank;

	if (!slice_of(v, at, s))
		return error_set(err, -ENOENT, "no such file");
	rank = slice_shape(s, shape);
	if (dtype_npy_header(&v->tensor->dtype, v->tensor->descr, rank, shape,
			     header))
		return 0;
	return error_set(err, -ENOTSUP,
			 "%s: its shape is too long for a .npy file",
			 v->tensor->name);
}

static int slice_size(const struct view *v, const uint64_t *at,
		      struct pinner *p, uint64_t *size, struct error *err)
{
	struct npy_header header;
	struct slice s;
	int r = slice_open(v, at, &s, &header, err);

	(void)p;
	if (r == 0)
		*size = header.total +
			slice_elements(&s) * v->tensor->dtype.size;
	return r;
}

/* Prepare bytes [off, off + len) of the result, and no part that they do not lie in. */
static int slice_prepare_pieces(struct tensor *t, const struct slice *s,
				uint64_t off, uint64_t len, struct error *err)
{
	uint64_t elem = t->dtype.size, skip, n;
	struct box b;
	int r = 0;

	while (len && r == 0) {
		slice_piece(s, off / elem, &b, &skip);
		skip = skip * elem + off % elem;
		n = min_u64(box_elements(&b, s->rank) * elem - skip, len);
		r = tensor_prepare_box(t, &b, skip, n, err);
		off += n;
		len -= n;
	}
	return r;
}

static int slice_prepare(const struct view *v, const uint64_t *at, uint64_t off,
			 uint64_t len, struct error *err)
{
	uint64_t elem = v->tensor->dtype.size, total;
	struct npy_header header;
	struct slice s;
	int r = slice_open(v, at, &s, &header, err);

	if (r < 0 || off + len <= header.total)
		return r;
	len -= off < header.total ? header.total - off : 0;
	off -= min_u64(off, header.total);
	total = slice_elements(&s) * elem;
	if (off >= total)
		return 0;
	return slice_prepare_pieces(v->tensor, &s, off,
				    min_u64(len, total - off), err);
}

/* Byte `off` of the result begins box `b`: append it and as many of the following boxes
 * as make a strip of rows.  Return the bytes appended; 0 if it has to go box by box. */
static uint64_t slice_map_steps(const struct tensor *t, const struct slice *s,
				const struct box *b, uint64_t off,
				struct plan *plan)
{
	unsigned axis = s->whole - 1;
	const struct slice_axis *a;
	uint64_t index;

	if (!s->whole || s->axis[axis].step < 0)
		return 0;
	a = &s->axis[axis];
	index = off / t->dtype.size / box_elements(b, s->rank) % a->count;
	return tensor_map_steps(t, b, axis, (uint64_t)a->step, a->count - index,
				plan);
}

static int slice_map(const struct view *v, const uint64_t *at, uint64_t off,
		     struct plan *plan, struct error *err)
{
	uint64_t elem = v->tensor->dtype.size, total, skip;
	struct npy_header header;
	struct slice s;
	struct box b;
	int r = slice_open(v, at, &s, &header, err);

	if (r < 0)
		return r;
	if (off < header.total)
		off += dtype_npy_map(&header, off, plan);
	if (off < header.total)
		return 0;
	off -= header.total;
	total = slice_elements(&s) * elem;
	while (plan_open(plan) && off < total) {
		uint64_t before = plan->have;

		slice_piece(&s, off / elem, &b, &skip);
		skip = skip * elem + off % elem;
		if (skip || !slice_map_steps(v->tensor, &s, &b, off, plan))
			r = tensor_map_box(v->tensor, &b, skip, plan, err);
		if (r < 0 || plan->have == before)
			return r;
		off += plan->have - before;
	}
	return 0;
}

static uint32_t slice_generation(const struct view *v, const uint64_t *at)
{
	return lookups_generation(atomic_load(&v->tensor->views->slices),
				  at[0]);
}

static int slice_hold(const struct view *v, const uint64_t *at, int64_t n)
{
	return lookups_hold(atomic_load(&v->tensor->views->slices), at[0], n);
}

static void slice_end(struct tensor *t)
{
	lookups_free(atomic_exchange(&t->views->slices, NULL));
}

const struct view_ops view_slice = {
	.name = "slice",
	.summary = "slice/EXPRESSION.npy, as NumPy slices",
	.top = "slice",
	.levels = 1,
	.unlisted = true,
	.lookup_only = true,
	.generation = slice_generation,
	.hold = slice_hold,
	.fits = slice_fits,
	.end = slice_end,
	.count = slice_count,
	.name_of = slice_name,
	.find = slice_find,
	.why_not = slice_why_not,
	.box_of = slice_box,
	.shape_of = slice_shape_of,
	.size = slice_size,
	.prepare = slice_prepare,
	.map = slice_map,
};
