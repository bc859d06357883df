/* SPDX-License-Identifier: BSD-2-Clause */
/* Check that a packed file is intact and has what is in the directory. */

/*
 * There are two checks.  First, are the bytes of the file those that were written?  Their
 * checksum was computed while writing; it is computed again from the disk, past the page
 * cache, before the file gets its name.  Second, does the file have what is in the
 * directory?  It is opened like any source.  Every entry of the directory is read a
 * second time, looked up in the file and compared: type, mode, owner, time, size, link,
 * extended attributes, bytes.  At the end both must have the same number of entries.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "app/interrupt.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "verify/pack_verify.h"

#define DIFFERENCES_SHOWN 100
#define ROOT 1

/* ---- what was written ---------------------------------------------------- */

struct reading {
	const char *path;
	int fd;
	char *buf; /* VERIFY_WINDOW bytes */
	struct progress progress;
};

static int verify_sum_file(struct reading *r, uint64_t sum[2],
			   struct error *err)
{
	XXH3_state_t *state = XXH3_createState();
	XXH128_hash_t hash;
	uint64_t done = 0;
	ssize_t n = 0;

	if (!state)
		return error_no_memory(err, "a checksum");
	XXH3_128bits_reset(state);
	while (!interrupted &&
	       (n = pread(r->fd, r->buf, VERIFY_WINDOW, (off_t)done)) > 0) {
		XXH3_128bits_update(state, r->buf, (size_t)n);
		done += (uint64_t)n;
		progress_update(&r->progress, done);
	}
	hash = XXH3_128bits_digest(state);
	XXH3_freeState(state);
	sum[0] = hash.high64;
	sum[1] = hash.low64;
	if (interrupted)
		return error_set(err, -EINTR, "interrupted");
	return n < 0 ? error_errno(err, -errno, "cannot read '%s'", r->path)
		     : 0;
}

/* If a format does not know its checksum (zero), it is computed from what the page cache
 * still has. */
int pack_check_bytes(const struct settings *s, const char *path, int fd,
		     const uint64_t xxh3[2], struct error *err)
{
	cleanup_free char *buf = malloc(VERIFY_WINDOW);
	uint64_t want[2] = {xxh3[0], xxh3[1]}, have[2];
	struct reading r = {.path = path, .fd = fd, .buf = buf};
	struct stat st;
	int code = 0;

	if (!buf)
		return error_no_memory(err, "a buffer to read the file again");
	progress_init(&r.progress, s->quiet ? "none" : s->progress,
		      "read again",
		      fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0);
	if (!want[0] && !want[1])
		code = verify_sum_file(&r, want, err);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (code == 0)
		code = verify_sum_file(&r, have, err);
	progress_clear(&r.progress);
	if (code < 0 || (want[0] == have[0] && want[1] == have[1]))
		return code;
	return error_set(err, -EIO,
			 "'%s': the disk returns other bytes than were "
			 "written; nothing was changed",
			 path);
}

/* ---- what it means ------------------------------------------------------- */

void verify_differs(struct verifier *v, const char *path, const char *how)
{
	v->bad = true;
	if (v->differences++ >= DIFFERENCES_SHOWN)
		return;
	progress_clear(&v->progress);
	cli_say(v->c, "%s: %s", path, how);
}

int verify_find(struct verifier *v, const char *path, struct entry *out)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	uint64_t dir = ROOT;
	int r = 0;

	if (n && v->parent && strlen(v->parent) == n &&
	    !memcmp(v->parent, path, n))
		return fs_lookup(v->session->fs, v->parent_ino, slash + 1, out);
	for (const char *at = path; r == 0 && *at;) {
		size_t len = strcspn(at, "/");
		cleanup_free char *name = strndup(at, len);

		r = name ? fs_lookup(v->session->fs, dir, name, out) : -ENOMEM;
		if (at + len == path + n && r == 0) {
			free(v->parent);
			v->parent = strndup(path, n);
			v->parent_ino = out->st.st_ino;
		}
		dir = out->st.st_ino;
		at += len + (at[len] == '/');
	}
	return r;
}

