/* SPDX-License-Identifier: BSD-2-Clause */
/* Read the Python literals that headers of .npy files consist of. */
#include "tensor/npy_literal.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "tensor/grid.h"

/* Skip blanks, comments, and newlines behind a backslash. */
static void literal_skip_blanks(struct npy_text *t)
{
	while (t->at < t->end && *t->at) {
		if (strchr(" \t\r\n\f", *t->at)) {
			t->at++;
		} else if (*t->at == '#') {
			while (t->at < t->end && *t->at != '\n')
				t->at++;
		} else if (*t->at == '\\' && t->end - t->at > 1 &&
			   t->at[1] == '\n') {
			t->at += 2;
		} else {
			return;
		}
	}
}

bool npy_next(struct npy_text *t, char c)
{
	literal_skip_blanks(t);
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
	literal_skip_blanks(t);
	return t->at == t->end;
}

bool npy_take_word(struct npy_text *t, const char *word)
{
	size_t n = strlen(word);

	literal_skip_blanks(t);
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

static int literal_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Skip a prefix 0x, 0o or 0b and return its base; 10 without a prefix. */
static int literal_read_base(struct npy_text *t)
{
	static const char letters[] = "xob";
	static const int bases[] = {16, 8, 2};
	const char *at;

	if (t->end - t->at < 3 || *t->at != '0')
		return 10;
	at = strchr(letters, t->at[1] | 0x20);
	if (!at || !*at)
		return 10;
	t->at += 2;
	return bases[at - letters];
}

/* Read digits of a base, with underscores between them. */
static bool literal_read_digits(struct npy_text *t, int base, uint64_t *out)
{
	const char *from = t->at;
	uint64_t v = 0;
	int d;

	for (; t->at < t->end; t->at++) {
		if (*t->at == '_' && t->end - t->at > 1 && t->at > from &&
		    t->at[-1] != '_' && literal_digit(t->at[1]) < base)
			continue;
		d = literal_digit(*t->at);
		if (d >= base)
			break;
		/* 010 was 8 in Python 2 and is an error in Python 3. */
		if (base == 10 && v == 0 && t->at > from && d)
			return false;
		if (mul_overflows(v, (uint64_t)base, &v) ||
		    add_overflows(v, (uint64_t)d, &v))
			return false;
	}
	*out = v;
	return t->at > from;
}

bool npy_take_number(struct npy_text *t, uint64_t *out)
{
	int base;

	npy_take(t, '+');
	literal_skip_blanks(t);
	base = literal_read_base(t);
	if (!literal_read_digits(t, base, out))
		return false;
	if (t->at < t->end && *t->at == 'L')
		t->at++;
	return true;
}

int npy_take_shape(struct npy_text *t, unsigned *rank, uint64_t *shape,
		   struct error *err)
{
	bool comma = true;
	unsigned n = 0;

	if (!npy_take(t, '('))
		return error_set(err, -EBADMSG, "a shape is not a tuple");
	while (!npy_take(t, ')')) {
		if (!comma)
			return error_set(err, -EBADMSG,
					 "a shape is not a tuple");
		if (n == RANK_MAX)
			return error_set(err, -ENOTSUP,
					 "its shape has more than %d axes",
					 RANK_MAX);
		if (npy_next(t, '-'))
			return error_set(err, -ENOTSUP,
					 "its shape has a negative size, which "
					 "NumPy infers from the data: load it "
					 "with NumPy, and save it again");
		if (!npy_take_number(t, &shape[n++]))
			return error_set(
				err, -EBADMSG,
				"a shape has an entry that is not a size");
		comma = npy_take(t, ',');
	}
	/* (3) is a number, not a tuple. */
	if (n == 1 && !comma)
		return error_set(err, -EBADMSG, "a shape is not a tuple");
	*rank = n;
	return 0;
}

/* ---- strings ------------------------------------------------------------- */

struct literal_out {
	char *at;
	size_t n, room; /* bytes without the NUL */
};

static bool literal_put_byte(struct literal_out *o, unsigned char byte)
{
	if (!byte || o->n == o->room)
		return false;
	o->at[o->n++] = (char)byte;
	return true;
}

/* Append a character as UTF-8.  U+DC80 to U+DCFF become single bytes. */
static bool literal_put_character(struct literal_out *o, uint32_t c)
{
	if (c < 0x80)
		return literal_put_byte(o, (unsigned char)c);
	if (c < 0x800)
		return literal_put_byte(o, (unsigned char)(0xc0 | c >> 6)) &&
		       literal_put_byte(o, (unsigned char)(0x80 | (c & 0x3f)));
	if (c >= 0xdc80 && c <= 0xdcff)
		return literal_put_byte(o, (unsigned char)(c - 0xdc00));
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return false;
	if (c >= 0x10000 &&
	    !(literal_put_byte(o, (unsigned char)(0xf0 | c >> 18)) &&
	      literal_put_byte(o, (unsigned char)(0x80 | (c >> 12 & 0x3f)))))
		return false;
	if (c < 0x10000 &&
	    !literal_put_byte(o, (unsigned char)(0xe0 | c >> 12)))
		return false;
	return literal_put_byte(o, (unsigned char)(0x80 | (c >> 6 & 0x3f))) &&
	       literal_put_byte(o, (unsigned char)(0x80 | (c & 0x3f)));
}

static bool literal_read_hex(struct npy_text *t, unsigned digits, uint32_t *out)
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

/* Read up to three octal digits. */
static bool literal_read_octal(struct npy_text *t, uint32_t *out)
{
	*out = 0;
	for (unsigned i = 0;
	     i < 3 && t->at < t->end && *t->at >= '0' && *t->at <= '7'; i++)
		*out = *out << 3 | (uint32_t)(*t->at++ - '0');
	return true;
}

/* Read the rest of an escape, behind the backslash. */
static bool literal_read_escape(struct npy_text *t, struct literal_out *o)
{
	static const char plain[] = "\\'\"tnrabfv",
			  meant[] = "\\'\"\t\n\r\a\b\f\v";
	const char *at;
	uint32_t c;

	if (t->at == t->end || !*t->at)
		return false;
	at = strchr(plain, *t->at);
	if (at) {
		t->at++;
		return literal_put_byte(o, (unsigned char)meant[at - plain]);
	}
	if (*t->at >= '0' && *t->at <= '7')
		return literal_read_octal(t, &c) && literal_put_character(o, c);
	switch (*t->at++) {
	case '\n':
		return true;
	case 'x':
		return literal_read_hex(t, 2, &c) &&
		       literal_put_character(o, c);
	case 'u':
		return literal_read_hex(t, 4, &c) &&
		       literal_put_character(o, c);
	case 'U':
		return literal_read_hex(t, 8, &c) &&
		       literal_put_character(o, c);
	case 'N': /* a character by its name is not supported */
		return false;
	default: /* not an escape: the backslash stays */
		t->at--;
		return literal_put_byte(o, '\\');
	}
}

static bool literal_ends_here(const struct npy_text *t, char quote, size_t n)
{
	if ((size_t)(t->end - t->at) < n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (t->at[i] != quote)
			return false;
	return true;
}

/* Read one literal, in single or triple quotes. */
static bool literal_read_quoted(struct npy_text *t, struct literal_out *o)
{
	char quote = *t->at;
	size_t n = literal_ends_here(t, quote, 3) ? 3 : 1;

	for (t->at += n; !literal_ends_here(t, quote, n);) {
		unsigned char c;
		bool ok;

		if (t->at == t->end)
			return false;
		c = (unsigned char)*t->at++;
		ok = c == '\\' ? literal_read_escape(t, o)
		     : t->utf8 ? literal_put_byte(o, c)
			       : literal_put_character(o, c);
		if (!ok)
			return false;
	}
	t->at += n;
	return true;
}

/* Does a string literal follow?  A 'u' in front of it is skipped and means nothing. */
static bool literal_next_is_string(struct npy_text *t)
{
	literal_skip_blanks(t);
	if (t->end - t->at > 1 && (*t->at | 0x20) == 'u' &&
	    (t->at[1] == '\'' || t->at[1] == '"'))
		t->at++;
	return t->at < t->end && (*t->at == '\'' || *t->at == '"');
}

bool npy_take_string(struct npy_text *t, char *out, size_t room)
{
	struct literal_out o = {.at = out, .room = room - 1};

	if (!literal_next_is_string(t))
		return false;
	do /* adjacent literals are one string */
		if (!literal_read_quoted(t, &o))
			return false;
	while (literal_next_is_string(t));
	out[o.n] = '\0';
	return true;
}
