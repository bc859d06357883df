/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories and links of a copy: made, opened without following links, finished. */

/*
 * Everything is made relative to a descriptor of its directory, which is opened
 * component by component from the root of the copy with O_NOFOLLOW.  Other users may
 * not write there, and symlinks are made only after all files: so a name that comes
 * from a source cannot lead out of the copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "staging/copy_private.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* The kernel's limit of the value of an extended attribute, in bytes. */
#define VALUE_MAX 65536
/* *stop is looked at once for this many entries. */
#define STOP_CHECK_INTERVAL 1024

/* ---- names --------------------------------------------------------------- */

static int check_name(const char *name, struct error *err)
{
	if (*name && strcmp(name, ".") && strcmp(name, "..") &&
	    !strchr(name, '/'))
		return 0;
	return error_set(err, -EIO,
			 "'%s' cannot be the name of a file: this is a defect "
			 "of tensorfs",
			 name);
}

int copy_name(const struct copy_plan *p, const struct copy_file *f,
	      char name[FILES_NAME_MAX + 1], struct error *err)
{
	struct node n;
	int r;

	if (f->flags & COPY_NAMED) {
		snprintf(name, FILES_NAME_MAX + 1, "%s", p->text.at + f->entry);
		return check_name(name, err);
	}
	r = tree_entry(fs_tree(p->fs), p->dirs.at[f->dir].ino, f->entry, &n,
		       name, FILES_NAME_MAX + 1);
	if (r < 0)
		return error_errno(err, r, "cannot look up the name of a file");
	return check_name(name, err);
}

static const char *dir_name(const struct copy_plan *p, uint32_t dir)
{
	return p->text.at + p->dirs.at[dir].name;
}

/* ---- open directories ---------------------------------------------------- */

void copy_dirs_init(struct copy_dirs *d, const struct copy_plan *p, int to)
{
	d->plan = p;
	d->to = to;
	for (unsigned i = 0; i < COPY_DIRS; i++)
		d->slot[i].fd = -1;
}

void copy_dirs_free(struct copy_dirs *d)
{
	for (unsigned i = 0; i < COPY_DIRS; i++)
		if (d->slot[i].fd >= 0)
			close(d->slot[i].fd);
}

static bool is_open(const struct copy_dirs *d, uint32_t dir)
{
	return d->slot[dir % COPY_DIRS].fd >= 0 &&
	       d->slot[dir % COPY_DIRS].dir == dir;
}

/* Open a directory, starting at its nearest ancestor that is open.  Return a descriptor
 * that the caller closes, or -errno. */
static int open_below(struct copy_dirs *d, uint32_t dir, struct error *err)
{
	const struct copy_plan *p = d->plan;
	cleanup_free uint32_t *way = NULL;
	int from, fd = -1;
	uint32_t n = 0;

	way = malloc((p->dirs.at[dir].depth + 1) * sizeof *way);
	if (!way)
		return error_no_memory(err, "the path of a directory");
	for (; dir && !is_open(d, dir); dir = p->dirs.at[dir].parent)
		way[n++] = dir;
	from = dir ? d->slot[dir % COPY_DIRS].fd : d->to;
	while (n--) {
		int next = openat(fd < 0 ? from : fd, dir_name(p, way[n]),
				  OPEN_DIR);
		int code = next < 0 ? -errno : 0;

		if (fd >= 0)
			close(fd);
		if (next < 0)
			return error_errno(
				err, code,
				"cannot open '%s', a directory of the copy",
				dir_name(p, way[n]));
		fd = next;
	}
	return fd;
}

int copy_dirs_get(struct copy_dirs *d, uint32_t dir, struct error *err)
{
	__typeof__(d->slot[0]) *slot = &d->slot[dir % COPY_DIRS];
	int fd;

	if (dir == 0)
		return d->to;
	if (slot->fd >= 0 && slot->dir == dir)
		return slot->fd;
	fd = open_below(d, dir, err);
	if (fd < 0)
		return fd;
	if (slot->fd >= 0)
		close(slot->fd);
	slot->fd = fd;
	slot->dir = dir;
	return fd;
}

/* ---- making them --------------------------------------------------------- */

static int copy_interrupted(struct error *err)
{
	return error_set(err, -EINTR, "interrupted");
}

int copy_make_dirs(const struct copy_plan *p, int to, const _Atomic int *stop,
		   struct error *err)
{
	struct copy_dirs dirs;
	int r = 0;

	copy_dirs_init(&dirs, p, to);
	/* Parents stand before their children in `dirs`. */
	for (uint32_t i = 1; r == 0 && i < p->dirs.n; i++) {
		const char *name = dir_name(p, i);
		int in = copy_dirs_get(&dirs, p->dirs.at[i].parent, err);

		r = in < 0 ? in : check_name(name, err);
		if (r == 0 && mkdirat(in, name, 0700) < 0)
			r = error_errno(err, -errno, "cannot make '%s'", name);
		if (r == 0 && i % STOP_CHECK_INTERVAL == 0 && *stop)
			r = copy_interrupted(err);
	}
	copy_dirs_free(&dirs);
	return r;
}

/* ---- links --------------------------------------------------------------- */

