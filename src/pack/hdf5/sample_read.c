/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that hold one sample each, as streams of elements. */
#include "pack/hdf5/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/copies.h"
#include "base/number.h"
#include "base/parse.h"

/*
 * A header must lie in the first unit, which is at least as long as the longest header
 * that is accepted.  Elements are passed on unchanged, with two exceptions: the text of
 * plain images is converted to the numbers of a binary image, and an array in Fortran
 * order is kept until it is complete and passed on in C order.
 */
#define TEXT_PIECE (UINT32_C(64) << 10)
#define TURN_PIECE (UINT32_C(64) << 10)

void sample_form_text(const struct sample_form *f, char *buf, size_t n)
{
	char type[32], shape[256];

	dtype_descr(&f->dtype, type, sizeof type);
	dtype_shape_text(f->shape, f->rank, shape, sizeof shape);
	snprintf(buf, n, f->maxval ? "%s %s, maxval %u" : "%s %s", type, shape,
		 (unsigned)f->maxval);
}

/* ---- headers ----------------------------------------------------------------- */

/* Check that exactly `want` bytes follow byte `data` in a file of `size` bytes. */
static int sample_check_size(uint64_t size, uint64_t data, uint64_t want,
			     const char *what, struct error *err)
{
	if (size < data + want)
		return error_set(err, -EBADMSG,
				 "it is truncated: it has %" PRIu64
				 " bytes, its header requires %" PRIu64,
				 size, data + want);
	if (size > data + want)
		return error_set(err, -EBADMSG,
				 "%" PRIu64 " bytes follow its %s; files with "
				 "several are not supported",
				 size - data - want, what);
	return 0;
}

static int begin_npy(struct sample_reader *r, const struct feed_unit *u,
		     struct sample_form *f, struct error *err)
{
	const struct npy_file *h = &r->npy;
	int rc = npy_read(u->data ? u->data : "", u->data ? u->size : 0, NULL,
			  &r->npy, err);

	if (rc == 0)
		rc = sample_check_size(u->attr.size, h->data, h->bytes, "array",
				       err);
	if (rc < 0)
		return rc;
	f->dtype = h->dtype;
	f->rank = h->rank;
	memcpy(f->shape, h->shape, h->rank * sizeof *h->shape);
	f->bytes = h->bytes;
	return 0;
}

static int begin_pnm(struct sample_reader *r, const struct feed_unit *u,
		     struct sample_form *f, struct error *err)
{
	const struct pnm *h = &r->pnm;
	int rc = pnm_read(u->data ? u->data : "", u->data ? u->size : 0,
			  &r->pnm, err);

	if (rc == 0 && !h->plain)
		rc = sample_check_size(u->attr.size, h->data, h->bytes, "image",
				       err);
	if (rc < 0)
		return rc;
	f->dtype = (struct dtype){.kind = DTYPE_UINT,
				  .size = h->depth,
				  .big_endian = h->depth == 2};
	f->shape[0] = h->height;
	f->shape[1] = h->width;
	f->shape[2] = 3;
	f->rank = h->channels == 3 ? 3 : 2;
	f->bytes = h->bytes;
	f->maxval = h->maxval;
	r->plain = (struct pnm_plain){.value = 0};
	return 0;
}

static int begin_raw(struct sample_reader *r, const struct feed_unit *u,
		     struct sample_form *f, struct error *err)
{
	*f = r->list->raw;
	if (u->attr.size == f->bytes)
		return 0;
	return error_set(err, -EBADMSG,
			 "it has %" PRIu64
			 " bytes, but --shape and --dtype require %" PRIu64,
			 u->attr.size, f->bytes);
}

