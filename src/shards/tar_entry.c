/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the members of a tar, those that need it with libarchive. */

/*
 * One archive is written by five writers that take turns, four of them libarchive's.
 * The first two write members that fit into a ustar header, in half the time and two
 * thirds of the bytes; the others write an extended header.
 *
 *	plain    regular files that fit: shards/ustar.h, which also makes the headers of
 *		 shards that are shown but not written
 *	ustar    others that fit; names are the bytes they are (as in GNU tar), not converted
 *	pax      an extended header, all names being UTF-8
 *	binary   an extended header that declares that a name is not UTF-8
 *		 (hdrcharset=BINARY)
 *	odd      an extended header, for attribute names that are not just printable ASCII
 *
 * The last two are used only for members that need them: GNU tar does not know
 * hdrcharset and reports for each member that it ignores it.  Extended attributes are
 * stored as SCHILY.xattr, which all programs read; but libarchive escapes names there,
 * and readers do not undo that.  Attributes whose names would be escaped become
 * LIBARCHIVE.xattr, which bsdtar and tensorfs read and GNU tar ignores with a message.
 * For pax, libarchive must believe that the locale is UTF-8; it is set so on this
 * thread while a header is made.
 *
 * The tar depends neither on the time nor on the process that writes: it has no atime
 * and no ctime.
 */
#include "shards/tar_entry.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/vec.h"
#include "shards/owners.h"
#include "shards/ustar.h"

enum { USTAR, PAX, BINARY, ODD, WRITERS, PLAIN = WRITERS };
struct tar_writer {
	tar_emit *emit;
	void *ctx;
	struct archive *to[WRITERS]; /* NULL: not needed yet */
	/* The writer of the current member; NULL: the plain one. */
	struct archive *now;
	uint64_t left; /* bytes that the plain writer still expects */
	struct archive_entry *entry;
	locale_t utf8; /* 0 if the system has none */
	bool numeric_owner;
	bool data;  /* what is emitted is a member's content */
	bool ended; /* what is emitted is dropped */
	uint64_t size;
	struct error failure; /* the first error of `emit` */
	vec(char) path;
	struct owners owners;
};

/* For holes, and for the end of the archive. */
static unsigned char zeros[1 << 20];

/* ---- libarchive ---------------------------------------------------------- */

static void tar_writer_emit(struct tar_writer *w, const void *bytes, size_t n)
{
	if (!w->failure.code)
		w->emit(w->ctx, bytes, n, w->data, &w->failure);
	w->size += n;
}

/* Pass on what libarchive writes.  It is not told of failures, because after one it
 * would not free its memory; w->failure has them. */
static la_ssize_t tar_writer_on_write(struct archive *a, void *ctx,
				      const void *bytes, size_t n)
{
	struct tar_writer *w = ctx;

	(void)a;
	if (!w->ended)
		tar_writer_emit(w, bytes, n);
	return (la_ssize_t)n;
}

/* Set the error that a member cannot be written: the one of `emit`, else libarchive's. */
static int tar_writer_fail(const struct tar_writer *w, const char *path,
			   struct error *err)
{
	const char *why;

	if (w->failure.code)
		return error_set(err, w->failure.code, "%s", w->failure.text);
	why = w->now ? archive_error_string(w->now)
		     : "it has more bytes than its header says";
	return error_set(err, -EIO, "'%s' cannot be written to a tar: %s", path,
			 why ? why : "libarchive gives no reason");
}

static bool tar_writer_set_up(struct tar_writer *w, struct archive *a,
			      int which)
{
	static const char *const options[WRITERS] = {
		[PAX] = "pax:xattrheader=SCHILY",
		[BINARY] = "pax:xattrheader=SCHILY,pax:hdrcharset=BINARY",
		[ODD] = "pax:xattrheader=LIBARCHIVE,pax:hdrcharset=BINARY"};
	int r = which == USTAR ? archive_write_set_format_ustar(a)
			       : archive_write_set_format_pax(a);

	if (r == ARCHIVE_OK && options[which])
		r = archive_write_set_options(a, options[which]);
	/* Without blocks, bytes of different writers come in the order of writing. */
	return r == ARCHIVE_OK &&
	       archive_write_set_bytes_per_block(a, 0) == ARCHIVE_OK &&
	       archive_write_open(a, w, NULL, tar_writer_on_write, NULL) ==
		       ARCHIVE_OK;
}

