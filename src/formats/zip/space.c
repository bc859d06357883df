/* SPDX-License-Identifier: BSD-2-Clause */
/* zip: the space that ranges are in, its places, and its sections in an index. */
#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/zip/private.h"

/* Bytes of a chunk of a member that cannot be read; such a chunk is never made.
 * Also the bytes that are read at once. */
#define PIECE (UINT64_C(1) << 20)

static uint64_t decoded_size(const struct zip *z)
{
	return z->stream ? stream_size(z->stream) : 0;
}

static uint64_t bad_size(const struct zip *z)
{
	return z->n_bad ? z->bad[z->n_bad - 1].at + z->bad[z->n_bad - 1].size
			: 0;
}

static uint64_t windows_of(const struct zip *z)
{
	uint64_t n = 0;

	if (z->stream)
		stream_points(z->stream, &n);
	return n;
}

/* ---- members that cannot be read ----------------------------------------- */

static const struct zip *zip_of_bad_set(const struct chunk_set *s)
{
	return (const struct zip *)((const char *)s -
				    offsetof(struct zip, bad_set));
}

static uint64_t bad_segment_of(const struct chunk_set *s, uint64_t index)
{
	(void)s;
	(void)index;
	return UINT64_MAX;
}

static int unreadable_error(const struct zip *z, uint64_t i, struct error *err)
{
	char why[256];

	if (i >= z->n_bad)
		return error_set(err, -EIO, "there is no such member");
	zip_say_why(z->bad[i].why, z->bad[i].method, why, sizeof why);
	return error_set(err, zip_why_code(z->bad[i].why), "%s", why);
}

static int locate_bad(const struct chunk_set *s, uint64_t index,
		      const struct buf *segment, struct chunk *out,
		      struct error *err)
{
	(void)segment;
	(void)out;
	return unreadable_error(zip_of_bad_set(s), index, err);
}

static void describe_bad(const struct chunk_set *s, uint64_t index, char *buf,
			 size_t n)
{
	(void)index;
	snprintf(buf, n, "%s: a member",
		 backing_name(&zip_of_bad_set(s)->stored));
}

static const struct chunk_set_ops bad_ops = {
	.index_page_of = bad_segment_of,
	.locate = locate_bad,
	.describe = describe_bad,
};

/* Return the bad member that byte `off` of the bad bytes is in. */
static uint64_t find_bad_member(const struct zip *z, uint64_t off)
{
	struct bisect b = bisect_in(0, z->n_bad);

	while (bisect_next(&b))
		bisect_answer(&b, z->bad[b.mid].at > off);
	return b.lo ? b.lo - 1 : 0;
}

/* ---- the space ----------------------------------------------------------- */

static struct backing decoded_of(const struct zip *z)
{
	struct backing b = z->stored;

	b.stream = z->stream;
	b.files = NULL;
	b.pos = 0;
	b.size = decoded_size(z);
	return b;
}

static uint64_t map_bad(const struct zip *z, uint64_t off, struct plan *p)
{
	uint64_t i = find_bad_member(z, off), skip;

	skip = off - z->bad[i].at;
	return plan_chunk(p, (struct chunk_set *)&z->bad_set, i, skip % PIECE,
			  min_u64(z->bad[i].size - skip, PIECE - skip % PIECE));
}

static int space_map(const struct files *f, uint64_t node, uint64_t off,
		     struct plan *p, struct error *err)
{
	const struct zip *z = (const struct zip *)f;
	const uint64_t decoded = z->stored.size;
	const uint64_t bad = decoded + decoded_size(z);
	const uint64_t end = bad + bad_size(z);
	struct backing b;
	uint64_t took = 1;

	(void)node;
	(void)err;
	while (plan_open(p) && off < end && took) {
		if (off < decoded) {
			took = backing_map(&z->stored, off, decoded - off, p);
		} else if (off < bad) {
			b = decoded_of(z);
			took = backing_map(&b, off - decoded, bad - off, p);
		} else {
			took = map_bad(z, off - bad, p);
		}
		off += took;
	}
	return 0;
}

static const struct files_ops space_ops = {.map = space_map};

/* A stored member is a part of the file itself, like a member of a tar. */
static struct backing zip_range_of(const struct volume *v, uint64_t off,
				   uint64_t len)
{
	const struct zip *z = (const struct zip *)v->backing.files;
	struct backing b = decoded_of(z);

	if (off < z->stored.size && len <= z->stored.size - off)
		return backing_part(&z->stored, off, len);
	if (off >= z->stored.size && off - z->stored.size < b.size)
		return backing_part(&b, off - z->stored.size, len);
	return backing_part(&v->backing, off, len);
}

struct volume zip_volume(struct zip *z)
{
	struct volume v = {.backing = z->stored, .range = zip_range_of};

	v.backing.stream = NULL;
	v.backing.files = &z->files;
	v.backing.node = 0;
	v.backing.pos = 0;
	v.backing.size = z->stored.size + decoded_size(z) + bad_size(z);
	return v;
}

