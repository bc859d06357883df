/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip files (RFC 1952): headers and trailers of members, and the feed of compressed
 * bytes. */
#include <errno.h>
#include <libdeflate.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/number.h"
#include "stream/gzip.h"

enum {
	FLAG_CRC = 2,
	FLAG_EXTRA = 4,
	FLAG_NAME = 8,
	FLAG_COMMENT = 16,
	FLAGS_UNKNOWN = 0xe0
};

/* ---- bytes --------------------------------------------------------------- */

void gzip_feed_begin(struct gzip_feed *f, uint64_t at)
{
	f->x.bits = 0;
	f->x.n_bits = 0;
	f->x.in = f->x.end = f->buf;
	f->x.end_at = at;
	f->x.more = true;
}

static ssize_t gzip_feed_get(struct gzip_feed *f, unsigned char *to, size_t n,
			     struct error *err)
{
	int r;

	if (f->scan)
		return scan_get(f->scan, to, n, err);
	if (f->x.end_at >= f->limit)
		return 0;
	n = (size_t)min_u64(n, f->limit - f->x.end_at);
	r = stream_get(f->stream, f->x.end_at, to, n, err);
	return r < 0 ? r : (ssize_t)n;
}

int gzip_feed_more(struct gzip_feed *f, struct error *err)
{
	struct inflate *x = &f->x;
	size_t left;
	ssize_t r;

	inflate_unread(x);
	left = (size_t)(x->end - x->in);
	memmove(f->buf, x->in, left);
	x->in = f->buf;
	x->end = f->buf + left;
	r = gzip_feed_get(f, f->buf + left, f->size - left, err);
	if (r < 0)
		return (int)r;
	x->end += r;
	x->end_at += (uint64_t)r;
	x->more = r > 0;
	return 0;
}

int gzip_feed_byte(struct gzip_feed *f, unsigned char *c, struct error *err)
{
	while (f->x.in == f->x.end) {
		int r = f->x.more ? gzip_feed_more(f, err) : 0;

		if (r < 0)
			return r;
		if (!f->x.more)
			return 0;
	}
	*c = *f->x.in++;
	return 1;
}

uint64_t gzip_feed_at(const struct gzip_feed *f)
{
	return f->x.end_at - (uint64_t)(f->x.end - f->x.in);
}

/* ---- headers ------------------------------------------------------------- */

struct header {
	struct gzip_feed *f;
	uint32_t crc; /* CRC-32 of the header's bytes so far */
	uint64_t at;
};

static int gzip_header_cut(const struct header *h, struct error *err)
{
	return error_set(
		err, -EIO,
		"ends early, in the header of the gzip member at %llu: "
		"truncated?",
		(unsigned long long)h->at);
}

static int gzip_header_damaged(const struct header *h, const char *how,
			       struct error *err)
{
	return error_set(err, -EBADMSG,
			 "the header of the gzip member at %llu is damaged: %s",
			 (unsigned long long)h->at, how);
}

/* Read n bytes; the last four of them at most are then in `b` (byte i at b[i % 4]). */
static int gzip_header_bytes(struct header *h, unsigned n, unsigned char b[4],
			     struct error *err)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned char *c = &b[i % 4];
		int r = gzip_feed_byte(h->f, c, err);

		if (r <= 0)
			return r < 0 ? r : gzip_header_cut(h, err);
		h->crc = libdeflate_crc32(h->crc, c, 1);
	}
	return 0;
}

static int gzip_skip_name(struct header *h, struct error *err)
{
	unsigned char c[4] = {1};
	int r = 0;

	while (r == 0 && c[0])
		r = gzip_header_bytes(h, 1, c, err);
	return r;
}

static int gzip_skip_extra(struct header *h, struct error *err)
{
	unsigned char b[4];
	int r = gzip_header_bytes(h, 2, b, err);

	return r < 0 ? r : gzip_header_bytes(h, load_le16(b), b, err);
}

