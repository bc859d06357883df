/* SPDX-License-Identifier: BSD-2-Clause */
/* images/ and tiff/: samples of two axes, or of three with red, green and blue. */

/*
 * A file is a header and the sample's numbers.  Samples of bytes, or of 16-bit numbers
 * without a sign, become PGM and PPM (netpbm); 16-bit numbers are big-endian there.
 * All others become TIFF 6.0 in the tensor's byte order: one strip, and one directory
 * in front of it.  The header is padded to TIFF_HEADER bytes, so that rows are aligned.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "views/name.h"
#include "views/samples.h"
#include "views/table.h"

#define TIFF_HEADER 256

struct picture {
	uint64_t width, height;
	unsigned colours; /* 1 or 3 */
};

static bool images_picture(const struct tensor *t, unsigned axes,
			   struct picture *out)
{
	const uint64_t *shape = t->shape + axes;
	unsigned rank = t->rank - axes;

	if (rank != 2 && (rank != 3 || shape[2] != 3))
		return false;
	*out = (struct picture){shape[1], shape[0], rank == 3 ? 3 : 1};
	return out->width && out->height;
}

/* Can a TIFF hold a sample?  Its offsets and lengths have 32 bits. */
static bool tiff_fits(struct tensor *t, unsigned axes)
{
	struct picture p;

	if (!view_is_numeric(t) || !axes || !images_picture(t, axes, &p))
		return false;
	if (t->dtype.kind != DTYPE_INT && t->dtype.kind != DTYPE_UINT &&
	    t->dtype.kind != DTYPE_FLOAT && t->dtype.kind != DTYPE_BOOL)
		return false;
	return t->dtype.size <= 8 &&
	       p.width < UINT32_MAX / p.height / p.colours / t->dtype.size;
}

static bool images_are_pnm(const struct tensor *t)
{
	return t->dtype.size <= 2 &&
	       (t->dtype.kind == DTYPE_UINT || t->dtype.kind == DTYPE_BOOL);
}

static const char *images_suffix(const struct view *v)
{
	struct picture p;

	if (!images_are_pnm(v->tensor) ||
	    !images_picture(v->tensor, v->levels, &p))
		return ".tif";
	return p.colours == 3 ? ".ppm" : ".pgm";
}

static const char *tiff_suffix(const struct view *v)
{
	(void)v;
	return ".tif";
}

/* ---- headers ------------------------------------------------------------- */

/* A TIFF header that is being written, in the byte order that it declares. */
struct tiff {
	unsigned char *out;
	bool big;
	unsigned tags;
};
enum tiff_type { TIFF_SHORT = 3, TIFF_LONG = 4, TIFF_RATIONAL = 5 };

static void tiff_u16(const struct tiff *t, unsigned at, unsigned v)
{
	t->out[at + !t->big] = (unsigned char)(v >> 8);
	t->out[at + t->big] = (unsigned char)v;
}

static void tiff_u32(const struct tiff *t, unsigned at, uint32_t v)
{
	if (t->big)
		store_be32(t->out + at, v);
	else
		store_le32(t->out + at, v);
}

/* Write a tag: `value` is the value, or the offset of several.  Tags have to come in
 * the order of their numbers. */
static void tiff_tag(struct tiff *t, unsigned tag, enum tiff_type type,
		     uint32_t count, uint32_t value)
{
	unsigned at = 10 + 12 * t->tags++;

	tiff_u16(t, at, tag);
	tiff_u16(t, at + 2, type);
	tiff_u32(t, at + 4, count);
	if (type == TIFF_SHORT && count == 1)
		tiff_u16(t, at + 8, value);
	else
		tiff_u32(t, at + 8, value);
}

static unsigned tiff_sample_format(const struct dtype *d)
{
	return d->kind == DTYPE_INT ? 2 : d->kind == DTYPE_FLOAT ? 3 : 1;
}