static bool has_xattr(struct verifier *v, const struct feed_xattr *x)
{
	ssize_t n = fs_getxattr(v->session->fs, v->ino, x->name, v->buf,
				VERIFY_WINDOW);

	return n >= 0 && (size_t)n == x->len &&
	       (!x->len || !memcmp(v->buf, x->value, x->len));
}

static void verify_unit_attr(struct verifier *v, const struct feed_unit *u,
			     const struct entry *e)
{
	const struct feed_attr *a = &u->attr;
	const char *target = NULL;

	if (e->st.st_mode != a->mode)
		verify_differs(v, u->path, "its type or mode differs");
	else if (e->st.st_uid != a->uid || e->st.st_gid != a->gid)
		verify_differs(v, u->path, "its owner differs");
	else if (S_ISREG(a->mode) && (uint64_t)e->st.st_size != a->size)
		verify_differs(v, u->path, "its size differs");
	else if (e->st.st_mtim.tv_sec != a->mtime)
		verify_differs(v, u->path, "its time differs");
	else if (u->link && (fs_readlink(v->session->fs, v->ino, &target) < 0 ||
			     strcmp(target, u->link)))
		verify_differs(v, u->path, "its link has another target");
	else if ((S_ISCHR(a->mode) || S_ISBLK(a->mode)) &&
		 e->st.st_rdev != a->rdev)
		verify_differs(v, u->path, "its device number differs");
	for (size_t i = 0; i < u->n_xattrs && !v->bad; i++)
		if (!has_xattr(v, &u->xattrs[i]))
			verify_differs(v, u->path,
				       "an extended attribute differs");
}

static bool verify_same_window(struct verifier *v, const struct feed_unit *u,
			       uint64_t at, size_t n)
{
	if (u->data)
		return !memcmp(v->buf, (const char *)u->data + at, n);
	for (size_t i = 0; i < n; i++)
		if (v->buf[i])
			return false;
	return true;
}

static void verify_unit_bytes(struct verifier *v, const struct feed_unit *u)
{
	for (uint64_t at = 0; at < u->size && !v->bad; at += VERIFY_WINDOW) {
		size_t n = min_u64(u->size - at, VERIFY_WINDOW);
		ssize_t got = fs_read_copy(v->session->fs, v->ino, u->at + at,
					   v->buf, n);
		char why[400];

		if (got < 0) {
			fs_last_error(v->session->fs, v->ino, why, sizeof why);
			verify_differs(v, u->path,
				       *why ? why : strerror((int)-got));
		} else if ((size_t)got != n ||
			   !verify_same_window(v, u, at, n)) {
			verify_differs(v, u->path, "its bytes differ");
		}
	}
}

static int verify_unit(struct verifier *v, const struct feed_unit *u)
{
	if (u->first) {
		struct entry e;
		int r = verify_find(v, u->path, &e);

		if (r == -ENOMEM)
			return r;
		v->entries++;
		v->directories |= S_ISDIR(u->attr.mode);
		v->bad = false;
		v->ino = e.st.st_ino;
		if (r < 0)
			verify_differs(v, u->path, "it is missing");
		else
			verify_unit_attr(v, u, &e);
		if (r == 0 && !v->bad && u->same_as) {
			struct entry first;

			if (verify_find(v, u->same_as, &first) < 0 ||
			    first.st.st_ino != v->ino)
				verify_differs(v, u->path,
					       "it is not a hard link to the "
					       "same file");
		}
	}
	if (!v->bad)
		verify_unit_bytes(v, u);
	return 0;
}

