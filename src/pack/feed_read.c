/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading one entry, or a piece of one, and noticing that it changed since the scan. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "pack/feed_private.h"
#include "pack/scan_private.h"

#define LINK_MAX_BYTES 65536
#define XATTR_BYTES_MAX (UINT64_C(16) << 20)

bool feed_is_large(const struct feed_source *f, uint64_t entry)
{
	const struct scan_entry *e = &f->scan->list.at[entry];

	return f->o.data && S_ISREG(e->mode) && e->same_as == entry &&
	       e->size > FEED_WHOLE;
}

static void piece_set_gone(struct feed_piece *p, int code, const char *why)
{
	p->outcome = FEED_GONE;
	p->code = code;
	p->why = why;
}

static void piece_set_changed(struct feed_piece *p, const char *why)
{
	p->outcome = FEED_CHANGED;
	p->why = why;
}

static void set_times(const struct feed_options *o, struct feed_attr *a,
		      int64_t seconds, uint32_t ns)
{
	a->mtime = seconds;
	a->mtime_ns = ns;
	if (o->mtime != INT64_MIN) {
		a->mtime = o->mtime;
		a->mtime_ns = 0;
	} else if (seconds >= o->mtime_most) {
		a->mtime = o->mtime_most;
		a->mtime_ns = 0;
	}
}

void feed_attr_set(struct feed_attr *a, const struct scan_entry *e,
		   const struct feed_options *o)
{
	*a = (struct feed_attr){.mode = e->mode,
				.uid = o->uid == UINT32_MAX ? e->uid : o->uid,
				.gid = o->gid == UINT32_MAX ? e->gid : o->gid,
				.rdev = e->rdev,
				.size = S_ISREG(e->mode) ? e->size : 0};
	set_times(o, a, e->mtime, e->mtime_ns);
}

/* ---- extended attributes ------------------------------------------------- */

/* Is this attribute to be packed?  Attributes of users and of security are.  Those that a
 * file system keeps for itself (Lustre's layouts, marks of overlays), facts of this
 * machine, and those that tensorfs shows for every file are not. */
static bool xattr_is_wanted(const char *name)
{
	static const char *const own[] = {
		"trusted.lov",   "trusted.lma",      "trusted.lmv",
		"trusted.link",  "trusted.overlay.", "security.selinux",
		"user.tensorfs."};

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strncmp(name, own[i], strlen(own[i])))
			return false;
	return !strncmp(name, "user.", 5) || !strncmp(name, "trusted.", 8) ||
	       !strncmp(name, "security.", 9);
}

static int xattr_compare_names(const void *a, const void *b)
{
	const struct feed_xattr *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Note that an attribute could not be read, unless it is gone or we may not read it. */
static void piece_note_missed(struct feed_piece *p, int code)
{
	if (code != ENOTSUP && code != ENODATA && code != EPERM &&
	    code != EACCES)
		piece_set_changed(
			p, "not all of its extended attributes could be read");
}

/* Whose attributes are read: an open file; or, for a descriptor opened with O_PATH, its
 * name in /proc, which is slower. */
struct asked {
	int fd;
	char path[40]; /* "": use fd */
};

static ssize_t xattr_ask_names(const struct asked *of, char *to, size_t room)
{
	return *of->path ? listxattr(of->path, to, room)
			 : flistxattr(of->fd, to, room);
}

static ssize_t xattr_ask_value(const struct asked *of, const char *name,
			       void *to, size_t room)
{
	return *of->path ? getxattr(of->path, name, to, room)
			 : fgetxattr(of->fd, name, to, room);
}

/* Read the wanted attributes into the `n` elements of `list` and the `room` bytes behind
 * them.  Return their number. */
static size_t xattr_read_values(struct feed_piece *p, const struct asked *of,
				const char *names, size_t len,
				struct feed_xattr *list, size_t n, size_t room)
{
	char *to = (char *)(list + n), *end = to + room;
	size_t k = 0;

	for (const char *at = names; at < names + len && k < n;
	     at += strlen(at) + 1) {
		size_t name = strlen(at) + 1;
		ssize_t value = -1;

		if (!xattr_is_wanted(at))
			continue;
		/* A value that has grown since then does not fit.  A size of 0 would ask
		 * for the length instead of the value. */
		errno = ERANGE;
		if (name < (size_t)(end - to))
			value = xattr_ask_value(of, at, to + name,
						(size_t)(end - to) - name);
		if (value < 0) {
			piece_note_missed(p, errno);
			continue;
		}
		memcpy(to, at, name);
		list[k++] = (struct feed_xattr){to, to + name, (size_t)value};
		to += name + (size_t)value;
	}
	return k;
}

/* Set the attributes of `p`, in one allocation.  Return false if there is no memory. */
static bool read_xattrs(struct feed_source *f, struct feed_piece *p,
			const struct asked *of)
{
	cleanup_free char *names = NULL;
	ssize_t len = xattr_ask_names(of, NULL, 0);
	struct feed_xattr *list;
	size_t n = 0, all = 1; /* so that the room is never 0 */

	if (len < 0 && errno == ENOTSUP)
		f->no_xattrs = true; /* it is the same for all entries */
	if (len > 0) {
		names = malloc((size_t)len);
		if (!names)
			return false;
		len = xattr_ask_names(of, names, (size_t)len);
	}
	if (len < 0)
		piece_note_missed(p, errno);
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t value;

		if (!xattr_is_wanted(names + at))
			continue;
		value = xattr_ask_value(of, names + at, NULL, 0);
		if (value < 0) {
			piece_note_missed(p, errno);
			continue;
		}
		n++;
		all += strlen(names + at) + 1 + (size_t)value;
	}
	if (n && all > XATTR_BYTES_MAX) {
		piece_set_changed(
			p, "it has more than 16 MiB of extended attributes; "
			   "they were left out");
		n = 0;
	}
	if (!n)
		return true;
	list = malloc(n * sizeof *list + all);
	if (!list)
		return false;
	n = xattr_read_values(p, of, names, (size_t)len, list, n, all);
	qsort(list, n, sizeof *list, xattr_compare_names);
	p->xattrs = list;
	p->u.xattrs = list;
	p->u.n_xattrs = n;
	return true;
}

