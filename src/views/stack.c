/* SPDX-License-Identifier: BSD-2-Clause */
/* stack/: the files that dask.array.from_npy_stack reads: info, 0.npy, 1.npy, ... */

/*
 * A file has some rows (indices of the first axis): whole stored blocks of them where
 * there are blocks, and about STACK_BYTES. dask reads a block as a whole, so it should
 * neither decode chunks of its neighbours nor be tiny.  `info` is a pickle of
 *
 *	{'chunks': ((r, r, ..., rest), (n1,), ...), 'dtype': dtype, 'axis': 0}
 *
 * Names are not padded, because dask does not pad them; the directory lists them in the
 * order of text.  Source: dask 2022.12 array/core.py, pickletools of Python 3.11.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "views/name.h"
#include "views/table.h"

#define STACK_BYTES (UINT64_C(64) << 20)
/* Most files; each takes a number in `info`. */
#define STACK_FILES (UINT64_C(1) << 20)

static bool stack_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	/* Structures and opaque bytes have other pickles, which are not supported. */
	return view_is_numeric(t) && t->rank &&
	       (t->dtype.kind <= DTYPE_COMPLEX || t->dtype.kind == DTYPE_BOOL);
}

/* Return the number of rows that are stored together. */
static uint64_t stack_stored_rows(const struct tensor *t)
{
	struct box b;

	if (tensor_blocks(t) <= 1)
		return 1;
	tensor_block_box(t, 0, &b);
	return b.count[0];
}

static uint64_t stack_rows_a_file(const struct tensor *t)
{
	uint64_t unit = stack_stored_rows(t), most = t->shape[0];
	uint64_t bytes = most ? t->bytes / most : 0; /* bytes of a row */
	uint64_t units = 1;

	if (bytes && unit <= STACK_BYTES / bytes)
		units = STACK_BYTES / bytes / unit;
	units = max_u64(units, (most / STACK_FILES + unit) / unit);
	return units >= most / unit + 1 ? max_u64(most, 1) : units * unit;
}

static uint64_t stack_files(const struct view *v)
{
	uint64_t rows = v->tensor->shape[0],
		 each = stack_rows_a_file(v->tensor);

	return rows ? (rows - 1) / each + 1 : 1;
}

static uint64_t stack_count(const struct view *v, unsigned level)
{
	(void)level;
	return stack_files(v) + 1;
}

static bool stack_is_info(const struct view *v, const uint64_t *at)
{
	return at[0] == stack_files(v); /* "info" sorts behind the digits */
}

static void stack_name(const struct view *v, unsigned level, const uint64_t *at,
		       char *buf, size_t n)
{
	(void)level;
	if (stack_is_info(v, at))
		snprintf(buf, n, "info");
	else
		snprintf(buf, n, "%" PRIu64 ".npy",
			 view_decimal_at(at[0], stack_files(v)));
}

static int stack_find(const struct view *v, unsigned level, const uint64_t *at,
		      const char *name, uint64_t *index)
{
	size_t digits = strspn(name, "0123456789");
	uint64_t n = stack_files(v), number;

	(void)level;
	(void)at;
	*index = n;
	if (!strcmp(name, "info"))
		return 0;
	if (!digits || digits > 18 || (*name == '0' && digits > 1) ||
	    strcmp(name + digits, ".npy"))
		return -ENOENT;
	number = strtoull(name, NULL, 10);
	if (number >= n)
		return -ENOENT;
	*index = view_decimal_place(number, n);
	return 0;
}

static void stack_box(const struct view *v, const uint64_t *at, struct box *out)
{
	uint64_t each = stack_rows_a_file(v->tensor);

	view_whole_box(v, at, out);
	if (stack_is_info(v, at))
		return;
	out->start[0] = each * view_decimal_at(at[0], stack_files(v));
	out->count[0] = min_u64(each, v->tensor->shape[0] - out->start[0]);
}

/* ---- the pickle ---------------------------------------------------------- */

static void pickle_int(FILE *f, uint64_t v)
{
	unsigned char raw[8];

	store_le64(raw, v);
	if (v <= UINT8_MAX) {
		fputc('K', f);
		fwrite(raw, 1, 1, f);
	} else if (v <= UINT16_MAX) {
		fputc('M', f);
		fwrite(raw, 1, 2, f);
	} else if (v <= INT32_MAX) {
		fputc('J', f);
		fwrite(raw, 1, 4, f);
	} else { /* LONG1; sizes are below 2^63 */
		fwrite("\x8a\x08", 1, 2, f);
		fwrite(raw, 1, 8, f);
	}
}

static void pickle_text(FILE *f, const char *s)
{
	unsigned char raw[4];

	store_le32(raw, (uint32_t)strlen(s));
	fputc('X', f);
	fwrite(raw, 1, sizeof raw, f);
	fputs(s, f);
}

/* Write numpy.dtype('f4', False, True) with the state that its __reduce__ returns. */
static void pickle_dtype(FILE *f, const struct dtype *d)
{
	static const char none_and_sizes[] = "NNN"
					     "J\xff\xff\xff\xff"
					     "J\xff\xff\xff\xff"
					     "K";
	char descr[32], order[2] = "";

	dtype_descr(d, descr, sizeof descr);
	order[0] = descr[0];
	fputs("cnumpy\ndtype\n", f);
	pickle_text(f, descr + 1);
	fputs("\x89\x88\x87R(K\x03", f);
	pickle_text(f, order);
	fputs(none_and_sizes, f);
	fwrite("\0tb", 1, 3, f);
}

static void pickle_chunks(FILE *f, const struct view *v)
{
	const struct tensor *t = v->tensor;
	uint64_t rows = t->shape[0], each = stack_rows_a_file(t);

	fputs("((", f);
	for (uint64_t i = stack_files(v); i > 1; i--)
		pickle_int(f, each);
	pickle_int(f, rows ? (rows - 1) % each + 1 : 0);
	fputc('t', f);
	for (unsigned i = 1; i < t->rank; i++) {
		fputc('(', f);
		pickle_int(f, t->shape[i]);
		fputc('t', f);
	}
	fputc('t', f);
}

static char *stack_info(const struct view *v, const uint64_t *at, size_t *len,
			struct error *err)
{
	char *out = NULL;
	FILE *f = open_memstream(&out, len);
	bool ok;

	(void)at;
	if (f) {
		fputs("\x80\x02}(", f); /* protocol 2, {}, MARK */
		pickle_text(f, "chunks");
		pickle_chunks(f, v);
		pickle_text(f, "dtype");
		pickle_dtype(f, &v->tensor->dtype);
		pickle_text(f, "axis");
		pickle_int(f, 0);
		fputs("u.", f);
		ok = !ferror(f);
		if (!fclose(f) && ok)
			return out;
	}
	free(out);
	error_no_memory(err, "the file stack/info");
	return NULL;
}

const struct view_ops view_stack = {
	.name = "stack",
	.summary = "stack/, for dask's from_npy_stack",
	.top = "stack",
	.levels = 1,
	.unlisted = true,
	.fits = stack_fits,
	.count = stack_count,
	.name_of = stack_name,
	.find = stack_find,
	.box_of = stack_box,
	.npy = true,
	.document = stack_info,
	.is_document = stack_is_info,
};