static int verify_entries(struct verifier *v, const char *top,
			  const struct feed_options *o, struct error *err)
{
	uint64_t problems = v->scan->n_problems, done = 0;
	struct feed_unit u;
	struct feed *f;
	int r = feed_new(&f, v->scan, top, o, &interrupted, err);

	if (r < 0)
		return r;
	while ((r = feed_next(f, &u, err)) > 0) {
		if (verify_unit(v, &u) < 0) {
			r = error_no_memory(err, "the path of an entry");
			break;
		}
		done += u.size;
		progress_update(&v->progress, done);
	}
	feed_close(f);
	if (r == 0 && v->scan->n_problems > problems)
		v->differences++; /* the caller reports them */
	return r;
}

/* ---- how much there is --------------------------------------------------- */

struct counter {
	vec(uint64_t) dirs;
	uint64_t n, pos;
	bool no_memory, directories;
};

static bool verify_count_entry(void *ctx, const char *name,
			       const struct entry *e, uint64_t next)
{
	struct counter *c = ctx;

	c->pos = next;
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return true;
	c->n += c->directories || !S_ISDIR(e->st.st_mode);
	if (S_ISDIR(e->st.st_mode) && !vec_push(&c->dirs, e->st.st_ino))
		c->no_memory = true;
	return !c->no_memory;
}

static int verify_entry_count(struct verifier *v, struct error *err)
{
	struct counter c = {.dirs = VEC_EMPTY, .directories = v->directories};
	char how[120];

	c.no_memory = !vec_push(&c.dirs, ROOT);
	while (c.dirs.n && !c.no_memory && !interrupted) {
		uint64_t dir = c.dirs.at[--c.dirs.n], before;

		c.pos = 0;
		do {
			before = c.pos;
			fs_readdir(v->session->fs, dir, c.pos, false,
				   verify_count_entry, &c);
		} while (c.pos != before && !c.no_memory);
	}
	vec_free(&c.dirs);
	if (c.no_memory)
		return error_no_memory(err, "the list of directories");
	snprintf(how, sizeof how,
		 "it has %" PRIu64 " entries, but the directory has %" PRIu64,
		 c.n, v->entries);
	if (c.n != v->entries && !interrupted)
		verify_differs(v, v->args->path, how);
	return interrupted ? error_set(err, -EINTR, "interrupted") : 0;
}

/* ---- all of it ----------------------------------------------------------- */

static int verify_compare(struct verifier *v, struct settings *s,
			  const char *top, const struct feed_options *o,
			  bool tensor, struct error *err)
{
	char *path = settings_keep(s, v->args->path);
	int r = path ? session_open(&v->session, &path, 1, s, s->threads, err)
		     : error_no_memory(err, "the name of the file");

	if (r == 0)
		r = session_start(v->session, err);
	if (r < 0)
		return r;
	progress_init(&v->progress, s->quiet ? "none" : s->progress, "compared",
		      v->scan->bytes);
	if (tensor) {
		r = verify_samples(v, top, o, err);
	} else {
		r = verify_entries(v, top, o, err);
		if (r == 0)
			r = verify_entry_count(v, err);
	}
	progress_clear(&v->progress);
	return r;
}

int64_t pack_verify(const struct command *c, struct settings *s,
		    const char *top, struct scan *scan,
		    const struct feed_options *feed, const struct sink_args *a,
		    const struct sink_ops *ops, struct error *err)
{
	struct verifier v = {
		.c = c, .args = a, .scan = scan, .buf = malloc(VERIFY_WINDOW)};
	int r = v.buf ? 0 : error_no_memory(err, "a buffer to compare files");

	/* an index file beside the packed file must not be used */
	s->index = "none";
	s->views.source_order = true;
	s->dataset = NULL; /* in a mount it would be all that is shown */
	if (r == 0)
		r = verify_compare(&v, s, top, feed, ops->tensors, err);
	session_free(v.session);
	free(v.parent);
	free(v.buf);
	return r < 0 ? r : (int64_t)v.differences;
}
