/* SPDX-License-Identifier: BSD-2-Clause */
/* The file system as functions: 0 or -errno, no FUSE types. */
/*
 * The layers meet here: the tree says what exists, files->map says where bytes are, the
 * store pins them, and reply.c hands them over.  The sentences that lower layers wrote
 * are logged and kept here (errors.c), and programs get one of six codes, because users
 * do not expect other errnos from read(2).
 *
 * No state is kept for an open file: each call stands alone.
 */
#include "fs/fs.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "fs/fs_private.h"
#include "store/thread.h"
#include "tree/graft.h"

#define STATFS_BLOCK 4096

int fs_new(struct fs **out, struct tree *t, struct store *s,
	   const struct fs_options *o, struct error *err)
{
	struct fs *fs = calloc(1, sizeof *fs);

	*out = NULL;
	if (!fs)
		return error_no_memory(err, "the file system");
	fs->tree = t;
	fs->store = s;
	fs->options = *o;
	fs->options.version = strdup(o->version ? o->version : "");
	fs->options.config = strdup(o->config ? o->config : "");
	fs->errors = errors_new();
	fs->pin_budget = gather_pin_budget(s);
	clock_gettime(CLOCK_MONOTONIC, &fs->started);
	if (!fs->options.version || !fs->options.config || !fs->errors) {
		fs_free(fs);
		return error_no_memory(err, "the file system");
	}
	*out = fs;
	return 0;
}

void fs_free(struct fs *fs)
{
	if (!fs)
		return;
	free((char *)(uintptr_t)fs->options.version);
	free((char *)(uintptr_t)fs->options.config);
	errors_free(fs->errors);
	free(fs);
}

struct tree *fs_tree(struct fs *fs)
{
	return fs->tree;
}

int fs_report(struct fs *fs, uint64_t ino, int code, const struct error *err)
{
	char path[1024];

	switch (-code) {
	case ENODATA:
	case EBADMSG:
	case ESTALE:
	case ENOTSUP:
	case ENOMEM:
		break;
	default:
		code = -EIO;
	}
	/* This READ is ahead of its reader.  The kernel repeats it for that reader, and
	 * then the failure is reported. */
	if (store_thread.guesses)
		return code;
	if (tree_path(fs->tree, ino, path, sizeof path) < 0)
		snprintf(path, sizeof path, "inode %" PRIu64, ino);
	errors_add(fs->errors, ino, code, err->text);
	counter_add(COUNT_ERRORS, 1);
	log_error("%s: %s", path, err->text);
	return code;
}

void fs_last_error(struct fs *fs, uint64_t ino, char *buf, size_t n)
{
	errors_find(fs->errors, ino, buf, n);
}

int fs_attr(struct fs *fs, const struct node *n, struct attr *out,
	    struct error *err)
{
	return tree_attr(fs->tree, n, store_pinner(fs->store), out, err);
}

/* ---- attributes --------------------------------------------------------- */

/* Return the permissions as stored, without those that the mount takes away. */
static mode_t entry_permissions(const struct fs *fs, const struct attr *a)
{
	mode_t mode = a->mode & 07777;

	if (S_ISLNK(a->mode))
		return 0777;
	if (a->stored && !(fs->options.owner_only && fs->options.shared))
		return mode & ~(S_ISDIR(a->mode) ? fs->options.dmask
						 : fs->options.fmask);
	if (!mode)
		mode = S_ISDIR(a->mode) ? 0555 : 0444;
	mode &= fs->options.owner_only ? 0500 : 0555;
	return mode &
	       ~(S_ISDIR(a->mode) ? fs->options.dmask : fs->options.fmask);
}

/* Set the owner: for members the stored one, unless the user gave another. */
static void entry_owner(const struct fs *fs, const struct attr *a,
			struct stat *st)
{
	const struct fs_options *o = &fs->options;
	bool stored = a->stored && !(o->owner_only && o->shared);