int zip_new(struct zip **out, const struct backing *stored, struct error *err)
{
	struct zip *z = calloc(1, sizeof *z);

	*out = z;
	if (!z)
		return error_no_memory(err, "the members of the zip archive");
	z->files.ops = &space_ops;
	z->bad_set.ops = &bad_ops;
	z->bad_set.id = chunk_set_new_id();
	atomic_init(&z->bad_set.unit, PIECE);
	z->stored = *stored;
	return 0;
}

void zip_free(struct zip *z)
{
	if (!z)
		return;
	stream_free(z->stream);
	free(z->plain);
	free(z->bad);
	free(z);
}

/* ---- sections of an index ------------------------------------------------ */

enum { SECTION_POINTS, SECTION_STATES, SECTION_PLAIN, SECTION_BAD };

unsigned zip_sections(const struct zip *z, uint32_t first,
		      struct index_section *out)
{
	uint64_t n;
	const struct stream_point *points = stream_points(z->stream, &n);
	const struct blob *states = stream_states(z->stream);

	out[0] = (struct index_section){first + SECTION_POINTS, points,
					n * sizeof *points, NULL};
	out[1] = (struct index_section){first + SECTION_STATES, NULL,
					blob_size(states), states};
	out[2] = (struct index_section){first + SECTION_PLAIN, z->plain,
					z->n_plain * sizeof *z->plain, NULL};
	out[3] = (struct index_section){first + SECTION_BAD, z->bad,
					z->n_bad * sizeof *z->bad, NULL};
	return 4;
}

static bool plain_is_possible(const struct zip *z)
{
	uint64_t end = 0;

	for (uint64_t i = 0; i < z->n_plain; i++) {
		const struct zip_stored *s = &z->plain[i];

		if (s->unused || s->pos < end || s->pos > z->stored.size ||
		    s->size > z->stored.size - s->pos)
			return false;
		end = s->pos + s->size;
	}
	return true;
}

static bool bad_is_possible(const struct zip *z)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < z->n_bad; i++) {
		const struct zip_bad *b = &z->bad[i];

		if (b->at != at || b->why >= ZIP_WHYS || !b->size ||
		    b->size > INT64_MAX / 4 - at)
			return false;
		at += b->size;
	}
	return true;
}

/* Copy a section of records, to be freed by the caller. */
static int copy_index_section(const struct index *x, uint32_t id, size_t record,
			      void **to, uint64_t *n, struct error *err)
{
	uint64_t size;
	const void *from = index_section(x, id, &size);

	*n = 0;
	if (!from || !size)
		return 0;
	if (size % record)
		return error_set(err, -EBADMSG,
				 "its sections about the zip are damaged");
	*to = malloc(size);
	if (!*to)
		return error_no_memory(err, "the list of members in the index");
	memcpy(*to, from, size);
	*n = size / record;
	return 0;
}

static int load_zip_stream(struct zip *z, const struct index *x, uint32_t first,
			   struct error *err)
{
	uint64_t size;
	const struct stream_point *points =
		index_section(x, first + SECTION_POINTS, &size);
	struct blob *states;
	int r;

	if (size % sizeof *points)
		return error_set(err, -EBADMSG,
				 "its sections about the zip are damaged");
	r = index_blob(x, first + SECTION_STATES, &states, err);
	return r < 0 ? r
		     : deflate_of_points(&z->stream, &z->stored, points,
					 size / sizeof *points, states, err);
}

int zip_of_index(struct zip **out, const struct backing *stored,
		 const struct index *x, uint32_t first, struct error *err)
{
	struct zip *z;
	int r = zip_new(&z, stored, err);

	*out = NULL;
	if (r == 0)
		r = copy_index_section(x, first + SECTION_PLAIN,
				       sizeof *z->plain, (void **)&z->plain,
				       &z->n_plain, err);
	if (r == 0)
		r = copy_index_section(x, first + SECTION_BAD, sizeof *z->bad,
				       (void **)&z->bad, &z->n_bad, err);
	if (r == 0 && !(plain_is_possible(z) && bad_is_possible(z)))
		r = error_set(err, -EBADMSG,
			      "its list of zip members is damaged");
	if (r == 0)
		r = load_zip_stream(z, x, first, err);
	if (r < 0)
		zip_free(z);
	else
		*out = z;
	return r;
}

/* ---- places -------------------------------------------------------------- */

uint64_t zip_places(const struct zip *z)
{
	return windows_of(z) + z->n_plain + z->n_bad;
}

/* Return the kind of a place: 0 a window, 1 a stored member, 2 a bad one.  *i is
 * its number among those. */
static unsigned place_kind(const struct zip *z, uint64_t place, uint64_t *i)
{
	uint64_t n = windows_of(z);

	*i = place;
	if (place < n)
		return 0;
	*i -= n;
	if (*i < z->n_plain)
		return 1;
	*i -= z->n_plain;
	return 2;
}

