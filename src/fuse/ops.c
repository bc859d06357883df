/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers FUSE requests: each is translated to one call of fs.h and back. */
/*
 * The aim is that a file costs the daemon one request in its life: its READ.
 * LOOKUPs are saved by readdirplus, GETATTRs and repeated LOOKUPs by endless
 * timeouts, OPENs and RELEASEs by answering the first ENOSYS (the kernel
 * then opens files itself and keeps their pages), second READs by the page
 * cache.  Absent names are remembered, too.
 *
 * Each entry listed with attributes becomes an inode in the kernel, about 1 KiB.
 * For directories of ordinary size this makes the first epoch fast.  Listing a
 * directory of 5 million entries took 56 s and 5.6 GiB of kernel memory that way,
 * but 2.9 s and hardly any memory with names and types only.  So directories with
 * more than PLUS_MAX entries are listed without attributes, and the kernel looks up
 * the files that are opened.
 *
 * Reads are answered from memory, also those of verbatim bytes (a pread into a
 * recycled buffer, then an iovec).  Splicing the file to the kernel saved up to a
 * third of the daemon's time for 128 KiB (33 instead of 52 us, on a busy machine);
 * what readers saw, from 4 KiB to 1 MiB, did not differ by more than the noise.
 * But what is spliced is a reference to the page cache: a source truncated or
 * rewritten before the kernel has copied it would reach the reader as zeros,
 * other bytes or, sent from the file itself, as a short file that looks whole.
 * After a pread, the identity check proves the bytes.
 *
 * An ioctl comes from a reader that asks whether the file is a terminal, as Python's
 * open() does (seen with 3.11) for every file.  The kernel does not cache the answer,
 * so such a reader costs the daemon this one request for each file in every epoch.
 *
 * FORGET does very little: inode numbers are computed and need no memory, except those
 * of names that a lookup creates (slice/, epochs/).
 * Locks (flock, fcntl) are not implemented on purpose: the kernel then does them
 * itself, which is what libhdf5 expects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/number.h"
#include "fuse/private.h"
#include "store/thread.h"

/* Larger directories are listed without attributes. */
#define PLUS_MAX 200000
/* A timeout in seconds that never passes. */
#define FOREVER 1e9
/* How often a lookup is repeated if the name is dropped meanwhile. */
#define LOOKS 16

static struct fuse_face *face_of(fuse_req_t req, enum counter what)
{
	struct fuse_face *f = fuse_req_userdata(req);

	counter_add(what, 1);
	atomic_store_explicit(&f->active, true, memory_order_relaxed);
	return f;
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	const unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS |
				FUSE_CAP_READDIRPLUS | FUSE_CAP_CACHE_SYMLINKS |
				FUSE_CAP_EXPORT_SUPPORT;
	/* The mount does not change, so pages never become stale.  Readdirplus is always
	 * used: the kernel's own choice (AUTO) would cost a LOOKUP for each file. */
	const unsigned unwanted = FUSE_CAP_AUTO_INVAL_DATA |
				  FUSE_CAP_READDIRPLUS_AUTO |
				  FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				  FUSE_CAP_SPLICE_MOVE;
	const unsigned opens =
		FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT;
	struct fuse_face *f = userdata;

	conn->want &= ~unwanted;
	conn->want |= conn->capable & wanted;
	f->stateless = f->timeout == 0 && (conn->capable & opens) == opens;
	if (f->stateless)
		conn->want |= opens;
	conn->max_write = FUSE_FACE_READ_MAX;
	conn->max_read = FUSE_FACE_READ_MAX;
	/* The kernel's own readahead keeps several workers decoding. */
	conn->max_background = 64;
	conn->congestion_threshold = 48;
	f->connected = true;
}

/* ---- names and attributes ----------------------------------------------- */

static void param_of(const struct entry *e, struct fuse_entry_param *p)
{
	memset(p, 0, sizeof *p);
	/* ino 0 in a listing gives a name and a type only; the kernel looks the name up
	 * if it needs more. */
	p->ino = e->attr_known ? fuse_nodeid(e->st.st_ino) : 0;
	p->generation = e->generation;
	p->attr = e->st;
	p->attr_timeout = FOREVER;
	p->entry_timeout = FOREVER;
}

static void drop_lookups(struct fs *fs, uint64_t ino, uint64_t n)
{
	tree_hold(fs_tree(fs), ino, -(int64_t)min_u64(n, INT64_MAX));
}

/* Look up a name and count the kernel's reference to it.  Return 0 or -errno. */
static int look_up_and_hold(struct fs *fs, uint64_t parent, const char *name,
			    struct entry *e)
{
	int r, held = -ENOENT;

