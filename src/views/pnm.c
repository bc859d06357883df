/* SPDX-License-Identifier: BSD-2-Clause */
/* Read Netpbm's images: PGM and PPM, plain and raw. */
#include "views/pnm.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

static bool pnm_is_blank(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int pnm_damaged(struct error *err, const char *what)
{
	return error_set(err, -EBADMSG, "the image is damaged: %s", what);
}

/* Read the number at *at, behind blanks and comments; a comment ends with its line. */
static int pnm_read_number(const unsigned char *p, size_t n, size_t *at,
			   uint64_t most, const char *what, uint64_t *out,
			   struct error *err)
{
	size_t i = *at;
	uint64_t v = 0;

	for (; i < n && (pnm_is_blank(p[i]) || p[i] == '#'); i++)
		if (p[i] == '#')
			while (i + 1 < n && p[i] != '\n' && p[i] != '\r')
				i++;
	if (i == *at || i == n || p[i] < '0' || p[i] > '9')
		return error_set(err, -EBADMSG,
				 "the image is damaged: its header has no %s",
				 what);
	for (; i < n && p[i] >= '0' && p[i] <= '9'; i++) {
		v = v * 10 + (uint64_t)(p[i] - '0');
		if (v > most)
			return error_set(err, -EBADMSG,
					 "the image is damaged: its %s is more "
					 "than %llu",
					 what, (unsigned long long)most);
	}
	if (v == 0)
		return error_set(err, -EBADMSG,
				 "the image is damaged: its %s is 0", what);
	*at = i;
	*out = v;
	return 0;
}

static int pnm_read_format(const unsigned char *p, size_t n, struct pnm *f,
			   struct error *err)
{
	if (n < 3 || p[0] != 'P' || p[1] < '1' || p[1] > '7')
		return error_set(err, -EBADMSG, "not a PGM or PPM image");
	if (p[1] == '1' || p[1] == '4')
		return error_set(err, -ENOTSUP,
				 "PBM bitmaps are not supported: convert it "
				 "with pbmtopgm");
	if (p[1] == '7')
		return error_set(err, -ENOTSUP,
				 "PAM images are not supported: convert it "
				 "with pamtopnm");
	f->plain = p[1] < '4';
	f->channels = p[1] == '3' || p[1] == '6' ? 3 : 1;
	return 0;
}

int pnm_read(const void *data, size_t n, struct pnm *out, struct error *err)
{
	const unsigned char *p = data;
	struct pnm f = {.plain = false};
	uint64_t maxval = 0, end;
	size_t at = 2;
	int r;

	if (n > PNM_HEADER_MOST)
		n = PNM_HEADER_MOST;
	r = pnm_read_format(p, n, &f, err);
	if (r == 0)
		r = pnm_read_number(p, n, &at, INT32_MAX, "width", &f.width,
				    err);
	if (r == 0)
		r = pnm_read_number(p, n, &at, INT32_MAX, "height", &f.height,
				    err);
	if (r == 0)
		r = pnm_read_number(p, n, &at, 65535, "maxval", &maxval, err);
	if (r < 0)
		return r;
	/* One blank separates header and raster. */
	if (at == n || !pnm_is_blank(p[at]))
		return pnm_damaged(err, "it ends in its header");
	f.maxval = (uint32_t)maxval;
	f.depth = maxval > 255 ? 2 : 1;
	f.data = at + 1;
	if (mul_overflows(f.width, f.height, &f.bytes) ||
	    mul_overflows(f.bytes, f.channels * f.depth, &f.bytes) ||
	    add_overflows(f.bytes, f.data, &end) || end > INT64_MAX)
		return pnm_damaged(err, "it is too large");
	*out = f;
	return 0;
}

/* ---- plain rasters --------------------------------------------------------- */

static int pnm_put_number(struct pnm_plain *p, const struct pnm *image,
			  unsigned char *out, size_t *made, struct error *err)
{
	if (p->done == image->bytes)
		return pnm_damaged(err, "more numbers than its size says");
	if (image->depth == 2)
		out[(*made)++] = (unsigned char)(p->value >> 8);
	out[(*made)++] = (unsigned char)p->value;
	p->done += image->depth;
	p->digits = false;
	p->value = 0;
	return 0;
}

int pnm_plain_take(struct pnm_plain *p, const struct pnm *image,
		   const void *text, size_t n, void *out, size_t *made,
		   struct error *err)
{
	const unsigned char *s = text;
	int r = 0;

	*made = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (p->comment) {
			p->comment = s[i] != '\n' && s[i] != '\r';
		} else if (s[i] >= '0' && s[i] <= '9') {
			p->digits = true;
			p->value = p->value * 10 + (uint32_t)(s[i] - '0');
			if (p->value > image->maxval)
				return pnm_damaged(err,
						   "a number above its maxval");
		} else if (pnm_is_blank(s[i]) || s[i] == '#') {
			if (p->digits)
				r = pnm_put_number(p, image, out, made, err);
			p->comment = s[i] == '#';
		} else {
			return pnm_damaged(err, "text that is not a number");
		}
	}
	return r;
}

int pnm_plain_end(struct pnm_plain *p, const struct pnm *image, void *out,
		  size_t *made, struct error *err)
{
	int r = 0;

	*made = 0;
	if (p->digits)
		r = pnm_put_number(p, image, out, made, err);
	if (r == 0 && p->done < image->bytes)
		r = pnm_damaged(err, "fewer numbers than its size says");
	return r;
}
