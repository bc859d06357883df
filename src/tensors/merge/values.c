/* SPDX-License-Identifier: BSD-2-Clause */
/* Write strings, sequences and unusual numbers by way of libhdf5; keep flags as runs. */

/*
 * A box is read part by part, with the type that the output has, in memory too.  So the
 * elements that are read are those that will be stored: libhdf5 converts them where a
 * part has another type.  Strings and sequences are pointers to memory
 * (formats/hdf5/file/vlen.c) that lives until they are written, part by part.  The library is
 * never asked to read a virtual dataset, or raw data in other files.
 *
 * A dataset of strings in the main file itself is written in the same way, because
 * H5Ocopy frees memory that is not its own when it copies one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/dataset/description.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/place.h"
#include "formats/hdf5/file/vlen.h"
#include "tensors/merge/private.h"
#include "tensors/refer.h"

/* The most runs of equal flags of a dataset that are kept. */
#define RUNS_MAX (UINT32_C(1) << 22)

/* ---- runs of boxes ------------------------------------------------------- */

/*
 * Set *out to the box with which elements [skip, skip + run) of box `b` begin, in C
 * order: along an axis that is as far out as possible, and as long as possible.  Returns
 * the number of elements in *out.
 */
static uint64_t merge_first_box(const struct box *b, unsigned rank,
				uint64_t skip, uint64_t run, struct box *out)
{
	uint64_t at[RANK_MAX], inner = 1, n;
	unsigned axis;

	for (unsigned i = rank; i-- > 0;) {
		at[i] = skip % b->count[i];
		skip /= b->count[i];
	}
	for (axis = rank; axis-- > 0;) {
		uint64_t all = inner * b->count[axis];

		if (axis == 0 || at[axis] || all > run)
			break;
		inner = all;
	}
	if (!rank)
		return 1;
	n = min_u64(run / inner, b->count[axis] - at[axis]);
	for (unsigned i = 0; i < rank; i++) {
		out->start[i] = b->start[i] + (i <= axis ? at[i] : 0);
		out->count[i] = i < axis ? 1 : i == axis ? n : b->count[i];
	}
	return n * inner;
}

/* Called for boxes of parts, in the order of the elements of a box of the tensor.  `n` is
 * the number of the tensor's elements; part UINT32_MAX is a gap of n elements, with no
 * box. */
typedef int merge_each(void *ctx, struct tensor *t, uint32_t p,
		       const struct box *b, uint64_t n);
static int merge_each_part(struct tensor *t, const struct box *b,
			   merge_each *each, void *ctx, struct error *err)
{
	uint64_t all = box_elements(b, t->rank), at = 0;
	int r = 0;

	while (at < all && r == 0) {
		struct mosaic_piece piece;
		const struct layout *l;
		int64_t part;
		uint64_t done = 0, n;
		struct box x;

		r = tensor_find(t, b, at, &part, &piece, err);
		if (r < 0)
			return r;
		at += piece.run;
		if (part < 0) {
			r = each(ctx, t, UINT32_MAX, NULL, piece.run);
			continue;
		}
		r = tensor_learn(t, (uint32_t)part, &l, err);
		while (done < piece.run && r == 0) {
			n = merge_first_box(&piece.from, l->grid->rank,
					    piece.skip + done, piece.run - done,
					    &x);
			done += n;
			r = l->kind == LAYOUT_NESTED
				    ? merge_each_part(l->nested, &x, each, ctx,
						      err)
				    : each(ctx, t, (uint32_t)part, &x, n);
		}
	}
	return r;
}

/* ---- strings that are kept as runs --------------------------------------- */

struct collecting {
	struct values *v;
	int failed; /* -ENOMEM; -ENOTSUP: too many runs, or a NUL; 0 */
	struct error *err;
};

static void values_add_run(struct collecting *c, const char *s, size_t len,
			   uint64_t rows)
{
	struct journal_run run = {.rows = rows};
	size_t n = c->v->text.runs.n;
	struct journal_run *last = n ? &c->v->text.runs.at[n - 1] : NULL;

	if (last && strlen(last->value) == len &&
	    !memcmp(last->value, s, len)) {
		last->rows += rows;
		return;
	}
	if (n >= RUNS_MAX || memchr(s, 0, len)) {
		c->failed = c->failed ? c->failed : -ENOTSUP;
		return;
	}
	run.value = strndup(s, len);
	if (run.value && vec_push(&c->v->text.runs, run))
		return;
	free(run.value);
	c->failed = -ENOMEM;
}

