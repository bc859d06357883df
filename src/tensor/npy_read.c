/* SPDX-License-Identifier: BSD-2-Clause */
/* Read the header of a .npy file. */
#include "tensor/npy_read.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "tensor/dtype_parse.h"
#include "tensor/npy_literal.h"

/*
 * The header is a literal of Python: {'descr': '<f4', 'fortran_order': False, 'shape':
 * (3, 4), }.  It is read as Python does: blanks and comments anywhere, all kinds of
 * quotes, a trailing comma or none; of equal keys the last one counts.
 */
static int npy_damaged(struct error *err, const char *what)
{
	return error_set(err, -EBADMSG, "its .npy header is damaged: %s", what);
}

static int npy_read_shape(struct npy_text *t, struct intern *in,
			  struct npy_file *f, struct error *err)
{
	(void)in;
	return npy_take_shape(t, &f->rank, f->shape, err);
}

static int npy_read_descr(struct npy_text *t, struct intern *in,
			  struct npy_file *f, struct error *err)
{
	char text[64];

	if (npy_next(t, '['))
		return in ? npy_take_fields(t, in, &f->dtype, err)
			  : error_set(err, -ENOTSUP,
				      "its elements are structures; save each "
				      "field as an array of its own");
	if (npy_next(t, '('))
		return error_set(
			err, -ENOTSUP,
			"its elements are arrays of a type (a subarray "
			"without a field), which NumPy itself does "
			"not save");
	if (!npy_take_string(t, text, sizeof text))
		return npy_damaged(err, "its type is not a string");
	return in ? dtype_parse_stored(text, in, &f->dtype, err)
		  : dtype_parse(text, &f->dtype, err);
}

static int npy_read_order(struct npy_text *t, struct intern *in,
			  struct npy_file *f, struct error *err)
{
	(void)in;
	f->fortran = npy_take_word(t, "True");
	if (!f->fortran && !npy_take_word(t, "False"))
		return npy_damaged(err,
				   "fortran_order is neither True nor False");
	return 0;
}

/* Turn an error in a value into one that says that the header is damaged. */
static int npy_error_as_damaged(int r, struct error *err)
{
	static const char why[] = "its .npy header is damaged: ";

	if (r != -EINVAL && r != -EBADMSG)
		return r;
	if (err && strncmp(err->text, why, sizeof why - 1) != 0)
		error_prefix(err, "%s", why);
	if (err)
		err->code = -EBADMSG;
	return -EBADMSG;
}

static int npy_read_dictionary(struct npy_text *t, struct intern *in,
			       struct npy_file *f, struct error *err)
{
	static const struct {
		const char *name;
		int (*read)(struct npy_text *t, struct intern *in,
			    struct npy_file *f, struct error *err);
	} keys[] = {{"descr", npy_read_descr},
		    {"fortran_order", npy_read_order},
		    {"shape", npy_read_shape}};
	bool comma = true;
	unsigned seen = 0, i;
	char name[16];

	if (!npy_take(t, '{'))
		return npy_damaged(err, "it is not a dictionary");
	while (!npy_take(t, '}')) {
		int r;

		if (!comma || !npy_take_string(t, name, sizeof name))
			return npy_damaged(err, "it is not a dictionary");
		for (i = 0; i < 3 && strcmp(name, keys[i].name) != 0; i++)
			;
		if (i == 3 || !npy_take(t, ':'))
			return npy_damaged(err,
					   "it is not a dictionary of descr, "
					   "fortran_order and shape");
		seen |= 1u << i;
		r = npy_error_as_damaged(keys[i].read(t, in, f, err), err);
		if (r < 0)
			return r;
		comma = npy_take(t, ',');
	}
	if (seen != 7)
		return npy_damaged(err,
				   "descr, fortran_order or shape is missing");
	return !npy_ends(t) ? npy_damaged(err, "text behind the dictionary")
			    : 0;
}

static int npy_count_elements(struct npy_file *f, struct error *err)
{
	uint64_t end;

	f->elements = 1;
	for (unsigned i = 0; i < f->rank; i++)
		if (f->shape[i] == 0)
			f->elements = 0;
	for (unsigned i = 0; i < f->rank && f->elements; i++)
		if (mul_overflows(f->elements, f->shape[i], &f->elements))
			return npy_damaged(err,
					   "its shape has too many elements");
	if (mul_overflows(f->elements, f->dtype.size, &f->bytes) ||
	    add_overflows(f->bytes, f->data, &end) || end > INT64_MAX)
		return npy_damaged(err, "its shape has too many elements");
	return 0;
}

int npy_read(const void *data, size_t n, struct intern *in,
	     struct npy_file *out, struct error *err)
{
	const unsigned char *p = data;
	struct npy_file f = {.rank = 0};
	size_t head, length;
	struct npy_text t;
	int r;

	if (n < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
		return error_set(err, -EBADMSG, "not a .npy file");
	if (p[6] < 1 || p[6] > 3 || p[7] != 0)
		return error_set(
			err, -ENOTSUP,
			"version %u.%u of the .npy format is not supported",
			p[6], p[7]);
	head = p[6] == 1 ? 10 : 12;
	if (n < head)
		return npy_damaged(err, "it is cut off");
	length = p[6] == 1 ? load_le16(p + 8) : load_le32(p + 8);
	if (length > NPY_HEADER_MOST - head)
		return error_set(err, -ENOTSUP,
				 "its .npy header has %zu bytes, which is too "
				 "long (NumPy itself reads at most 10 000)",
				 length);
	if (n - head < length)
		return npy_damaged(err, "it is cut off");
	f.data = head + length;
	t = (struct npy_text){.at = (const char *)p + head,
			      .end = (const char *)p + head + length,
			      .utf8 = p[6] == 3};
	r = npy_read_dictionary(&t, in, &f, err);
	if (r == 0)
		r = npy_count_elements(&f, err);
	if (r == 0)
		*out = f;
	return r;
}