	/* The name may be dropped before it is held, if other threads look up names all
	 * the time. */
	for (int tries = 0; tries < LOOKS && held == -ENOENT; tries++) {
		r = fs_lookup(fs, parent, name, e);
		if (r < 0)
			return r;
		held = tree_hold(fs_tree(fs), e->st.st_ino, 1);
	}
	return held == -ENOENT ? -EAGAIN : 0;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_LOOKUP);
	struct fuse_entry_param p;
	struct entry e;
	int r = look_up_and_hold(f->fs, fuse_nodeid(parent), name, &e);

	if (r == 0) {
		param_of(&e, &p);
	} else if (r == -ENOENT) {
		memset(&p, 0, sizeof p);
		p.entry_timeout = FOREVER;
	} else {
		fuse_reply_err(req, -r);
		return;
	}
	if (fuse_reply_entry(req, &p) < 0 && r == 0)
		drop_lookups(f->fs, e.st.st_ino,
			     1); /* the kernel did not get the reply */
}

static void op_forget(fuse_req_t req, fuse_ino_t nodeid, uint64_t nlookup)
{
	struct fuse_face *f = fuse_req_userdata(req);

	drop_lookups(f->fs, fuse_nodeid(nodeid), nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count,
			    struct fuse_forget_data *forgets)
{
	struct fuse_face *f = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++)
		drop_lookups(f->fs, fuse_nodeid(forgets[i].ino),
			     forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t nodeid,
		       struct fuse_file_info *fi)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_GETATTR);
	struct entry e;
	int r = fs_getattr(f->fs, fuse_nodeid(nodeid), &e);

	(void)fi;
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_attr(req, &e.st, FOREVER);
}

/* The kernel checks nothing by itself without default_permissions, and the user who
 * mounted may read everything.  But no file without an x bit can be executed. */
static void op_access(fuse_req_t req, fuse_ino_t nodeid, int mask)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_OTHER);
	const mode_t any = S_IXUSR | S_IXGRP | S_IXOTH;
	struct entry e;
	int r = mask & X_OK ? fs_getattr(f->fs, fuse_nodeid(nodeid), &e) : 0;

	if (r == 0 && mask & X_OK && S_ISREG(e.st.st_mode) &&
	    !(e.st.st_mode & any))
		r = -EACCES;
	fuse_reply_err(req, -r);
}

static void op_readlink(fuse_req_t req, fuse_ino_t nodeid)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_OTHER);
	const char *target;
	int r = fs_readlink(f->fs, fuse_nodeid(nodeid), &target);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_readlink(req, target);
}

static void op_statfs(fuse_req_t req, fuse_ino_t nodeid)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_OTHER);
	struct statvfs st;
	int r = fs_statfs(f->fs, &st);

	(void)nodeid;
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_statfs(req, &st);
}

/* ---- opening ------------------------------------------------------------ */

/* If opens are stateless, the kernel does not send them again.  Otherwise they are
 * counted, so that a mount in use is not idle. */
static void op_open(fuse_req_t req, fuse_ino_t nodeid,
		    struct fuse_file_info *fi)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_OTHER);

	(void)nodeid;
	if (f->stateless) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	if ((fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	fi->keep_cache = 1;
	atomic_fetch_add(&f->opens, 1);
	/* The open was interrupted, so no RELEASE will come. */
	if (fuse_reply_open(req, fi) == -ENOENT)
		atomic_fetch_sub(&f->opens, 1);
}

static void op_opendir(fuse_req_t req, fuse_ino_t nodeid,
		       struct fuse_file_info *fi)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_OTHER);

	(void)nodeid;
	if (f->stateless) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->keep_cache = 1;
	fi->cache_readdir = 1;
	atomic_fetch_add(&f->opens, 1);
	if (fuse_reply_open(req, fi) == -ENOENT)
		atomic_fetch_sub(&f->opens, 1);
}

static void op_release(fuse_req_t req, fuse_ino_t nodeid,
		       struct fuse_file_info *fi)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_OTHER);

	(void)nodeid;
	(void)fi;
	if (!f->stateless)
		atomic_fetch_sub(&f->opens, 1);
	fuse_reply_err(req, 0);
}

/* ---- directories -------------------------------------------------------- */

struct listing {
	fuse_req_t req;
	char *buf;
	size_t used, size;
	bool plus;
};

static bool emit_entry(void *ctx, const char *name, const struct entry *e,
		       uint64_t next_pos)
{
	struct listing *l = ctx;
	size_t room = l->size - l->used, n;
	struct fuse_entry_param p;

	if (l->plus) {
		param_of(e, &p);
		n = fuse_add_direntry_plus(l->req, l->buf + l->used, room, name,
					   &p, (off_t)next_pos);
	} else {
		n = fuse_add_direntry(l->req, l->buf + l->used, room, name,
				      &e->st, (off_t)next_pos);
	}
	if (n > room)
		return false;
	l->used += n;
	return true;
}

/* All threads share one buffer: with a malloc'ed one each, every heap would keep the
 * pages of its last buffer. */
static char *get_listing_buffer(struct fuse_face *f)
{
	char *buf = atomic_exchange(&f->listing, NULL);

	return buf ? buf : malloc(FUSE_FACE_READ_MAX);
}

static void put_listing_buffer(struct fuse_face *f, char *buf)
{
	free(atomic_exchange(&f->listing, buf));
}