static bool same_form(const struct sample_form *a, const struct sample_form *b)
{
	return a->rank == b->rank && a->maxval == b->maxval &&
	       a->dtype.kind == b->dtype.kind &&
	       a->dtype.size == b->dtype.size &&
	       a->dtype.big_endian == b->dtype.big_endian &&
	       !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

static int sample_settle_form(struct sample_reader *r,
			      const struct feed_unit *u,
			      const struct sample_form *f, struct error *err)
{
	char is[128], first[128];

	if (!r->known) {
		if (f->rank == RANK_MAX)
			return error_set(err, -ENOTSUP,
					 "'%s' has %d axes; with one more for "
					 "the files that is too many for HDF5",
					 u->path, RANK_MAX);
		r->form = *f;
		r->first = u->entry;
		r->known = true;
	}
	if (same_form(f, &r->form))
		return 0;
	sample_form_text(f, is, sizeof is);
	sample_form_text(&r->form, first, sizeof first);
	return error_set(err, -EBADMSG,
			 "'%.100s' is %s, but '%.100s' is %s: all samples must "
			 "have one type and shape",
			 u->path, is, scan_path(r->list->scan, r->first),
			 first);
}

int sample_begin(struct sample_reader *r, const struct feed_unit *u,
		 struct error *err)
{
	struct sample_form f = {.rank = 0};
	int rc;

	r->given = 0;
	switch (r->list->kind) {
	case SAMPLE_NPY:
		rc = begin_npy(r, u, &f, err);
		break;
	case SAMPLE_PNM:
		rc = begin_pnm(r, u, &f, err);
		break;
	default:
		rc = begin_raw(r, u, &f, err);
	}
	if (rc < 0)
		return error_prefix(err, "'%s': ", u->path);
	return sample_settle_form(r, u, &f, err);
}

/* ---- plain images ------------------------------------------------------------ */

static int sample_put_text(struct sample_reader *r, const struct feed_unit *u,
			   const unsigned char *text, uint64_t n,
			   sample_take *take, void *ctx, struct error *err)
{
	size_t made;
	int rc = 0;

	if (!r->text)
		r->text = malloc(TEXT_PIECE + 2);
	if (!r->text)
		return error_no_memory(err, "the numbers of a plain image");
	while (n > 0 && rc == 0) {
		size_t piece = min_u64(n, TEXT_PIECE);

		rc = pnm_plain_take(&r->plain, &r->pnm, text, piece, r->text,
				    &made, err);
		if (rc < 0)
			return error_prefix(err, "'%s': ", u->path);
		rc = take(ctx, r->text, made, err);
		r->given += made;
		text += piece;
		n -= piece;
	}
	if (rc < 0 || !u->last)
		return rc;
	rc = pnm_plain_end(&r->plain, &r->pnm, r->text, &made, err);
	if (rc < 0)
		return error_prefix(err, "'%s': ", u->path);
	r->given += made;
	return take(ctx, r->text, made, err);
}

/* ---- Fortran order ----------------------------------------------------------- */

/* Must the sample be transposed?  Only if more than one axis has more than one
 * element. */
static bool sample_is_transposed(const struct sample_reader *r)
{
	unsigned long_axes = 0;

	for (unsigned i = 0; i < r->form.rank; i++)
		long_axes += r->form.shape[i] > 1;
	return r->list->kind == SAMPLE_NPY && r->npy.fortran && long_axes > 1 &&
	       r->form.bytes > 0;
}

static int sample_keep(struct sample_reader *r, const struct feed_unit *u,
		       const void *data, uint64_t n, struct error *err)
{
	if (!r->turn) {
		char need[32];

		format_size(r->form.bytes, need, sizeof need);
		if (r->form.bytes > r->memory)
			return error_set(
				err, -ENOMEM,
				"'%s' is in Fortran order, and takes %s of "
				"memory to be converted; raise --memory",
				u->path, need);
		r->turn = malloc(r->form.bytes);
		if (!r->turn)
			return error_no_memory(err,
					       "an array in Fortran order");
	}
	if (data)
		memcpy(r->turn + r->given, data, n);
	else
		memset(r->turn + r->given, 0, n);
	r->given += n;
	return 0;
}

/* Copy elements from number `done` on, in C order, to `piece`: the largest box of at most
 * `most` elements.  Return the number of elements. */
static uint64_t sample_transpose_piece(const struct sample_reader *r,
				       uint64_t done, uint64_t most,
				       unsigned char *piece)
{
	const struct sample_form *f = &r->form;
	size_t in = f->dtype.size, out = in, from = 0;
	struct copy_axis a[RANK_MAX];
	struct box all = {{0}, {0}}, b;
	uint64_t n;

	memcpy(all.count, f->shape, f->rank * sizeof *f->shape);
	n = box_front(&all, f->rank, done, most, &b);
	for (unsigned i = 0; i < f->rank; i++) {
		a[i].n = b.count[i];
		a[i].in = in;
		from += b.start[i] * in;
		in *= f->shape[i];
	}
	for (unsigned i = f->rank; i-- > 0; out *= b.count[i])
		a[i].out = out;
	copy_box(piece, r->turn + from, a, f->rank, f->dtype.size);
	return n;
}

static int sample_give_transposed(const struct sample_reader *r,
				  sample_take *take, void *ctx,
				  struct error *err)
{
	uint32_t elem = r->form.dtype.size;
	uint64_t most = max_u64(TURN_PIECE / elem, 1), done = 0;
	unsigned char *piece = malloc(most * elem);
	int rc = piece ? 0 : error_no_memory(err, "an array in Fortran order");

	while (rc == 0 && done < r->form.bytes / elem) {
		uint64_t n = sample_transpose_piece(r, done, most, piece);

		rc = take(ctx, piece, n * elem, err);
		done += n;
	}
	free(piece);
	return rc;
}

/* ---- elements
 * --------------------------------------------------------------------------- */

static uint64_t sample_header_bytes(const struct sample_reader *r)
{
	switch (r->list->kind) {
	case SAMPLE_NPY:
		return r->npy.data;
	case SAMPLE_PNM:
		return r->pnm.data;
	default:
		return 0;
	}
}

static int sample_changed(const struct feed_unit *u, struct error *err)
{
	return error_set(err, -EIO, "'%s' changed its size while it was read",
			 u->path);
}

int sample_put(struct sample_reader *r, const struct feed_unit *u,
	       sample_take *take, void *ctx, struct error *err)
{
	uint64_t skip = u->first ? sample_header_bytes(r) : 0,
		 n = u->size - skip;
	const unsigned char *data = u->data;
	int rc = 0;

	/* Earlier elements are in chunks already, so the sample cannot be left out. */
	if (u->lost)
		return error_set(err, -EIO, "'%s' could not be read to its end",
				 u->path);
	if (skip > u->size)
		return sample_changed(u, err);
	data = data ? data + skip : NULL;
	if (r->list->kind == SAMPLE_PNM && r->pnm.plain) {
		if (!data)
			return error_set(
				err, -EBADMSG,
				"'%s' has a hole where numbers should be",
				u->path);
		rc = sample_put_text(r, u, data, n, take, ctx, err);
	} else if (n > r->form.bytes - r->given) {
		return sample_changed(u, err);
	} else if (sample_is_transposed(r)) {
		rc = sample_keep(r, u, data, n, err);
		if (rc == 0 && r->given == r->form.bytes)
			rc = sample_give_transposed(r, take, ctx, err);
	} else {
		r->given += n;
		rc = n ? take(ctx, data, n, err) : 0;
	}
	if (rc == 0 && u->last && r->given != r->form.bytes)
		return sample_changed(u, err);
	return rc;
}

void sample_reader_free(struct sample_reader *r)
{
	free(r->turn);
	free(r->text);
	r->turn = r->text = NULL;
}
