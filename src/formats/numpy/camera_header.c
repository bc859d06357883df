/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of camera files: where the frames are, and their type. */
/*
 *	.blo	NanoMEGAS: a header; at the position in its bytes 12 to 15, for
 *		each scan position 6 bytes and a square frame of bytes
 *		(hyperspy 1.7, io_plugins/blockfile.py)
 *	.tvips	TVIPS: a header in the first file, then records of a header and a
 *		frame (hyperspy 1.7, io_plugins/tvips.py)
 *	.mib	Merlin: records of an ASCII header and a frame, big-endian
 *	.seq	Norpix: a header, then frames in records of equal size
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/number.h"
#include "formats/numpy/camera.h"

/* Pixels along an axis at most: no camera has more. */
#define SIDE_MAX 65536u
#define SEQ_MAGIC 0xfeedu

static bool has_path_suffix(const char *path, const char *suffix)
{
	size_t n = strlen(path), len = strlen(suffix);

	return n > len && !strcasecmp(path + n - len, suffix);
}

int camera_probe(enum camera_format f, const unsigned char *head, size_t n,
		 const char *path)
{
	switch (f) {
	case CAMERA_BLO:
		return n >= 6 && !memcmp(head, "IMGBLO", 6) ? 95 : 0;
	case CAMERA_TVIPS:
		return n >= 52 && has_path_suffix(path, ".tvips") ? 60 : 0;
	case CAMERA_MIB:
		return n >= 4 && !memcmp(head, "MQ1,", 4) ? 80 : 0;
	case CAMERA_SEQ:
		return n >= 36 && load_le32(head) == SEQ_MAGIC &&
				       !memcmp(head + 4, "N\0o\0r\0p\0", 8)
			       ? 95
			       : 0;
	}
	return 0;
}

static int short_header_error(struct error *err)
{
	return error_set(err, -EBADMSG,
			 "the file ends within its header: truncated?");
}

static int set_pixel_bits(struct camera_header *h, uint64_t bits,
			  struct error *err)
{
	if (bits != 8 && bits != 16 && bits != 32)
		return error_set(err, -ENOTSUP,
				 "pixels of %" PRIu64 " bits are not supported",
				 bits);
	h->dtype.kind = DTYPE_UINT;
	h->dtype.size = (uint32_t)(bits / 8);
	return 0;
}

/* Check what is common to all formats. */
static int check_camera_header(struct camera_header *h, struct error *err)
{
	uint64_t frame;

	if (!h->width || !h->height || h->width > SIDE_MAX ||
	    h->height > SIDE_MAX)
		return error_set(err, -EBADMSG,
				 "frames of %" PRIu64 " x %" PRIu64
				 " pixels: its header is damaged",
				 h->width, h->height);
	frame = h->width * h->height * h->dtype.size;
	if (h->skip > h->record || h->record - h->skip < frame)
		return error_set(err, -EBADMSG,
				 "records of %" PRIu64
				 " bytes have no room for frames of %" PRIu64
				 ": its header is damaged",
				 h->record, frame);
	return 0;
}

static int read_blo(const unsigned char *head, size_t n,
		    struct camera_header *h, struct error *err)
{
	if (n < 28)
		return short_header_error(err);
	h->first = load_le32(head + 12);
	h->height = h->width = load_le16(head + 20);
	h->scan[1] = load_le16(head + 24);
	h->scan[0] = load_le16(head + 26);
	h->skip = 6;
	h->record = h->skip + h->width * h->height;
	h->mark = "\xaa\x55";
	if (!h->scan[0] || !h->scan[1])
		return error_set(
			err, -EBADMSG,
			"its header has a scan without positions: damaged");
	return set_pixel_bits(h, 8, err);
}

static int read_tvips(const unsigned char *head, size_t n,
		      struct camera_header *h, struct error *err)
{
	if (n < 52)
		return short_header_error(err);
	if (load_le32(head + 4) != 2)
		return error_set(err, -ENOTSUP,
				 "version %" PRIu32
				 " of .tvips is not supported, only version 2",
				 load_le32(head + 4));
	h->first = load_le32(head);
	h->width = load_le32(head + 8);
	h->height = load_le32(head + 12);
	h->skip = load_le32(head + 48);
	if (h->width > SIDE_MAX || h->height > SIDE_MAX)
		return check_camera_header(h, err);
	if (set_pixel_bits(h, load_le32(head + 16), err) < 0)
		return err ? err->code : -ENOTSUP;
	h->record = h->skip + h->width * h->height * h->dtype.size;
	return 0;
}

