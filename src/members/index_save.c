/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing index files, so that no process ever sees half of one. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "members/index_private.h"

/*
 * An index is written to a file without a name (O_TMPFILE), which disappears by itself
 * when this process is killed, and which no other user can have planted.  If the file
 * system does not support that, a new file gets a name that no other process uses, on
 * this node or another.  The complete file then gets its name by rename, which never
 * follows a link and replaces an existing file atomically: if two daemons save at the
 * same time the later one wins, and both files are right.
 *
 * Nothing is synced.  After a loss of power the name may be there and the bytes not;
 * the checksums notice that, and the index is made anew.  But the file is closed before
 * it is renamed, because network file systems may report a full disk only then.
 *
 * The header is written last.  Blobs come after all other sections, from the smallest
 * to the largest: those that a reader leaves in the file are then at its end, whatever
 * size it calls large, and the rest is one read.
 */
enum { PIECE = 1 << 20, TRIES = 16, NAME_MAX_ = 255 };

struct temp {
	int dir, fd;
	bool named;
	char name[NAME_MAX_ + 1]; /* valid if `named` */
};

/* ---- the temporary file -------------------------------------------------- */

/* Make a hidden name that only this process uses.  It has the host's name, because a
 * process on another node may have this process's number. */
static void temp_name(char name[NAME_MAX_ + 1])
{
	static _Atomic uint64_t count;
	char host[65] = "";
	uint64_t random = 0;

	gethostname(host, sizeof host - 1);
	for (char *p = host; *p; p++)
		if (*p == '/')
			*p = '_';
	if (getrandom(&random, sizeof random, GRND_NONBLOCK) !=
	    (ssize_t)sizeof random)
		random = (uint64_t)(uintptr_t)&random;
	snprintf(name, NAME_MAX_ + 1, ".tfsidx-%s-%ld-%016" PRIx64 "%04" PRIx64,
		 host, (long)getpid(), random, count++);
}

static int temp_fail(const struct index_place *at, int code, struct error *err)
{
	char where[200];

	snprintf(where, sizeof where, "%s", file_shown(at->dir));
	return error_errno(err, code, "cannot save an index in %s", where);
}

