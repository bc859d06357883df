/* SPDX-License-Identifier: BSD-2-Clause */
/* zip: find where the bytes of members are from their local headers. */
/*
 * The directory says where a member's local header is, and only the header says how
 * long it is itself.  Headers are read in the order of the file; where they are
 * close together, many of them at once.
 *
 * All members that overlap are refused: such archives are written only to decode a
 * few bytes into very many.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/zip/private.h"

#define SIG_LOCAL 0x04034b50u
/* Bytes that are read at once, and the largest distance in bytes between headers
 * for that. */
#define STRETCH ((size_t)256 << 10)
#define CLOSE (UINT64_C(16) << 10)
/* The longest header, with any name and extra fields. */
#define LOCAL_MAX ((size_t)ZIP_LOCAL_SIZE + 2 * 65535)
/* Limit of the sum of the sizes that members which cannot be read claim, in bytes. */
#define BAD_MAX (UINT64_C(1) << 60)
#define TELL_EVERY 1024

_Static_assert(LOCAL_MAX < STRETCH, "a header fits");

/* ---- sentences ----------------------------------------------------------- */

void zip_say_why(uint32_t why, uint32_t method, char *buf, size_t n)
{
	static const char *const methods[][2] = {
		{"\1", "shrink"}, {"\6", "implode"}, {"\11", "deflate64"},
		{"\14", "bzip2"}, {"\16", "lzma"},   {"\135", "zstd"},
		{"\137", "xz"},   {"\142", "ppmd"}};
	static const char *const whys[ZIP_WHYS] = {
		[ZIP_ENCRYPTED] = "it is encrypted",
		[ZIP_OVERLAPS] = "its bytes overlap those of another member: "
				 "damaged, or made to harm",
		[ZIP_BEYOND] = "its bytes lie beyond the end of the archive",
		[ZIP_HEADER] =
			"its local header differs from the directory: damaged",
		[ZIP_SIZE] = "its sizes in the directory are impossible for "
			     "its method: damaged",
		[ZIP_DATA] = "its compressed bytes are damaged"};
	const char *name = NULL;

	if (why != ZIP_METHOD) {
		snprintf(buf, n, "%s",
			 why < ZIP_WHYS ? whys[why] : "it cannot be read");
		return;
	}
	for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
		if ((unsigned char)methods[i][0][0] == method)
			name = methods[i][1];
	snprintf(buf, n,
		 "it is compressed with method %u%s%s%s, but only stored and "
		 "deflated members can be read",
		 (unsigned)method, name ? " (" : "", name ? name : "",
		 name ? ")" : "");
}

int zip_why_code(uint32_t why)
{
	return why == ZIP_ENCRYPTED || why == ZIP_METHOD ? -ENOTSUP
	       : why == ZIP_BEYOND                       ? -EIO
							 : -EBADMSG;
}

static void note_unreadable(const struct zip_placing *p,
			    const struct zip_entry *e, const char *more)
{
	static const char *const kinds[ZIP_WHYS] = {[ZIP_ENCRYPTED] =
							    "encrypted",
						    [ZIP_METHOD] = "method",
						    [ZIP_OVERLAPS] = "overlap",
						    [ZIP_BEYOND] = "cut short",
						    [ZIP_HEADER] = "header",
						    [ZIP_SIZE] = "size",
						    [ZIP_DATA] = "data"};
	char shown[200], why[200];
	size_t n = strlen(e->name);

	n = n < sizeof shown ? n : sizeof shown - 1;
	for (size_t i = 0; i < n; i++)
		shown[i] = (unsigned char)e->name[i] < ' ' || e->name[i] == 127
				   ? '?'
				   : e->name[i];
	shown[n] = '\0';
	zip_say_why(e->why, e->method, why, sizeof why);
	if (zip_why_code(e->why) == -ENOTSUP)
		members_note(p->notes, kinds[e->why],
			     "\"%s\" cannot be read: %s", shown, why);
	else
		members_damage(p->notes, kinds[e->why],
			       "\"%s\" cannot be read: %s%s%s", shown, why,
			       more ? ": " : "", more ? more : "");
}

/* ---- headers ------------------------------------------------------------- */

struct reader {
	const struct backing *from;
	unsigned char *buf; /* bytes [at, at + n) of the archive */
	uint64_t at;
	size_t n;
};