/* Return field `i` of a line such as "MQ1,000001,00384,01,0256,0256,U16,...", or
 * NULL. */
static const char *mib_field(char *line, unsigned i)
{
	char *save = NULL, *at = strtok_r(line, ",", &save);

	while (at && i--)
		at = strtok_r(NULL, ",", &save);
	return at;
}

static uint64_t mib_number(const unsigned char *head, size_t n, unsigned i)
{
	char line[128] = "";
	const char *at;

	memcpy(line, head, min_u64(n, sizeof line - 1));
	at = mib_field(line, i);
	return at && strspn(at, "0123456789") == strlen(at) && strlen(at) < 9
		       ? strtoull(at, NULL, 10)
		       : 0;
}

static int read_mib(const unsigned char *head, size_t n,
		    struct camera_header *h, struct error *err)
{
	char line[128] = "";
	const char *type;

	memcpy(line, head, min_u64(n, sizeof line - 1));
	type = mib_field(line, 6);
	h->skip = mib_number(head, n, 2);
	h->width = mib_number(head, n, 4);
	h->height = mib_number(head, n, 5);
	if (!type || h->skip < 64)
		return error_set(
			err, -EBADMSG,
			"its first header is not a valid MIB header: damaged");
	if (!strcmp(type, "R64"))
		return error_set(
			err, -ENOTSUP,
			"raw frames of a Merlin (R64) are not supported: "
			"decode them with the camera's software first");
	if (strcmp(type, "U08") && strcmp(type, "U16") && strcmp(type, "U32"))
		return error_set(
			err, -EBADMSG,
			"its pixel type is neither U08, U16 nor U32: damaged");
	set_pixel_bits(h, strtoull(type + 1, NULL, 10), NULL);
	h->dtype.big_endian = h->dtype.size > 1;
	h->mark = "MQ1,";
	if (h->width <= SIDE_MAX && h->height <= SIDE_MAX)
		h->record = h->skip + h->width * h->height * h->dtype.size;
	return 0;
}

/* Refuse padded rows and packed pixels: they would be shown wrongly. */
static int check_seq_size(const struct camera_header *h, uint64_t bytes,
			  struct error *err)
{
	uint64_t frame = h->width * h->height * h->dtype.size;

	if (!bytes || bytes == frame)
		return 0;
	return error_set(err, -ENOTSUP,
			 "its images have %" PRIu64 " bytes, but %" PRIu64
			 " x %" PRIu64 " pixels take %" PRIu64
			 ": their layout is not known",
			 bytes, h->width, h->height, frame);
}

static int read_seq(const unsigned char *head, size_t n,
		    struct camera_header *h, struct error *err)
{
	if (n < 584)
		return short_header_error(err);
	h->first = load_le32(head + 28) >= 5 ? 8192 : 1024;
	h->width = load_le32(head + 548);
	h->height = load_le32(head + 552);
	h->record = load_le32(head + 580);
	h->frames = load_le32(head + 572);
	if (load_le32(head + 568) != 100)
		return error_set(
			err, -ENOTSUP,
			"image format %" PRIu32
			" of .seq is not supported, only 100 (monochrome, "
			"not compressed)",
			load_le32(head + 568));
	if (set_pixel_bits(h, load_le32(head + 556), err) < 0)
		return err ? err->code : -ENOTSUP;
	return check_seq_size(h, load_le32(head + 564), err);
}

int camera_read(enum camera_format f, const unsigned char *head, size_t n,
		struct camera_header *out, struct error *err)
{
	static int (*const readers[])(
		const unsigned char *head, size_t n, struct camera_header *h,
		struct error *err) = {[CAMERA_BLO] = read_blo,
				      [CAMERA_TVIPS] = read_tvips,
				      [CAMERA_MIB] = read_mib,
				      [CAMERA_SEQ] = read_seq};
	int r;

	memset(out, 0, sizeof *out);
	r = readers[f](head, n, out, err);
	return r < 0 ? r : check_camera_header(out, err);
}