	st->st_uid = stored && !o->uid_given ? a->uid : o->uid;
	st->st_gid = stored && !o->gid_given ? a->gid : o->gid;
}

static void stat_fill(const struct fs *fs, const struct node *n,
		      const struct attr *a, struct stat *st)
{
	memset(st, 0, sizeof *st);
	st->st_ino = n->ino;
	st->st_mode = (a->mode & S_IFMT) | entry_permissions(fs, a);
	/* A link count of 1 tells programs that it does not count subdirectories.
	 * These may be unknown until the directory is listed, and programs such as
	 * File::Find stop after nlink - 2 subdirectories if nlink is 2 or more. */
	st->st_nlink = a->nlink && !S_ISDIR(a->mode) ? a->nlink : 1;
	entry_owner(fs, a, st);
	st->st_rdev = (dev_t)a->rdev;
	st->st_size = (off_t)a->size;
	st->st_blocks = (blkcnt_t)div_up(a->size - a->hole, 512);
	/* Python and stdio take this as the size of their buffers, in bytes. */
	st->st_blksize = a->size >= (1u << 20) ? 1 << 20 : 128 << 10;
	st->st_mtim.tv_sec = a->mtime;
	st->st_mtim.tv_nsec = a->nsec;
	st->st_ctim = st->st_atim = st->st_mtim;
}

static int entry_fill(struct fs *fs, const struct node *n, struct entry *out)
{
	struct error err = {0};
	struct attr a;
	int r = fs_attr(fs, n, &a, &err);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		return fs_report(fs, n->ino, r, &err);
	stat_fill(fs, n, &a, &out->st);
	out->attr_known = true;
	out->generation = a.generation;
	return 0;
}

static void entry_name_only(uint64_t ino, uint32_t type, struct entry *out)
{
	memset(out, 0, sizeof *out);
	out->st.st_ino = ino;
	out->st.st_mode = type & S_IFMT;
}

/* Looking into directory `ino` failed with `code`.  If it is a source inside another
 * source and could not be opened, report that as an error of its data. */
static int fs_looked(struct fs *fs, uint64_t ino, int code)
{
	struct error err;

	if (code == -ENOENT || !tree_graft_failure(fs->tree, ino, &err))
		return code;
	return fs_report(fs, ino, code, &err);
}

int fs_getattr(struct fs *fs, uint64_t ino, struct entry *out)
{
	struct node n;
	int r = tree_node(fs->tree, ino, &n);

	return r < 0 ? r : entry_fill(fs, &n, out);
}

/* Keep the reason why a name was not found at its directory.  It is not logged, because
 * programs look up many names that do not exist. */
static void note_name(struct fs *fs, uint64_t parent, const char *name)
{
	struct error err = {0};
	struct node n;

	if (tree_node(fs->tree, parent, &n) == 0 && n.files &&
	    n.files->ops->why_not &&
	    n.files->ops->why_not(n.files, n.node, name, &err))
		errors_replace(fs->errors, parent, err.code, err.text);
}

/* Fill in the attributes of a found entry.  If that fails the file cannot be opened, nor
 * its user.tensorfs.error be read, so the directory gets the sentence, too. */
static int lookup_fill(struct fs *fs, uint64_t parent, const struct node *n,
		       struct entry *out)
{
	char text[sizeof((struct error *)0)->text];
	int r = entry_fill(fs, n, out);

	if (r < 0 && r != -ENOENT &&
	    errors_find(fs->errors, n->ino, text, sizeof text))
		errors_replace(fs->errors, parent, r, text);
	return r;
}

int fs_lookup(struct fs *fs, uint64_t parent, const char *name,
	      struct entry *out)
{
	struct node n;
	int r;

