/* SPDX-License-Identifier: BSD-2-Clause */
/* zip: find and parse the directory at the end of an archive. */
/*
 *	| headers and data of members | directory | zip64 end | locator | end |
 *
 * Only the end record says where the directory is, and it ends with a comment of
 * any length, so it is searched from behind (PKWARE's APPNOTE.TXT 4.3.16).  Bytes
 * in front of the first member (a program that extracts itself, a picture, text)
 * move all positions by the distance between where the directory is and where the
 * end record says it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/zip/private.h"

enum { END_SIZE = 22, END64_SIZE = 56, LOCATOR_SIZE = 20, COMMENT_MAX = 65535 };
#define SIG_ENTRY 0x02014b50u
#define SIG_MEMBER 0x04034b50u
#define SIG_EXTRA_DATA 0x08064b50u
#define SIG_END 0x06054b50u
#define SIG_END64 0x06064b50u
#define SIG_LOCATOR 0x07064b50u
/* Largest directory in bytes: ten million members with names of usual lengths. */
#define DIRECTORY_MAX (UINT64_C(2) << 30)

int zip_probe(const unsigned char *head, size_t n)
{
	if (n < 4 || memcmp(head, "PK", 2))
		return 0;
	/* The signatures of a member, of an empty archive, and of an archive that
	 * was to be split and was not. */
	if (!memcmp(head + 2, "\3\4", 2))
		return 85;
	if (!memcmp(head + 2, "\5\6", 2))
		return 80;
	return n < 6 || (memcmp(head + 2, "00PK", 4) &&
			 memcmp(head + 2, "\7\10PK", 4))
		       ? 0
		       : 70;
}

void zip_directory_free(struct zip_directory *d)
{
	for (size_t i = 0; i < d->at.n; i++)
		free(d->at.at[i].name);
	vec_free(&d->at);
	free(d->bytes);
	d->bytes = NULL;
}

/* ---- the end ------------------------------------------------------------- */

struct end {
	bool encrypted; /* the directory is encrypted */
	uint64_t at;    /* where the record behind the directory begins */
	uint64_t disk, first_disk, entries, size, pos;
};

static int no_zip_end(struct error *err)
{
	return error_set(err, -EBADMSG,
			 "the zip archive has no directory at its end: "
			 "truncated, or still being written?");
}

/* The last bytes of the archive. */
struct tail {
	const struct backing *b;
	const unsigned char *p;
	uint64_t pos, n;
};

/* Return true if the directory of the end record at tail + i begins with an entry. */
static bool has_entry(const struct tail *t, uint64_t i)
{
	uint64_t size = load_le32(t->p + i + 12), at = t->pos + i;
	unsigned char sig[4];
	struct error ignored;

	/* Zip64: other records lie between the directory and this one. */
	if (i >= LOCATOR_SIZE &&
	    load_le32(t->p + i - LOCATOR_SIZE) == SIG_LOCATOR)
		return true;
	return size >= ZIP_ENTRY_SIZE && size <= at &&
	       backing_read(t->b, at - size, sig, sizeof sig, &ignored) == 0 &&
	       load_le32(sig) == SIG_ENTRY;
}

/*
 * Find the end record.  A comment may hold what looks like one, so the end record
 * is the one whose comment takes all bytes behind it and whose directory exists, if
 * there is one.  *out is its offset in the tail, or UINT64_MAX if there is none.
 * Return 0, or -EBADMSG if there are two.
 */
static int find_end(const struct tail *t, uint64_t *out, struct error *err)
{
	uint64_t exact = UINT64_MAX, other = UINT64_MAX, sure = UINT64_MAX;

	for (uint64_t i = t->n - END_SIZE + 1; i-- > 0;) {
		uint64_t comment, behind = t->n - i - END_SIZE;

		if (load_le32(t->p + i) != SIG_END)
			continue;
		comment = load_le16(t->p + i + 20);
		if (comment == behind && exact == UINT64_MAX)
			exact = i;
		if (comment < behind && other == UINT64_MAX)
			other = i;
		if (comment != behind || !has_entry(t, i))
			continue;
		if (sure != UINT64_MAX)
			return error_set(err, -EBADMSG,
					 "the comment of the zip archive is an "
					 "archive itself, so that it is "
					 "unclear which of the two is meant: "
					 "pack it again without the comment");
		sure = i;
	}
	*out = sure != UINT64_MAX ? sure : exact != UINT64_MAX ? exact : other;
	return 0;
}

/* Return true for the zip64 end record of an encrypted directory, which is longer
 * by 28 bytes about the encryption (APPNOTE 4.3.14, version 2). */