static int tar_writer_choose(struct tar_writer *w, int which, struct error *err)
{
	if (which == PLAIN) {
		w->now = NULL;
		return 0;
	}
	if (!w->to[which]) {
		struct archive *a = archive_write_new();

		if (!a || !tar_writer_set_up(w, a, which)) {
			if (a)
				archive_write_free(a);
			return error_no_memory(err, "a writer of tar headers");
		}
		w->to[which] = a;
	}
	w->now = w->to[which];
	return 0;
}

/* ---- which writer? ------------------------------------------------------- */

/* Return true if the text is UTF-8 (RFC 3629). */
static bool tar_text_is_utf8(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		unsigned n = *p < 0x80                 ? 0
			     : *p >= 0xc2 && *p < 0xe0 ? 1
			     : *p >= 0xe0 && *p < 0xf0 ? 2
			     : *p >= 0xf0 && *p < 0xf5 ? 3
						       : 9;

		if (n == 9 || (*p == 0xe0 && p[1] < 0xa0) ||
		    (*p == 0xed && p[1] > 0x9f) ||
		    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
			return false;
		for (p++; n; n--, p++)
			if ((*p & 0xc0) != 0x80)
				return false;
	}
	return true;
}

static bool tar_text_is_ascii(const char *text)
{
	for (; text && *text; text++)
		if (*text & 0x80)
			return false;
	return true;
}

/* Return true if libarchive escapes the name of an attribute. */
static bool tar_name_is_odd(const char *name)
{
	for (; *name; name++)
		if (*name < '!' || *name > '~' || *name == '%' || *name == '=')
			return true;
	return false;
}

/*
 * Return true if a ustar header holds the entry; libarchive uses six octal digits where
 * there is room for seven.  A fraction of a second alone is not worth a KiB for each
 * file in the archive; as with tar and bsdtar, only members that need an extended
 * header anyway have it.
 */
static bool fits_ustar(const struct ustar *m, const struct feed_unit *u)
{
	const struct feed_attr *a = &u->attr;
	const char *link = u->same_as ? u->same_as : u->link;

	return ustar_fits(m) && (u->same_as || (!u->n_xattrs && !u->sparse)) &&
	       major(a->rdev) < 1u << 18 && minor(a->rdev) < 1u << 18 &&
	       (!link || strlen(link) <= 100);
}

/* Choose the writer of an entry.  In a ustar header names are just bytes; in an
 * extended one they have a character set. */
static int which_writer(const struct tar_writer *w, const struct feed_unit *u,
			const struct ustar *m)
{
	const char *text[] = {u->path, u->same_as ? u->same_as : u->link,
			      m->user, m->group};
	bool ascii = true;

	if (fits_ustar(m, u))
		return S_ISREG(m->mode) && !u->same_as ? PLAIN : USTAR;
	for (size_t i = 0; !u->same_as && i < u->n_xattrs; i++)
		if (tar_name_is_odd(u->xattrs[i].name))
			return ODD;
	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
		if (!text[i] || tar_text_is_ascii(text[i]))
			continue;
		if (!tar_text_is_utf8(text[i]))
			return BINARY;
		ascii = false;
	}
	return ascii || w->utf8 ? PAX : BINARY;
}

/* ---- an entry ------------------------------------------------------------ */

static int tar_writer_set_path(struct tar_writer *w, const struct feed_unit *u,
			       struct error *err)
{
	bool ok = true;

	w->path.n = 0;
	for (const char *p = u->path; *p && ok; p++)
		ok = vec_push(&w->path, *p);
	if (ok && S_ISDIR(u->attr.mode))
		ok = vec_push(&w->path, '/');
	return ok && vec_push(&w->path, '\0')
		       ? 0
		       : error_no_memory(err, "the path of a tar's member");
}