	/* Only nfsd looks these two names up. */
	if (!strcmp(name, "."))
		return fs_getattr(fs, parent, out);
	if (!strcmp(name, "..")) {
		r = tree_parent(fs->tree, parent, &parent);
		return r < 0 ? r : fs_getattr(fs, parent, out);
	}
	r = tree_lookup(fs->tree, parent, name, &n);
	if (r < 0)
		note_name(fs, parent, name);
	return r < 0 ? fs_looked(fs, parent, r)
		     : lookup_fill(fs, parent, &n, out);
}

int fs_readlink(struct fs *fs, uint64_t ino, const char **target)
{
	struct node n;
	int r = tree_node(fs->tree, ino, &n);

	if (r < 0)
		return r;
	*target = S_ISLNK(n.type) ? tree_link_target(fs->tree, &n) : NULL;
	return *target ? 0 : -EINVAL;
}

/* ---- directories -------------------------------------------------------- */

static void entry_of(struct fs *fs, const struct node *n, bool attrs,
		     struct entry *out)
{
	struct attr a;

	if (!attrs || tree_attr_is_slow(n) || fs_attr(fs, n, &a, NULL) < 0) {
		entry_name_only(n->ino, n->type, out);
		return;
	}
	stat_fill(fs, n, &a, &out->st);
	out->attr_known = true;
	out->generation = a.generation;
}

/* List "." and ".." with inode and type; return false if the buffer is full. */
static bool emit_dots(struct fs *fs, uint64_t ino, uint64_t *pos, fs_emit *emit,
		      void *ctx)
{
	struct entry e;
	uint64_t up;

	if (*pos == 0) {
		entry_name_only(ino, S_IFDIR, &e);
		if (!emit(ctx, ".", &e, 1))
			return false;
		*pos = 1;
	}
	if (*pos == 1) {
		if (tree_parent(fs->tree, ino, &up) < 0)
			up = ino;
		entry_name_only(up, S_IFDIR, &e);
		if (!emit(ctx, "..", &e, 2))
			return false;
		*pos = 2;
	}
	return true;
}

int fs_next_entry(struct fs *fs, uint64_t dir, uint64_t *i, struct node *out,
		  char name[FILES_NAME_MAX + 1])
{
	struct error err = {0};
	int r = tree_skip(fs->tree, dir, i, store_pinner(fs->store), &err);

	if (r < 0)
		return fs_report(fs, dir, r, &err);
	return tree_entry(fs->tree, dir, *i, out, name, FILES_NAME_MAX + 1);
}

int fs_readdir(struct fs *fs, uint64_t ino, uint64_t pos, bool attrs,
	       fs_emit *emit, void *ctx)
{
	char name[FILES_NAME_MAX + 1];
	struct entry e;
	struct node n;
	int r = tree_node(fs->tree, ino, &n);

	if (r < 0)
		return r;
	if (!S_ISDIR(n.type))
		return -ENOTDIR;
	if (!emit_dots(fs, ino, &pos, emit, ctx))
		return 0;
	for (pos -= 2;; pos++) {
		r = fs_next_entry(fs, ino, &pos, &n, name);
		if (r == -ENOENT)
			return 0;
		if (r < 0)
			return fs_looked(fs, ino, r);
		entry_of(fs, &n, attrs, &e);
		if (!emit(ctx, name, &e, pos + 3))
			return 0;
	}
}

/* ---- reading ------------------------------------------------------------ */

/* Find size, length and first plan of a window of a file whose format does each alone. */
static int window_by_steps(struct fs *fs, const struct node *n, uint64_t off,
			   uint64_t len, struct window *w, struct error *err)
{
	const struct files_ops *ops = n->files->ops;
	struct attr a;
	int r = fs_attr(fs, n, &a, err);

	if (r < 0)
		return r;
	window_init(w, n, off < a.size ? min_u64(len, a.size - off) : 0);
	w->of.size = a.size;
	if (w->of.len && ops->prepare)
		r = ops->prepare(n->files, n->node, off, w->of.len, err);
	return r == -ENOENT ? -EIO : r; /* the file itself is there */
}