static void values_add_string(void *ctx, const char *s, size_t len)
{
	values_add_run(ctx, s, len, 1);
}

static int values_collect_part(void *ctx, struct tensor *t, uint32_t p,
			       const struct box *b, uint64_t n)
{
	struct collecting *c = ctx;

	if (p == UINT32_MAX) {
		values_add_run(c, "", 0, n);
		return 0;
	}
	return t->ops->values(t, p, b, values_add_string, c, c->err);
}

int merge_values_runs(struct merge *m, struct values *v, struct error *err)
{
	struct collecting c = {.v = v, .err = err};
	uint64_t step = 65536;
	struct box b;
	int r = 0;

	for (uint64_t at = 0; at < v->t->shape[0] && r == 0; at += step) {
		b.start[0] = at;
		b.count[0] = min_u64(step, v->t->shape[0] - at);
		r = merge_each_part(v->t, &b, values_collect_part, &c, err);
		if (*m->o.stop)
			r = error_set(err, -EINTR, "interrupted");
	}
	if (r == 0 && c.failed == -ENOMEM)
		return error_no_memory(err, "the flags of a dataset");
	if (r == 0 && c.failed)
		return error_set(err, -ENOTSUP,
				 "%s: flags change from row to row more than "
				 "%u times, or have a NUL in them",
				 v->text.path, RUNS_MAX);
	v->captured = r == 0 && v->t->dtype.vlen;
	return r;
}

/* ---- elements that the library writes ------------------------------------ */

/* The limits of what is read at once: bytes of elements, without what they point to; and
 * elements that have pointers. */
#define ROOM (UINT64_C(1) << 20)
#define POINTERS 4096

struct writing {
	struct merge *m;
	struct tensor *t;      /* NULL: `own` is the whole dataset */
	struct hdf5_place own; /* a dataset that is copied as it is */
	const char *path;
	hid_t to, space, type; /* the dataset, and its type, also in memory */
	size_t elem;
	unsigned rank; /* axes of the dataset; array types have more */
	uint64_t shape[RANK_MAX];
	/* elements of the tensor in one element of the dataset */
	uint64_t within;
	bool points;       /* elements are or have pointers */
	bool fill_unknown; /* the fill value is not known */
	unsigned char *buf, *fill;
	struct box box; /* the box that is being written */
	uint64_t have;  /* elements of the box that are written */
	/* The part that is open.  Then the library's lock is held by way of it. */
	bool open;
	struct hdf5_place at;
	struct hdf5_opened o;
	struct hdf5_description d;
	struct error *err;
};

static int values_library_failed(struct writing *w, const char *what)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(w->err, -EIO, "%s: %s: %s", w->path, what, why);
}

/* ---- parts --------------------------------------------------------------- */

static void values_close_part(struct writing *w)
{
	if (!w->open)
		return;
	hdf5_vlen_end();
	hdf5_description_free(&w->d);
	hdf5_place_close(&w->o);
	hdf5_lock();
	w->open = false;
}

/* Open a part.  The library's lock is held before and afterwards, and released in
 * between. */
static int values_open_part(struct writing *w, const struct hdf5_place *at)
{
	int r;

	if (w->open && w->at.file == at->file &&
	    !strcmp(w->at.object, at->object))
		return 0;
	values_close_part(w);
	hdf5_unlock();
	r = hdf5_place_open(at, &w->o, w->err);
	if (r < 0) {
		hdf5_lock();
		return r;
	}
	r = hdf5_describe(w->m->s, w->o.object, NULL, &w->d, w->err);
	if (r < 0) {
		hdf5_place_close(&w->o);
		hdf5_lock();
		return r;
	}
	w->at = *at;
	w->open = true;
	hdf5_vlen_begin(w->o.object, w->m->o.memory / 2);
	if (!w->d.nraw)
		return 0;
	error_set(w->err, -ENOTSUP,
		  "values of its type cannot be merged when they are in "
		  "external raw files");
	hdf5_place_prefix(at, w->err);
	return w->err->code;
}