/*
 * libarchive writes "-1.5" for -1 s and 0.5e9 ns, which in POSIX means one and a half
 * seconds before 1970; the kernel represents that as -2 s and 0.5e9 ns.  libarchive
 * cannot express a fraction in the last second before 1970.
 */
static void tar_entry_set_mtime(struct archive_entry *e,
				const struct feed_attr *a)
{
	int64_t s = a->mtime;
	long ns = (long)a->mtime_ns;

	if (s < -1 && ns) {
		s++;
		ns = 1000000000 - ns;
	} else if (s < 0) {
		ns = 0;
	}
	archive_entry_set_mtime(e, s, ns);
}

static void tar_entry_set_sparse(struct archive_entry *e,
				 const struct feed_unit *u)
{
	for (size_t i = 0; i < u->n_extents; i++)
		archive_entry_sparse_add_entry(e, (int64_t)u->extents[i].at,
					       (int64_t)u->extents[i].len);
	/* The whole file is a hole: without an entry it would be data. */
	if (!u->n_extents)
		archive_entry_sparse_add_entry(e, (int64_t)u->attr.size, 0);
}

/* Return true if the member can be written with holes.  With hdrcharset=BINARY,
 * libarchive names a sparse member as in its ustar header, which cuts a long name; such
 * a member is written without holes. */
static bool can_be_sparse(const struct tar_writer *w)
{
	return w->now == w->to[PAX] || w->path.n - 1 <= 100;
}

static void fill_entry(struct tar_writer *w, const struct feed_unit *u,
		       const char *user, const char *group)
{
	struct archive_entry *e = archive_entry_clear(w->entry);
	const struct feed_attr *a = &u->attr;

	archive_entry_copy_pathname(e, w->path.at);
	archive_entry_set_mode(e, a->mode);
	archive_entry_set_uid(e, a->uid);
	archive_entry_set_gid(e, a->gid);
	if (user)
		archive_entry_copy_uname(e, user);
	if (group)
		archive_entry_copy_gname(e, group);
	tar_entry_set_mtime(e, a);
	if (S_ISCHR(a->mode) || S_ISBLK(a->mode))
		archive_entry_set_rdev(e, a->rdev);
	if (u->same_as)
		archive_entry_copy_hardlink(e, u->same_as);
	else if (u->link)
		archive_entry_copy_symlink(e, u->link);
	if (u->same_as || !S_ISREG(a->mode))
		return;
	archive_entry_set_size(e, (int64_t)a->size);
	if (u->sparse && can_be_sparse(w))
		tar_entry_set_sparse(e, u);
}

static int tar_writer_write_header(struct tar_writer *w)
{
	locale_t was = w->utf8 && w->now == w->to[PAX] ? uselocale(w->utf8)
						       : (locale_t)0;
	int r = archive_write_header(w->now, w->entry);

	if (was)
		uselocale(was);
	return r;
}

static int begin_plain(struct tar_writer *w, const struct ustar *m)
{
	unsigned char header[USTAR_BLOCK];

	ustar_header(header, m);
	w->left = m->size;
	w->data = false;
	tar_writer_emit(w, header, sizeof header);
	w->data = true;
	return w->failure.code ? ARCHIVE_FATAL : ARCHIVE_OK;
}

static int begin_entry(struct tar_writer *w, const struct feed_unit *u,
		       const struct ustar *m)
{
	int r;

	fill_entry(w, u, m->user, m->group);
	/* Hard links have no attributes: the first name has them. */
	for (size_t i = 0; !u->same_as && i < u->n_xattrs; i++)
		archive_entry_xattr_add_entry(w->entry, u->xattrs[i].name,
					      u->xattrs[i].value,
					      u->xattrs[i].len);
	w->data = false;
	r = tar_writer_write_header(w);
	/* libarchive writes the map of a sparse member with its first data. */
	if (r >= ARCHIVE_WARN && u->sparse && !u->same_as && can_be_sparse(w))
		r = archive_write_data(w->now, zeros, 0) < 0 ? ARCHIVE_FATAL
							     : r;
	w->data = true;
	return r;
}