static bool is_version_2(const unsigned char *p)
{
	return load_le16(p + 14) >= 62 && load_le64(p + 4) >= 44 + 28;
}

/* Replace *end by the zip64 end record, if there is a locator of one (APPNOTE
 * 4.3.14, 4.3.15). */
static int read_end64(const struct backing *b, uint64_t locator,
		      struct end *end, struct error *err)
{
	unsigned char p[END64_SIZE];
	uint64_t at, limit = locator;
	int r;

	r = backing_read(b, locator, p, LOCATOR_SIZE, err);
	if (r < 0 || load_le32(p) != SIG_LOCATOR)
		return r;
	at = load_le64(p + 8);
	if (limit < END64_SIZE)
		return no_zip_end(err);
	/* If bytes precede the archive, the record is not where the locator says,
	 * but just in front of the locator. */
	for (unsigned i = 0; i < 2; i++, at = limit - END64_SIZE) {
		if (at > limit - END64_SIZE)
			continue;
		r = backing_read(b, at, p, sizeof p, err);
		if (r < 0)
			return r;
		if (load_le32(p) != SIG_END64)
			continue;
		*end = (struct end){.encrypted = is_version_2(p),
				    .at = at,
				    .disk = load_le32(p + 16),
				    .first_disk = load_le32(p + 20),
				    .entries = load_le64(p + 32),
				    .size = load_le64(p + 40),
				    .pos = load_le64(p + 48)};
		return 0;
	}
	return error_set(err, -EBADMSG,
			 "the zip64 end record of the archive is damaged");
}

bool zip_ends_file(const struct backing *b)
{
	uint64_t size = min_u64(b->size, END_SIZE + COMMENT_MAX), i = 0;
	cleanup_free unsigned char *tail = malloc(size ? size : 1);
	struct tail t = {b, tail, b->size - size, size};
	struct error ignored;

	return tail && size > END_SIZE &&
	       backing_read(b, t.pos, tail, size, &ignored) == 0 &&
	       find_end(&t, &i, &ignored) == 0 && i != UINT64_MAX &&
	       has_entry(&t, i);
}

static int read_end(const struct backing *b, struct end *end, struct error *err)
{
	uint64_t n = min_u64(b->size, END_SIZE + COMMENT_MAX), i = 0, at;
	cleanup_free unsigned char *tail = malloc(n ? n : 1);
	struct tail t = {b, tail, b->size - n, n};
	const unsigned char *p;
	int r;

	if (!tail)
		return error_no_memory(err, "the end of the zip archive");
	if (n < END_SIZE)
		return no_zip_end(err);
	r = backing_read(b, b->size - n, tail, n, err);
	if (r < 0)
		return r;
	r = find_end(&t, &i, err);
	if (r < 0)
		return r;
	if (i == UINT64_MAX)
		return no_zip_end(err);
	p = tail + i;
	at = b->size - n + i;
	*end = (struct end){.at = at,
			    .disk = load_le16(p + 4),
			    .first_disk = load_le16(p + 6),
			    .entries = load_le16(p + 10),
			    .size = load_le32(p + 12),
			    .pos = load_le32(p + 16)};
	/* There may be a zip64 end record though all numbers would fit here:
	 * torch.save always writes both. */
	if (at < LOCATOR_SIZE)
		return 0;
	return read_end64(b, at - LOCATOR_SIZE, end, err);
}

/* Return true if the directory is encrypted by PKWARE's method (APPNOTE 7.3, since
 * version 6.2): the zip64 end record has a version of its own, a record of its own
 * precedes it, and values in the headers of members are masked. */
static bool is_encrypted(const struct backing *b, const struct end *end)
{
	struct error ignored;
	unsigned char p[8];

	if (end->size >= 4 && end->size <= end->at &&
	    backing_read(b, end->at - end->size, p, 4, &ignored) == 0 &&
	    load_le32(p) == SIG_ENTRY)
		return false;
	if (end->encrypted)
		return true;
	if (end->pos < b->size && b->size - end->pos >= 4 &&
	    backing_read(b, end->pos, p, 4, &ignored) == 0 &&
	    load_le32(p) == SIG_EXTRA_DATA)
		return true;
	return b->size >= 8 && backing_read(b, 0, p, 8, &ignored) == 0 &&
	       load_le32(p) == SIG_MEMBER && load_le16(p + 6) & ZIP_FLAG_MASKED;
}

int zip_directory_read(struct zip_directory *d, const struct backing *b,
		       struct error *err)
{
	struct end end = {0};
	int r = read_end(b, &end, err);

