/* SPDX-License-Identifier: BSD-2-Clause */
/* The first pass over gzip files: points anywhere in members. */
/*
 * A deflate decoder can start in the middle of a stream, given the bit where a code
 * begins, the codes of the block it is in, and those of the 32 KiB before that will be
 * copied from.  The decoder of inflate.c stops between any two codes, so a window ends
 * where it has become large enough, even within a very long block (some writers make
 * one block of a whole file).  A point says where the bit is; its state has
 *
 *	8 bytes		where the header of the block is, in bits: it is read again
 *			there (GZIP_NO_HEADER: the point is between two blocks)
 *	0 to 32 KiB	the bytes before
 *
 * Most of the bytes before are never copied from.  Which ones are is known when the
 * next 32 KiB are decoded, so the point is made then; the others become zeros, which
 * deflates the state to a kilobyte or two.
 *
 * A member needs no state at its beginning.  Only its checksum, at its end, tells
 * whether its bytes are right: if it does not match, or the data cannot be decoded at
 * some place, all windows of the member are bad, because nothing says where the damage
 * begins.  If its length is wrong, too, so are all windows that follow, because nothing
 * says where their bytes belong.  A file that is cut off without any other damage is
 * different: the bytes that are there may well be right, and are shown.
 *
 * But damage may look like that.  A decoder that is out of step with the codes goes on
 * to the end of the file if it never meets the code that ends the block.  It meets one
 * within some tens of KiB, or a code that is not valid; so only the last part of the
 * file would be wrong.  Such a file still ends with the length of its member.  If the
 * last four bytes could be that length, the last part is marked bad, too.
 */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "stream/gzip.h"

/* Most bytes that are decoded at a time: a little more than a quarter of a window,
 * so that four of them always make one. */
#define CHUNK (((size_t)256 << 10) + 512)
/* Bytes after a point that may copy from before it, plus 258 for one match: the decoder
 * may stop that much before its output is full. */
#define REACH ((size_t)INFLATE_HISTORY + 258)
/* Compressed bytes for which a decoder may be out of step with the codes. */
#define DOUBT (UINT64_C(512) << 10)

/* ---- the first pass ------------------------------------------------------ */

struct gzip {
	struct stream_decoder d; /* first member */
	struct gzip_feed feed;
	struct inflate_out o;
	const unsigned char *given; /* end of the delivered bytes */
	uint64_t at;                /* decoded bytes before o.next */
	bool begun, inside;         /* a member was begun, and is not ended */
	bool spoiled;               /* damage was found */
	/* And it is unknown how many bytes are missing. */
	bool displaced;
	uint64_t member;    /* decoded bytes before the member */
	uint64_t member_in; /* offset where the member's data begin */
	/* Two places in the member, at least DOUBT apart, as decoded bytes before
	 * them, and the offset of the later one.  Bytes after the first place are in
	 * doubt if the file ends early. */
	uint64_t doubt, recent, recent_in;
	uint32_t crc;
	bool ended;
	struct error failure;
	unsigned char in[GZIP_FEED];
	unsigned char out[INFLATE_HISTORY + CHUNK];
	unsigned char used[INFLATE_HISTORY];
	unsigned char state[GZIP_STATE_HEAD + INFLATE_HISTORY];
};

static int gzip_probe(const unsigned char *head, size_t n)
{
	if (n < 4 || head[0] != 0x1f || head[1] != 0x8b || head[2] != 8)
		return 0;
	return head[3] & 0xe0 ? 20 : 90;
}

static int gzip_open(struct stream_decoder **out, const struct stream_format *f,
		     struct stream_scan *scan, struct error *err)
{
	struct gzip *g = malloc(sizeof *g);

	if (!g)
		return error_no_memory(err, "decoding gzip data");
	memset(g, 0, offsetof(struct gzip, in));
	g->d.format = f;
	g->d.scan = scan;
	g->feed.scan = scan;
	g->feed.buf = g->in;
	g->feed.size = GZIP_FEED;
	gzip_feed_begin(&g->feed, 0);
	g->o.next = g->out;
	g->o.start = g->given = g->out;
	*out = &g->d;
	return 0;
}

static void gzip_close(struct stream_decoder *d)
{
	free((struct gzip *)d);
}

/* Decode up to `end` at most.  INFLATE_INPUT means that the input failed. */
static enum inflate_end gzip_decode_to(struct gzip *g, unsigned char *end,
				       struct error *err)
{
	unsigned char *from = g->o.next;
	enum inflate_end r;

