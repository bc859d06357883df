/* SPDX-License-Identifier: BSD-2-Clause */
/* The literals of Python that headers of .npy files consist of. */
#include "tensor/npy_literal.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "tensor/grid.h"

static void skip_blanks(struct npy_text *t)
{
	while (t->at < t->end && strchr(" \t\r\n\f", *t->at) && *t->at)
		t->at++;
}

bool npy_next(struct npy_text *t, char c)
{
	skip_blanks(t);
	return t->at < t->end && *t->at == c;
}

bool npy_take(struct npy_text *t, char c)
{
	if (!npy_next(t, c))
		return false;
	t->at++;
	return true;
}

bool npy_ends(struct npy_text *t)
{
	skip_blanks(t);
	return t->at == t->end;
}

bool npy_take_word(struct npy_text *t, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(t);
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

bool npy_take_number(struct npy_text *t, uint64_t *out)
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

int npy_take_shape(struct npy_text *t, unsigned *rank, uint64_t *shape,
		   struct error *err)
{
	bool comma = true;
	unsigned n = 0;

	if (!npy_take(t, '('))
		return error_set(err, -EBADMSG, "a shape is no tuple");
	while (!npy_take(t, ')')) {
		if (!comma)
			return error_set(err, -EBADMSG, "a shape is no tuple");
		if (n == RANK_MAX)
			return error_set(err, -ENOTSUP,
					 "an array of more than %d axes",
					 RANK_MAX);
		if (!npy_take_number(t, &shape[n++]))
			return error_set(err, -EBADMSG,
					 "a shape has what is no size");
		comma = npy_take(t, ',');
	}
	/* (3) is a number. */
	if (n == 1 && !comma)
		return error_set(err, -EBADMSG, "a shape is no tuple");
	*rank = n;
	return 0;
}

/* ---- strings ------------------------------------------------------------- */

struct out {
	char *at;
	size_t n, room; /* for all but the end */
};

static bool put(struct out *o, unsigned char byte)
{
	if (!byte || o->n == o->room)
		return false;
	o->at[o->n++] = (char)byte;
	return true;
}

/* As UTF-8. */
static bool put_char(struct out *o, uint32_t c)
{
	if (c < 0x80)
		return put(o, (unsigned char)c);
	if (c < 0x800)
		return put(o, (unsigned char)(0xc0 | c >> 6)) &&
		       put(o, (unsigned char)(0x80 | (c & 0x3f)));
	if (c >= 0xdc80 && c <= 0xdcff)
		return put(o, (unsigned char)(c - 0xdc00));
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return false;
	if (c >= 0x10000 && !(put(o, (unsigned char)(0xf0 | c >> 18)) &&
			      put(o, (unsigned char)(0x80 | (c >> 12 & 0x3f)))))
		return false;
	if (c < 0x10000 && !put(o, (unsigned char)(0xe0 | c >> 12)))
		return false;
	return put(o, (unsigned char)(0x80 | (c >> 6 & 0x3f))) &&
	       put(o, (unsigned char)(0x80 | (c & 0x3f)));
}

static bool take_hex(struct npy_text *t, unsigned digits, uint32_t *out)
{
	static const char hex[] = "0123456789abcdef";

	for (*out = 0; digits; digits--, t->at++) {
		const char *at;

		if (t->at == t->end || !*t->at)
			return false;
		at = strchr(hex, *t->at >= 'A' && *t->at <= 'F'
					 ? *t->at - 'A' + 'a'
					 : *t->at);
		if (!at)
			return false;
		*out = *out << 4 | (uint32_t)(at - hex);
	}
	return true;
}

/* Behind the backslash: what repr() writes. */
static bool take_escape(struct npy_text *t, struct out *o)
{
	static const char plain[] = "\\'\"tnr", meant[] = "\\'\"\t\n\r";
	const char *at;
	uint32_t c;

	if (t->at == t->end || !*t->at)
		return false;
	at = strchr(plain, *t->at);
	if (at) {
		t->at++;
		return put(o, (unsigned char)meant[at - plain]);
	}
	switch (*t->at++) {
	case 'x':
		return take_hex(t, 2, &c) && put_char(o, c);
	case 'u':
		return take_hex(t, 4, &c) && put_char(o, c);
	case 'U':
		return take_hex(t, 8, &c) && put_char(o, c);
	default:
		return false;
	}
}

bool npy_take_string(struct npy_text *t, char *out, size_t room)
{
	struct out o = {.at = out, .room = room - 1};
	char quote;

	skip_blanks(t);
	if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
		return false;
	quote = *t->at++;
	while (t->at < t->end && *t->at != quote) {
		unsigned char c = (unsigned char)*t->at++;
		bool ok = c == '\\' ? take_escape(t, &o)
			  : t->utf8 ? put(&o, c)
				    : put_char(&o, c);

		if (!ok)
			return false;
	}
	out[o.n] = '\0';
	return t->at++ < t->end;
}