/* Set *n to the node of a regular file and find out what is known of the window, cut at
 * the end of the file.  An empty window needs nothing else. */
static int read_prepare(struct fs *fs, uint64_t ino, uint64_t off, size_t len,
			struct node *n, struct window *w)
{
	struct error err = {0};
	int r = tree_node(fs->tree, ino, n);

	if (r < 0)
		return r;
	if (!S_ISREG(n->type) || !n->files)
		return S_ISDIR(n->type) ? -EISDIR : -EINVAL;
	if (n->files->ops->window) {
		w->of = (struct file_window){0};
		plan_init(&w->plan, len);
		w->plan.takes_strips = true;
		r = n->files->ops->window(n->files, n->node, off, len,
					  store_pinner(fs->store), &w->of,
					  &w->plan, &err);
		w->planned = !w->of.reversed;
	} else {
		r = window_by_steps(fs, n, off, len, w, &err);
	}
	return r < 0 && r != -ENOENT ? fs_report(fs, ino, r, &err) : r;
}

/* Answer from a copy of the whole file that the cache keeps (fs->kept).  Return false if
 * there is none, or if the window is empty. */
static bool read_kept(struct fs *fs, uint64_t ino, uint64_t off, size_t len,
		      struct reply *out)
{
	uint64_t set = atomic_load_explicit(&fs->kept, memory_order_relaxed);
	struct buf *b =
		set ? cache_peek(store_cache(fs->store), set, ino) : NULL;

	if (!b)
		return false;
	if (!len || off >= b->size) {
		buf_unref(b);
		return false;
	}
	len = min_u64(len, b->size - off);
	out->size = b->size;
	out->len = len;
	out->set = NULL;
	out->npins = 0;
	out->niov = 1;
	out->gathered = b;
	out->iov[0] = (struct iovec){b->data + off, len};
	counter_add(COUNT_ORDER_KEPT_READ, 1);
	counter_add(COUNT_BYTES_SERVED, len);
	return true;
}

int fs_read(struct fs *fs, uint64_t ino, uint64_t off, size_t len,
	    struct reply *out)
{
	struct error err = {0};
	struct window w;
	struct node n;
	int r;

	if (read_kept(fs, ino, off, len, out))
		return 0;
	r = read_prepare(fs, ino, off, len, &n, &w);
	if (r < 0)
		return r;
	out->size = w.of.size;
	r = reply_collect(fs, &n, off, &w, out, &err);
	if (r < 0)
		return fs_report(fs, ino, r, &err);
	counter_add(COUNT_BYTES_SERVED, w.of.len);
	return 0;
}

ssize_t fs_read_copy(struct fs *fs, uint64_t ino, uint64_t off, void *buf,
		     size_t len)
{
	struct error err = {0};
	struct window w;
	struct node n;
	int r = read_prepare(fs, ino, off, len, &n, &w);

	if (r < 0)
		return r;
	if (w.of.len > SSIZE_MAX)
		return -EINVAL;
	len = (size_t)w.of.len;
	r = gather_window(fs, &n, off, &w, buf, &err);
	if (r < 0)
		return fs_report(fs, ino, r, &err);
	counter_add(COUNT_BYTES_SERVED, len);
	return (ssize_t)len;
}

int fs_statfs(struct fs *fs, struct statvfs *out)
{
	uint64_t dirs, bytes;

	tree_usage(fs->tree, &dirs, &bytes);
	memset(out, 0, sizeof *out);
	out->f_bsize = out->f_frsize = STATFS_BLOCK;
	out->f_blocks = div_up(fs->options.bytes, STATFS_BLOCK);
	out->f_files = dirs + fs->options.inodes;
	out->f_namemax = FILES_NAME_MAX;
	out->f_flag = ST_RDONLY | ST_NOSUID;
	return 0;
}