/* Write the tags that TIFF 6.0 requires of baseline images, and SampleFormat. */
static size_t tiff_header(const struct view *v, const uint64_t *at,
			  unsigned char *out)
{
	enum {
		THREE = TIFF_HEADER - 32,
		FORMATS = THREE + 6,
		DPI = THREE + 16
	};
	const struct dtype *d = &v->tensor->dtype;
	struct tiff t = {.out = out, .big = d->big_endian && d->size > 1};
	uint32_t bits = (uint32_t)d->size * 8, rgb;
	struct picture p;

	(void)at;
	images_picture(v->tensor, v->levels, &p);
	memset(out, 0, TIFF_HEADER);
	memcpy(out, t.big ? "MM" : "II", 2);
	tiff_u16(&t, 2, 42);
	tiff_u32(&t, 4, 8); /* offset of the directory */
	rgb = p.colours == 3;
	for (unsigned i = 0; i < 3; i++) {
		tiff_u16(&t, THREE + 2 * i, bits);
		tiff_u16(&t, FORMATS + 2 * i, tiff_sample_format(d));
	}
	tiff_u32(&t, DPI, 72);
	tiff_u32(&t, DPI + 4, 1);
	tiff_tag(&t, 256, TIFF_LONG, 1, (uint32_t)p.width);
	tiff_tag(&t, 257, TIFF_LONG, 1, (uint32_t)p.height);
	tiff_tag(&t, 258, TIFF_SHORT, p.colours, rgb ? THREE : bits);
	tiff_tag(&t, 259, TIFF_SHORT, 1, 1);          /* not compressed */
	tiff_tag(&t, 262, TIFF_SHORT, 1, 1 + rgb);    /* 0 is black; RGB */
	tiff_tag(&t, 273, TIFF_LONG, 1, TIFF_HEADER); /* the strip */
	tiff_tag(&t, 277, TIFF_SHORT, 1, p.colours);
	tiff_tag(&t, 278, TIFF_LONG, 1, (uint32_t)p.height);
	tiff_tag(&t, 279, TIFF_LONG, 1,
		 (uint32_t)(p.width * p.height * p.colours * d->size));
	tiff_tag(&t, 282, TIFF_RATIONAL, 1, DPI);
	tiff_tag(&t, 283, TIFF_RATIONAL, 1, DPI);
	tiff_tag(&t, 296, TIFF_SHORT, 1, 1); /* no unit of resolution */
	tiff_tag(&t, 339, TIFF_SHORT, p.colours,
		 rgb ? FORMATS : tiff_sample_format(d));
	tiff_u16(&t, 8, t.tags);
	return TIFF_HEADER;
}

static size_t images_header(const struct view *v, const uint64_t *at,
			    unsigned char *out)
{
	struct picture p;

	if (!images_are_pnm(v->tensor))
		return tiff_header(v, at, out);
	images_picture(v->tensor, v->levels, &p);
	return (size_t)snprintf((char *)out, VIEW_HEADER_MAX,
				"P%d\n%" PRIu64 " %" PRIu64 "\n%d\n",
				p.colours == 3 ? 6 : 5, p.width, p.height,
				v->tensor->dtype.kind == DTYPE_BOOL ? 1
				: v->tensor->dtype.size == 1        ? 255
								    : 65535);
}

/* For images/ only: a TIFF declares its byte order. */
static unsigned images_reversed(const struct view *v)
{
	const struct dtype *d = &v->tensor->dtype;

	return images_are_pnm(v->tensor) && d->size > 1 && !d->big_endian
		       ? d->size
		       : 0;
}

const struct view_ops view_images = {
	.name = "images",
	.summary = "images/NUMBER.pgm (.ppm, .tif), samples as pictures",
	.top = "images",
	.samples = true,
	.unlisted = true,
	.fits = tiff_fits,
	.count = view_samples_count,
	.name_of = view_samples_name,
	.find = view_samples_find,
	.box_of = view_samples_box,
	.suffix = images_suffix,
	.header = images_header,
	.reversed = images_reversed,
};
const struct view_ops view_tiff = {
	.name = "tiff",
	.summary = "tiff/NUMBER.tif, samples as pictures",
	.top = "tiff",
	.samples = true,
	.unlisted = true,
	.fits = tiff_fits,
	.count = view_samples_count,
	.name_of = view_samples_name,
	.find = view_samples_find,
	.box_of = view_samples_box,
	.suffix = tiff_suffix,
	.header = tiff_header,
};
