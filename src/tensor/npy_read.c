/* SPDX-License-Identifier: BSD-2-Clause */
/* What a .npy file says it is. */
#include "tensor/npy_read.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "tensor/dtype_parse.h"

/*
 * The header is a literal of Python: {'descr': '<f4', 'fortran_order': False, 'shape':
 * (3, 4), }.  It is read as that language has it (blanks anywhere, both quotes, a comma
 * at the end or not), but for escapes in strings, which no type of numbers needs.
 */
struct text {
	const char *at, *end;
};

static int damaged(struct error *err, const char *what)
{
	return error_set(err, -EBADMSG, "a damaged .npy header: %s", what);
}

static void skip_blanks(struct text *t)
{
	while (t->at < t->end && strchr(" \t\r\n\f", *t->at) && *t->at)
		t->at++;
}

/* The next character that is no blank, when it is `c`. */
static bool take(struct text *t, char c)
{
	skip_blanks(t);
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

static bool take_word(struct text *t, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(t);
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

/* A string without escapes; false: there is none, or it does not fit. */
static bool take_string(struct text *t, char *out, size_t room)
{
	size_t n = 0;
	char quote;

	skip_blanks(t);
	if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
		return false;
	quote = *t->at++;
	for (; t->at < t->end && *t->at != quote; t->at++) {
		if (*t->at == '\\' || !*t->at || n + 1 >= room)
			return false;
		out[n++] = *t->at;
	}
	out[n] = '\0';
	return t->at++ < t->end;
}

static bool take_number(struct text *t, uint64_t *out)
{
	uint64_t v = 0;
	const char *from;

	skip_blanks(t);
	for (from = t->at; t->at < t->end && *t->at >= '0' && *t->at <= '9';
	     t->at++)
		if (mul_overflows(v, 10, &v) ||
		    add_overflows(v, (uint64_t)(*t->at - '0'), &v))
			return false;
	if (t->at == from)
		return false;
	if (t->at < t->end && *t->at == 'L')
		t->at++;
	*out = v;
	return true;
}

static int read_shape(struct text *t, struct npy_file *f, struct error *err)
{
	bool comma = true;

	if (!take(t, '('))
		return damaged(err, "its shape is no tuple");
	while (!take(t, ')')) {
		if (!comma)
			return damaged(err, "its shape is no tuple");
		if (f->rank == RANK_MAX)
			return error_set(err, -ENOTSUP,
					 "an array of more than %d axes",
					 RANK_MAX);
		if (!take_number(t, &f->shape[f->rank]))
			return damaged(err, "its shape has what is no size");
		f->rank++;
		comma = take(t, ',');
	}
	/* (3) is a number. */
	if (f->rank == 1 && !comma)
		return damaged(err, "its shape is no tuple");
	return 0;
}

static int read_descr(struct text *t, struct npy_file *f, struct error *err)
{
	char text[64];
	int r;

	skip_blanks(t);
	if (t->at < t->end && (*t->at == '[' || *t->at == '('))
		return error_set(err, -ENOTSUP,
				 "its elements are structures; save each field "
				 "as an array of its own");
	if (!take_string(t, text, sizeof text))
		return damaged(err, "its type is no text");
	r = dtype_parse(text, &f->dtype, err);
	if (r == -EINVAL) {
		error_prefix(err, "a damaged .npy header: ");
		if (err)
			err->code = -EBADMSG;
		r = -EBADMSG;
	}
	return r;
}

static int read_order(struct text *t, struct npy_file *f, struct error *err)
{
	f->fortran = take_word(t, "True");
	if (!f->fortran && !take_word(t, "False"))
		return damaged(err, "fortran_order is neither True nor False");
	return 0;
}

static int read_dictionary(struct text *t, struct npy_file *f,
			   struct error *err)
{
	static const struct {
		const char *name;
		int (*read)(struct text *t, struct npy_file *f,
			    struct error *err);
	} keys[] = {{"descr", read_descr},
		    {"fortran_order", read_order},
		    {"shape", read_shape}};
	bool comma = true;
	unsigned seen = 0, i;
	char name[16];

	if (!take(t, '{'))
		return damaged(err, "it is no dictionary");
	while (!take(t, '}')) {
		int r;

		if (!comma || !take_string(t, name, sizeof name))
			return damaged(err, "it is no dictionary");
		for (i = 0; i < 3 && strcmp(name, keys[i].name) != 0; i++)
			;
		if (i == 3 || (seen & 1u << i) || !take(t, ':'))
			return damaged(err, "it is no dictionary of descr, "
					    "fortran_order and shape");
		seen |= 1u << i;
		r = keys[i].read(t, f, err);
		if (r < 0)
			return r;
		comma = take(t, ',');
	}
	skip_blanks(t);
	if (seen != 7)
		return damaged(err, "descr, fortran_order or shape is missing");
	return t->at < t->end ? damaged(err, "text behind the dictionary") : 0;
}

static int count(struct npy_file *f, struct error *err)
{
	uint64_t end;

	f->elements = 1;
	for (unsigned i = 0; i < f->rank; i++)
		if (f->shape[i] == 0)
			f->elements = 0;
	for (unsigned i = 0; i < f->rank && f->elements; i++)
		if (mul_overflows(f->elements, f->shape[i], &f->elements))
			return damaged(err, "its shape has too many elements");
	if (mul_overflows(f->elements, f->dtype.size, &f->bytes) ||
	    add_overflows(f->bytes, f->data, &end) || end > INT64_MAX)
		return damaged(err, "its shape has too many elements");
	return 0;
}

int npy_read(const void *data, size_t n, struct npy_file *out,
	     struct error *err)
{
	const unsigned char *p = data;
	struct npy_file f = {.rank = 0};
	size_t head, length;
	struct text t;
	int r;

	if (n < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
		return error_set(err, -EBADMSG, "no .npy file");
	if (p[6] < 1 || p[6] > 3 || p[7] != 0)
		return error_set(err, -ENOTSUP,
				 "version %u.%u of .npy is unknown", p[6],
				 p[7]);
	head = p[6] == 1 ? 10 : 12;
	if (n < head)
		return damaged(err, "it is cut off");
	length = p[6] == 1 ? load_le16(p + 8) : load_le32(p + 8);
	if (length > NPY_HEADER_MOST - head)
		return error_set(err, -ENOTSUP,
				 "a .npy header of %zu bytes; NumPy reads none "
				 "of more than 10 000",
				 length);
	if (n - head < length)
		return damaged(err, "it is cut off");
	f.data = head + length;
	t = (struct text){(const char *)p + head,
			  (const char *)p + head + length};
	r = read_dictionary(&t, &f, err);
	if (r == 0)
		r = count(&f, err);
	if (r == 0)
		*out = f;
	return r;
}