static int gzip_check_header_crc(struct header *h, struct error *err)
{
	uint32_t crc = h->crc & 0xffff;
	unsigned char b[4];
	int r = gzip_header_bytes(h, 2, b, err);

	if (r == 0 && load_le16(b) != crc)
		r = gzip_header_damaged(h, "its checksum does not match", err);
	return r;
}

/* Read the header after its first three bytes.  Return 0 or -errno. */
static int gzip_read_header_rest(struct header *h, struct error *err)
{
	unsigned char b[4], flags;
	int r = gzip_header_bytes(h, 1, b, err);

	if (r < 0)
		return r;
	flags = b[0];
	if (flags & FLAGS_UNKNOWN)
		return gzip_header_damaged(h, "unknown flags", err);
	r = gzip_header_bytes(h, 6, b, err);
	if (r == 0 && flags & FLAG_EXTRA)
		r = gzip_skip_extra(h, err);
	if (r == 0 && flags & FLAG_NAME)
		r = gzip_skip_name(h, err);
	if (r == 0 && flags & FLAG_COMMENT)
		r = gzip_skip_name(h, err);
	if (r == 0 && flags & FLAG_CRC)
		r = gzip_check_header_crc(h, err);
	return r;
}

/* Warn of bytes after the last member that do not begin a member.  Returns 0: there
 * are no more members. */
static int gzip_ignore_rest(const struct header *h)
{
	const struct backing *b =
		h->f->scan ? scan_from(h->f->scan) : &h->f->stream->from;

	if (h->f->quiet)
		return 0;
	log_warn("%s: %llu bytes after the gzip data, from %llu on, are not "
		 "gzip data and are ignored",
		 backing_name(b), (unsigned long long)(b->size - h->at),
		 (unsigned long long)h->at);
	return 0;
}

/* Read the first three bytes of a header.  Return 1 if a member begins, 0 if
 * something else follows or nothing, or -errno. */
static int gzip_read_magic(struct header *h, bool first, struct error *err)
{
	static const unsigned char magic[3] = {0x1f, 0x8b, 8};
	unsigned n = 0, alike = 0;
	unsigned char b[3];

	while (n < 3) {
		int r = gzip_feed_byte(h->f, &b[n], err);

		if (r < 0)
			return r;
		if (r == 0)
			break;
		alike += b[n] == magic[n];
		n++;
	}
	if (n == 3 && alike == 3) {
		h->crc = libdeflate_crc32(0, b, 3);
		return 1;
	}
	if (n < 3 && alike == n)
		return n || first ? gzip_header_cut(h, err) : 0;
	if (first)
		return gzip_header_damaged(h, "no gzip data", err);
	return alike == 2 ? gzip_header_damaged(h, "its first bytes are wrong",
						err)
			  : gzip_ignore_rest(h);
}

int gzip_header(struct gzip_feed *f, bool first, uint64_t *at,
		struct error *err)
{
	struct header h = {f, 0, gzip_feed_at(f)};
	unsigned char c = 0;
	int r = 1;

	while (!first && r == 1 && !c) {
		h.at = gzip_feed_at(f);
		r = gzip_feed_byte(f, &c, err);
	}
	if (!first && r == 1)
		f->x.in--; /* give the byte back */
	if (r == 1)
		r = gzip_read_magic(&h, first, err);
	if (r == 1) {
		*at = h.at;
		r = gzip_read_header_rest(&h, err);
		r = r < 0 ? r : 1;
	}
	return r;
}

int gzip_trailer(struct gzip_feed *f, uint32_t *crc, uint32_t *size,
		 struct error *err)
{
	uint32_t v[2] = {0, 0};

	for (unsigned i = 0; i < 8; i++) {
		unsigned char c;
		int r = gzip_feed_byte(f, &c, err);

		if (r < 0)
			return r;
		if (r == 0)
			return error_set(err, -EIO,
					 "ends early, before the checksum of "
					 "the last gzip member: truncated?");
		v[i / 4] |= (uint32_t)c << 8 * (i % 4);
	}
	*crc = v[0];
	*size = v[1];
	return 0;
}