/* Make sure that r->buf has the `n` bytes at `pos`, which the archive has.  If it
 * must read, it reads `ahead` bytes if there are as many. */
static int read_stretch(struct reader *r, uint64_t pos, size_t n, size_t ahead,
			struct error *err)
{
	size_t take;
	int e;

	if (pos >= r->at && pos - r->at <= r->n && r->n - (pos - r->at) >= n)
		return 0;
	take = (size_t)min_u64(r->from->size - pos, ahead > n ? ahead : n);
	r->n = 0;
	e = backing_read(r->from, pos, r->buf, take, err);
	if (e < 0)
		return e;
	r->at = pos;
	r->n = take;
	return 0;
}

/* Return true if sizes and CRC-32 of a local header are those of the directory, or
 * if the header has none: they follow the data (flag 8), are in the zip64 field, or
 * are masked. */
static bool same_sizes(const struct zip_entry *e, const unsigned char *p)
{
	uint32_t crc = load_le32(p + 14), stored = load_le32(p + 18);
	uint32_t size = load_le32(p + 22);

	if (e->flags & (ZIP_FLAG_BEHIND | ZIP_FLAG_MASKED) ||
	    load_le16(p + 6) & ZIP_FLAG_BEHIND)
		return true;
	if (!crc && !stored && !size)
		return true;
	return crc == e->crc && (stored == UINT32_MAX || stored == e->stored) &&
	       (size == UINT32_MAX || size == e->size);
}

/* Set the owner of an entry of an old program from the `n` bytes of extra fields at
 * `pos`, behind a local header and its name. */
static int find_owner(struct reader *r, struct zip_entry *e, uint64_t pos,
		      size_t n, struct error *err)
{
	int code;

	if (!e->local_owner || !n)
		return 0;
	code = read_stretch(r, pos, n, n, err);
	if (code == 0)
		zip_entry_local(e, r->buf + (pos - r->at), n);
	return code;
}

/* Set e->data to the position behind the local header, or e->why. */
static int find_data(const struct zip_directory *d, struct reader *r,
		     struct zip_entry *e, bool close, struct error *err)
{
	const size_t fixed = ZIP_LOCAL_SIZE + e->raw_len;
	enum zip_why not = e->why == ZIP_NO_REASON ? ZIP_HEADER : e->why;
	const unsigned char *p;
	uint64_t n;
	int code;

	e->data = UINT64_MAX;
	if (e->header > d->pos || d->pos - e->header < fixed) {
		e->why = e->why == ZIP_NO_REASON ? ZIP_BEYOND : e->why;
		return 0;
	}
	code = read_stretch(r, e->header, fixed, close ? STRETCH : 512, err);
	if (code < 0)
		return code;
	p = r->buf + (e->header - r->at);
	n = fixed + (uint64_t)load_le16(p + 28);
	if (load_le32(p) != SIG_LOCAL || load_le16(p + 8) != e->method ||
	    load_le16(p + 26) != e->raw_len || !same_sizes(e, p) ||
	    memcmp(p + ZIP_LOCAL_SIZE, d->bytes + e->raw, e->raw_len) != 0) {
		e->why = not ;
		return 0;
	}
	if (n > d->pos - e->header || e->stored > d->pos - e->header - n) {
		e->why = e->why == ZIP_NO_REASON ? ZIP_BEYOND : e->why;
		return 0;
	}
	e->data = e->header + n;
	return find_owner(r, e, e->header + fixed, (size_t)(n - fixed), err);
}

static int find_all_data(struct zip_placing *p, struct zip_entry *const *order,
			 struct error *err)
{
	const struct zip_directory *d = p->directory;
	struct reader r = {.from = p->from};
	cleanup_free unsigned char *buf = malloc(STRETCH);
	int code = 0;

	if (!buf)
		return error_no_memory(err, "the headers of members");
	r.buf = buf;
	for (size_t i = 0; i < d->at.n && code == 0; i++) {
		bool close = i + 1 < d->at.n &&
			     order[i + 1]->header - order[i]->header < CLOSE;

		code = find_data(d, &r, order[i], close, err);
		if (p->so_far && i % TELL_EVERY == 0)
			p->so_far(p->ctx, order[i]->header);
	}
	return code;
}