uint64_t zip_place_size(const struct zip *z, uint64_t place)
{
	uint64_t n, i;
	unsigned kind = place_kind(z, place, &i);

	/* A bad place has nothing to read, but counts so that its error is
	 * reported. */
	return kind == 0   ? stream_points(z->stream, &n)[i].size
	       : kind == 1 ? z->plain[i].size
			   : 1;
}

uint64_t zip_place_stored(const struct zip *z, uint64_t place)
{
	uint64_t n, i;
	const struct stream_point *p;

	if (place_kind(z, place, &i) != 0)
		return zip_place_size(z, place);
	p = stream_points(z->stream, &n);
	/* Bytes between two windows may belong to other members. */
	return min_u64((i + 1 < n ? p[i + 1].in : z->stored.size) - p[i].in,
		       (uint64_t)p[i].size + p[i].size / 1024 + 64);
}

static int check_stored(const struct zip *z, const struct zip_stored *s,
			struct error *err)
{
	cleanup_free unsigned char *buf = malloc(PIECE);
	uint32_t crc = 0;

	if (!buf)
		return error_no_memory(
			err, "comparing a stored member with its CRC-32");
	for (uint64_t off = 0; off < s->size;) {
		size_t n = (size_t)min_u64(PIECE, s->size - off);
		int r = backing_read(&z->stored, s->pos + off, buf, n, err);

		if (r < 0)
			return r;
		crc = libdeflate_crc32(crc, buf, n);
		off += n;
	}
	return crc == s->crc ? 0
			     : error_set(err, -EBADMSG,
					 "its CRC-32 is %08x, but the archive "
					 "says %08x: damaged",
					 (unsigned)crc, (unsigned)s->crc);
}

int zip_place_check(const struct zip *z, uint64_t place, struct error *err)
{
	_Atomic uint64_t gauge = 0;
	struct chunk_set *set;
	struct buf *b = NULL;
	uint64_t i;
	unsigned kind = place_kind(z, place, &i);
	int r;

	if (kind == 1)
		return check_stored(z, &z->plain[i], err);
	if (kind == 2)
		return unreadable_error(z, i, err);
	set = stream_set(z->stream);
	r = set->ops->fetch(set, i, &gauge, &b, err);
	if (r == 0)
		buf_unref(b);
	return r;
}

void zip_place_describe(const struct zip *z, uint64_t place, char *buf,
			size_t n)
{
	uint64_t i;
	unsigned kind = place_kind(z, place, &i);
	struct chunk_set *set;

	if (kind == 0) {
		set = stream_set(z->stream);
		set->ops->describe(set, i, buf, n);
	} else if (kind == 1) {
		snprintf(buf, n, "%s: %llu stored bytes at %llu",
			 backing_name(&z->stored),
			 (unsigned long long)z->plain[i].size,
			 (unsigned long long)z->plain[i].pos);
	} else {
		snprintf(buf, n, "%s", backing_name(&z->stored));
	}
}

/* Return the stored member that byte `pos` is in. */
static uint64_t find_stored_member(const struct zip *z, uint64_t pos)
{
	struct bisect b = bisect_in(0, z->n_plain);

	while (bisect_next(&b))
		bisect_answer(&b, z->plain[b.mid].pos > pos);
	return b.lo ? b.lo - 1 : 0;
}

bool zip_stored_crc(const struct zip *z, uint64_t off, uint32_t *crc)
{
	const struct zip_stored *s =
		z->n_plain ? &z->plain[find_stored_member(z, off)] : NULL;

	if (!s || s->pos != off)
		return false;
	*crc = s->crc;
	return true;
}

bool zip_place_range(const struct zip *z, uint64_t off, uint64_t len,
		     uint64_t *first, uint64_t *last)
{
	const uint64_t n = windows_of(z), decoded = z->stored.size;
	const uint64_t bad = decoded + decoded_size(z), end = bad + bad_size(z);

	if (!len || off >= end)
		return false;
	if (off < decoded) {
		if (!z->n_plain)
			return false;
		*first = *last = n + find_stored_member(z, off);
	} else if (off < bad) {
		len = min_u64(len, bad - off);
		*first = stream_window_at(z->stream, off - decoded);
		*last = stream_window_at(z->stream, off - decoded + len - 1);
	} else {
		*first = *last = n + z->n_plain + find_bad_member(z, off - bad);
	}
	return true;
}

const char *zip_storage_name(const struct zip *z, uint64_t off, uint64_t *at)
{
	const uint64_t decoded = z->stored.size;
	uint64_t n;

	*at = off;
	if (off < decoded)
		return "stored";
	*at = 0;
	if (off >= decoded + decoded_size(z))
		return "unreadable";
	*at = stream_points(z->stream,
			    &n)[stream_window_at(z->stream, off - decoded)]
		      .in;
	return "deflate";
}
