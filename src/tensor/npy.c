/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of .npy files as np.save writes them. */
#include "tensor/dtype.h"

#include <string.h>

#include "base/number.h"

/*
 *	front	magic, version, length, "{'descr': "
 *	descr	'<f4', or the list of a structure's fields
 *	back	", 'fortran_order': False, 'shape': (3, 4), }", spaces, '\n'
 *
 * The dictionary's keys are sorted.  Spaces leave room for the first axis to grow to 21
 * digits and then fill up to a multiple of 64 bytes (a whole 64 when nothing is
 * missing).  The text is Latin-1 if that has all its characters (versions 1 and 2),
 * else UTF-8 (version 3).
 *
 * `descr` is UTF-8 as dtype_descr writes it, so it has characters beyond ASCII only
 * where Python prints them.  Usually it has none, and its bytes are served in place.
 * If it has some and Latin-1 has them all, the text is shorter in Latin-1: then its
 * last byte is not at h->descr_len, and bytes are translated as they are copied.
 */
static const char front_text[] = "{'descr': ";
static const char back_text[] = ", 'fortran_order': False, 'shape': ";
#define GROWTH 21

static const char *npy_descr(const struct npy_header *h)
{
	return h->descr ? h->descr : h->simple;
}

static bool npy_descr_is_latin1(const struct npy_header *h)
{
	return h->descr && h->descr[h->descr_len];
}

/* Return the index of the first byte of `s` from `i` on that is not ASCII, or n.  It
 * compares eight at once, because headers are made for every request. */
static size_t skip_ascii(const char *s, size_t i, size_t n)
{
	uint64_t word;

	for (; i + sizeof word <= n; i += sizeof word) {
		memcpy(&word, s + i, sizeof word);
		if (word & UINT64_C(0x8080808080808080))
			break;
	}
	while (i < n && !(s[i] & 0x80))
		i++;
	return i;
}

/* Return the bytes of `s` as Latin-1; or, if Latin-1 lacks a character, set *utf8 and
 * return the bytes as UTF-8. */
static size_t encoded_length(const char *s, bool *utf8)
{
	size_t n = strlen(s), two = 0, i = skip_ascii(s, 0, n);

	*utf8 = false;
	for (; i < n; i = skip_ascii(s, i + 2, n), two++)
		if ((unsigned char)s[i] >= 0xc4) {
			*utf8 = true;
			return n;
		}
	return n - two;
}

/* Write `n` bytes of `descr` as Latin-1, from byte `from` of that on. */
static void descr_to_latin1(const char *descr, size_t from, unsigned char *out,
			    size_t n)
{
	const unsigned char *s = (const unsigned char *)descr;

	for (; from; from--)
		s += *s < 0x80 ? 1 : 2;
	for (; n; n--, out++) {
		*out = *s < 0x80
			       ? *s
			       : (unsigned char)((*s & 3) << 6 | (s[1] & 0x3f));
		s += *s < 0x80 ? 1 : 2;
	}
}

/* Write the text from 'fortran_order' to the spaces for growth.  Return its bytes, or 0
 * if it is too long. */
static size_t npy_back_begin(unsigned rank, const uint64_t *shape, char *buf,
			     size_t n)
{
	size_t used = sizeof back_text - 1;
	size_t spaces = rank ? GROWTH - digits_of(shape[0]) : 0;

	memcpy(buf, back_text, used);
	dtype_shape_text(shape, rank, buf + used, n - used);
	used += strlen(buf + used);
	if (n - used < 3 + GROWTH + 1)
		return 0;
	memcpy(buf + used, ", }", 3);
	memset(buf + used + 3, ' ', spaces);
	return used + 3 + spaces;
}

/* Write magic, version, length and the beginning of the text; return the bytes. */
static size_t npy_front_write(unsigned char *front, bool utf8, size_t text)
{
	size_t at = 8, head = 10, pad = 64 - (10 + text) % 64;
	unsigned version = 1;

	if (utf8 || text + pad > 65535) {
		version = utf8 ? 3 : 2;
		head = 12;
		pad = 64 - (head + text) % 64;
	}
	memcpy(front, "\x93NUMPY", 6);
	front[6] = (unsigned char)version;
	front[7] = 0;
	for (; at < head; at++)
		front[at] =
			(unsigned char)((text + pad) >> 8 * (at - 8) & 0xff);
	memcpy(front + head, front_text, sizeof front_text - 1);
	return head + sizeof front_text - 1;
}

bool dtype_npy_header(const struct dtype *d, const char *descr, unsigned rank,
		      const uint64_t *shape, struct npy_header *out)
{
	size_t used = npy_back_begin(rank, shape, out->back, NPY_BACK_MAX - 64);
	size_t text, n = 0;
	bool utf8;

	if (!used || (d->kind == DTYPE_STRUCT && !descr))
		return false;
	out->descr = d->kind == DTYPE_STRUCT ? descr : NULL;
	if (!out->descr) {
		n = dtype_descr(d, out->simple + 1, sizeof out->simple - 2);
		if (n >= sizeof out->simple - 2)
			return false;
		out->simple[0] = out->simple[1 + n] = '\'';
		out->simple[2 + n] = '\0';
	}
	out->descr_len = encoded_length(npy_descr(out), &utf8);
	text = sizeof front_text - 1 + out->descr_len + used + 1;
	if (text > UINT32_MAX - 64)
		return false;
	out->front_len = npy_front_write(out->front, utf8, text);
	n = out->front_len + out->descr_len + used + 1;
	out->total = n + 64 - n % 64;
	out->back_len = out->total - out->front_len - out->descr_len;
	memset(out->back + used, ' ', out->back_len - used);
	out->back[out->back_len - 1] = '\n';
	return true;
}

/* Append the descr from byte `at` on to the plan.  Return true if it fits to its end. */
static bool npy_descr_map(const struct npy_header *h, size_t at,
			  struct plan *plan)
{
	unsigned char bytes[256];

	if (h->descr && !npy_descr_is_latin1(h))
		return plan_mem(plan, h->descr + at, h->descr_len - at) ==
		       h->descr_len - at;
	while (at < h->descr_len) {
		size_t n = min_u64(h->descr_len - at, sizeof bytes);

		if (h->descr)
			descr_to_latin1(h->descr, at, bytes, n);
		else
			memcpy(bytes, h->simple + at, n);
		if (plan_copy(plan, bytes, n) < n)
			return false;
		at += n;
	}
	return true;
}

uint64_t dtype_npy_map(const struct npy_header *h, uint64_t off,
		       struct plan *plan)
{
	uint64_t had = plan->have;
	size_t at = (size_t)off;

	if (at < h->front_len) {
		plan_copy(plan, h->front + at, h->front_len - at);
		at = h->front_len;
	}
	at -= h->front_len;
	if (at < h->descr_len) {
		if (!npy_descr_map(h, at, plan))
			return plan->have - had;
		at = h->descr_len;
	}
	at -= h->descr_len;
	plan_copy(plan, h->back + at, h->back_len - at);
	return plan->have - had;
}

void dtype_npy_write(const struct npy_header *h, void *buf)
{
	unsigned char *out = buf;

	memcpy(out, h->front, h->front_len);
	out += h->front_len;
	if (npy_descr_is_latin1(h))
		descr_to_latin1(h->descr, 0, out, h->descr_len);
	else
		memcpy(out, npy_descr(h), h->descr_len);
	memcpy(out + h->descr_len, h->back, h->back_len);
}