static void find_overlaps(struct zip_entry *const *order, size_t n)
{
	struct zip_entry *last = NULL; /* the one that ends farthest */
	uint64_t end = 0;

	for (size_t i = 0; i < n; i++) {
		struct zip_entry *e = order[i];

		if (e->data == UINT64_MAX)
			continue;
		if (last && e->header < end) {
			e->why = ZIP_OVERLAPS;
			last->why = ZIP_OVERLAPS;
		}
		if (!last || e->data + e->stored > end) {
			end = e->data + e->stored;
			last = e;
		}
	}
}

/* ---- places -------------------------------------------------------------- */

struct lists {
	vec(struct zip_stored) plain;
	vec(struct zip_bad) bad;
	uint64_t bad_size;
	struct deflate_builder *deflated;
};

static int add_unreadable(struct zip_placing *p, struct lists *l,
			  struct zip_entry *e, const char *more,
			  struct error *err)
{
	struct zip_bad b = {l->bad_size, e->size, e->why, e->method};

	note_unreadable(p, e, more);
	e->data = l->bad_size;
	if (e->size > BAD_MAX - l->bad_size) {
		e->data = UINT64_MAX; /* the member is left out */
		return 0;
	}
	if (!e->size)
		return 0;
	l->bad_size += e->size;
	return vec_push(&l->bad, b)
		       ? 0
		       : error_no_memory(
				 err,
				 "the list of members that cannot be read");
}

static int place_entry(struct zip_placing *p, struct lists *l,
		       struct zip_entry *e, struct error *err)
{
	struct deflate_member m = {e->data, e->stored, e->size, e->crc};
	struct error why = {0};
	int r;

	if (e->why != ZIP_NO_REASON)
		return add_unreadable(p, l, e, NULL, err);
	if (e->method == ZIP_STORED) {
		struct zip_stored s = {e->data, e->size, e->crc, 0};

		return !e->size || vec_push(&l->plain, s)
			       ? 0
			       : error_no_memory(err,
						 "the list of stored members");
	}
	if (p->so_far && e->size > DEFLATE_WHOLE)
		p->so_far(p->ctx, e->header);
	r = deflate_builder_add(l->deflated, &m, &e->data, &why);
	if (r == -EBADMSG) {
		e->why = ZIP_DATA;
		return add_unreadable(p, l, e, why.text, err);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

/* Tell the stream which members are large, so that several threads decode them. */
static void expect_large(const struct zip_placing *p, struct lists *l,
			 struct zip_entry *const *order, size_t n)
{
	cleanup_free struct deflate_member *m = NULL;
	size_t large = 0, k = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < n; i++) {
			const struct zip_entry *e = order[i];

			if (e->why != ZIP_NO_REASON ||
			    e->method == ZIP_STORED || e->size <= DEFLATE_WHOLE)
				continue;
			if (m)
				m[k++] = (struct deflate_member){
					e->data, e->stored, e->size, e->crc};
			else
				large++;
		}
		if (!m && large)
			m = malloc(large * sizeof *m);
		if (!m)
			return;
	}
	deflate_builder_expect(l->deflated, m, large, p->threads);
}

static int by_header(const void *a, const void *b)
{
	const struct zip_entry *const *x = a, *const *y = b;

	if ((*x)->header != (*y)->header)
		return (*x)->header < (*y)->header ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

int zip_place(struct zip_placing *p, struct error *err)
{
	struct zip_directory *d = p->directory;
	cleanup_free struct zip_entry **order =
		malloc((d->at.n + 1) * sizeof *order);
	struct lists l = {0};
	int r;

	if (!order)
		return error_no_memory(err, "the order of members");
	for (size_t i = 0; i < d->at.n; i++)
		order[i] = &d->at.at[i];
	qsort(order, d->at.n, sizeof *order, by_header);
	r = find_all_data(p, order, err);
	if (r < 0)
		return r;
	find_overlaps(order, d->at.n);
	r = deflate_builder_new(&l.deflated, p->from, err);
	if (r == 0)
		expect_large(p, &l, order, d->at.n);
	for (size_t i = 0; i < d->at.n && r == 0; i++)
		r = place_entry(p, &l, order[i], err);
	if (r == 0)
		r = deflate_builder_finish(l.deflated, &p->zip->stream, err);
	else
		deflate_builder_free(l.deflated);
	p->zip->plain = l.plain.at;
	p->zip->n_plain = l.plain.n;
	p->zip->bad = l.bad.at;
	p->zip->n_bad = l.bad.n;
	return r;
}