	g->o.end = end;
	do
		r = inflate_run(&g->feed.x, &g->o);
	while (r == INFLATE_INPUT && gzip_feed_more(&g->feed, err) == 0);
	g->crc = libdeflate_crc32(g->crc, from, (size_t)(g->o.next - from));
	g->at += (uint64_t)(g->o.next - from);
	return r;
}

/* Make the state of a point: the bytes before it that were copied from.  Return its
 * size in bytes. */
static size_t gzip_make_state(struct gzip *g, uint64_t header)
{
	const unsigned char *since = g->o.since;
	size_t n = INFLATE_HISTORY, first = 0;
	unsigned char *to = g->state + GZIP_STATE_HEAD;

	store_le64(g->state, header);
	while (first < n && !g->used[first])
		first++;
	for (size_t i = first; i < n; i++)
		*to++ = g->used[i] ? *(since - (n - i)) : 0;
	return (size_t)(to - g->state);
}

/* Decode the next 32 KiB, and then make the point that lies before them. */
static enum inflate_end gzip_decode_past_point(struct gzip *g,
					       struct error *err)
{
	const struct inflate *x = &g->feed.x;
	uint64_t bit = inflate_bit(x);
	uint64_t header =
		x->block == INFLATE_BETWEEN ? GZIP_NO_HEADER : x->header_at;
	struct stream_point p = {.out = g->at,
				 .in = div_up(bit, 8),
				 .bits = (uint8_t)(-bit & 7),
				 .flags = g->displaced ? POINT_BAD : 0};
	enum inflate_end r;
	size_t n;

	memset(g->used, 0, sizeof g->used);
	g->o.used = g->used;
	g->o.since = g->o.next;
	r = gzip_decode_to(g, g->o.next + REACH, err);
	g->o.used = NULL;
	n = gzip_make_state(g, header);
	if (r != INFLATE_INPUT &&
	    scan_point(g->d.scan, &p, g->state, n, err) < 0)
		return INFLATE_INPUT;
	return r;
}

/* Move the bytes that matches may reach back to, to the front of the buffer. */
static void gzip_slide_history(struct gzip *g)
{
	size_t keep = (size_t)min_u64((uint64_t)(g->o.next - g->o.start),
				      INFLATE_HISTORY);

	memmove(g->out, g->o.next - keep, keep);
	g->o.start = g->out;
	g->o.next = g->out + keep;
	g->given = g->o.next;
}

static int gzip_begin_member(struct gzip *g, struct error *err)
{
	struct stream_point p = {.out = g->at, .flags = POINT_START};
	int r;

	if (g->displaced)
		p.flags |= POINT_BAD;
	g->feed.quiet = g->spoiled;
	r = gzip_header(&g->feed, !g->begun, &p.in, err);
	if (r <= 0)
		return r;
	r = scan_point(g->d.scan, &p, NULL, 0, err);
	if (r < 0)
		return r;
	inflate_reset(&g->feed.x);
	g->begun = g->inside = true;
	g->member = g->doubt = g->recent = g->at;
	g->member_in = g->recent_in = gzip_feed_at(&g->feed);
	g->crc = 0;
	g->o.start = g->o.next;
	return 1;
}

/* Mark all windows of the member bad. */
static void gzip_spoil_member(struct gzip *g, const struct error *why)
{
	g->spoiled = true;
	scan_bad(g->d.scan, g->member, why);
}

/* Read the trailer of a member and check it, before its last bytes are delivered.
 * Return 0 or -errno. */
static int gzip_end_member(struct gzip *g, struct error *err)
{
	uint64_t size = g->at - g->member;
	struct error why = {0};
	uint32_t crc, low;
	int r = gzip_trailer(&g->feed, &crc, &low, err);

	if (r < 0 && g->spoiled)
		gzip_spoil_member(g, err);
	if (r < 0)
		return r;
	g->inside = false;
	if (crc != g->crc)
		error_set(&why, -EBADMSG,
			  "the checksum of a gzip member of %llu bytes does "
			  "not match: it is damaged, and it is unknown where",
			  (unsigned long long)size);
	else if (low != (uint32_t)size)
		error_set(&why, -EBADMSG,
			  "a gzip member decodes to %llu bytes, which is not "
			  "the length that it records: damaged",
			  (unsigned long long)size);
	g->displaced |= crc != g->crc && low != (uint32_t)size;
	if (why.code)
		gzip_spoil_member(g, &why);
	return 0;
}