	if (r < 0)
		return r;
	if (is_encrypted(b, &end))
		return error_set(
			err, -ENOTSUP,
			"the directory of the zip archive is encrypted "
			"(PKWARE), so that not even names can be read: "
			"unpack it with its password, and pack it "
			"again");
	if (end.disk || end.first_disk)
		return error_set(err, -ENOTSUP,
				 "it is the last of several files of a split "
				 "zip archive: join them first (zip -s 0)");
	if (end.size > end.at || end.pos > end.at - end.size)
		return error_set(err, -EBADMSG,
				 "the directory of the zip archive lies beyond "
				 "its end: damaged, or its beginning is "
				 "missing");
	if (end.size > DIRECTORY_MAX)
		return error_set(err, -ENOTSUP,
				 "the zip directory has %llu bytes; at most "
				 "%llu are supported",
				 (unsigned long long)end.size,
				 (unsigned long long)DIRECTORY_MAX);
	d->pos = end.at - end.size;
	d->shift = d->pos - end.pos;
	d->size = end.size;
	d->entries = end.entries;
	d->bytes = malloc(d->size ? d->size : 1);
	if (!d->bytes)
		return error_set(err, -ENOMEM,
				 "out of memory for a directory of %llu bytes",
				 (unsigned long long)d->size);
	return d->size ? backing_read(b, d->pos, d->bytes, d->size, err) : 0;
}

/* ---- entries ------------------------------------------------------------- */

static enum zip_why why_unreadable(const struct zip_entry *e,
				   uint64_t directory)
{
	if (e->flags & (ZIP_FLAG_ENCRYPTED | ZIP_FLAG_STRONG))
		return ZIP_ENCRYPTED;
	if (e->method != ZIP_STORED && e->method != ZIP_DEFLATED)
		return ZIP_METHOD;
	if (e->header > directory || e->stored > directory - e->header)
		return ZIP_BEYOND;
	/* Deflate makes at most 1032 bytes of one. */
	if (e->method == ZIP_STORED ? e->size != e->stored
				    : e->size / 1032 > e->stored)
		return ZIP_SIZE;
	return ZIP_NO_REASON;
}

/* Parse the entry at `off`.  Return 1 and set *used to its bytes, 0 if there is no
 * valid entry, or -ENOMEM. */
static int parse_directory_entry(struct zip_directory *d, uint64_t off,
				 uint64_t *used, struct error *err)
{
	const unsigned char *p = d->bytes + off;
	uint64_t left = d->size - off;
	struct zip_entry e = {0};
	unsigned name, extra;
	int r;

	if (left < ZIP_ENTRY_SIZE || load_le32(p) != SIG_ENTRY)
		return 0;
	name = load_le16(p + 28);
	extra = load_le16(p + 30);
	*used = (uint64_t)ZIP_ENTRY_SIZE + name + extra + load_le16(p + 32);
	if (*used > left)
		return 0;
	e.flags = load_le16(p + 8);
	e.method = load_le16(p + 10);
	e.crc = load_le32(p + 16);
	e.stored = load_le32(p + 20);
	e.size = load_le32(p + 24);
	e.header = load_le32(p + 42);
	e.raw = (uint32_t)(off + ZIP_ENTRY_SIZE);
	e.raw_len = name;
	r = zip_entry_text(&e, p, name, extra, err);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	if (e.header > UINT64_MAX - d->shift)
		e.header = UINT64_MAX;
	else
		e.header += d->shift;
	e.why = why_unreadable(&e, d->pos);
	if (vec_push(&d->at, e))
		return 1;
	free(e.name);
	return error_no_memory(err, "the members of the zip archive");
}

int zip_directory_parse(struct zip_directory *d, struct members_builder *notes,
			struct error *err)
{
	uint64_t off = 0, used = 0;
	int r = 1;

	while (off < d->size) {
		r = parse_directory_entry(d, off, &used, err);
		if (r <= 0)
			break;
		off += used;
	}
	if (r < 0)
		return r;
	if (r == 0 && !d->at.n)
		return error_set(err, -EBADMSG,
				 "the zip directory at %llu is damaged: no "
				 "entry at its beginning",
				 (unsigned long long)d->pos);
	if (r == 0)
		members_damage(notes, "directory",
			       "the zip directory is damaged behind its entry "
			       "%zu (byte %llu): members may be missing",
			       d->at.n, (unsigned long long)(d->pos + off));
	else if (d->at.n != d->entries && d->at.n % 0x10000 != d->entries)
		members_damage(notes, "directory",
			       "the zip directory has %zu entries, and its end "
			       "says %llu: members may be missing",
			       d->at.n, (unsigned long long)d->entries);
	if (d->shift)
		members_note(
			notes, "in front",
			"%llu bytes in front of the zip archive are ignored",
			(unsigned long long)d->shift);
	return 0;
}