static bool read_xattrs_of(struct feed_source *f, struct feed_piece *p, int fd,
			   bool is_place)
{
	struct asked of = {.fd = fd};

	if (!f->o.xattrs || f->no_xattrs)
		return true;
	if (is_place)
		snprintf(of.path, sizeof of.path, "/proc/self/fd/%d", fd);
	return read_xattrs(f, p, &of);
}

/* ---- entries that are not regular files -------------------------------------- */

static bool piece_read_target(struct feed_piece *p, int fd)
{
	cleanup_free char *target = malloc(LINK_MAX_BYTES);
	ssize_t n = target ? readlinkat(fd, "", target, LINK_MAX_BYTES) : 0;

	if (!target)
		return false;
	if (n < 0) {
		piece_set_gone(p, errno, NULL);
		return true;
	}
	p->link = strndup(target, (size_t)n);
	p->u.link = p->link;
	return p->link != NULL;
}

static bool read_other(struct feed_source *f, struct feed_piece *p,
		       const struct scan_entry *e)
{
	bool is_link = S_ISLNK(e->mode), ok;
	struct stat st;
	int fd;

	if (!is_link && (!f->o.xattrs || f->no_xattrs))
		return true;
	fd = scan_open(f->top, p->u.path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		piece_set_gone(p, errno, NULL);
		ok = true;
	} else if ((st.st_mode & S_IFMT) != (e->mode & S_IFMT)) {
		piece_set_gone(p, 0, "it was replaced by another kind of file");
		ok = true;
	} else {
		ok = (!is_link || piece_read_target(p, fd)) &&
		     (p->outcome == FEED_GONE ||
		      read_xattrs_of(f, p, fd, true));
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

/* ---- regular files ------------------------------------------------------- */

static bool stat_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool is_scanned_file(const struct stat *st, const struct scan_entry *e)
{
	return st->st_dev == e->dev && st->st_ino == e->ino;
}

static bool is_as_scanned(const struct stat *st, const struct scan_entry *e)
{
	return is_scanned_file(st, e) && (uint64_t)st->st_size == e->size &&
	       st->st_mtim.tv_sec == e->mtime &&
	       (uint32_t)st->st_mtim.tv_nsec == e->mtime_ns &&
	       st->st_ctim.tv_sec == e->ctime &&
	       (uint32_t)st->st_ctim.tv_nsec == e->ctime_ns;
}

/* Set the extents of `p` to the data in the first `size` bytes; leave them unset if there
 * is no hole.  Return false if there is no memory. */
static bool find_extents(struct feed_piece *p, int fd, uint64_t size)
{
	vec(struct feed_extent) list = VEC_EMPTY;
	off_t at = 0;

	while ((uint64_t)at < size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;
		struct feed_extent one;

		if (data < 0 && errno == ENXIO)
			break;
		hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		if (hole <= data) {
			/* The file system does not report holes: treat all as data. */
			vec_free(&list);
			return true;
		}
		if ((uint64_t)data >= size)
			break;
		one.at = (uint64_t)data;
		one.len = min_u64((uint64_t)hole, size) - one.at;
		if (!vec_push(&list, one)) {
			vec_free(&list);
			return false;
		}
		at = hole;
	}
	if (list.n == 1 && list.at->at == 0 && list.at->len == size) {
		vec_free(&list);
		return true;
	}
	p->u.sparse = true;
	p->extents = list.at;
	p->u.extents = list.at;
	p->u.n_extents = list.n;
	return true;
}

/* Read the bytes of `p`; zeros replace those that are missing. */
static void piece_fill(struct feed_piece *p, int fd, void *data)
{
	size_t n = p->u.size;
	int64_t got;

	if (!n)
		return;
	got = file_read(fd, p->u.at, data, n);
	if (got < 0) {
		piece_set_gone(p, (int)-got, NULL);
		got = 0;
	} else if ((size_t)got < n) {
		piece_set_changed(p, "it became shorter while it was read; the "
				     "missing bytes are zeros");
	}
	memset((char *)data + got, 0, n - (size_t)got);
	p->u.lost = (size_t)got < n;
	p->u.data = data;
}

/* Owner, mode and bytes must come from one open file.  Otherwise a user who replaces a
 * file meanwhile could give bytes of his choice the owner and the set-user-ID bit of
 * another file. */
static bool read_small(struct feed_source *f, struct feed_piece *p, int fd,
		       const struct stat *st, void *data)
{
	const struct scan_entry *e = &f->scan->list.at[p->u.entry];
	const struct scan_entry now = scan_entry_of(st);
	const uint64_t planned = p->u.size;
	struct stat after;

	feed_attr_set(&p->u.attr, &now, &f->o);
	if (now.size <= FEED_WHOLE) {
		p->u.size = now.size;
	} else {
		piece_set_changed(p, "it grew since it was listed; only the "
				     "bytes that it had then were packed");
		p->u.attr.size = planned;
	}
	if (e->nlink > 1 && !is_scanned_file(st, e))
		piece_set_changed(p, "it was replaced by another file, which "
				     "its hard links in the pack show, too");
	if ((uint64_t)st->st_blocks * 512 < p->u.size &&
	    !find_extents(p, fd, p->u.size))
		return false;
	if (p->u.size > planned) {
		data = p->extra = malloc(p->u.size);
		if (!data)
			return false;
	}
	piece_fill(p, fd, data);
	if (p->outcome == FEED_FINE &&
	    (fstat(fd, &after) < 0 || !stat_is_same(st, &after)))
		piece_set_changed(p, "it changed while it was read");
	return true;
}

static bool read_large(struct feed_source *f, struct feed_piece *p, int fd,
		       const struct stat *st, void *data)
{
	const struct scan_entry *e = &f->scan->list.at[p->u.entry];
	bool holes = (uint64_t)st->st_blocks * 512 < e->size;
	off_t next;
	struct stat after;

	/* Pieces must not come from different files. */
	if (!is_scanned_file(st, e)) {
		piece_set_gone(p, 0, "it was replaced by another file");
		return true;
	}
	if (p->u.first && holes && !find_extents(p, fd, e->size))
		return false;
	next = holes ? lseek(fd, (off_t)p->u.at, SEEK_DATA) : 0;
	if (holes && ((next < 0 && errno == ENXIO) ||
		      next >= (off_t)(p->u.at + p->u.size)))
		p->u.data = NULL;
	else
		piece_fill(p, fd, data);
	if (p->outcome == FEED_FINE &&
	    (fstat(fd, &after) < 0 || !is_as_scanned(&after, e)))
		piece_set_changed(p, "it changed while it was read");
	return true;
}

static bool read_regular(struct feed_source *f, struct feed_piece *p,
			 void *data)
{
	struct stat st;
	bool ok = true;
	int fd = scan_open(f->top, p->u.path,
			   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0) {
		piece_set_gone(p, errno, NULL);
	} else if (!S_ISREG(st.st_mode)) {
		piece_set_gone(p, 0, "it is not a regular file any more");
	} else {
		if (p->u.first)
			ok = read_xattrs_of(f, p, fd, false);
		if (ok && f->o.data)
			ok = feed_is_large(f, p->u.entry)
				     ? read_large(f, p, fd, &st, data)
				     : read_small(f, p, fd, &st, data);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

bool feed_read(struct feed_source *f, struct feed_piece *p, void *data)
{
	const struct scan_entry *e = &f->scan->list.at[p->u.entry];

	p->u.path = scan_path(f->scan, p->u.entry);
	feed_attr_set(&p->u.attr, e, &f->o);
	if (e->same_as != p->u.entry) {
		p->u.same_as = scan_path(f->scan, e->same_as);
		p->u.size = 0;
		return true;
	}
	if (S_ISREG(e->mode))
		return !f->o.data && !f->o.xattrs ? true
						  : read_regular(f, p, data);
	return read_other(f, p, e);
}

void feed_piece_free(struct feed_piece *p)
{
	free(p->extra);
	free(p->link);
	free(p->extents);
	free(p->xattrs);
	*p = (struct feed_piece){0};
}