static void reply_listing(fuse_req_t req, uint64_t ino, size_t size, off_t pos,
			  bool plus)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_READDIR);
	struct listing l = {.req = req, .plus = plus};
	bool attrs = plus && tree_entry_count(fs_tree(f->fs), ino) <= PLUS_MAX;
	int r;

	l.size = min_u64(size, FUSE_FACE_READ_MAX);
	l.buf = get_listing_buffer(f);
	if (!l.buf) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	r = fs_readdir(f->fs, ino, (uint64_t)pos, attrs, emit_entry, &l);
	/* The entries before a failure are delivered; the next request gets the failure. */
	if (r < 0 && l.used == 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_buf(req, l.buf, l.used);
	put_listing_buffer(f, l.buf);
}

static void op_readdir(fuse_req_t req, fuse_ino_t nodeid, size_t size,
		       off_t pos, struct fuse_file_info *fi)
{
	(void)fi;
	reply_listing(req, fuse_nodeid(nodeid), size, pos, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t nodeid, size_t size,
			   off_t pos, struct fuse_file_info *fi)
{
	(void)fi;
	reply_listing(req, fuse_nodeid(nodeid), size, pos, true);
}

/* ---- extended attributes ------------------------------------------------ */

/* Answer a GETXATTR or LISTXATTR whose value is `r` bytes of `buf`. */
static void reply_value(fuse_req_t req, ssize_t r, const char *buf, size_t size)
{
	if (r < 0)
		fuse_reply_err(req, (int)-r);
	else if (size == 0)
		fuse_reply_xattr(req, (size_t)r);
	else
		fuse_reply_buf(req, buf, (size_t)r);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t nodeid, const char *name,
			size_t size)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_XATTR);
	cleanup_free char *buf = size ? malloc(size) : NULL;

	if (size && !buf)
		fuse_reply_err(req, ENOMEM);
	else
		reply_value(req,
			    fs_getxattr(f->fs, fuse_nodeid(nodeid), name, buf,
					size),
			    buf, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t nodeid, size_t size)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_XATTR);
	cleanup_free char *buf = size ? malloc(size) : NULL;

	if (size && !buf)
		fuse_reply_err(req, ENOMEM);
	else
		reply_value(req,
			    fs_listxattr(f->fs, fuse_nodeid(nodeid), buf, size),
			    buf, size);
}

/* ---- reading ------------------------------------------------------------ */

/* Tell the read-ahead of a READ by a reader. */
static void note_read(struct fuse_face *f, pid_t reader, uint64_t ino,
		      uint64_t off, const struct reply *r, bool waited)
{
	if (f->follow && follow_note(f->follow, ino))
		return;
	if (f->guess)
		guess_note(f->guess, reader, ino, off, r, waited);
}

static void op_read(fuse_req_t req, fuse_ino_t nodeid, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct fuse_face *f = fuse_req_userdata(req);
	pid_t reader = fuse_req_ctx(req)->pid;
	bool ahead = readahead_sent(f->readahead, reader), waited;
	uint64_t before = store_thread.loads, ino = fuse_nodeid(nodeid);
	struct reply reply;
	int r;

	(void)fi;
	face_of(req, ahead ? COUNT_REQ_AHEAD : COUNT_REQ_READ);
	store_thread.guesses = ahead;
	store_thread.forward = f->guess && guess_is_in_order(f->guess, ino);
	r = fs_read(f->fs, ino, (uint64_t)off, size, &reply);
	store_thread.guesses = store_thread.forward = false;
	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	fuse_reply_iov(req, reply.iov, (int)reply.niov);
	fs_release(f->fs, &reply);
	if (ahead)
		return;
	waited = store_thread.loads != before;
	if (waited)
		counter_add(COUNT_REQ_WAITED, 1);
	note_read(f, reader, ino, (uint64_t)off, &reply, waited);
}

static void op_lseek(fuse_req_t req, fuse_ino_t nodeid, off_t off, int whence,
		     struct fuse_file_info *fi)
{
	struct fuse_face *f = face_of(req, COUNT_REQ_OTHER);
	uint64_t at;
	int r = off < 0 ? -ENXIO
			: fs_seek(f->fs, fuse_nodeid(nodeid), (uint64_t)off,
				  whence, &at);

	(void)fi;
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_lseek(req, (off_t)at);
}

static void op_ioctl(fuse_req_t req, fuse_ino_t nodeid, unsigned cmd, void *arg,
		     struct fuse_file_info *fi, unsigned flags,
		     const void *in_buf, size_t in_size, size_t out_size)
{
	(void)nodeid;
	(void)cmd;
	(void)arg;
	(void)fi;
	(void)flags;
	(void)in_buf;
	(void)in_size;
	(void)out_size;
	face_of(req, COUNT_REQ_IOCTL);
	fuse_reply_err(req, ENOTTY);
}

const struct fuse_lowlevel_ops fuse_face_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.access = op_access,
	.readlink = op_readlink,
	.open = op_open,
	.opendir = op_opendir,
	.read = op_read,
	.lseek = op_lseek,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.release = op_release,
	.releasedir = op_release,
	.statfs = op_statfs,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.ioctl = op_ioctl,
};