/* Write the next `n` elements of the box, which are at w->buf. */
static int values_put_elements(struct writing *w, uint64_t n)
{
	herr_t ok = 0;

	for (uint64_t done = 0, k; done < n && ok >= 0; done += k) {
		const struct box *b = &w->box;
		unsigned char *data = w->buf + done * w->elem;
		hsize_t start[RANK_MAX], count[RANK_MAX], len;
		struct box x;
		hid_t mem;

		k = merge_first_box(b, w->rank, w->have + done, n - done, &x);
		len = k;
		for (unsigned i = 0; i < w->rank; i++) {
			start[i] = x.start[i];
			count[i] = x.count[i];
		}
		mem = H5Screate_simple(1, &len, NULL);
		if (w->rank)
			ok = H5Sselect_hyperslab(w->space, H5S_SELECT_SET,
						 start, NULL, count, NULL);
		if (ok >= 0)
			ok = H5Dwrite(w->to, w->type, mem, w->space,
				      H5P_DEFAULT, data);
		H5Sclose(mem);
	}
	w->have += n;
	return ok < 0 ? values_library_failed(w, "its values cannot be written")
		      : 0;
}

static int values_read_gap(struct writing *w, uint64_t n)
{
	if (w->fill_unknown)
		return error_set(
			w->err, -ENOTSUP,
			"%s: gaps with a fill value of variable length "
			"cannot be merged",
			w->path);
	for (uint64_t i = 0; i < n; i++)
		memcpy(w->buf + i * w->elem, w->fill, w->elem);
	return values_put_elements(w, n);
}

/* Read `len` elements of the open part to w->buf. */
static int values_read_box(struct writing *w, const struct box *b, hsize_t len)
{
	hsize_t start[RANK_MAX], count[RANK_MAX];
	hid_t from = H5Dget_space(w->o.object), dxpl = hdf5_vlen_transfer();
	hid_t to = H5Screate_simple(1, &len, NULL);
	herr_t ok = from < 0 || to < 0 || dxpl < 0 ? -1 : 0;
	int r = 0;

	for (unsigned i = 0; i < w->d.own_rank; i++) {
		start[i] = b->start[i];
		count[i] = b->count[i];
	}
	memset(w->buf, 0, len * w->elem);
	if (ok >= 0 && w->d.own_rank)
		ok = H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL,
					 count, NULL);
	if (ok >= 0)
		ok = H5Dread(w->o.object, w->type, to, from, dxpl, w->buf);
	if (ok < 0) {
		r = hdf5_vlen_failed(w->err);
		r = r ? r
		      : values_library_failed(w, "its values cannot be read");
		hdf5_place_prefix(&w->at, w->err);
	}
	if (from >= 0)
		H5Sclose(from);
	if (to >= 0)
		H5Sclose(to);
	if (dxpl >= 0)
		H5Pclose(dxpl);
	return r;
}

static int values_read_part(void *ctx, struct tensor *t, uint32_t p,
			    const struct box *b, uint64_t n)
{
	struct writing *w = ctx;
	struct hdf5_place at = w->own;
	uint64_t len = n / w->within;
	int r;

	if (p == UINT32_MAX)
		return values_read_gap(w, len);
	if (t)
		at = (struct hdf5_place){w->m->s, t->parts[p].file,
					 t->parts[p].dataset};
	r = values_open_part(w, &at);
	if (r == 0) /* do its chunks decode to all that H5Dread wants? */
		r = hdf5_fetch_check(&w->at, w->o.object, &w->d, b, w->err);
	if (r == 0)
		r = values_read_box(w, b, len);
	if (r == 0)
		r = values_put_elements(w, len);
	if (w->open)
		hdf5_vlen_free_values();
	return r;
}

/* ---- the output ---------------------------------------------------------- */

static int values_write_box(struct writing *w, uint64_t n)
{
	w->have = 0;
	return w->t ? merge_each_part(w->t, &w->box, values_read_part, w,
				      w->err)
		    : values_read_part(w, NULL, 0, &w->box, n);
}

/* Write box after box: some rows, or a piece of one row. */
static int values_write_boxes(struct writing *w, uint64_t most)
{
	unsigned all = w->t ? w->t->rank : w->rank, i = 0;
	struct box *b = &w->box;
	uint64_t step[RANK_MAX], room = most, n;
	int r;

	for (unsigned k = all; k-- > 0;) {
		bool own = k < w->rank;

		b->start[k] = 0;
		if (!w->shape[k])
			return 0;
		step[k] = own ? max_u64(min_u64(room, w->shape[k]), 1)
			      : w->shape[k];
		if (own)
			room = step[k] == w->shape[k] ? room / step[k] : 1;
	}
	do {
		n = 1;
		for (unsigned k = 0; k < all; k++) {
			b->count[k] =
				min_u64(step[k], w->shape[k] - b->start[k]);
			n *= b->count[k];
		}
		r = values_write_box(w, n);
		if (r == 0 && *w->m->o.stop)
			r = error_set(w->err, -EINTR, "interrupted");
		for (i = w->rank; i-- > 0;) {
			b->start[i] += step[i];
			if (b->start[i] < w->shape[i])
				break;
			b->start[i] = 0;
		}
	} while (r == 0 && i < w->rank);
	return r;
}