/* Return 0 or -errno. */
static int temp_open(struct temp *t, bool named)
{
	const int flags = O_RDWR | O_CLOEXEC;

	t->named = false;
	if (!named) {
		t->fd = openat(t->dir, ".", flags | O_TMPFILE, 0600);
		return t->fd < 0 ? -errno : 0;
	}
	for (int i = 0; i < TRIES; i++) {
		temp_name(t->name);
		t->fd = openat(t->dir, t->name,
			       flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (t->fd >= 0) {
			t->named = true;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

/* Give the file a temporary name.  Without privileges this goes through /proc only.
 * Return 0 or -errno. */
static int temp_link(struct temp *t)
{
	char self[64];

	snprintf(self, sizeof self, "/proc/self/fd/%d", t->fd);
	for (int i = 0; i < TRIES; i++) {
		temp_name(t->name);
		if (linkat(AT_FDCWD, self, t->dir, t->name,
			   AT_SYMLINK_FOLLOW) == 0) {
			t->named = true;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

static void temp_drop(struct temp *t)
{
	if (t->fd >= 0)
		close(steal_fd(&t->fd));
	if (t->named)
		unlinkat(t->dir, t->name, 0);
	t->named = false;
}

/* Return 0 or -errno. */
static int temp_publish(struct temp *t, const char *name)
{
	if (close(steal_fd(&t->fd)) < 0 ||
	    renameat(t->dir, t->name, t->dir, name) < 0)
		return -errno;
	t->named = false;
	return 0;
}

/* ---- its content --------------------------------------------------------- */

static int index_write_all(int fd, uint64_t at, const void *data, size_t n)
{
	const char *p = data;

	while (n > 0) {
		ssize_t w = pwrite(fd, p, n, (off_t)at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -ENOSPC;
		p += w;
		at += (uint64_t)w;
		n -= (size_t)w;
	}
	return 0;
}

struct writer {
	const struct index_place *at;
	const struct index_section **order;
	struct index_head *head;
	XXH3_state_t *hash;
	void *piece; /* PIECE bytes */
	int fd;
};

static int index_write_section(struct writer *w, const struct index_section *s,
			       struct index_entry *e, struct error *err)
{
	int r = 0;

	XXH3_64bits_reset(w->hash);
	for (uint64_t done = 0; done < s->size && r == 0;) {
		size_t n = (size_t)min_u64(s->size - done, PIECE);
		const void *from = w->piece;

		if (s->blob)
			r = blob_read(s->blob, done, w->piece, n, err);
		else
			from = (const char *)s->data + done;
		if (r < 0)
			return r;
		XXH3_64bits_update(w->hash, from, n);
		r = index_write_all(w->fd, e->off + done, from, n);
		done += n;
	}
	e->sum = XXH3_64bits_digest(w->hash);
	return r < 0 ? temp_fail(w->at, r, err) : 0;
}

static int index_write_file(struct writer *w, struct error *err)
{
	int r = 0;

	if (ftruncate(w->fd, (off_t)w->head->size) < 0)
		return temp_fail(w->at, -errno, err);
	for (unsigned i = 0; i < w->head->n && r == 0; i++)
		r = index_write_section(w, w->order[i], &w->head->table[i],
					err);
	if (r < 0)
		return r;
	w->head->sum = index_head_sum(w->head);
	r = index_write_all(w->fd, 0, w->head, sizeof *w->head);
	return r < 0 ? temp_fail(w->at, r, err) : 0;
}

/* ---- saving -------------------------------------------------------------- */

struct saving {
	const struct index_key *key;
	struct index_head head;
	const struct index_section *order[INDEX_SECTIONS_MAX];
};

static bool index_comes_later(const struct index_section *a,
			      const struct index_section *b)
{
	return a->blob && (!b->blob || a->size > b->size);
}

/* Decide the order of the sections and the offset of each. */
static int index_lay_out(struct saving *s, const struct index_section *sections,
			 unsigned n, struct error *err)
{
	uint64_t end = sizeof s->head;

	if (n > INDEX_SECTIONS_MAX)
		return error_set(err, -EINVAL,
				 "%u sections are too many for an index", n);
	for (unsigned i = 0; i < n; i++) {
		unsigned j = i;

		for (;
		     j > 0 && index_comes_later(s->order[j - 1], &sections[i]);
		     j--)
			s->order[j] = s->order[j - 1];
		s->order[j] = &sections[i];
	}
	for (unsigned i = 0; i < n; i++) {
		uint64_t off = div_up(end, INDEX_ALIGN) * INDEX_ALIGN;

		if (add_overflows(off, s->order[i]->size, &end) ||
		    end > INT64_MAX - INDEX_ALIGN)
			return error_set(err, -EFBIG, "the index is too large");
		s->head.table[i] = (struct index_entry){
			.id = s->order[i]->id,
			.flags = s->order[i]->blob ? INDEX_LAZY : 0,
			.off = off,
			.size = s->order[i]->size};
	}
	s->head.n = n;
	s->head.size = end;
	return 0;
}

static int index_write_temp(struct saving *s, const struct index_place *at,
			    int fd, struct error *err)
{
	struct writer w = {
		at, s->order, &s->head, XXH3_createState(), malloc(PIECE), fd};
	int r;

	if (w.hash && w.piece)
		r = index_write_file(&w, err);
	else
		r = error_no_memory(err, "writing an index file");
	free(w.piece);
	XXH3_freeState(w.hash);
	/* The mode is set last: until then other users cannot open the file. */
	if (r == 0)
		(void)fchmod(fd, index_mode(s->key->source, fd));
	return r;
}

/* Refuse to replace an existing file that is not an index: --index=PATH may have
 * been given a wrong path. */
static int index_check_target(int dir, const struct index_place *at,
			      struct error *err)
{
	cleanup_close int fd = -1;
	char magic[8] = "";
	struct stat st;
	int r = file_open(dir, at->name, &fd, &st, err);

	if (r == -ENODATA)
		return 0;
	if (r == 0 && st.st_size > 0 &&
	    (file_read(fd, 0, magic, sizeof magic) < 0 ||
	     memcmp(magic, INDEX_MAGIC, sizeof magic) != 0))
		r = error_set(
			err, -EEXIST,
			"%s exists and is not an index: it is not overwritten",
			at->name);
	return r;
}

static int index_save_at(struct saving *s, const struct index_place *at,
			 struct error *err)
{
	struct temp t = {.fd = -1};
	cleanup_close int dir = index_place_open(at, err);
	int r;

	if (dir < 0)
		return dir;
	r = at->asked ? index_check_target(dir, at, err) : 0;
	if (r < 0)
		return r;
	t.dir = dir;
	if (temp_open(&t, false) < 0) {
		r = temp_open(&t, true);
		if (r < 0)
			return temp_fail(at, r, err);
	}
	r = index_write_temp(s, at, t.fd, err);
	if (r == 0 && !t.named && temp_link(&t) < 0) {
		/* Without /proc, write the file once more, with a name from the
		 * beginning. */
		temp_drop(&t);
		r = temp_open(&t, true);
		r = r < 0 ? temp_fail(at, r, err)
			  : index_write_temp(s, at, t.fd, err);
	}
	if (r == 0) {
		r = temp_publish(&t, at->name);
		if (r < 0)
			temp_fail(at, r, err);
	}
	temp_drop(&t);
	return r;
}

/* Return whether the index may be saved at this place.  Commands that only look at
 * data write nothing beside it. */
static bool index_is_allowed(const struct index_options *o,
			     const struct index_place *at)
{
	return !o || !o->looks || o->where || at->cache;
}

static int index_save_somewhere(struct saving *s, const struct index_options *o,
				const struct index_places *p, char **path,
				struct error *err)
{
	struct error why, first = {0, ""};
	unsigned tried = 0;
	int r = -ENOENT;

	for (unsigned i = 0; i < p->n && r < 0; i++) {
		const struct index_place *at = &p->at[i];

		if (!index_is_allowed(o, at))
			continue;
		r = index_save_at(s, at, &why);
		if (r == 0 && path &&
		    asprintf(path, "%s/%s", at->dir, at->name) < 0)
			*path = NULL;
		if (r < 0 && !first.code)
			first = why;
		tried++;
	}
	if (!tried)
		return 0;
	if (r < 0 && tried > 1)
		return error_set(err, r, "%s; %.200s", first.text, why.text);
	return r < 0 ? error_set(err, r, "%s", first.text) : 0;
}

int index_save(const struct index_key *key, const struct index_options *o,
	       const struct index_section *sections, unsigned n, char **path,
	       struct error *err)
{
	struct saving s = {.key = key};
	struct index_places p;
	int r;

	if (path)
		*path = NULL;
	if (!index_wanted(key, o))
		return 0;
	r = index_lay_out(&s, sections, n, err);
	if (r == 0)
		r = index_identify(key, &s.head, err);
	if (r == 0)
		r = index_sample(key->source, s.head.sample, err);
	if (r == 0)
		r = index_places(key, o, &p, err);
	if (r < 0)
		return r;
	r = index_save_somewhere(&s, o, &p, path, err);
	index_places_free(&p);
	return r;
}