static int gzip_bad_data(struct gzip *g, struct error *err)
{
	error_set(err, -EBADMSG,
		  "gzip data cannot be decoded at %llu, %llu bytes into a "
		  "member (%s): damaged, and it is unknown where",
		  (unsigned long long)(inflate_bit(&g->feed.x) / 8),
		  (unsigned long long)(g->at - g->member), g->feed.x.fault);
	gzip_spoil_member(g, err);
	return -EBADMSG;
}

static void gzip_follow_doubt(struct gzip *g)
{
	uint64_t in = inflate_bit(&g->feed.x) / 8;

	if (in - g->recent_in < DOUBT)
		return;
	g->doubt = g->recent;
	g->recent = g->at;
	g->recent_in = in;
}

/* Return whether the last bytes of the file could be the length that ends a member
 * (ISIZE, RFC 1952, section 2.3.1).  In the middle of a member they may be any
 * number. */
static bool gzip_ends_with_length(const struct gzip *g)
{
	const struct backing *from = scan_from(g->d.scan);
	unsigned char b[4];

	/* The length follows a checksum. */
	if (from->size < g->member_in + 2 * sizeof b)
		return false;
	if (backing_read(from, from->size - sizeof b, b, sizeof b, NULL) < 0)
		return true;
	return load_le32(b) <= 4096 + 16 * (g->at - g->member);
}

/* Report that the file ends within a member.  Damage may look like this, too; if
 * damage was found before, it is taken for damage. */
static int gzip_cut_off(struct gzip *g, struct error *err)
{
	error_set(err, -EIO,
		  "ends early, %llu bytes into a gzip member: truncated?",
		  (unsigned long long)(g->at - g->member));
	if (g->spoiled)
		gzip_spoil_member(g, err);
	else if (gzip_ends_with_length(g))
		scan_bad(g->d.scan, g->doubt, err);
	return -EIO;
}

static int gzip_decode_some(struct gzip *g, struct error *err)
{
	size_t chunk = (size_t)min_u64(scan_window(g->d.scan), CHUNK);
	enum inflate_end r = INFLATE_OUTPUT;
	struct error e = {0};
	unsigned char *end;

	gzip_slide_history(g);
	gzip_follow_doubt(g);
	end = g->o.next + max_u64(chunk, REACH);
	if (g->at > g->member && scan_wants_point(g->d.scan, g->at))
		r = gzip_decode_past_point(g, &e);
	if (r == INFLATE_OUTPUT)
		r = gzip_decode_to(g, end, &e);
	switch (r) {
	case INFLATE_OUTPUT:
		return 1;
	case INFLATE_DONE:
		return gzip_end_member(g, err) < 0 ? err->code : 1;
	case INFLATE_BAD:
		return gzip_bad_data(g, err);
	case INFLATE_CUT:
		return gzip_cut_off(g, err);
	case INFLATE_INPUT:
		break;
	}
	*err = e;
	return e.code;
}

static ssize_t gzip_read(struct stream_decoder *d, void *to, size_t n,
			 struct error *err)
{
	struct gzip *g = (struct gzip *)d;

	while (g->given == g->o.next) {
		struct error e = {0};
		int r = 1;

		if (g->failure.code)
			return error_set(err, g->failure.code, "%s",
					 g->failure.text);
		if (g->ended)
			return 0;
		if (!g->inside)
			r = gzip_begin_member(g, &e);
		if (r == 1)
			r = gzip_decode_some(g, &e);
		if (r < 0)
			g->failure = e;
		g->ended = r == 0;
	}
	n = (size_t)min_u64(n, (uint64_t)(g->o.next - g->given));
	memcpy(to, g->given, n);
	g->given += n;
	return (ssize_t)n;
}

/* ---- the format ---------------------------------------------------------- */

static const char *const suffixes[] = {".tgz=.tar", ".taz=.tar", ".svgz=.svg",
				       ".gz=",      ".bgz=",     NULL};

static const struct stream_decoder_ops gzip_decoder = {
	.open = gzip_open,
	.read = gzip_read,
	.close = gzip_close,
};

const struct stream_format stream_gzip = {
	.name = "gzip",
	.suffixes = suffixes,
	.probe = gzip_probe,
	.decoder = &gzip_decoder,
	.window = gzip_window,
};