static int copy_make_symlink(const struct copy_plan *p, struct copy_dirs *dirs,
			     const struct copy_file *f, struct error *err)
{
	char name[FILES_NAME_MAX + 1];
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	const char *target;
	struct entry e;
	int in = copy_dirs_get(dirs, f->dir, err), r;

	r = in < 0 ? in : copy_name(p, f, name, err);
	if (r < 0)
		return r;
	r = fs_readlink(p->fs, f->ino, &target);
	if (r < 0)
		return copy_fail(p->fs, f->ino, r, err);
	if (symlinkat(target, in, name) < 0)
		return error_errno(err, -errno, "cannot make the link '%s'",
				   name);
	if (fs_getattr(p->fs, f->ino, &e) == 0) {
		times[1] = e.st.st_mtim;
		utimensat(in, name, times, AT_SYMLINK_NOFOLLOW);
	}
	return 0;
}

static int copy_make_hard_link(const struct copy_plan *p,
			       struct copy_dirs *dirs,
			       const struct copy_file *first,
			       const struct copy_file *f, struct error *err)
{
	char from[FILES_NAME_MAX + 1], name[FILES_NAME_MAX + 1];
	cleanup_close int in = -1;
	int to, r;

	/* Duplicated because copy_dirs_get may close it when the second is opened. */
	r = copy_dirs_get(dirs, first->dir, err);
	if (r >= 0) {
		in = fcntl(r, F_DUPFD_CLOEXEC, 0);
		r = in < 0 ? error_errno(err, -errno,
					 "cannot open a directory of the copy")
			   : 0;
	}
	if (r == 0)
		r = copy_name(p, first, from, err);
	if (r == 0)
		r = copy_name(p, f, name, err);
	if (r < 0)
		return r;
	to = copy_dirs_get(dirs, f->dir, err);
	if (to < 0)
		return to;
	if (linkat(in, from, to, name, 0) < 0)
		return error_errno(err, -errno, "cannot make the link '%s'",
				   name);
	return 0;
}

int copy_make_links(const struct copy_plan *p, int to, const _Atomic int *stop,
		    struct error *err)
{
	const struct copy_file *first = NULL;
	struct copy_dirs dirs;
	int r = 0;

	copy_dirs_init(&dirs, p, to);
	for (size_t i = 0; r == 0 && i < p->names.n; i++) {
		const struct copy_file *f = &p->names.at[i];

		if (f->flags & COPY_AGAIN)
			r = copy_make_hard_link(p, &dirs, first, f, err);
		else
			first = f;
		if (r == 0 && i % STOP_CHECK_INTERVAL == 0 && *stop)
			r = copy_interrupted(err);
	}
	for (size_t i = 0; r == 0 && i < p->links.n; i++) {
		r = copy_make_symlink(p, &dirs, &p->links.at[i], err);
		if (r == 0 && i % STOP_CHECK_INTERVAL == 0 && *stop)
			r = copy_interrupted(err);
	}
	copy_dirs_free(&dirs);
	return r;
}

/* ---- attributes ---------------------------------------------------------- */

/* Only attributes that users may set on their own files are copied: an archive must not
 * be able to give a file capabilities or security labels. */
void copy_xattrs(const struct copy_plan *p, uint64_t ino, int fd)
{
	cleanup_free char *list = NULL;
	cleanup_free char *value = NULL;
	const struct files_ops *ops;
	struct node n;
	ssize_t len;

	if (tree_node(fs_tree(p->fs), ino, &n) < 0 || !n.files ||
	    !n.files->ops->stored_xattr_list)
		return;
	ops = n.files->ops;
	len = ops->stored_xattr_list(n.files, n.node, NULL, 0);
	if (len <= 0)
		return;
	list = malloc((size_t)len);
	value = malloc(VALUE_MAX);
	if (!list || !value ||
	    ops->stored_xattr_list(n.files, n.node, list, (size_t)len) != len)
		return;
	for (char *at = list; at < list + len; at += strlen(at) + 1) {
		ssize_t size;

		if (strncmp(at, "user.", 5))
			continue;
		size = ops->stored_xattr(n.files, n.node, at, value, VALUE_MAX);
		if (size >= 0)
			fsetxattr(fd, at, value, (size_t)size, 0);
	}
}

/* Called when everything is made, because making an entry changes the times of its
 * directory; the deepest directories come first. */
int copy_finish_dirs(const struct copy_plan *p, int to, const _Atomic int *stop,
		     struct error *err)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	struct copy_dirs dirs;
	struct entry e;
	int r = 0;

	copy_dirs_init(&dirs, p, to);
	for (uint32_t i = (uint32_t)p->dirs.n; r == 0 && i-- > 0;) {
		int fd = copy_dirs_get(&dirs, i, err);

		r = fd < 0 ? fd : 0;
		if (r == 0 && fs_getattr(p->fs, p->dirs.at[i].ino, &e) == 0) {
			copy_xattrs(p, p->dirs.at[i].ino, fd);
			times[1] = e.st.st_mtim;
			futimens(fd, times);
		}
		if (r == 0 && i % STOP_CHECK_INTERVAL == 0 && *stop)
			r = copy_interrupted(err);
	}
	copy_dirs_free(&dirs);
	return r;
}