int tar_writer_begin(struct tar_writer *w, const struct feed_unit *u,
		     struct error *err)
{
	struct ustar m = {.mode = u->attr.mode,
			  .uid = u->attr.uid,
			  .gid = u->attr.gid,
			  .size = u->attr.size,
			  .mtime = u->attr.mtime};
	int r = tar_writer_set_path(w, u, err);

	if (r < 0)
		return r;
	m.path = w->path.at;
	if (!w->numeric_owner) {
		m.user = owners_user(&w->owners, m.uid);
		m.group = owners_group(&w->owners, m.gid);
	}
	r = tar_writer_choose(w, which_writer(w, u, &m), err);
	if (r < 0)
		return r;
	r = w->now ? begin_entry(w, u, &m) : begin_plain(w, &m);
	return r < ARCHIVE_WARN || w->failure.code
		       ? tar_writer_fail(w, u->path, err)
		       : 0;
}

/* Write the next `n` bytes of a plain member, but not more than it has. */
static la_ssize_t plain_data(struct tar_writer *w, const void *data, size_t n)
{
	n = (size_t)min_u64(n, w->left);
	if (n)
		tar_writer_emit(w, data, n);
	w->left -= n;
	return (la_ssize_t)n;
}

int tar_writer_data(struct tar_writer *w, const void *data, uint64_t n,
		    struct error *err)
{
	const unsigned char *at = data;

	while (n > 0) {
		size_t part = (size_t)min_u64(n, data ? INT_MAX : sizeof zeros);
		const void *from = data ? at : zeros;
		la_ssize_t done =
			w->now ? archive_write_data(w->now, from, part)
			       : plain_data(w, from, part);

		if (done <= 0 || w->failure.code)
			return tar_writer_fail(w, w->path.at, err);
		if (data)
			at += done;
		n -= (uint64_t)done;
	}
	return 0;
}

/* Write zeros for missing bytes of a plain member and for the rest of its last block. */
static int end_plain(struct tar_writer *w)
{
	uint64_t n = ustar_padded(w->size + w->left) - w->size;

	for (; n && !w->failure.code; n -= min_u64(n, sizeof zeros))
		tar_writer_emit(w, zeros, (size_t)min_u64(n, sizeof zeros));
	return ARCHIVE_OK;
}

int tar_writer_end(struct tar_writer *w, struct error *err)
{
	int r;

	w->data = false;
	r = w->now ? archive_write_finish_entry(w->now) : end_plain(w);
	return r < ARCHIVE_WARN || w->failure.code
		       ? tar_writer_fail(w, w->path.at, err)
		       : 0;
}

/* ---- making -------------------------------------------------------------- */

int tar_writer_finish(struct tar_writer *w, struct error *err)
{
	uint64_t end = ustar_archive_size(w->size);

	w->data = false;
	tar_writer_emit(w, zeros, (size_t)(end - w->size));
	return w->failure.code ? tar_writer_fail(w, "", err) : 0;
}

int tar_writer_new(struct tar_writer **out, bool numeric_owner, tar_emit *to,
		   void *ctx, struct error *err)
{
	struct tar_writer *w = calloc(1, sizeof *w);

	*out = NULL;
	if (!w)
		return error_no_memory(err, "the writer of a tar");
	w->emit = to;
	w->ctx = ctx;
	w->numeric_owner = numeric_owner;
	w->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	w->entry = archive_entry_new();
	if (!w->entry) {
		tar_writer_free(w);
		return error_no_memory(err, "the writer of a tar");
	}
	*out = w;
	return 0;
}

void tar_writer_free(struct tar_writer *w)
{
	if (!w)
		return;
	w->ended = true;
	for (int i = 0; i < WRITERS; i++)
		if (w->to[i])
			archive_write_free(w->to[i]);
	if (w->entry)
		archive_entry_free(w->entry);
	if (w->utf8)
		freelocale(w->utf8);
	vec_free(&w->path);
	free(w);
}
