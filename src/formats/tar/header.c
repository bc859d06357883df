/* SPDX-License-Identifier: BSD-2-Clause */
/* tar headers: whether a block is one, of which dialect, and the numbers in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/tar/private.h"

/* ---- buffers ------------------------------------------------------------- */

char *tar_text_room(struct tar_text *t, size_t n)
{
	size_t want = t->room ? t->room : 128;
	char *p;

	if (n > SIZE_MAX / 4 || t->n > SIZE_MAX / 4)
		return NULL;
	if (t->at && t->n + n < t->room)
		return t->at + t->n;
	while (want <= t->n + n)
		want *= 2;
	p = realloc(t->at, want);
	if (!p)
		return NULL;
	t->at = p;
	t->room = want;
	t->at[t->n] = '\0';
	return t->at + t->n;
}

bool tar_text_add(struct tar_text *t, const void *data, size_t n)
{
	char *to = tar_text_room(t, n);

	if (!to)
		return false;
	if (n)
		memcpy(to, data, n);
	t->n += n;
	t->at[t->n] = '\0';
	return true;
}

const char *tar_shown(const char *name, char buf[TAR_SHOWN])
{
	size_t n = strlen(name), i;

	if (n >= TAR_SHOWN) {
		name += n - (TAR_SHOWN - 1);
		n = TAR_SHOWN - 1;
	}
	for (i = 0; i < n; i++)
		buf[i] = (unsigned char)name[i] < 32 || name[i] == 127
				 ? '?'
				 : name[i];
	buf[n] = '\0';
	return buf;
}

/* ---- fields -------------------------------------------------------------- */

size_t tar_length(const char *field, size_t n)
{
	const char *end = memchr(field, '\0', n);

	return end ? (size_t)(end - field) : n;
}

/* Parse a binary number: two's complement, big-endian.  The first bit marks it as
 * binary, the second is the sign. */
static int binary_number(const unsigned char *p, size_t n, int64_t *out)
{
	bool minus = p[0] & 0x40;
	uint64_t v = minus ? ~UINT64_C(0) : 0;
	unsigned char high = (unsigned char)(minus ? p[0] : p[0] & 0x7f);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = i ? p[i] : high;

		/* The byte that the shift drops must be all sign. */
		if ((v >> 55) != (minus ? 0x1ff : 0)) {
			*out = minus ? INT64_MIN : INT64_MAX;
			return -ERANGE;
		}
		v = v << 8 | c;
	}
	*out = (int64_t)v;
	return 0;
}

static bool is_field_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int octal_number(const char *p, const char *end, int64_t *out)
{
	bool minus = p < end && *p == '-';
	uint64_t v = 0;

	for (p += minus; p < end && *p >= '0' && *p <= '7'; p++) {
		if (v >> 60) {
			*out = minus ? INT64_MIN : INT64_MAX;
			return -ERANGE;
		}
		v = v << 3 | (uint64_t)(*p - '0');
	}
	*out = minus ? -(int64_t)v : (int64_t)v;
	return p == end || *p == '\0' || is_field_blank(*p) ? 0 : -EINVAL;
}

int tar_number(const char *field, size_t n, int64_t *out)
{
	const char *p = field, *end = field + n;

	if (*field & 0x80)
		return binary_number((const unsigned char *)field, n, out);
	/* Some old writers overwrite the first byte of this field with the NUL of
	 * the one in front. */
	if (*p == '\0')
		p++;
	while (p < end && is_field_blank(*p))
		p++;
	return octal_number(p, end, out);
}

/* ---- blocks -------------------------------------------------------------- */

enum tar_dialect tar_dialect(const struct tar_header *h)
{
	if (memcmp(h->magic, "ustar", 5) != 0)
		return TAR_V7;
	return memcmp(h->magic, "ustar  ", 7) == 0 ? TAR_GNU : TAR_USTAR;
}

bool tar_is_zero(const void *block)
{
	static const unsigned char zero[TAR_BLOCK];

	return memcmp(block, zero, TAR_BLOCK) == 0;
}

bool tar_is_header(const struct tar_header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	const size_t from = offsetof(struct tar_header, sum);
	uint32_t sum = 0, high = 0;
	int64_t stored;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		sum += p[i];
		high += p[i] >> 7;
	}
	for (size_t i = from; i < from + sizeof h->sum; i++) {
		sum += (uint32_t)' ' - p[i];
		high -= p[i] >> 7;
	}
	if (tar_number(h->sum, sizeof h->sum, &stored) < 0 &&
	    tar_number(h->sum, sizeof h->sum - 2, &stored) < 0)
		return false;
	/* All other fields are zeros: this is not a header. */
	if (sum == 8 * ' ')
		return false;
	return stored == (int64_t)sum ||
	       stored == (int64_t)sum - 256 * (int64_t)high;
}