/* Read the fill value, which gaps have; where elements have pointers, it stays empty. */
static bool values_find_fill(struct writing *w)
{
	hid_t dcpl = hdf5_vlen_create_plist(w->to);
	H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
	bool ok = dcpl >= 0 && H5Pfill_value_defined(dcpl, &defined) >= 0;

	if (ok && !w->points && defined == H5D_FILL_VALUE_USER_DEFINED)
		ok = H5Pget_fill_value(dcpl, w->type, w->fill) >= 0;
	if (dcpl >= 0)
		H5Pclose(dcpl);
	return ok;
}

static int values_write_all(struct writing *w)
{
	hsize_t dims[RANK_MAX];
	uint64_t most;
	int rank = H5Sget_simple_extent_dims(w->space, dims, NULL), r;

	w->elem = H5Tget_size(w->type);
	w->points = refer_points(w->type);
	if (rank < 0 || !w->elem)
		return values_library_failed(w, "it cannot be written");
	if (H5Sget_simple_extent_type(w->space) == H5S_NULL)
		return 0;
	w->rank = (unsigned)rank;
	w->within = 1;
	for (unsigned i = 0; i < w->rank; i++)
		w->shape[i] = dims[i];
	for (unsigned i = w->rank; w->t && i < w->t->rank; i++) {
		w->shape[i] = w->t->shape[i];
		w->within *= max_u64(w->t->shape[i], 1);
	}
	most = max_u64(ROOM / w->elem, 1);
	if (w->points)
		most = min_u64(most, POINTERS);
	w->buf = malloc(most * w->elem);
	w->fill = calloc(1, w->elem);
	if (!w->buf || !w->fill)
		return error_no_memory(w->err, "the elements to copy");
	r = values_find_fill(w)
		    ? values_write_boxes(w, most)
		    : values_library_failed(w, "its fill value cannot be read");
	values_close_part(w);
	return r;
}

/* Write the rows of runs of equal strings. */
static int values_write_runs(struct writing *w, const struct journal_text *t)
{
	enum { ROWS = 16384 };
	char **row = calloc(ROWS, sizeof *row);
	hsize_t at = 0, n = 0;
	herr_t ok = 0;

	if (!row)
		return error_no_memory(w->err, "rows of flags");
	for (size_t i = 0; i < t->runs.n && ok >= 0; i++) {
		uint64_t left = t->runs.at[i].rows;

		for (; left && ok >= 0; left -= n, at += n) {
			hid_t mem;

			n = min_u64(left, ROWS);
			for (hsize_t k = 0; k < n; k++)
				row[k] = t->runs.at[i].value;
			mem = H5Screate_simple(1, &n, NULL);
			ok = H5Sselect_hyperslab(w->space, H5S_SELECT_SET, &at,
						 NULL, &n, NULL);
			if (ok >= 0)
				ok = H5Dwrite(w->to, w->type, mem, w->space,
					      H5P_DEFAULT, row);
			H5Sclose(mem);
		}
	}
	free(row);
	return ok < 0 ? values_library_failed(w, "its values cannot be written")
		      : 0;
}

int merge_values_write(struct merge *m, const struct item *it, hid_t to,
		       bool fill_unknown, struct error *err)
{
	struct values *v =
		it->kind == ITEM_VALUES ? &m->values.at[it->index] : NULL;
	struct writing w = {.m = m,
			    .t = v ? v->t : NULL,
			    .own = {m->s, it->file, it->object},
			    .path = it->path,
			    .to = to,
			    .fill_unknown = fill_unknown,
			    .err = err};
	int r;

	w.type = H5Dget_type(to);
	w.space = H5Dget_space(to);
	if (w.type < 0 || w.space < 0)
		r = values_library_failed(&w, "it cannot be written");
	else
		r = v && v->captured ? values_write_runs(&w, &v->text)
				     : values_write_all(&w);
	if (w.type >= 0)
		H5Tclose(w.type);
	if (w.space >= 0)
		H5Sclose(w.space);
	free(w.buf);
	free(w.fill);
	return r;
}
